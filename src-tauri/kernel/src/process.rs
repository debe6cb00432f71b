//! Processes: ids, states, what is told of them.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Process id. Never used twice in one data directory.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Pid(pub u64);

impl std::fmt::Display for Pid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A run: a process and all its children. Its number is the first process's pid.
pub type RunId = u64;

/// Where a process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessState {
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
    /// Put aside by the kernel; restored when the program starts again.
    Suspended,
    /// Ended by itself.
    Exited,
    /// Ended by an error.
    Failed,
    /// Ended from outside.
    Killed,
}

impl ProcessState {
    /// Whether it has ended.
    pub fn is_final(self) -> bool {
        matches!(
            self,
            ProcessState::Exited | ProcessState::Failed | ProcessState::Killed
        )
    }

    /// The stable word, such as `waiting_human`.
    pub fn as_str(self) -> &'static str {
        match self {
            ProcessState::Created => "created",
            ProcessState::Runnable => "runnable",
            ProcessState::Running => "running",
            ProcessState::WaitingEvent => "waiting_event",
            ProcessState::WaitingTool => "waiting_tool",
            ProcessState::WaitingHuman => "waiting_human",
            ProcessState::Paused => "paused",
            ProcessState::Suspended => "suspended",
            ProcessState::Exited => "exited",
            ProcessState::Failed => "failed",
            ProcessState::Killed => "killed",
        }
    }
}

/// What can be sent to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Has it stand still at its next system call, until it is resumed, restarts included. A
    /// generation that runs gives its core back and goes on later from where it stood.
    Pause,
    /// Has it go on.
    Resume,
    /// Ends the call that it waits in with [`Code::Interrupted`](crate::Code::Interrupted); it goes
    /// on from there. What it asked the person lapses.
    Interrupt,
    /// Ends it and its children.
    Kill,
}

impl Signal {
    /// The stable word, such as `pause`.
    pub fn as_str(self) -> &'static str {
        match self {
            Signal::Pause => "pause",
            Signal::Resume => "resume",
            Signal::Interrupt => "interrupt",
            Signal::Kill => "kill",
        }
    }
}

/// How soon the calls of a process get their turn, as far as the scheduling policy looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Urgency {
    /// Its class, from 0 (first) to [`Urgency::LAST`].
    pub priority: u8,
    /// Whether a person waits for it.
    pub interactive: bool,
    /// Unix milliseconds by which its calls should have had their turn.
    pub deadline_ms: Option<u64>,
}

impl Urgency {
    /// The class of what can wait longest.
    pub const LAST: u8 = 7;
    /// The class of a process that was given none.
    pub const USUAL: u8 = 4;
}

impl Default for Urgency {
    fn default() -> Self {
        Self {
            priority: Self::USUAL,
            interactive: false,
            deadline_ms: None,
        }
    }
}

/// A process, as told to others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessInfo {
    /// Process id.
    pub pid: Pid,
    /// The process that started it.
    pub parent: Option<Pid>,
    /// The run it belongs to.
    pub run: RunId,
    /// The image it was started from.
    pub image: String,
    /// Its goal.
    pub goal: String,
    /// Where it stands.
    pub state: ProcessState,
    /// What it does now, in a few words.
    pub status: String,
    /// Its workspace.
    pub workspace: PathBuf,
    /// Tokens used, prompt and generated.
    pub tokens: u64,
    /// System calls made.
    pub steps: u32,
    /// Unix milliseconds when it was made.
    pub created_ms: u64,
    /// Unix milliseconds when it ended.
    pub ended_ms: Option<u64>,
    /// The run this one follows in a conversation.
    pub after: Option<RunId>,
    /// Whether it is to stand still, or does.
    #[serde(default)]
    pub paused: bool,
    /// How soon its calls get their turn.
    #[serde(default)]
    pub urgency: Urgency,
}
