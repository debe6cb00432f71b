//! `fs.write`, `fs.mkdir`, `fs.move`, `fs.delete`: changing a workspace.
//!
//! One path for all of them: plan → ask → look again → executing → act → outcome. What the person
//! says yes to is the plan's digest; if the files stand otherwise when the yes comes, they are asked
//! anew.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::Value;

use super::noted::at_path;
use super::person::Asking;
use super::rights::{needs_of, paths_of};
use super::{Ctx, Outcome, Primitive, by, ended_as, json, short};
use crate::capability::{CapabilityId, Need, Right, Stance, Verdict};
use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::executor;
use crate::human::{self, Approval, Preview, Risk};
use crate::journal::{CallState, Ended};
use crate::provider::{Change, FileKind, Files, PathState, Plan};
use crate::syscall::{Changed, FsDelete, FsMkdir, FsMove, FsWrite, Written};

/// Memo of a call whose effect may have happened before a restart.
const REPEAT: &str = "repeat";
/// Bytes that `fs.write` takes at most.
const WRITE_MOST: usize = 16 * 1024 * 1024;

impl Primitive for FsWrite {
    fn subject(&self) -> String {
        let sha = human::sha256(self.text.as_bytes());
        format!(
            "{}, {} bytes, sha256 {}",
            shown(&self.path),
            self.text.len(),
            short(&sha)
        )
    }

    fn resource(&self, workspace: &Path) -> Option<String> {
        Some(at_path(workspace, &self.path))
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Written>, SysError> {
        if self.text.len() > WRITE_MOST {
            let message = format!(
                "the text has `{}` bytes, `{WRITE_MOST}` is the most",
                self.text.len()
            );
            return Err(SysError::new(Code::Limit, message).hint("write it in parts"));
        }
        let bytes = Arc::new(self.text.into_bytes());
        let change = Change::Write {
            path: ctx.path(&self.path)?,
            bytes,
        };
        let wanted = Wanted {
            change,
            base: self.base,
        };
        let (plan, detail) = Box::pin(wanted.carry_out(ctx, |plan| json(&written(plan)))).await?;
        Ok(Outcome::new(written(&plan), detail))
    }
}

pub(super) fn written(plan: &Plan) -> Written {
    let (bytes, sha256) = match &plan.after {
        PathState::File { sha256, bytes, .. } => (*bytes, sha256.0.clone()),
        _ => (0, String::new()),
    };
    let overwritten = plan.before != PathState::Absent;
    Written {
        path: plan.path.clone(),
        bytes,
        sha256,
        overwritten,
    }
}

impl Primitive for FsMkdir {
    fn subject(&self) -> String {
        shown(&self.path)
    }

    fn resource(&self, workspace: &Path) -> Option<String> {
        Some(at_path(workspace, &self.path))
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Changed>, SysError> {
        let path = ctx.path(&self.path)?;
        changed(ctx, Change::Mkdir { path }).await
    }
}

impl Primitive for FsMove {
    fn subject(&self) -> String {
        format!("{} to {}", shown(&self.from), shown(&self.to))
    }

    fn resource(&self, workspace: &Path) -> Option<String> {
        Some(at_path(workspace, &self.from))
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Changed>, SysError> {
        let change = Change::Move {
            from: ctx.path(&self.from)?,
            to: ctx.path(&self.to)?,
        };
        changed(ctx, change).await
    }
}

impl Primitive for FsDelete {
    fn subject(&self) -> String {
        shown(&self.path)
    }

    fn resource(&self, workspace: &Path) -> Option<String> {
        Some(at_path(workspace, &self.path))
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Changed>, SysError> {
        let path = ctx.path(&self.path)?;
        changed(ctx, Change::Delete { path }).await
    }
}

async fn changed(ctx: &Ctx, change: Change) -> Result<Outcome<Changed>, SysError> {
    let result = |plan: &Plan| {
        let path = plan.target.as_ref().map_or(&plan.path, |t| &t.path);
        Changed { path: path.clone() }
    };
    let wanted = Wanted { change, base: None };
    let (plan, detail) = Box::pin(wanted.carry_out(ctx, |plan| json(&result(plan)))).await?;
    Ok(Outcome::new(result(&plan), detail))
}

/// A change to files that a call wants.
pub(super) struct Wanted {
    pub(super) change: Change,
    /// SHA-256 of the version that it was made from.
    pub(super) base: Option<String>,
}

/// By what a change is made.
struct By {
    once: Option<CapabilityId>,
    verdict: Verdict,
}

/// Paths below a folder that are looked at when it is moved.
const BELOW_MOST: usize = 10_000;

/// All paths below a folder, from there.
fn all_below(files: &dyn Files, root: &Path, folder: &str) -> Result<Vec<String>, SysError> {
    let mut all = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(within) = folders.pop() {
        let path = match within.as_str() {
            "" => folder.to_owned(),
            within => format!("{folder}/{within}"),
        };
        let listing = files.list(root, &path, BELOW_MOST)?;
        if listing.left_out > 0 || all.len() + listing.entries.len() > BELOW_MOST {
            let message = format!(
                "`{}` has more than `{BELOW_MOST}` things below it, whose rights differ",
                shown(folder)
            );
            return Err(SysError::new(Code::Limit, message).hint("move it in parts"));
        }
        for entry in listing.entries {
            let path = match within.as_str() {
                "" => entry.name,
                within => format!("{within}/{}", entry.name),
            };
            if entry.kind == Some(FileKind::Folder) {
                folders.push(path.clone());
            }
            all.push(path);
        }
    }
    Ok(all)
}

enum Acted {
    Done(String),
    Changed,
}

impl Wanted {
    /// Plans it, asks where it must, and makes it at most once.
    pub(super) async fn carry_out(
        self,
        ctx: &Ctx,
        output: impl Fn(&Plan) -> Result<Value, SysError>,
    ) -> Result<(Plan, String), SysError> {
        let repeat = ctx.settle_unknown().await?;
        loop {
            let needs = needs_of(&self.change, &ctx.workspace());
            let (verdict, plan) = match self.plan(ctx, &needs).await {
                Err(error) if repeat => return Err(cannot_be_repeated(&error)),
                planned => planned?,
            };
            let digest = human::binding(ctx.info.pid, ctx.row.seq, ctx.name, &(&plan, repeat));
            let mut once = None;
            if verdict.stance == Stance::Ask || repeat {
                let asking = Asking {
                    approval: self.approval(ctx, &plan, repeat, digest).await?,
                    by: verdict.by,
                    // What may have happened already is asked about for itself.
                    paths: if repeat { Vec::new() } else { paths_of(&needs) },
                    lifetime_ms: None,
                };
                let decision = ctx.ask_for_yes(asking).await?;
                once = Some(decision.or_refused(|| refused(&plan, repeat))?);
            }
            let by = By { once, verdict };
            let acted = self.act(ctx, &plan, by, output(&plan)?).await?;
            if let Acted::Done(detail) = acted {
                return Ok((plan, detail));
            }
        }
    }

    /// What the change needs, for all that it moves; checked together.
    async fn rule(&self, ctx: &Ctx, plan: &Plan) -> Result<(Verdict, Vec<Need>), SysError> {
        let mut needs = needs_of(&self.change, &ctx.workspace());
        if let Change::Move { from, to } = &self.change {
            let folder = matches!(plan.before, PathState::Folder { .. });
            if folder && ctx.tells_paths_apart().await? {
                let top = from.clone();
                let below = ctx
                    .blocking(move |files, root| all_below(files, &root, &top))
                    .await?;
                for rest in below {
                    let moved = Change::Move {
                        from: format!("{from}/{rest}"),
                        to: format!("{to}/{rest}"),
                    };
                    needs.extend(needs_of(&moved, &ctx.workspace()));
                }
            }
            let leaving = needs.iter().filter(|need| need.right == Right::Delete);
            let paths: Vec<&str> = leaving
                .filter_map(|need| need.facts.path.as_deref())
                .collect();
            ctx.may_leave(&paths).await?;
        }
        let kind = human::kind_of(ctx.name, plan);
        let verdict = ctx.rule(&needs, Some(kind)).await?;
        Ok((verdict, needs))
    }

    async fn plan(&self, ctx: &Ctx, needs: &[Need]) -> Result<(Verdict, Plan), SysError> {
        ctx.rule(needs, None).await?;
        let _slot = ctx.turn().await?;
        ctx.rule(needs, None).await?;
        let change = self.change.clone();
        let plan = ctx
            .blocking(move |files, root| files.plan(&root, &change))
            .await?;
        if let Some(base) = &self.base
            && !matches!(&plan.before, PathState::File { sha256, .. } if sha256.0 == *base)
        {
            return Err(SysError::new(
                Code::Conflict,
                format!(
                    "`{}` is no longer the version this was made from",
                    shown(&plan.path)
                ),
            )
            .hint("read it again and make the change on what is there now"));
        }
        let (verdict, _) = self.rule(ctx, &plan).await?;
        Ok((verdict, plan))
    }

    async fn approval(
        &self,
        ctx: &Ctx,
        plan: &Plan,
        repeat: bool,
        digest: crate::provider::Digest,
    ) -> Result<Approval, SysError> {
        let (change, planned) = (self.change.clone(), plan.clone());
        let preview = ctx
            .blocking(move |files, _| preview(files, &change, &planned))
            .await?;
        let text = match &self.change {
            Change::Write { bytes, .. } => std::str::from_utf8(bytes).ok(),
            _ => None,
        };
        let mut risks = human::risks_of(plan, text);
        if repeat {
            risks.insert(0, Risk::Repeat);
        }
        let sha256 = match &plan.after {
            PathState::File { sha256, .. } if plan.target.is_none() => Some(sha256.clone()),
            _ => None,
        };
        Ok(Approval {
            path: shown(&plan.absolute),
            relative: shown(&plan.path),
            target: plan.target.as_ref().map(|t| shown(&t.absolute)),
            bytes_before: plan.before.bytes(),
            bytes_after: plan.after.bytes(),
            sha256,
            preview,
            risks,
            ..ctx.approval(human::kind_of(ctx.name, plan), digest)
        })
    }

    /// Looks once more, then acts. From the `executing` row to the `outcome` row nothing can come
    /// between: the work is a task of its own, and the process ends only after it.
    async fn act(&self, ctx: &Ctx, plan: &Plan, by: By, output: Value) -> Result<Acted, SysError> {
        let By { once, verdict } = by;
        let slot = ctx.turn().await?;
        let kind = Some(human::kind_of(ctx.name, plan));
        let (_, needs) = self.rule(ctx, plan).await?;
        let again = {
            let change = self.change.clone();
            ctx.blocking(move |files, root| files.plan(&root, &change))
                .await?
        };
        if again != *plan {
            return Ok(Acted::Changed);
        }
        let (inner, live) = (Arc::clone(&ctx.inner), Arc::clone(&ctx.live));
        let (call, at, root) = (ctx.row.id, ctx.at(), ctx.info.workspace.clone());
        let (change, plan) = (self.change.clone(), plan.clone());
        let (detail, record) = (told(&plan), recorded(&plan, once, verdict));
        let path = plan.path.clone();
        let by = ctx.authority(needs, kind, once);
        let acting = async move {
            let _acting = live.acting.lock().await;
            let _slot = slot;
            let change_row = Some((root.to_string_lossy().into_owned(), plan.clone()));
            let journal = &inner.journal;
            if !journal
                .executing(call, at.clone(), by, change_row, record.clone())
                .await?
            {
                // What spared the person a question no longer does: they are asked.
                if once.is_none() {
                    return Ok(None);
                }
                return Err(SysError::new(
                    Code::Denied,
                    "the approval was used or taken back already",
                )
                .hint("ask again"));
            }
            let applied = inner
                .on_files(move |files| files.apply(&root, &change, &plan))
                .await;
            let at = at.later(inner.providers.clock.now_ms());
            match applied {
                Err(error) if error.code == Code::Conflict => {
                    journal.nothing_done(call, at).await?;
                    Ok(None)
                }
                Err(error) => {
                    let (result, detail) = (Err(error.clone()), shown(&error.message));
                    let ended = Ended {
                        state: ended_as(error.code),
                        result,
                        record: detail.clone(),
                        detail,
                        tokens: 0,
                    };
                    journal.outcome(call, at, ended, false).await?;
                    Ok(Some(Err(error)))
                }
                Ok(()) => {
                    let result = Ok(output);
                    let ended = Ended {
                        state: CallState::Done,
                        result,
                        detail: detail.clone(),
                        record,
                        tokens: 0,
                    };
                    let written = journal.outcome(call, at, ended, false).await;
                    written.map_err(|error| unrecorded(&path, &error))?;
                    Ok(Some(Ok(detail)))
                }
            }
        };
        let executor = &ctx.inner.providers.executor;
        let acted = executor::detached(executor, "an effect", acting).await??;
        ctx.uses_taken();
        match acted {
            None => Ok(Acted::Changed),
            Some(result) => {
                ctx.recorded.store(true, Ordering::Release);
                result.map(Acted::Done)
            }
        }
    }
}

impl Ctx {
    /// Whether this call was executing when the program ended. Then only a person decides whether
    /// it is done (again).
    pub(super) async fn settle_unknown(&self) -> Result<bool, SysError> {
        match self.row.state {
            CallState::Executing => {
                let memo = self.memo_with(REPEAT, true.into());
                self.inner
                    .journal
                    .unknown(self.row.id, self.at(), memo)
                    .await?;
                Ok(true)
            }
            // Waiting for the answer to a repeat looks like any wait; the memo tells.
            _ => Ok(self.memo(REPEAT).is_some()),
        }
    }
}

fn preview(files: &dyn Files, change: &Change, plan: &Plan) -> Result<Preview, SysError> {
    let old = |state: &PathState| match state {
        PathState::File { bytes, .. } if *bytes > human::PREVIEW_MOST => Ok(Err(*bytes)),
        PathState::File { sha256, .. } => {
            files.version(sha256, human::PREVIEW_MOST).map(Some).map(Ok)
        }
        _ => Ok(Ok(None)),
    };
    let (before, after) = match (change, &plan.target) {
        (Change::Write { bytes, .. }, _) => (old(&plan.before)?, Some(bytes.as_slice())),
        (Change::Delete { .. }, _) => (old(&plan.before)?, None),
        (Change::Move { .. }, Some(target)) => (old(&target.before)?, None),
        _ => (Ok(None), None),
    };
    Ok(match before {
        Err(bytes) => Preview::too_long(bytes),
        Ok(_) if after.is_some_and(|b| b.len() as u64 > human::PREVIEW_MOST) => {
            Preview::too_long(after.map_or(0, |b| b.len() as u64))
        }
        Ok(before) => Preview::between(before.as_deref(), after),
    })
}

fn refused(plan: &Plan, repeat: bool) -> SysError {
    if repeat {
        return SysError::new(
            Code::Unknown,
            format!(
                "it is not known whether `{}` was changed before the program ended",
                shown(&plan.path)
            ),
        )
        .hint("look at the file; it was not changed again");
    }
    SysError::new(
        Code::Refused,
        format!("the person said no; `{}` is as it was", shown(&plan.path)),
    )
    .hint("leave it, or ask what they want instead")
}

/// Why what was perhaps done cannot be done (again): most often because it was.
pub(super) fn cannot_be_repeated(error: &SysError) -> SysError {
    let message = format!(
        "it is not known whether this was done before the program ended, and now {}",
        error.message
    );
    SysError::new(Code::Unknown, message).hint("look at what is there; nothing was done again")
}

/// The change was made, its record was not: the next start finds it unknown and asks.
fn unrecorded(path: &str, error: &SysError) -> SysError {
    SysError::new(
        Code::Unknown,
        format!(
            "`{}` was changed, but that could not be written down: {}",
            shown(path),
            error.message
        ),
    )
    .hint("make room on the disk of the data directory; at the next start you are asked about it")
}

/// What was done, for the person: the path stands in the step's title.
fn told(plan: &Plan) -> String {
    if plan.target.is_some() {
        return "moved".to_owned();
    }
    match (&plan.before, &plan.after) {
        (PathState::Absent, PathState::File { bytes, .. }) => format!("new, {bytes} bytes"),
        (PathState::File { bytes: before, .. }, PathState::File { bytes: after, .. }) => {
            format!("{before} → {after} bytes")
        }
        (PathState::File { bytes, .. }, PathState::Absent) => {
            format!("{bytes} bytes, kept for undo")
        }
        (PathState::Absent, PathState::Folder { .. }) => "made".to_owned(),
        _ => "done".to_owned(),
    }
}

fn recorded(plan: &Plan, once: Option<CapabilityId>, verdict: Verdict) -> String {
    let state = |state: &PathState| match state {
        PathState::Absent => "nothing".to_owned(),
        PathState::File { sha256, bytes, .. } => {
            format!("{bytes} bytes (sha256 {})", short(sha256))
        }
        PathState::Folder { .. } => "a folder".to_owned(),
    };
    let what = match &plan.target {
        Some(target) => format!("{} to {}", shown(&plan.path), shown(&target.path)),
        None => format!(
            "{}: {} → {}",
            shown(&plan.path),
            state(&plan.before),
            state(&plan.after)
        ),
    };
    match once {
        Some(capability) => format!("{what}, by your yes (capability {capability})"),
        None => format!("{what}{}", by(verdict)),
    }
}
