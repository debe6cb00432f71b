//! `checkpoint.*`: points in its history that a process can be taken back to.

use super::process::copied;
use super::{Ctx, Outcome, Primitive, json};
use crate::capability::{Resource, Right, narrow};
use crate::checkpoint::{
    CheckpointCreate, CheckpointDetail, CheckpointDiff, CheckpointDiffer, CheckpointFork,
    CheckpointId, CheckpointInfo, CheckpointInspect, CheckpointList, CheckpointReplay,
    CheckpointRestore, Checkpointed, LABEL_MOST, Replayed, Restored, Way, between,
};
use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::journal::{Kept, NewProcess, create_checkpoint};
use crate::live::{Anew, Restoring, Stop};
use crate::process::{ForkMode, Pid};

impl Primitive for CheckpointCreate {
    fn subject(&self) -> String {
        format!("label of {} bytes", self.label.len())
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Checkpointed>, SysError> {
        ctx.check(Resource::Processes, Right::Use).await?;
        let label = labelled(&self.label)?;
        let last = ctx.as_last(json(&())?);
        ctx.settle(move |tx, at| {
            let made = create_checkpoint(tx, at.pid, &label, Some((at, &last)), at.now_ms)?;
            let result = Checkpointed {
                id: made.id,
                way: Way::Made,
                task: String::new(),
            };
            let detail = format!("checkpoint {}", made.id);
            Ok(Outcome::new(result, detail).record(format!(", sha256 {}", made.digest.0)))
        })
        .await
    }
}

/// A label, escaped, if it is not too long.
pub(crate) fn labelled(label: &str) -> Result<String, SysError> {
    if label.chars().count() <= LABEL_MOST {
        return Ok(shown(label));
    }
    let message = format!("the label has more than `{LABEL_MOST}` characters");
    Err(SysError::new(Code::Limit, message).hint("say it shorter"))
}

impl Primitive for CheckpointList {
    fn subject(&self) -> String {
        self.pid
            .map_or(String::new(), |pid| format!("process {pid}"))
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Vec<CheckpointInfo>>, SysError> {
        ctx.may_look_at(self.pid).await?;
        let _slot = ctx.turn().await?;
        let journal = &ctx.inner.journal;
        let list = journal.checkpoints(self.pid, Some(ctx.info.run)).await?;
        let detail = format!("{} checkpoints", list.len());
        Ok(Outcome::new(list, detail))
    }
}

impl Primitive for CheckpointInspect {
    fn subject(&self) -> String {
        format!("checkpoint {}", self.id)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<CheckpointDetail>, SysError> {
        let _slot = ctx.turn().await?;
        let found = ctx.detail(self.id).await?;
        let detail = format!(
            "{} calls, {} outside effects since",
            found.calls.len(),
            found.outside.len()
        );
        Ok(Outcome::new(found, detail))
    }
}

impl Primitive for CheckpointDiffer {
    fn subject(&self) -> String {
        format!("checkpoints {} and {}", self.from, self.to)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<CheckpointDiff>, SysError> {
        let _slot = ctx.turn().await?;
        let diff = between(&ctx.detail(self.from).await?, &ctx.detail(self.to).await?);
        let detail = format!("{} differences", diff.lines().len());
        Ok(Outcome::new(diff, detail))
    }
}

impl Primitive for CheckpointRestore {
    fn subject(&self) -> String {
        format!("checkpoint {}", self.id)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Restored>, SysError> {
        let checkpoint = ctx.kept(self.id).await?.info;
        ctx.check(Resource::Processes, Right::Use).await?;
        let by = format!("pid {}", ctx.info.pid);
        if checkpoint.pid == ctx.info.pid {
            let restoring = Restoring::new(self.id, by).0;
            ctx.live.stop(Stop::Anew(Anew::Restore(restoring)));
            // The process goes on from the checkpoint, not from here.
            return std::future::pending().await;
        }
        ctx.own_child(checkpoint.pid).await?;
        let restored = ctx.inner.restore(self.id, &by).await?;
        let detail = format!(
            "process {}, {} outside effects stand",
            restored.pid,
            restored.outside.len()
        );
        Ok(Outcome::new(restored, detail))
    }
}

impl Primitive for CheckpointFork {
    fn subject(&self) -> String {
        let (id, mode) = (self.id, self.mode.as_str());
        format!("checkpoint {id}, {mode}, task of {} bytes", self.task.len())
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Pid>, SysError> {
        super::process::bounded("task", &self.task)?;
        if self.mode == ForkMode::Worker {
            let message = "a worker does not go on from a checkpoint";
            return Err(SysError::new(Code::Invalid, message)
                .hint("fork as copy, restricted or speculative, or spawn"));
        }
        let kept = ctx.kept(self.id).await?;
        ctx.check(Resource::Processes, Right::Use).await?;
        ctx.has_room().await?;
        if kept.scene.workspace != ctx.info.workspace {
            let message = "the checkpoint is of another workspace";
            return Err(
                SysError::new(Code::Denied, message).hint("only the person can fork from it")
            );
        }
        let held = ctx.inner.rights_of(&ctx.live).await?;
        let asked = narrow(&held, &self.grants, &ctx.inner.now())?;
        let mut grants = copied(ctx, self.mode, &held);
        grants.extend(asked);
        let left = ctx.inner.ledger.left(ctx.info.pid);
        let child = NewProcess {
            image: kept.scene.image.clone(),
            goal: kept.scene.goal.clone(),
            cwd: kept.scene.cwd.clone(),
            after: kept.scene.after,
            mode: Some(self.mode),
            budget: self.budget.within(left),
            history: Some(kept.forked(&self.task)?),
            ..ctx.child(grants)
        };
        let pid = ctx.bear(child).await?;
        Ok(Outcome::new(pid, format!("process {pid}")))
    }
}

impl Primitive for CheckpointReplay {
    fn subject(&self) -> String {
        format!("checkpoint {}", self.id)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Replayed>, SysError> {
        ctx.kept(self.id).await?;
        let replay = Box::pin(ctx.inner.replay(self.id));
        let replayed = ctx.waiting(replay).await??;
        let detail = format!("{} calls: {:?}", replayed.calls, replayed.verdict);
        Ok(Outcome::new(replayed, detail))
    }
}

impl Ctx {
    /// Whether the caller may look at checkpoints of a process, or of its run.
    async fn may_look_at(&self, pid: Option<Pid>) -> Result<(), SysError> {
        let right = match pid {
            Some(pid) if pid == self.info.pid => self.check(Resource::Processes, Right::Use),
            _ => {
                let all = self.check(Resource::Processes, Right::Read).await;
                if all.is_ok() {
                    return Ok(());
                }
                self.check(Resource::Checkpoints, Right::Read)
            }
        };
        right.await.map(drop)
    }

    /// A checkpoint of the caller's run that it may look at. One that is not there and one that is
    /// not for the caller are told alike.
    async fn kept(&self, id: CheckpointId) -> Result<Kept, SysError> {
        let not_yours = || {
            let message = format!("checkpoint `{id}` is not there, or not for this process");
            SysError::new(Code::Denied, message).hint("list checkpoints with checkpoint.list")
        };
        let kept = match self.inner.journal.kept(id).await {
            Err(error) if error.code == Code::NotFound => return Err(not_yours()),
            kept => kept?,
        };
        if kept.info.run != self.info.run {
            return Err(not_yours());
        }
        self.may_look_at(Some(kept.info.pid)).await?;
        Ok(kept)
    }

    pub(super) async fn detail(&self, id: CheckpointId) -> Result<CheckpointDetail, SysError> {
        self.kept(id).await?;
        self.inner.journal.checkpoint_detail(id).await
    }
}
