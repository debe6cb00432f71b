//! What processes remember, by name, kind and size.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// One object of a process. Its contents are not told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ObjectView {
    /// Its handle.
    pub id: u64,
    /// Its name in its namespace (escaped); absent where it has none.
    pub name: Option<String>,
    /// Its namespace, such as `proc/3`.
    pub namespace: String,
    /// What it is, such as `goal` or `tool_result`.
    pub kind: String,
    /// Its newest version, counted from 1.
    pub version: u32,
    /// Bytes of its newest version.
    pub bytes: u64,
    /// The process that made it.
    pub creator: u64,
    /// Unix time in milliseconds when it was made.
    pub created_ms: u64,
    /// Whether it can be changed no more.
    pub immutable: bool,
    /// Whether it stays when its process ends.
    pub kept: bool,
}
