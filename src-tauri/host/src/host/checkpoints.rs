//! Commands about checkpoints.

use steward_kernel::Pid;
use steward_kernel::capability;
use steward_kernel::checkpoint::{
    CheckpointDetail as Detail, CheckpointInfo, OutsideEffect, Replayed, Restored, Scene, Verdict,
};
use steward_kernel::escape::shown;

use super::{Host, Surface};
use crate::surface::{
    CheckpointDetail, CheckpointDiff, CheckpointReplay, CheckpointView, Problem, Reply,
};

impl Host {
    pub(super) async fn checkpoints(&self, pid: Option<u64>) -> Result<Reply, Problem> {
        let oldest_first = self.kernel.checkpoints(pid.map(Pid)).await?;
        Ok(Reply::Checkpoints {
            checkpoints: oldest_first.into_iter().rev().map(view).collect(),
        })
    }

    pub(super) async fn checkpoint(&self, id: u64) -> Result<Reply, Problem> {
        let found = self.kernel.inspect_checkpoint(id).await?;
        Ok(Reply::Checkpoint(detail(found)))
    }

    pub(super) async fn diff_checkpoints(&self, from: u64, to: u64) -> Result<Reply, Problem> {
        let diff = self.kernel.diff_checkpoints(from, to).await?;
        let lines = diff.lines();
        Ok(Reply::CheckpointDiff(CheckpointDiff { from, to, lines }))
    }

    pub(super) async fn create_checkpoint(
        &self,
        pid: u64,
        label: &str,
        by: Surface,
    ) -> Result<Reply, Problem> {
        let made = self.kernel.checkpoint(Pid(pid), label, by.name()).await?;
        self.checkpoint(made.id).await
    }

    /// The answer is the checkpoint, told of the process that goes on from it: another one where
    /// its own had ended.
    pub(super) async fn restore_checkpoint(&self, id: u64, by: Surface) -> Result<Reply, Problem> {
        let mut told = detail(self.kernel.inspect_checkpoint(id).await?);
        let Restored {
            pid,
            outside,
            dropped,
            ended,
        } = self.kernel.restore(id, by.name()).await?;
        let run = self.kernel.process(pid).await?.run;
        // One that waited since an earlier start goes on as well.
        self.kernel.resume(Some(run)).await?;
        (told.checkpoint.pid, told.checkpoint.run) = (pid.0, run);
        told.outside = outside.iter().map(effect).collect();
        told.facts
            .push(("goes on as".to_owned(), format!("process {pid}")));
        for (name, numbers) in [
            ("rights lost", dropped),
            ("ended", ended.iter().map(|pid| pid.0).collect()),
        ] {
            if !numbers.is_empty() {
                let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                told.facts.push((name.to_owned(), numbers.join(", ")));
            }
        }
        Ok(Reply::Checkpoint(told))
    }

    pub(super) async fn replay_checkpoint(&self, id: u64) -> Result<Reply, Problem> {
        let Replayed {
            checkpoint,
            calls,
            verdict,
        } = self.kernel.replay(id).await?;
        Ok(Reply::CheckpointReplay(CheckpointReplay {
            checkpoint,
            calls,
            same: verdict == Verdict::Same,
            verdict: sentence(&verdict),
        }))
    }

    /// A run of its own, with the rights a run starts with.
    pub(super) async fn fork_checkpoint(&self, id: u64) -> Result<Reply, Problem> {
        let scene = self.kernel.inspect_checkpoint(id).await?.scene;
        let grants = capability::workspace_defaults(&scene.workspace);
        let forked = self.kernel.fork_checkpoint(id, "", grants, scene.budget);
        let process = forked.await?;
        Ok(Reply::Started {
            pid: process.pid.0,
            run: process.run,
        })
    }
}

fn view(info: CheckpointInfo) -> CheckpointView {
    CheckpointView {
        id: info.id,
        pid: info.pid.0,
        run: info.run,
        seq: info.seq,
        label: shown(&info.label),
        digest: info.digest.0,
        at_ms: info.at_ms,
    }
}

fn detail(found: Detail) -> CheckpointDetail {
    let mut facts = facts(&found.scene);
    facts.push(("calls".to_owned(), found.calls.len().to_string()));
    CheckpointDetail {
        checkpoint: view(found.checkpoint),
        facts,
        outside: found.outside.iter().map(effect).collect(),
    }
}

/// What a person would want to know of how a process stood.
fn facts(scene: &Scene) -> Vec<(String, String)> {
    let folder = scene.workspace.join(&scene.cwd);
    let told = [
        ("image", shown(&scene.image)),
        ("goal", shown(&scene.goal)),
        ("folder", shown(&folder.to_string_lossy())),
        ("status", shown(&scene.status)),
        ("tokens", scene.tokens.to_string()),
        ("rights", scene.capabilities.len().to_string()),
        ("objects", scene.objects.len().to_string()),
    ];
    let told = told.into_iter().filter(|(_, value)| !value.is_empty());
    told.map(|(name, value)| (name.to_owned(), value)).collect()
}

fn sentence(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Same => "the program made every recorded call again".to_owned(),
        Verdict::Diverged {
            seq,
            recorded,
            made,
        } if recorded == made => {
            format!("at call {seq} the program made `{made}` with other arguments than recorded")
        }
        Verdict::Diverged {
            seq,
            recorded,
            made,
        } => format!("at call {seq} the program made `{made}`, not `{recorded}` as recorded"),
        Verdict::Ended { seq, recorded } => {
            format!("the program ended before call {seq}, `{recorded}`, which is recorded")
        }
        Verdict::BrokeDown => "the program broke down".to_owned(),
    }
}

fn effect(effect: &OutsideEffect) -> String {
    let OutsideEffect {
        pid,
        seq,
        name,
        title,
        state,
    } = effect;
    match state.as_str() {
        "done" => format!("{title} ({name}, process {pid}, call {seq})"),
        state => format!("{title} ({name}, process {pid}, call {seq}): {state}"),
    }
}
