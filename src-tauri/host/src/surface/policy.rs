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

/// Where an answer or a policy counts. Tagged by `kind` in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
pub enum PolicyScope {
    /// Everywhere.
    Everywhere,
    /// In a workspace.
    Workspace {
        /// Its absolute path.
        root: String,
    },
    /// In a folder and below it.
    Folder {
        /// Its absolute path.
        path: String,
    },
    /// For processes of an image.
    Image {
        /// Its name.
        image: String,
    },
    /// In a run.
    Run {
        /// Its number.
        run: u64,
    },
    /// For one process.
    Process {
        /// Its number.
        pid: u64,
    },
}
