//! Calls about files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Arguments of `fs.read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsRead {
    /// Path within the workspace.
    pub path: String,
    /// Bytes at most (1 to 1 MiB; 256 KiB where absent).
    #[serde(default)]
    pub limit: Option<u64>,
}

/// A text file's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileText {
    /// The text, at most the limit asked for. Invalid UTF-8 is refused, not replaced.
    pub text: String,
    /// Bytes of the whole file.
    pub total: u64,
    /// Whether the text is only the file's beginning.
    pub cut: bool,
    /// SHA-256 of the whole file, where all of it was read.
    pub sha256: Option<String>,
}

/// Arguments of `fs.list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsList {
    /// Folder within the workspace; empty for its root.
    #[serde(default)]
    pub path: String,
    /// Entries at most (1 to 10,000; 1,000 where absent).
    #[serde(default)]
    pub limit: Option<u32>,
}

/// Arguments of `fs.stat`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsStat {
    /// Path within the workspace.
    pub path: String,
}

/// Arguments of `fs.write`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsWrite {
    /// Path within the workspace.
    pub path: String,
    /// The whole new text.
    pub text: String,
    /// SHA-256 of the version this text was made from; the write is a conflict where the file has
    /// changed since. Absent: no version is expected.
    #[serde(default)]
    pub base: Option<String>,
}

/// What `fs.write` did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Written {
    /// Path within the workspace, normalised.
    pub path: String,
    /// Bytes written.
    pub bytes: u64,
    /// SHA-256 of what is there now.
    pub sha256: String,
    /// Whether a file was there before.
    pub overwritten: bool,
}

/// Arguments of `fs.mkdir`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsMkdir {
    /// Path within the workspace.
    pub path: String,
}

/// Arguments of `fs.move`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsMove {
    /// From, within the workspace.
    pub from: String,
    /// To, within the workspace.
    pub to: String,
}

/// Arguments of `fs.delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsDelete {
    /// Path within the workspace.
    pub path: String,
}

/// What a change changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// Path within the workspace, normalised.
    pub path: String,
}

/// Arguments of `fs.undo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsUndo {
    /// The run; the latest one in this workspace that changed files, where absent.
    #[serde(default)]
    pub run: Option<u64>,
}

/// What `fs.undo` did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Undone {
    /// The run that was undone.
    pub run: u64,
    /// Paths put back, within the workspace.
    pub restored: Vec<String>,
    /// Paths left as they are because they changed since, with why.
    pub kept: Vec<String>,
}
