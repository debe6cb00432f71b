//! Where the default model lies.

use std::path::PathBuf;

/// The default model: `$STEWARD_MODELS`, or `steward/models` in the user's data directory.
pub(crate) fn default_model() -> PathBuf {
    let set = |name| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    let folder = set("STEWARD_MODELS").unwrap_or_else(|| {
        let data = set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")));
        data.expect("HOME is set").join("steward/models")
    });
    let path = folder.join("SmolLM2-135M-Instruct.Q4_1.gguf");
    assert!(
        path.is_file(),
        "this needs the default model at `{}`: run `./x setup`, or set STEWARD_MODELS",
        path.display()
    );
    path
}
