//! Points in a process's history that it can be taken back to.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// One checkpoint in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CheckpointView {
    /// Its number.
    pub id: u64,
    /// The process it is of.
    pub pid: u64,
    /// The run of that process.
    pub run: u64,
    /// System calls up to it.
    pub seq: u64,
    /// What it was called (escaped).
    pub label: String,
    /// SHA-256 (hex) of what is in it.
    pub digest: String,
    /// Unix time in milliseconds when it was made.
    pub at_ms: u64,
}

/// One checkpoint with what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CheckpointDetail {
    /// The checkpoint.
    pub checkpoint: CheckpointView,
    /// What is known of the process at that point, a name and a value each (escaped).
    pub facts: Vec<(String, String)>,
    /// Effects outside since then, which a restore does not take back, a sentence each (escaped).
    pub outside: Vec<String>,
}

/// What lies between two checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CheckpointDiff {
    /// The one compared from.
    pub from: u64,
    /// The one compared to.
    pub to: u64,
    /// What differs, a line each (escaped); empty where nothing does.
    pub lines: Vec<String>,
}

/// How the replay of a checkpoint went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CheckpointReplay {
    /// The checkpoint.
    pub checkpoint: u64,
    /// System calls that were answered from its record.
    pub calls: u64,
    /// Whether the program made every recorded call again, in the same order.
    pub same: bool,
    /// How it went, in a sentence (escaped).
    pub verdict: String,
}
