//! A process's door to the kernel.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Code, SysError};
use crate::human::sha256;
use crate::journal::CallRow;
use crate::kernel::Inner;
use crate::live::Live;
use crate::primitive::{Ctx, Primitive};
use crate::process::{Pid, ProcessState, RunId};
use crate::syscall::{self, Effect, Record, Syscall};

/// System calls of one process at most.
const MAX_CALLS: u64 = 10_000;

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

/// A process's door to the kernel: the only way a program reaches anything.
#[derive(Clone)]
pub struct Sys {
    inner: Arc<Inner>,
    live: Arc<Live>,
    pid: Pid,
    run: RunId,
    goal: Arc<str>,
    workspace: Arc<PathBuf>,
}

impl Sys {
    pub(crate) fn new(inner: Arc<Inner>, live: Arc<Live>) -> Self {
        let info = live.info();
        Self {
            inner,
            live,
            pid: info.pid,
            run: info.run,
            goal: info.goal.as_str().into(),
            workspace: Arc::new(info.workspace.clone()),
        }
    }

    /// The calling process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// The run it belongs to.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// What it is to reach.
    pub fn goal(&self) -> &str {
        &self.goal
    }

    /// Its workspace.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// The conversation before this run, oldest first, bounded.
    pub fn history(&self) -> &[Turn] {
        &self.live.history
    }

    /// Makes a system call. A call that this process made before the kernel was started again gets
    /// the result it had; nothing is done twice.
    ///
    /// # Errors
    /// What the primitive says, as a [`SysError`] that a model can act on.
    pub async fn call<S: Primitive>(&self, call: S) -> Result<S::Output, SysError> {
        let _one = self.live.one_at_a_time()?;
        if let Some(replay) = &self.live.replay {
            return replay.answer::<S>(&args_digest(&call)?).await;
        }
        if S::RECORD == Record::Nothing {
            self.stand_still().await;
            let ctx = Ctx::enter::<S>(&self.inner, &self.live, None, String::new(), &call).await?;
            return ctx.carry_out(call).await;
        }
        let (seq, before) = self.live.next_call();
        if !before.as_ref().is_some_and(CallRow::has_ended) {
            self.stand_still().await;
        }
        if self.live.calls_of_program(seq) > MAX_CALLS {
            return Err(SysError::new(
                Code::Limit,
                format!("a process makes `{MAX_CALLS}` calls at most"),
            )
            .hint("end the process with what it has"));
        }
        let args = args_digest(&call)?;
        let place = Some((seq, before));
        let ctx = Ctx::enter::<S>(&self.inner, &self.live, place, args, &call).await?;
        if let Some(result) = ctx.past_result::<S>() {
            return result;
        }
        if S::EFFECT == Effect::Irreversible
            && let Some(stands) = ctx.standing()
        {
            return ctx.let_stand::<S>(stands).await;
        }
        ctx.carry_out(call).await
    }

    /// Waits while the process is paused.
    async fn stand_still(&self) {
        if !self.live.attention.is_paused() {
            return;
        }
        self.inner
            .tell_process(&self.live.set(ProcessState::Runnable, ""));
        self.live.attention.resumed().await;
        self.inner
            .tell_process(&self.live.set(ProcessState::Running, ""));
    }

    /// Makes a system call by its name, with JSON arguments.
    ///
    /// # Errors
    /// [`Code::NotFound`] for a name that is none, [`Code::Invalid`] for arguments that do not fit,
    /// and what the call itself says.
    pub async fn call_by_name(
        &self,
        name: &str,
        args: serde_json::Value,
    ) -> Result<serde_json::Value, SysError> {
        syscall::call_by_name(self, name, args).await
    }
}

/// SHA-256 of a call's arguments.
fn args_digest<S: Syscall>(call: &S) -> Result<String, SysError> {
    let args = serde_json::to_vec(call).map_err(|e| {
        SysError::new(
            Code::Invalid,
            format!("arguments cannot be written down: {e}"),
        )
    })?;
    Ok(sha256(&args).0)
}

/// Whether a call of this type is shown to people as a step.
pub(crate) fn is_step<S: Syscall>(title: &str) -> bool {
    !title.is_empty() && !matches!(S::NAME, "clock.now" | "process.list" | "process.exit")
}
