//! Encoders in one file: loaded, or refused with what is wrong. What loads gives vectors.
#![no_main]

mod engine;

use libfuzzer_sys::fuzz_target;
use steward_engine::{Cancel, Encoder, Purpose};

fuzz_target!(
    init: engine::panics_are_answers(),
    |bytes: &[u8]| {
        let path = std::env::temp_dir().join(format!("steward-fuzz-{}.bin", std::process::id()));
        std::fs::write(&path, bytes).expect("the folder for temporary files can be written");
        let loaded = Encoder::load(&path, Some(1));
        std::fs::remove_file(&path).expect("the file is there");
        match loaded {
            Ok(encoder) => {
                if let Err(error) = encoder.embed(&["the red house"], Purpose::Query, &Cancel::new()) {
                    engine::expect_clear(&error);
                }
            }
            Err(error) => engine::expect_clear(&error),
        }
    }
);
