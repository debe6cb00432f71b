//! Processes and their steps.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::problem::Problem;

/// State of a process, as shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum StateView {
    /// Made, not yet queued.
    Created,
    /// Ready, waiting for its turn.
    Runnable,
    /// Running.
    Running,
    /// Waits for a child, a clock or a message.
    WaitingEvent,
    /// Waits for a core, a file or a tool.
    WaitingTool,
    /// Waits for the person.
    WaitingHuman,
    /// Stopped by the person; can go on.
    Paused,
    /// Put aside by the kernel.
    Suspended,
    /// Ended by itself.
    Exited,
    /// Ended by an error.
    Failed,
    /// Ended from outside.
    Killed,
}

/// One process in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ProcessView {
    /// Process id.
    pub pid: u64,
    /// The process that started it.
    pub parent: Option<u64>,
    /// The run it belongs to (the pid of the run's first process).
    pub run: u64,
    /// The image it was started from.
    pub image: String,
    /// The request or goal.
    pub goal: String,
    /// Where it stands.
    pub state: StateView,
    /// What it does now, in a few words.
    pub status: String,
    /// Absolute path of its workspace.
    pub workspace: String,
    /// Tokens used (prompt and generated).
    pub tokens: u64,
    /// Steps taken.
    pub steps: u32,
    /// Unix time in milliseconds when it was made.
    pub created_ms: u64,
    /// Unix time in milliseconds when it ended.
    pub ended_ms: Option<u64>,
    /// Whether what it did can be undone: it changed files, and that was not undone yet.
    pub undoable: bool,
    /// The run that this one goes on from, in the same chat.
    pub after: Option<u64>,
    /// Its working directory within the workspace (escaped); empty for the workspace itself.
    pub cwd: String,
    /// The step it is at (escaped); absent where it is at none.
    pub step: Option<String>,
    /// Milliseconds since it was made, or until it ended.
    pub elapsed_ms: u64,
    /// How soon its calls get their turn under the policy `priority`: 0 is first, 4 is usual.
    pub priority: u8,
    /// Whether a person waits for it.
    pub interactive: bool,
    /// What it may use, and has used, its children's counted in.
    pub budget: BudgetView,
}

/// What a process may use and has used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct BudgetView {
    /// What it may use.
    pub limits: Limits,
    /// What it and its children have used.
    pub used: Used,
}

/// Limits of a process; no limit where absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct Limits {
    /// Tokens, prompt and generated.
    pub tokens: Option<u64>,
    /// System calls.
    pub calls: Option<u64>,
    /// Seconds.
    pub seconds: Option<u64>,
    /// Money, in millionths of the currency of the prices.
    pub money_micros: Option<u64>,
    /// Children and their children.
    pub children: Option<u64>,
}

/// What a process and its children have used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Used {
    /// Tokens, prompt and generated.
    pub tokens: u64,
    /// System calls.
    pub calls: u64,
    /// Seconds.
    pub seconds: u64,
    /// Money, in millionths of the currency of the prices.
    pub money_micros: u64,
    /// Children and their children.
    pub children: u64,
}

/// One process with everything about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ProcessDetail {
    /// The process.
    pub process: ProcessView,
    /// What it did, oldest first.
    pub steps: Vec<StepView>,
    /// Its answer, once it has ended.
    pub answer: Option<String>,
    /// Whether it ended well, once it has ended.
    pub ok: Option<bool>,
    /// What went wrong, where it did not end well.
    pub problem: Option<Problem>,
}

/// One step: a system call a person would want to see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct StepView {
    /// The call's number within its process.
    pub seq: u64,
    /// The system call, such as `fs.read`.
    pub name: String,
    /// What it does, in a few words (escaped, one line).
    pub title: String,
    /// How it went, or what it waits for.
    pub detail: String,
    /// Where it stands.
    pub state: StepState,
    /// How long it took, waiting included, in milliseconds; absent while it runs.
    pub elapsed_ms: Option<u64>,
}

/// Where a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum StepState {
    /// In a queue or running.
    Running,
    /// Waits for the person.
    Waiting,
    /// Done.
    Done,
    /// Refused by the person or by a missing right.
    Denied,
    /// Failed.
    Failed,
    /// It is not known whether it took effect (the program ended in between).
    Unknown,
}
