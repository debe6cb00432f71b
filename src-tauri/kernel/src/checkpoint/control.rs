//! What a person does with checkpoints.

use std::sync::Arc;

use super::{
    CheckpointDetail, CheckpointDiff, CheckpointId, CheckpointInfo, Replayed, Restored, between,
};
use crate::budget::Budget;
use crate::capability::{Grant, Now};
use crate::error::{Code, SysError};
use crate::journal::{Kept, NewProcess};
use crate::kernel::{Inner, Kernel};
use crate::live::{Anew, Restoring, Stop};
use crate::primitive::labelled;
use crate::process::{Pid, ProcessInfo};

impl Kernel {
    /// Makes a checkpoint of a process: of its calls that have ended.
    ///
    /// # Errors
    /// [`Code::NotFound`] for a number that is none, [`Code::Conflict`] where it has ended,
    /// [`Code::Limit`] where the label is too long or the run has too many.
    pub async fn checkpoint(
        &self,
        pid: Pid,
        label: &str,
        by: &str,
    ) -> Result<CheckpointInfo, SysError> {
        let label = labelled(label)?;
        let now = self.inner.providers.clock.now_ms();
        let journal = &self.inner.journal;
        journal.checkpoint(pid, label, by.to_owned(), now).await
    }

    /// Checkpoints of a process, or of all: the latest thousand, oldest first.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn checkpoints(&self, pid: Option<Pid>) -> Result<Vec<CheckpointInfo>, SysError> {
        self.inner.journal.checkpoints(pid, None).await
    }

    /// A checkpoint with what is in it, and what was done outside since.
    ///
    /// # Errors
    /// [`Code::NotFound`] for a number that is none, [`Code::Invalid`] where it is damaged.
    pub async fn inspect_checkpoint(&self, id: CheckpointId) -> Result<CheckpointDetail, SysError> {
        self.inner.journal.checkpoint_detail(id).await
    }

    /// What lies between two checkpoints.
    ///
    /// # Errors
    /// As [`Kernel::inspect_checkpoint`].
    pub async fn diff_checkpoints(
        &self,
        from: CheckpointId,
        to: CheckpointId,
    ) -> Result<CheckpointDiff, SysError> {
        let journal = &self.inner.journal;
        let from = journal.checkpoint_detail(from).await?;
        let to = journal.checkpoint_detail(to).await?;
        Ok(between(&from, &to))
    }

    /// Takes a process back to a checkpoint: the same process where it lives, a new one in its
    /// place where it has ended. It never has more rights than at the checkpoint, nor any that was
    /// taken back since. What was done outside since stands, and is not done again.
    ///
    /// # Errors
    /// As [`Kernel::inspect_checkpoint`]; [`Code::Conflict`] where the process ends just then.
    pub async fn restore(&self, id: CheckpointId, by: &str) -> Result<Restored, SysError> {
        self.inner.restore(id, by).await
    }

    /// Starts a run that goes on from a checkpoint, with these rights. Its process is told the task
    /// as part of its result of `checkpoint.create`.
    ///
    /// # Errors
    /// As [`Kernel::inspect_checkpoint`].
    pub async fn fork_checkpoint(
        &self,
        id: CheckpointId,
        task: &str,
        grants: Vec<Grant>,
        budget: Budget,
    ) -> Result<ProcessInfo, SysError> {
        let kept = self.inner.journal.kept(id).await?;
        let new = NewProcess {
            budget,
            history: Some(kept.forked(task)?),
            grants: grants.into_iter().map(|grant| (grant, None)).collect(),
            issuer: "person".to_owned(),
            ..from_checkpoint(&kept, self.inner.now())
        };
        let (process, _) = self.inner.journal.create_process(new).await?;
        Arc::clone(&self.inner).start(process.clone()).await?;
        Ok(process)
    }

    /// Runs a checkpoint's program on the answers that are recorded, without any effect.
    ///
    /// # Errors
    /// As [`Kernel::inspect_checkpoint`]; [`Code::NotFound`] where its image is there no more.
    pub async fn replay(&self, id: CheckpointId) -> Result<Replayed, SysError> {
        self.inner.replay(id).await
    }
}

/// A process of its own that begins with what is kept.
fn from_checkpoint(kept: &Kept, now: Now) -> NewProcess {
    let scene = &kept.scene;
    NewProcess {
        parent: None,
        after: scene.after,
        call: None,
        image: scene.image.clone(),
        goal: scene.goal.clone(),
        workspace: scene.workspace.clone(),
        cwd: scene.cwd.clone(),
        mode: scene.mode,
        budget: scene.budget,
        history: None,
        grants: Vec::new(),
        issuer: format!("checkpoint {}", kept.info.id),
        now_ms: now.wall_ms,
        steady: now.steady,
    }
}

impl Inner {
    /// Takes a process back to a checkpoint.
    pub(crate) async fn restore(
        self: &Arc<Self>,
        id: CheckpointId,
        by: &str,
    ) -> Result<Restored, SysError> {
        let pid = self.journal.kept(id).await?.info.pid;
        if self.told(pid).await?.state.is_final() {
            return self.go_on_from(id).await;
        }
        let Some(live) = self.find(pid) else {
            return self.take_back(id, by).await;
        };
        let (restoring, done) = Restoring::new(id, by.to_owned());
        let mut ended = live.ended.subscribe();
        live.stop(Stop::Anew(Anew::Restore(restoring)));
        // Whatever a provider does for it is for nothing.
        let why = SysError::new(Code::Interrupted, "taken back to a checkpoint");
        live.attention.interrupt(why);
        let gone = || {
            let message = format!("process `{pid}` ended or began anew just then");
            SysError::new(Code::Conflict, message).hint("look at it, and try again")
        };
        tokio::select! {
            biased;
            restored = done => restored.map_err(|_| gone())?,
            _ = ended.wait_for(Option::is_some) => Err(gone()),
        }
    }

    /// Takes a process back whose program does not run now.
    pub(crate) async fn take_back(&self, id: CheckpointId, by: &str) -> Result<Restored, SysError> {
        let now = self.providers.clock.now_ms();
        let restored = self.journal.take_back(id, by.to_owned(), now).await?;
        self.rights_changed(Some(restored.pid));
        for child in &restored.ended {
            self.kill(*child, "its parent's restore").await?;
        }
        Ok(restored)
    }

    /// Starts a process in the place of one that has ended.
    async fn go_on_from(self: &Arc<Self>, id: CheckpointId) -> Result<Restored, SysError> {
        let rest = self.journal.restorable(id).await?;
        let ended = self.told(rest.kept.info.pid).await?;
        let grants = rest.grants.into_iter();
        let new = NewProcess {
            budget: ended.budget.less(&ended.used),
            history: Some(rest.history),
            grants: grants.map(|(grant, from)| (grant, Some(from))).collect(),
            ..from_checkpoint(&rest.kept, self.now())
        };
        let (process, _) = self.journal.create_process(new).await?;
        let pid = process.pid;
        Arc::clone(self).start(process).await?;
        Ok(Restored {
            pid,
            outside: rest.outside,
            dropped: Vec::new(),
            ended: Vec::new(),
        })
    }
}
