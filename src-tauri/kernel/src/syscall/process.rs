//! Arguments and results of the calls about processes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Exit, shown_folder};
use crate::budget::Budget;
use crate::capability::Grant;
use crate::process::{ForkMode, Pid};

/// Arguments of `process.spawn`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessSpawn {
    /// The image to start from.
    pub image: String,
    /// The child's goal.
    pub goal: String,
    /// Whether the child may ask to change files, where its parent may. It starts without
    /// that right otherwise.
    #[serde(default)]
    pub may_change: bool,
    /// What else it is to hold, of what its parent holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// What it may use; its parent's budget counts for it as well.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// The folder it starts in; its parent's where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// Arguments of `process.fork`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessFork {
    /// What kind of child it becomes.
    pub mode: ForkMode,
    /// What the child is to do: its result of this call, or a worker's goal.
    #[serde(default)]
    pub task: String,
    /// What else it is to hold, of what its parent holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// What it may use; what its parent has left where absent.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
}

/// What `process.fork` gives back, in each of the two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "as", rename_all = "snake_case")]
pub enum Forked {
    /// In the process that forked.
    Parent {
        /// The new process.
        child: Pid,
    },
    /// In the new process.
    Child {
        /// The process that forked.
        parent: Pid,
        /// What it is to do.
        task: String,
    },
}

/// Arguments of `process.exec`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessExec {
    /// The image to go on as.
    pub image: String,
    /// The goal from now on.
    pub goal: String,
}

/// Arguments of `process.wait_any`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessWaitAny {
    /// Children (1 to 256).
    pub pids: Vec<Pid>,
}

/// A child that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChildEnded {
    /// Which.
    pub pid: Pid,
    /// How.
    pub exit: Exit,
}

/// Arguments of `process.chdir`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessChdir {
    /// A folder, from where the process is now; empty for the workspace itself.
    #[serde(default)]
    pub path: String,
}

impl ProcessChdir {
    pub(super) fn title(&self) -> String {
        format!("go to {}", shown_folder(&self.path))
    }
}

/// Arguments of `process.status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessStatus {
    /// What the process does, in a few words; empty to say nothing.
    pub text: String,
}

/// Arguments of `process.send`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessSend {
    /// The parent, a child, or another process that the caller may write to.
    pub to: Pid,
    /// The message.
    pub text: String,
}

/// Arguments of `process.receive`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessReceive {
    /// Milliseconds to wait at most; without end where absent.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// A message that was received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Received {
    /// Its number.
    pub id: u64,
    /// Who sent it; the person where absent.
    pub from: Option<Pid>,
    /// The message.
    pub text: String,
    /// Unix milliseconds when it was sent.
    pub at_ms: u64,
}
