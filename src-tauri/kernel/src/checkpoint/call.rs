//! Arguments and results of the calls about checkpoints.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CheckpointId;
use crate::budget::Budget;
use crate::capability::Grant;
use crate::process::{ForkMode, Pid};

/// Arguments of `checkpoint.create`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointCreate {
    /// What it is called, in a few words.
    #[serde(default)]
    pub label: String,
}

/// What `checkpoint.create` gives back: once when it is made, and once more in each process that
/// goes on from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpointed {
    /// The checkpoint.
    pub id: CheckpointId,
    /// How the process came to this result.
    pub way: Way,
    /// What it is to do, where it was forked from the checkpoint.
    #[serde(default)]
    pub task: String,
}

/// How a process came to be at a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// It made it.
    Made,
    /// It was taken back to it.
    Restored,
    /// It was forked from it.
    Forked,
}

/// Arguments of `checkpoint.list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointList {
    /// Only those of this process; of the whole run where absent.
    #[serde(default)]
    pub pid: Option<Pid>,
}

/// Arguments of `checkpoint.inspect`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointInspect {
    /// The checkpoint.
    pub id: CheckpointId,
}

/// Arguments of `checkpoint.diff`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointDiffer {
    /// The one compared from.
    pub from: CheckpointId,
    /// The one compared to.
    pub to: CheckpointId,
}

/// Arguments of `checkpoint.restore`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointRestore {
    /// The checkpoint: of the caller, or of a child of it.
    pub id: CheckpointId,
}

/// Arguments of `checkpoint.fork`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointFork {
    /// The checkpoint to go on from.
    pub id: CheckpointId,
    /// What kind of child it becomes; a worker has no history to go on from.
    pub mode: ForkMode,
    /// What it is to do: part of its result of `checkpoint.create`.
    #[serde(default)]
    pub task: String,
    /// What else it is to hold, of what the caller holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// What it may use; what the caller has left where absent.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
}

/// Arguments of `checkpoint.replay`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointReplay {
    /// The checkpoint.
    pub id: CheckpointId,
}
