//! Constraints of a capability in JSON, and what they say to calls: a reader that never panics, and
//! constraints that are within themselves.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steward_kernel::capability::{Constraints, Facts};

fuzz_target!(|text: &str| {
    let (json, rest) = text.split_once('\n').unwrap_or((text, ""));
    match Constraints::parse(json) {
        Ok(constraints) => {
            assert!(constraints.within(&constraints));
            let argv: Vec<String> = rest.split(' ').map(str::to_owned).collect();
            let facts = Facts {
                path: Some(rest.to_owned()),
                host: Some(rest.to_owned()),
                argv: Some(argv),
                ..Facts::default()
            };
            let _ = constraints.hold(&facts, rest.len() as u64);
        }
        Err(error) => assert!(!error.message.is_empty()),
    }
});
