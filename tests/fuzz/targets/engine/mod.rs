//! The tiny model that the engine's targets load.

#[path = "../../../../src-tauri/engine/tests/tiny/mod.rs"]
#[allow(dead_code, reason = "not every target makes every file")]
pub(crate) mod tiny;

use steward_engine::{Engine, EngineError, LoadOptions};
use tiny::{File, Grain, Kind};

/// The model of two layers over bytes that the engine's tests use.
pub(crate) fn file() -> File {
    File::new(Kind::Q8_0, Grain::Eight)
}

/// Loads the bytes of a file.
pub(crate) fn load(bytes: &[u8]) -> Result<Engine, EngineError> {
    let path = std::env::temp_dir().join(format!("steward-fuzz-{}.gguf", std::process::id()));
    std::fs::write(&path, bytes).expect("the folder for temporary files can be written");
    let options = LoadOptions {
        threads: Some(1),
        ..LoadOptions::default()
    };
    let loaded = Engine::load(&path, &options);
    std::fs::remove_file(&path).expect("the file is there");
    loaded
}

/// A panic that a room turns into an error is none of the fuzzer's; those that are left end the
/// target all the same.
pub(crate) fn panics_are_answers() {
    std::panic::set_hook(Box::new(|_| ()));
}

/// An error that says something and blames the input.
pub(crate) fn expect_clear(error: &EngineError) {
    assert!(!matches!(error, EngineError::Internal(_)), "{error}");
    assert!(!error.to_string().is_empty());
}
