//! A process's door to the kernel.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Code, SysError};
use crate::process::{Pid, RunId};
use crate::syscall::{self, Syscall};

/// One earlier exchange of the conversation that a run goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The run.
    pub run: RunId,
    /// What the person asked.
    pub request: String,
    /// What was answered.
    pub answer: String,
}

struct Context {
    pid: Pid,
    run: RunId,
    goal: String,
    workspace: std::path::PathBuf,
    history: Vec<Turn>,
}

/// A process's door to the kernel: the only way a program reaches anything.
#[derive(Clone)]
pub struct Sys {
    context: Arc<Context>,
}

impl Sys {
    /// The calling process.
    pub fn pid(&self) -> Pid {
        self.context.pid
    }

    /// The run it belongs to.
    pub fn run(&self) -> RunId {
        self.context.run
    }

    /// What it is to reach.
    pub fn goal(&self) -> &str {
        &self.context.goal
    }

    /// Its workspace.
    pub fn workspace(&self) -> &Path {
        &self.context.workspace
    }

    /// The conversation before this run, oldest first, bounded.
    pub fn history(&self) -> &[Turn] {
        &self.context.history
    }

    /// Makes a system call.
    pub async fn call<S: Syscall>(&self, _call: S) -> Result<S::Output, SysError> {
        Err(SysError::new(Code::Internal, "the kernel is being built"))
    }

    /// Makes a system call by its name, with JSON arguments.
    pub async fn call_by_name(
        &self,
        name: &str,
        args: serde_json::Value,
    ) -> Result<serde_json::Value, SysError> {
        syscall::call_by_name(self, name, args).await
    }
}
