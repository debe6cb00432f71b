//! The default model, loaded once for a test binary.

use std::path::PathBuf;
use std::sync::OnceLock;

use steward_engine::{Engine, LoadOptions};

const FILE: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

/// Where the model must lie: `$STEWARD_MODELS`, or `steward/models` in the user's data directory.
pub(crate) fn path() -> PathBuf {
    let set = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let folder = set("STEWARD_MODELS").unwrap_or_else(|| {
        let data = set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")));
        data.expect("HOME is set").join("steward/models")
    });
    let path = folder.join(FILE);
    assert!(
        path.is_file(),
        "these tests need the default model at `{}`: run `./x setup`, or set STEWARD_MODELS",
        path.display()
    );
    path
}

/// The engine with the default model.
pub(crate) fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::load(&path(), &LoadOptions::default()).expect("the model loads"))
}
