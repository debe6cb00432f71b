//! Requests for agents, and what a process can be told.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::process::Limits;

/// A request for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Submit {
    /// What the person asks, in their words.
    pub request: String,
    /// Absolute path of the workspace; the configured default where absent.
    #[serde(default)]
    pub workspace: Option<String>,
    /// The run this goes on from (a follow-up in the same chat), if any.
    #[serde(default)]
    pub after: Option<u64>,
}

/// A request for an image, with the rights that the person gives to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Run {
    /// The image's name.
    pub image: String,
    /// What the person asks, in their words.
    pub request: String,
    /// Absolute path of the workspace.
    pub workspace: String,
    /// The working directory within it; the workspace itself where empty.
    #[serde(default)]
    pub folder: String,
    /// What it may do to files there.
    pub access: Access,
    /// Which programs it may run.
    pub shell: ShellAccess,
    /// What it may use.
    #[serde(default)]
    pub limits: Limits,
    /// The run this goes on from, if any.
    #[serde(default)]
    pub after: Option<u64>,
}

/// What a process may do to the files of its workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Access {
    /// Look.
    Read,
    /// Look, and change after a yes to each change.
    Edit,
    /// Look and change, without asking.
    Full,
}

/// Which programs a process may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ShellAccess {
    /// None.
    None,
    /// Any, after a yes to each.
    Ask,
    /// Those of a list without asking, others after a yes.
    Allowlist,
    /// Any, without asking.
    Full,
}

/// What a process can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum SignalView {
    /// Stop for now; it can go on.
    Pause,
    /// Go on.
    Resume,
    /// Give up the call that runs; the process goes on with an error.
    Interrupt,
    /// End.
    Kill,
}
