//! `process.spawn`, `process.fork`, `process.exec`: how processes come to be, and become others.

use std::sync::Arc;

use crate::budget::Budget;
use crate::capability::{Capability, CapabilityId, Grant, Resource, Right, Stance, narrow};
use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::journal::{Inherited, NewProcess, exec};
use crate::live::{Anew, Stop};
use crate::primitive::{Ctx, Outcome, Primitive, json};
use crate::process::{ForkMode, Pid, ProcessInfo, folder_within};
use crate::provider::FileKind;
use crate::syscall::{Forked, ProcessExec, ProcessFork, ProcessSpawn};

/// Processes of one run at most.
const RUN_MOST: usize = 256;
const GOAL_MOST: usize = 64 * 1024;

/// Rights that change nothing.
const LOOKING: [Right; 4] = [Right::Read, Right::Use, Right::Diff, Right::Materialize];

impl Primitive for ProcessSpawn {
    fn subject(&self) -> String {
        format!(
            "image {}, goal of {} bytes",
            shown(&self.image),
            self.goal.len()
        )
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Pid>, SysError> {
        bounded("goal", &self.goal)?;
        ctx.check(Resource::Processes, Right::Use).await?;
        let image = ctx.inner.exact_image(&self.image).await?;
        ctx.has_room().await?;
        let held = ctx.inner.rights_of(&ctx.live).await?;
        let wanted = [start_of(ctx, self.may_change), self.grants].concat();
        let grants = narrow(&held, &wanted, &ctx.inner.now())?;
        let cwd = match &self.folder {
            Some(folder) => ctx.is_folder(folder).await?,
            None => ctx.info.cwd.clone(),
        };
        let child = NewProcess {
            image,
            goal: self.goal,
            cwd,
            budget: ctx.bounded_time(self.budget),
            ..ctx.child(grants)
        };
        let pid = ctx.bear(child).await?;
        Ok(Outcome::new(pid, format!("process {pid}")))
    }
}

/// A child starts from its goal alone: it may look, think and ask; it may change files only if
/// its parent may and says so.
fn start_of(ctx: &Ctx, may_change: bool) -> Vec<Grant> {
    let mut wanted = vec![
        Grant::allow(ctx.workspace(), [Right::Read]),
        Grant::allow(Resource::Cores, [Right::Use]),
        Grant::allow(Resource::Human, [Right::Use]),
        Grant::allow(Resource::Processes, [Right::Use, Right::Read]),
        Grant::allow(Resource::Clock, [Right::Use]),
        Grant::allow(
            Resource::Capabilities,
            [Right::Read, Right::Grant, Right::Revoke],
        ),
        Grant::ask(Resource::Capabilities, [Right::Use]),
    ];
    if may_change {
        wanted.push(Grant::ask(ctx.workspace(), [Right::Write, Right::Delete]));
    }
    wanted
}

impl Primitive for ProcessFork {
    fn subject(&self) -> String {
        let mode = self.mode.as_str();
        format!("{mode}, task of {} bytes", self.task.len())
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Forked>, SysError> {
        bounded("task", &self.task)?;
        ctx.check(Resource::Processes, Right::Use).await?;
        ctx.has_room().await?;
        let held = ctx.inner.rights_of(&ctx.live).await?;
        let asked = narrow(&held, &self.grants, &ctx.inner.now())?;
        let mut grants = copied(ctx, self.mode, &held);
        grants.extend(asked);
        let budget = self.budget.within(ctx.inner.ledger.left(ctx.info.pid));
        let child = NewProcess {
            mode: Some(self.mode),
            budget: ctx.bounded_time(budget),
            ..ctx.child(grants)
        };
        let child = if self.mode == ForkMode::Worker {
            let goal = match self.task.is_empty() {
                true => ctx.info.goal.clone(),
                false => self.task,
            };
            NewProcess { goal, ..child }
        } else {
            let result = Forked::Child {
                parent: ctx.info.pid,
                task: self.task,
            };
            NewProcess {
                after: ctx.info.after,
                history: Some(Inherited::Forked {
                    from: ctx.info.pid,
                    before: ctx.row.seq,
                    last: ctx.as_last(json(&result)?),
                }),
                ..child
            }
        };
        let child = ctx.bear(child).await?;
        let detail = format!("process {child}");
        Ok(Outcome::new(Forked::Parent { child }, detail))
    }
}

/// What a forked child has of what its parent holds: to look and to think, never to change.
pub(in crate::primitive) fn copied(
    ctx: &Ctx,
    mode: ForkMode,
    held: &[Capability],
) -> Vec<(Grant, CapabilityId)> {
    let own = format!("proc/{}", ctx.info.pid);
    let keeps = |resource: &Resource| match (mode, resource) {
        (_, Resource::Exactly { .. }) => false,
        (ForkMode::Worker, Resource::Objects { namespace }) => *namespace == own,
        (ForkMode::Worker, _) => false,
        (
            ForkMode::Restricted,
            Resource::Human
            | Resource::Processes
            | Resource::Process { .. }
            | Resource::Capabilities,
        ) => false,
        _ => true,
    };
    let mut wanted = match mode {
        ForkMode::Worker => start_of(ctx, false),
        _ => Vec::new(),
    };
    wanted.extend(looking(held).filter(|grant| keeps(&grant.resource)));
    let mut grants: Vec<(Grant, CapabilityId)> = Vec::new();
    for want in wanted {
        // What its parent may not pass on, it does not get.
        let given = narrow(held, &[want], &ctx.inner.now());
        for grant in given.unwrap_or_default() {
            if !grants.contains(&grant) {
                grants.push(grant);
            }
        }
    }
    grants
}

/// What is held, as far as it changes nothing.
fn looking(held: &[Capability]) -> impl Iterator<Item = Grant> {
    let of = |capability: &Capability| {
        let grant = &capability.grant;
        let has = |right: &Right| grant.rights.iter().any(|held| held.includes(*right));
        let rights: Vec<Right> = match grant.resource {
            // What one has may be passed on, and more be asked for.
            Resource::Capabilities => grant.rights.clone(),
            Resource::Shell | Resource::Network => vec![],
            _ => LOOKING.into_iter().filter(has).collect(),
        };
        let counts = grant.stance != Stance::Deny && grant.uses.is_none() && !rights.is_empty();
        counts.then(|| Grant {
            rights,
            lease_ms: None,
            ..grant.clone()
        })
    };
    held.iter().filter_map(of)
}

impl Primitive for ProcessExec {
    fn subject(&self) -> String {
        format!(
            "image {}, goal of {} bytes",
            shown(&self.image),
            self.goal.len()
        )
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<()>, SysError> {
        bounded("goal", &self.goal)?;
        ctx.check(Resource::Processes, Right::Use).await?;
        let image = ctx.inner.exact_image(&self.image).await?;
        let (kept, goal) = (image.clone(), self.goal.clone());
        let detail = format!("goes on as {}", shown(&image));
        ctx.settle(move |tx, at| {
            exec(tx, at, &kept, &goal)?;
            Ok(Outcome::new((), detail))
        })
        .await?;
        ctx.live.update(|info| {
            info.image = image;
            info.goal = self.goal;
        });
        ctx.live.stop(Stop::Anew(Anew::Exec));
        // The program ends here, and another begins.
        std::future::pending().await
    }
}

impl Ctx {
    /// A child like its parent, with these rights.
    pub(in crate::primitive) fn child(&self, grants: Vec<(Grant, CapabilityId)>) -> NewProcess {
        let parent = &self.info;
        let speculative = parent.mode.filter(|mode| *mode == ForkMode::Speculative);
        NewProcess {
            parent: Some(ProcessInfo::clone(parent)),
            after: None,
            call: Some(self.row.id),
            image: parent.image.clone(),
            goal: parent.goal.clone(),
            workspace: parent.workspace.clone(),
            cwd: parent.cwd.clone(),
            mode: speculative,
            budget: Budget::default(),
            history: None,
            grants: grants
                .into_iter()
                .map(|(grant, from)| (grant, Some(from)))
                .collect(),
            issuer: format!("pid {}", parent.pid),
            now_ms: self.inner.providers.clock.now_ms(),
            steady: self.inner.now().steady,
        }
    }

    /// Makes a child and starts it: once, however often this call is carried out.
    pub(in crate::primitive) async fn bear(&self, child: NewProcess) -> Result<Pid, SysError> {
        let mode = match self.info.mode {
            // What a speculative process makes is as speculative.
            Some(ForkMode::Speculative) => Some(ForkMode::Speculative),
            _ => child.mode,
        };
        let child = NewProcess { mode, ..child };
        let (ledger, pid) = (&self.inner.ledger, self.info.pid);
        ledger.child(pid)?;
        let made = self.inner.journal.create_process(child).await;
        if !matches!(&made, Ok((_, true))) {
            ledger.no_child(pid);
        }
        let (child, _) = made?;
        let pid = child.pid;
        Arc::clone(&self.inner).start(child).await?;
        Ok(pid)
    }

    /// A child's time ends with its parent's.
    fn bounded_time(&self, budget: Budget) -> Budget {
        let left = self.inner.ledger.left(self.info.pid);
        budget.within(Budget {
            seconds: left.seconds,
            ..Budget::default()
        })
    }

    /// Whether the run may have one more process.
    pub(in crate::primitive) async fn has_room(&self) -> Result<(), SysError> {
        let run = self.info.run;
        if self.inner.journal.processes_of_run(run).await?.len() < RUN_MOST {
            return Ok(());
        }
        Err(SysError::new(
            Code::Limit,
            format!("a run has `{RUN_MOST}` processes at most"),
        )
        .hint("wait for children to end, or do it without another"))
    }

    /// A folder that is there, from the workspace's root.
    pub(super) async fn is_folder(&self, path: &str) -> Result<String, SysError> {
        let folder = folder_within(&self.info.cwd, path)?;
        self.check(self.workspace(), Right::Read).await?;
        if folder.is_empty() {
            return Ok(folder);
        }
        let asked = folder.clone();
        let found = self
            .blocking(move |files, root| files.stat(&root, &asked))
            .await?;
        if found.kind == FileKind::Folder {
            return Ok(folder);
        }
        Err(
            SysError::new(Code::NotFound, format!("`{}` is no folder", shown(&folder)))
                .hint("list what is there with fs.list"),
        )
    }
}

pub(in crate::primitive) fn bounded(what: &str, text: &str) -> Result<(), SysError> {
    if text.len() <= GOAL_MOST {
        return Ok(());
    }
    let message = format!(
        "the {what} has `{}` bytes, `{GOAL_MOST}` is the most",
        text.len()
    );
    Err(SysError::new(Code::Limit, message).hint("say it shorter"))
}
