//! A person's files, as the kernel needs them.

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Digest;
use crate::error::SysError;

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
}

/// A regular file or folder inside a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileStat {
    /// Path within the workspace, `/`-separated.
    pub path: String,
    /// File or folder.
    pub kind: FileKind,
    /// Bytes of a file; 0 for a folder.
    pub bytes: u64,
    /// Modification time, Unix milliseconds.
    pub modified_ms: u64,
    /// Unix permission bits.
    pub mode: u32,
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Name within its folder (lossy where it is not UTF-8).
    pub name: String,
    /// File or folder; absent for links, devices, sockets, which cannot be opened.
    pub kind: Option<FileKind>,
    /// Bytes of a file.
    pub bytes: u64,
}

/// A folder's entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listing {
    /// Path within the workspace; empty for its root.
    pub path: String,
    /// Sorted by name.
    pub entries: Vec<Entry>,
    /// Entries left out because the limit was reached.
    pub left_out: u64,
}

/// Bytes of a file, or of a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileBytes {
    /// The bytes, at most the limit asked for.
    pub bytes: Vec<u8>,
    /// Bytes of the whole file.
    pub total: u64,
    /// SHA-256 of the whole file where all of it was read, else absent.
    pub sha256: Option<Digest>,
}

/// A change to a workspace that a process wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Write these bytes; parents are made.
    Write {
        /// Path within the workspace.
        path: String,
        /// The whole new content.
        bytes: Arc<Vec<u8>>,
    },
    /// Make a folder; parents are made.
    Mkdir {
        /// Path within the workspace.
        path: String,
    },
    /// Move a file or folder.
    Move {
        /// From, within the workspace.
        from: String,
        /// To, within the workspace.
        to: String,
    },
    /// Delete a file or an empty folder.
    Delete {
        /// Path within the workspace.
        path: String,
    },
    /// Put back an earlier version (for undo), with its permission bits.
    Restore {
        /// Path within the workspace.
        path: String,
        /// The version's content.
        sha256: Digest,
        /// Its permission bits.
        mode: u32,
    },
}

/// State of a path, exact enough to tell whether it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum PathState {
    /// Nothing is there.
    Absent,
    /// A regular file.
    File {
        /// SHA-256 of its bytes.
        sha256: Digest,
        /// Its size.
        bytes: u64,
        /// Its permission bits.
        mode: u32,
    },
    /// A folder.
    Folder {
        /// Its permission bits.
        mode: u32,
    },
}

impl PathState {
    /// Size where it is a file.
    pub fn bytes(&self) -> Option<u64> {
        match self {
            PathState::File { bytes, .. } => Some(*bytes),
            _ => None,
        }
    }
}

/// What a [`Change`] would do, looked at now. An approval is bound to all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Absolute path, links in the workspace's own path resolved.
    pub absolute: String,
    /// Path within the workspace, normalised.
    pub path: String,
    /// What is there now.
    pub before: PathState,
    /// What would be there afterwards.
    pub after: PathState,
    /// For a move: where it goes.
    pub target: Option<Target>,
    /// Folders that would be made first, outermost first, within the workspace.
    pub makes: Vec<String>,
}

/// The target of a move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Absolute path.
    pub absolute: String,
    /// Path within the workspace, normalised.
    pub path: String,
    /// What is there now.
    pub before: PathState,
}

/// A person's files, opened beneath a workspace only, with old bytes kept by content.
///
/// Every path argument is untrusted and relative to the workspace. Calls block; the kernel runs
/// them off its own threads.
pub trait Files: Send + Sync {
    /// Checks that a workspace is there and readable; its absolute path with links resolved.
    fn workspace(&self, root: &Path) -> Result<std::path::PathBuf, SysError>;
    /// Looks at one path.
    fn stat(&self, root: &Path, path: &str) -> Result<FileStat, SysError>;
    /// The state of a path, exact enough to tell whether it changed; absent is a state, not an
    /// error.
    fn state(&self, root: &Path, path: &str) -> Result<PathState, SysError>;
    /// Reads at most `limit` bytes from `offset`.
    fn read(&self, root: &Path, path: &str, offset: u64, limit: u64)
    -> Result<FileBytes, SysError>;
    /// Lists a folder, at most `limit` entries.
    fn list(&self, root: &Path, path: &str, limit: usize) -> Result<Listing, SysError>;
    /// What a change would do, and the bytes there now put into the version store (for a write,
    /// delete or replacing move), so that they are safe before anything happens.
    fn plan(&self, root: &Path, change: &Change) -> Result<Plan, SysError>;
    /// Carries out a change if the paths still stand as `plan` says ([`crate::Code::Conflict`]
    /// otherwise): whole or not at all, durable when it returns.
    fn apply(&self, root: &Path, change: &Change, plan: &Plan) -> Result<(), SysError>;
    /// Bytes of a kept version, at most `limit`.
    fn version(&self, sha256: &Digest, limit: u64) -> Result<Vec<u8>, SysError>;
}
