//! What stands in a checkpoint: read or refused with the place of what is wrong.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steward_kernel::Code;
use steward_kernel::checkpoint::Scene;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Err(error) = Scene::read(text) {
        assert!(matches!(error.code, Code::Invalid | Code::Limit));
        assert!(!error.message.is_empty());
    }
});
