//! `process.spawn`, `process.wait`, `process.exit`, `process.list`, `process.signal`.

use std::sync::Arc;

use super::{Ctx, Outcome, Primitive};
use crate::capability::{Grant, Resource, Right, Stance, narrow};
use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::journal::NewProcess;
use crate::live::Stop;
use crate::process::{Pid, ProcessInfo, ProcessState};
use crate::syscall::{
    Exit, ProcessExit, ProcessList, ProcessSignal, ProcessSpawn, ProcessWait, ProcessYield,
};

/// Processes of one run at most.
const RUN_MOST: usize = 256;
const GOAL_MOST: usize = 64 * 1024;

impl Primitive for ProcessSpawn {
    fn subject(&self) -> String {
        format!(
            "image {}, goal of {} bytes",
            shown(&self.image),
            self.goal.len()
        )
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Pid>, SysError> {
        if self.goal.len() > GOAL_MOST {
            let message = format!(
                "the goal has `{}` bytes, `{GOAL_MOST}` is the most",
                self.goal.len()
            );
            return Err(SysError::new(Code::Limit, message).hint("say it shorter"));
        }
        ctx.check(Resource::Processes, Right::Use).await?;
        let image = ctx.inner.exact_image(&self.image).await?;
        if ctx
            .inner
            .journal
            .processes_of_run(ctx.info.run)
            .await?
            .len()
            >= RUN_MOST
        {
            return Err(SysError::new(
                Code::Limit,
                format!("a run has `{RUN_MOST}` processes at most"),
            )
            .hint("wait for children to end, or do it without another"));
        }
        let held = ctx.inner.journal.held(ctx.info.pid).await?;
        let grants = narrow(&held, &self.wanted(ctx), &ctx.inner.now())?;
        let child = NewProcess {
            parent: Some(ProcessInfo::clone(&ctx.info)),
            after: None,
            call: Some(ctx.row.id),
            image,
            goal: self.goal,
            workspace: ctx.info.workspace.clone(),
            grants: grants
                .into_iter()
                .map(|(grant, parent)| (grant, Some(parent)))
                .collect(),
            issuer: format!("pid {}", ctx.info.pid),
            now_ms: ctx.inner.providers.clock.now_ms(),
            steady: ctx.inner.now().steady,
        };
        let child = ctx.inner.journal.create_process(child).await?;
        let pid = child.pid;
        Arc::clone(&ctx.inner).start(child).await?;
        Ok(Outcome::new(pid, format!("process {pid}")))
    }
}

impl ProcessSpawn {
    /// A child starts from its goal alone: it may look, think and ask; it may change files only if
    /// its parent may and says so.
    fn wanted(&self, ctx: &Ctx) -> Vec<Grant> {
        let grant = |resource, rights: &[Right], stance| Grant::new(resource, rights, stance);
        let mut wanted = vec![
            grant(ctx.workspace(), &[Right::Read], Stance::Allow),
            grant(Resource::Cores, &[Right::Use], Stance::Allow),
            grant(Resource::Human, &[Right::Use], Stance::Allow),
            grant(
                Resource::Processes,
                &[Right::Use, Right::Read],
                Stance::Allow,
            ),
            grant(Resource::Clock, &[Right::Use], Stance::Allow),
            grant(
                Resource::Capabilities,
                &[Right::Read, Right::Grant, Right::Revoke],
                Stance::Allow,
            ),
            grant(Resource::Capabilities, &[Right::Use], Stance::Ask),
        ];
        if self.may_change {
            wanted.push(grant(
                ctx.workspace(),
                &[Right::Write, Right::Delete],
                Stance::Ask,
            ));
        }
        wanted
    }
}

impl Primitive for ProcessWait {
    fn subject(&self) -> String {
        format!("process {}", self.pid)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Exit>, SysError> {
        ctx.check(Resource::Processes, Right::Use).await?;
        let child = ctx.own_child(self.pid).await?;
        ctx.enter_state(ProcessState::WaitingEvent);
        let exit = ctx.waiting(ctx.inner.exit_of(child.pid)).await??;
        let detail = format!(
            "ended {}, answer of {} bytes",
            if exit.ok { "well" } else { "badly" },
            exit.answer.len()
        );
        Ok(Outcome::new(exit, detail))
    }
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
