//! Processes: ids, states, what is told of them.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::{Budget, Used};
use crate::error::{Code, SysError};

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

/// What kind of child a fork makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForkMode {
    /// It goes on from where its parent is, with its parent's view of the world; it changes files
    /// only where that is granted anew.
    Copy,
    /// As a copy, without the person and without other processes, unless granted anew.
    Restricted,
    /// As a copy that nothing outside can be changed or asked by, whatever it holds: what it makes
    /// is taken over by its parent, or dropped.
    Speculative,
    /// It starts anew from its goal, and may look at its parent's objects.
    Worker,
}

impl ForkMode {
    /// The stable word, such as `copy`.
    pub fn as_str(self) -> &'static str {
        match self {
            ForkMode::Copy => "copy",
            ForkMode::Restricted => "restricted",
            ForkMode::Speculative => "speculative",
            ForkMode::Worker => "worker",
        }
    }
}

/// A path from the workspace's root, as a process in folder `cwd` means it. Only its words are
/// looked at: what a folder really is, the file provider looks at.
pub(crate) fn path_within(cwd: &str, path: &str) -> Result<String, SysError> {
    if cwd.is_empty() || path.starts_with('/') {
        return Ok(path.to_owned());
    }
    folder_within(cwd, path)
}

/// As [`path_within`], without `.` and `..`; empty for the workspace itself.
pub(crate) fn folder_within(cwd: &str, path: &str) -> Result<String, SysError> {
    let out = || {
        let shown = crate::escape::shown(path);
        SysError::new(
            Code::Confined,
            format!("`{shown}` leads out of the workspace"),
        )
        .hint("use a path within the workspace")
    };
    if path.starts_with('/') {
        return Err(out());
    }
    let mut parts: Vec<&str> = cwd.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop().ok_or_else(out)?),
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
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
    /// The folder of the workspace it is in; empty for the workspace itself.
    #[serde(default)]
    pub cwd: String,
    /// How it was forked, where it was.
    #[serde(default)]
    pub mode: Option<ForkMode>,
    /// What it may use.
    #[serde(default)]
    pub budget: Budget,
    /// What it and its children have used.
    #[serde(default)]
    pub used: Used,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_path_is_meant_from_the_folder_and_never_out_of_the_workspace() {
        let confined = None;
        let rows = [
            ("", "a/b", Some("a/b")),
            ("", "", Some("")),
            ("", "a/../b/./c", Some("b/c")),
            ("", "..", confined),
            ("", "a/../..", confined),
            ("", "/etc", confined),
            ("a", "b", Some("a/b")),
            ("a", "..", Some("")),
            ("a/b", "../c", Some("a/c")),
            ("a/b", "../../..", confined),
            ("a/b", "../../../a/b", confined),
            ("a", "/a", confined),
            ("a", ".", Some("a")),
        ];
        for (cwd, path, expected) in rows {
            let got = folder_within(cwd, path).ok();
            assert_eq!(got.as_deref(), expected, "{cwd} {path}");
        }
        // What is not looked at here is the file provider's to refuse.
        assert_eq!(path_within("", "a/../..").unwrap(), "a/../..");
        assert_eq!(path_within("a", "/etc").unwrap(), "/etc");
        assert_eq!(path_within("a", "f").unwrap(), "a/f");
    }
}
