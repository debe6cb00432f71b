//! `process.*`: processes and what they do to each other.

mod birth;
mod message;

use futures::FutureExt;

pub(super) use birth::{bounded, copied};

use super::{Ctx, Outcome, Primitive};
use crate::capability::{Resource, Right};
use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::journal::set_words;
use crate::live::Stop;
use crate::process::{Pid, ProcessInfo, ProcessState};
use crate::syscall::{
    Changed, ChildEnded, Exit, ProcessChdir, ProcessExit, ProcessList, ProcessSignal,
    ProcessStatus, ProcessWait, ProcessWaitAny, ProcessYield,
};

/// Children that one call waits for at most.
const WAIT_MOST: usize = 256;
/// Characters of a status line at most.
const STATUS_MOST: usize = 200;

impl Primitive for ProcessWait {
    fn subject(&self) -> String {
        format!("process {}", self.pid)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Exit>, SysError> {
        ctx.check(Resource::Processes, Right::Use).await?;
        let child = ctx.own_child(self.pid).await?;
        ctx.enter_state(ProcessState::WaitingEvent);
        let exit = ctx.waiting(ctx.inner.exit_of(child.pid)).await??;
        let detail = ended(&exit);
        Ok(Outcome::new(exit, detail))
    }
}

impl Primitive for ProcessWaitAny {
    fn subject(&self) -> String {
        format!("{} processes", self.pids.len())
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<ChildEnded>, SysError> {
        ctx.check(Resource::Processes, Right::Use).await?;
        if !(1..=WAIT_MOST).contains(&self.pids.len()) {
            let message = format!("`{}` children are waited for", self.pids.len());
            return Err(
                SysError::new(Code::Invalid, message).hint(format!("name 1 to {WAIT_MOST}"))
            );
        }
        for pid in &self.pids {
            ctx.own_child(*pid).await?;
        }
        ctx.enter_state(ProcessState::WaitingEvent);
        let exits = self.pids.iter().map(|pid| ctx.inner.exit_of(*pid).boxed());
        let (exit, first, _) = ctx.waiting(futures::future::select_all(exits)).await?;
        let (pid, exit) = (self.pids[first], exit?);
        let detail = format!("process {pid} {}", ended(&exit));
        Ok(Outcome::new(ChildEnded { pid, exit }, detail))
    }
}

fn ended(exit: &Exit) -> String {
    format!(
        "ended {}, answer of {} bytes",
        if exit.ok { "well" } else { "badly" },
        exit.answer.len()
    )
}

impl Primitive for ProcessExit {
    fn subject(&self) -> String {
        format!(
            "ok {}, answer of {} bytes",
            self.exit.ok,
            self.exit.answer.len()
        )
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<()>, SysError> {
        ctx.live.stop(Stop::Exit(self.exit));
        // The process ends here: its program is not run on.
        std::future::pending().await
    }
}

impl Primitive for ProcessList {
    fn subject(&self) -> String {
        String::new()
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Vec<ProcessInfo>>, SysError> {
        ctx.check(Resource::Processes, Right::Read).await?;
        let _slot = ctx.turn().await?;
        let list = ctx.inner.journal.processes_of_run(ctx.info.run).await?;
        let detail = format!("{} processes", list.len());
        Ok(Outcome::new(list, detail))
    }
}

impl Primitive for ProcessYield {
    fn subject(&self) -> String {
        String::new()
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<()>, SysError> {
        ctx.check(Resource::Processes, Right::Use).await?;
        let _slot = ctx.turn().await?;
        Ok(Outcome::new((), ""))
    }
}

impl Primitive for ProcessSignal {
    fn subject(&self) -> String {
        format!("{} to process {}", self.signal.as_str(), self.pid)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<()>, SysError> {
        ctx.check(Resource::Processes, Right::Use).await?;
        let child = ctx.own_child(self.pid).await?;
        let by = format!("pid {}", ctx.info.pid);
        ctx.inner.signal(child.pid, self.signal, &by).await?;
        Ok(Outcome::new((), "sent"))
    }
}

impl Primitive for ProcessChdir {
    fn subject(&self) -> String {
        shown(&self.path)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Changed>, SysError> {
        let path = ctx.is_folder(&self.path).await?;
        let cwd = path.clone();
        let done = ctx
            .settle(move |tx, at| {
                set_words(tx, at.pid, "cwd", &path)?;
                let detail = format!("in {}", if path.is_empty() { "." } else { &path });
                Ok(Outcome::new(Changed { path }, shown(&detail)))
            })
            .await?;
        ctx.live.update(|info| info.cwd = cwd);
        Ok(done)
    }
}

impl Primitive for ProcessStatus {
    fn subject(&self) -> String {
        format!("{} bytes", self.text.len())
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<()>, SysError> {
        if self.text.chars().count() > STATUS_MOST {
            let message = format!("the status line has more than `{STATUS_MOST}` characters");
            return Err(SysError::new(Code::Limit, message).hint("say it shorter"));
        }
        ctx.check(Resource::Processes, Right::Use).await?;
        let said = shown(&self.text);
        let kept = said.clone();
        let done = ctx
            .settle(move |tx, at| {
                set_words(tx, at.pid, "status", &kept)?;
                Ok(Outcome::new((), ""))
            })
            .await?;
        ctx.live.say(&said);
        Ok(done)
    }
}

impl Ctx {
    pub(super) async fn own_child(&self, pid: Pid) -> Result<ProcessInfo, SysError> {
        let found = self.inner.journal.process(pid).await?;
        found
            .filter(|child| child.parent == Some(self.info.pid))
            .ok_or_else(|| {
                SysError::new(
                    Code::Denied,
                    format!("process `{pid}` is not a child of the caller"),
                )
                .hint("use the pid that process.spawn gave")
            })
    }
}
