//! Model files whose beginning is the input and whose weights are a tiny model's: loaded, or refused
//! with the field that is wrong. What loads can answer.
#![no_main]

mod engine;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use steward_engine::{Cancel, GenerateRequest, Prompt};

/// The tiny model's tensor data.
static DATA: OnceLock<Vec<u8>> = OnceLock::new();

fuzz_target!(
    init: engine::panics_are_answers(),
    |head: &[u8]| {
        let data = DATA.get_or_init(|| {
            let file = engine::file();
            let len: usize = file.tensors.iter().map(|tensor| tensor.data.len().next_multiple_of(32)).sum();
            let bytes = file.bytes();
            bytes[bytes.len() - len..].to_vec()
        });
        match engine::load(&[head, data].concat()) {
            Ok(engine) => {
                let request = GenerateRequest::new(Prompt::Text("a b".to_owned()), 3);
                if let Err(error) = engine.generate(&request, &Cancel::new(), &mut |_| ()) {
                    engine::expect_clear(&error);
                }
            }
            Err(error) => engine::expect_clear(&error),
        }
    }
);
