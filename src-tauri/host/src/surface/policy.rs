//! What the person has answered once for all, and what is asked each time.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A standing answer: an "always" of the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct GrantView {
    /// Its number.
    pub id: u64,
    /// The system call that it answers, such as `fs.write`.
    pub action: String,
    /// Where it counts.
    pub scope: PolicyScope,
    /// What it says, in a sentence (escaped).
    pub words: String,
    /// True for a yes, false for a no.
    pub allow: bool,
    /// Unix time in milliseconds when it was given.
    pub issued_ms: u64,
    /// Who gave it, such as `terminal`.
    pub by: String,
    /// How many times it has answered.
    pub uses: u64,
    /// Unix time in milliseconds when it was taken back.
    pub revoked_ms: Option<u64>,
}

/// A policy: how a system call is answered within a scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct PolicyView {
    /// Its number among the standing answers.
    pub id: u64,
    /// The system call, such as `fs.write`.
    pub action: String,
    /// Where it counts.
    pub scope: PolicyScope,
    /// How it is answered.
    pub rule: PolicyRule,
    /// What it says, in a sentence (escaped).
    pub words: String,
    /// Unix time in milliseconds when it was set.
    pub set_ms: u64,
    /// Who set it.
    pub by: String,
}

/// A policy to set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct PolicyChange {
    /// The system call, such as `fs.write`.
    pub action: String,
    /// Where it counts.
    pub scope: PolicyScope,
    /// How it is answered; `ask_each_time` is what counts where nothing is set.
    pub rule: PolicyRule,
}

/// How a system call that needs a yes is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum PolicyRule {
    /// Yes without asking.
    AlwaysAllow,
    /// No without asking.
    AlwaysDeny,
    /// The person is asked each time.
    AskEachTime,
    /// Yes to the next one, then asked again.
    AllowOnce,
}

/// Where an answer or a policy counts: all that is given must hold; everywhere where nothing is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
#[ts(optional_fields = nullable)]
pub struct PolicyScope {
    /// In a workspace: its absolute path.
    pub workspace: Option<String>,
    /// At one path of the workspace.
    pub path: Option<String>,
    /// In a folder of the workspace and below it.
    pub folder: Option<String>,
    /// For processes of an image.
    pub image: Option<String>,
    /// In a run.
    pub run: Option<u64>,
    /// For one process.
    pub pid: Option<u64>,
}
