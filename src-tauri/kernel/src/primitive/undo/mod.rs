//! `fs.undo`: putting back what a run changed, newest change first.
//!
//! A path that stands otherwise than the run left it was edited since, by the person or by another
//! run: it is kept as it is and told. What an undo changes is written down like any change, so an
//! undo can be undone.

mod steps;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use self::steps::{Back, Step, plan_back, same};
use super::person::Asking;
use super::rights::needs_of;
use super::{Ctx, Outcome, Primitive, by, json};
use crate::capability::{CapabilityId, Need, Right, Stance, Verdict};
use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::executor;
use crate::human::{self, Approval, EffectKind, Risk};
use crate::journal::{At, CallId, CallState, Ended};
use crate::kernel::Inner;
use crate::process::RunId;
use crate::provider::{Digest, PathState};
use crate::syscall::{FsUndo, Undone};

/// Memo of an undo without a named run: the run it found.
const RUN: &str = "run";
/// Changes of one run that are undone at once at most.
const CHANGES_MOST: usize = 10_000;
const KIND: Option<EffectKind> = Some(EffectKind::Undo);

impl Primitive for FsUndo {
    fn subject(&self) -> String {
        self.run
            .map_or_else(|| "the last run".to_owned(), |run| format!("run {run}"))
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Undone>, SysError> {
        let repeat = ctx.settle_unknown().await?;
        // Before anything is looked up: without the right, nobody learns which runs there are.
        ctx.rule(&ctx.needs_before(), None).await?;
        let run = ctx.run_to_undo(self.run).await?;
        loop {
            let steps = match ctx.steps_back(run).await {
                Err(error) if repeat && error.code == Code::NotFound => {
                    return Ok(all_was_put_back(run));
                }
                steps => steps?,
            };
            let needs = ctx.needs_back(&steps);
            let verdict = ctx.rule(&needs, KIND).await?;
            let digest =
                human::binding(ctx.info.pid, ctx.row.seq, ctx.name, &(run, &steps, repeat));
            let mut once = None;
            if verdict.stance == Stance::Ask || repeat {
                let asking = Asking {
                    approval: approval(ctx, run, &steps, repeat, digest),
                    by: verdict.by,
                    paths: Vec::new(),
                    lifetime_ms: None,
                };
                let refused = || {
                    let message = format!("the person said no; what run `{run}` did stands");
                    SysError::new(Code::Refused, message)
                };
                once = Some(ctx.ask_for_yes(asking).await?.or_refused(refused)?);
            }
            if let Some(undone) = ctx.go_back(run, steps, once, verdict).await? {
                let detail = described(&undone);
                return Ok(Outcome::new(undone, detail));
            }
        }
    }
}

/// An undo that had done all by the time the program ended.
fn all_was_put_back(run: RunId) -> Outcome<Undone> {
    let undone = Undone {
        run,
        restored: Vec::new(),
        kept: Vec::new(),
    };
    Outcome::new(
        undone,
        format!("run {run}: all was put back before the program ended"),
    )
}

impl Ctx {
    /// What an undo needs as far as is known before its steps are.
    fn needs_before(&self) -> Vec<Need> {
        [Right::Write, Right::Delete]
            .map(|right| Need::new(self.workspace(), right).partially())
            .into()
    }

    /// What the steps that are taken need.
    fn needs_back(&self, steps: &[Step]) -> Vec<Need> {
        let taken: Vec<&Step> = steps.iter().filter(|step| step.kept.is_none()).collect();
        let count = Some(taken.len() as u64);
        let needs = taken
            .iter()
            .flat_map(|step| needs_of(&step.back.change(), &self.workspace()));
        let needs: Vec<Need> = needs
            .map(|mut need| {
                need.facts.count = count;
                need
            })
            .collect();
        match needs.is_empty() {
            true => self.needs_before(),
            false => needs,
        }
    }

    async fn run_to_undo(&self, named: Option<RunId>) -> Result<RunId, SysError> {
        let workspace = self.info.workspace.to_string_lossy().into_owned();
        let found = match named {
            Some(run) => Some(run),
            None => self.last_changed_run(workspace).await?,
        };
        let Some(run) = found else {
            return Err(
                SysError::new(Code::NotFound, "no run changed a file in this workspace")
                    .hint("there is nothing to undo"),
            );
        };
        let first = self.inner.journal.processes_of_run(run).await?;
        let Some(first) = first.first() else {
            return Err(
                SysError::new(Code::NotFound, format!("there is no run `{run}`"))
                    .hint("list runs with `steward ps`"),
            );
        };
        if first.workspace != self.info.workspace {
            return Err(SysError::new(
                Code::Denied,
                format!(
                    "run `{run}` worked in another workspace, `{}`",
                    shown(&first.workspace.to_string_lossy())
                ),
            )
            .hint("undo it from that workspace"));
        }
        Ok(run)
    }

    /// The latest run that changed files here. The same one after a restart, whatever has happened
    /// since.
    async fn last_changed_run(&self, workspace: String) -> Result<Option<RunId>, SysError> {
        if let Some(run) = self.memo(RUN).and_then(serde_json::Value::as_u64) {
            return Ok(Some(run));
        }
        let journal = &self.inner.journal;
        let found = journal.last_changed_run(workspace, self.info.run).await?;
        if let Some(run) = found {
            let memo = self.memo_with(RUN, run.into());
            journal.remember(self.row.id, self.info.pid, memo).await?;
        }
        Ok(found)
    }

    async fn steps_back(&self, run: RunId) -> Result<Vec<Step>, SysError> {
        let changes = self.inner.journal.changes(run).await?;
        if changes.is_empty() {
            return Err(SysError::new(
                Code::NotFound,
                format!("run `{run}` changed no file that stands"),
            )
            .hint("there is nothing to undo"));
        }
        if changes.len() > CHANGES_MOST {
            let message = format!(
                "run `{run}` made `{}` changes, `{CHANGES_MOST}` is the most",
                changes.len()
            );
            return Err(SysError::new(Code::Limit, message));
        }
        let _slot = self.turn().await?;
        self.blocking(move |files, root| plan_back(files, &root, &changes))
            .await
    }

    /// Takes the steps; `None` where the files stand otherwise than when the person said yes.
    async fn go_back(
        &self,
        run: RunId,
        steps: Vec<Step>,
        once: Option<CapabilityId>,
        verdict: Verdict,
    ) -> Result<Option<Undone>, SysError> {
        let needs = self.needs_back(&steps);
        self.rule(&needs, KIND).await?;
        if self.steps_back(run).await? != steps {
            return Ok(None);
        }
        let slot = self.turn().await?;
        let (inner, live) = (Arc::clone(&self.inner), Arc::clone(&self.live));
        let (call, at, root) = (self.row.id, self.at(), self.info.workspace.clone());
        let by_whom = match once {
            Some(capability) => format!("by your yes (capability {capability})"),
            None => by(verdict).trim_start_matches(", ").to_owned(),
        };
        let authority = self.authority(needs, KIND, once);
        let acting = async move {
            let _acting = live.acting.lock().await;
            let _slot = slot;
            let detail = format!("undo of run {run}, {} steps, {by_whom}", steps.len());
            if !inner
                .journal
                .executing(call, at.clone(), authority, None, detail)
                .await?
            {
                if once.is_none() {
                    return Ok(None);
                }
                return Err(SysError::new(
                    Code::Denied,
                    "the approval was used or taken back already",
                )
                .hint("ask again"));
            }
            let mut undone = Undone {
                run,
                restored: Vec::new(),
                kept: Vec::new(),
            };
            for step in steps {
                take(&inner, &root, call, at.clone(), &step, &mut undone).await?;
            }
            let result = Ok(json(&undone)?);
            let ended = Ended {
                state: CallState::Done,
                result,
                detail: described(&undone),
                record: described(&undone),
                tokens: 0,
            };
            inner.journal.outcome(call, at, ended, false).await?;
            Ok(Some(undone))
        };
        let executor = &self.inner.providers.executor;
        let undone = executor::detached(executor, "an undo", acting).await??;
        self.uses_taken();
        self.recorded.store(undone.is_some(), Ordering::Release);
        Ok(undone)
    }
}

async fn take(
    inner: &Arc<Inner>,
    root: &Path,
    call: CallId,
    at: At,
    step: &Step,
    undone: &mut Undone,
) -> Result<(), SysError> {
    let path = step.back.path();
    match step.kept.as_deref() {
        Some("") => return inner.journal.undone(call, step.change, at.run).await,
        Some(why) => {
            undone.kept.push(format!("{}: {why}", shown(path)));
            return Ok(());
        }
        None => {}
    }
    let (place, change) = (root.to_owned(), step.back.change());
    let planned = inner
        .on_files(move |files| files.plan(&place, &change))
        .await;
    let plan = match planned {
        Ok(plan) => plan,
        // A folder that is not empty holds something else by now.
        Err(_) if matches!(step.back, Back::DeleteIfEmpty { .. }) => return Ok(()),
        Err(error) => {
            undone
                .kept
                .push(format!("{}: {}", shown(path), error.message));
            return Ok(());
        }
    };
    let taken = plan
        .target
        .as_ref()
        .is_some_and(|target| target.before != PathState::Absent);
    if taken || !same(&plan.before, &step.expect.1) {
        undone
            .kept
            .push(format!("{}: it was changed since", shown(path)));
        return Ok(());
    }
    let workspace = root.to_string_lossy().into_owned();
    inner
        .journal
        .change(call, at.clone(), workspace, plan.clone(), step.back.words())
        .await?;
    let (place, change) = (root.to_owned(), step.back.change());
    let applied = inner
        .on_files(move |files| files.apply(&place, &change, &plan))
        .await;
    match applied {
        Ok(()) => {
            undone.restored.push(path.to_owned());
            inner.journal.undone(call, step.change, at.run).await
        }
        Err(error) => {
            undone
                .kept
                .push(format!("{}: {}", shown(path), error.message));
            inner.journal.change_failed(call).await
        }
    }
}

fn described(undone: &Undone) -> String {
    let kept = match undone.kept.len() {
        0 => String::new(),
        n => format!(", {n} kept as they are"),
    };
    format!(
        "run {}: {} put back{kept}",
        undone.run,
        undone.restored.len()
    )
}

fn approval(ctx: &Ctx, run: RunId, steps: &[Step], repeat: bool, digest: Digest) -> Approval {
    let items = steps.iter().filter_map(|step| match step.kept.as_deref() {
        None => Some(step.back.words()),
        Some("") => None,
        Some(why) => Some(format!("keep {}: {why}", shown(step.back.path()))),
    });
    Approval {
        path: shown(&ctx.info.workspace.to_string_lossy()),
        relative: run.to_string(),
        risks: if repeat {
            vec![Risk::Repeat]
        } else {
            Vec::new()
        },
        items: items.collect(),
        ..ctx.approval(EffectKind::Undo, digest)
    }
}
