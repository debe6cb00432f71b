//! `capability.list`, `capability.inspect`, `capability.explain`, `capability.request`,
//! `capability.delegate`, `capability.revoke`, `access.add_privilege`, `access.check`.

use super::person::{Asking, lifetime};
use super::{Ctx, Outcome, Primitive, by};
use crate::capability::{
    self, Capability, CapabilityId, Explanation, Grant, Need, Now, Resource, Right, Stance,
};
use crate::error::{Code, SysError};
use crate::escape::{shown, shown_lines};
use crate::human::{self, Approval, EffectKind, Preview};
use crate::process::{Pid, ProcessInfo};
use crate::syscall::{
    AccessAddPrivilege, AccessCheck, CapabilityDelegate, CapabilityExplain, CapabilityInfo,
    CapabilityInspect, CapabilityList, CapabilityRequest, CapabilityRevoke, Privilege,
};

/// Bytes of a reason at most.
const WHY_MOST: usize = 4 * 1024;

impl Primitive for CapabilityList {
    fn subject(&self) -> String {
        self.pid
            .map_or_else(String::new, |pid| format!("process {pid}"))
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Vec<CapabilityInfo>>, SysError> {
        let verdict = ctx.check(Resource::Capabilities, Right::Read).await?;
        let pid = self.pid.unwrap_or(ctx.info.pid);
        ctx.own(pid).await?;
        let (all, now) = (ctx.inner.journal.given(pid).await?, ctx.inner.now());
        let all: Vec<_> = all.into_iter().map(|c| told(c, &now)).collect();
        let detail = format!("{} capabilities", all.len());
        Ok(Outcome::new(all, detail).record(by(verdict)))
    }
}

impl Primitive for CapabilityInspect {
    fn subject(&self) -> String {
        format!("capability {}", self.id)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<CapabilityInfo>, SysError> {
        let verdict = ctx.check(Resource::Capabilities, Right::Read).await?;
        let found = ctx.inner.journal.capability(self.id).await?;
        let Some(found) = found else {
            return Err(not_to_be_seen(self.id));
        };
        if ctx.own(found.subject).await.is_err() {
            return Err(not_to_be_seen(self.id));
        }
        let told = told(found, &ctx.inner.now());
        Ok(Outcome::new(told, "looked at").record(by(verdict)))
    }
}

impl Primitive for CapabilityExplain {
    fn subject(&self) -> String {
        shown(&self.call)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Explanation>, SysError> {
        let verdict = ctx.check(Resource::Capabilities, Right::Read).await?;
        let told = ctx.inner.explain(&ctx.info, &self.call).await?;
        let detail = match told.stance {
            Stance::Allow => "it would be allowed",
            Stance::Ask => "it would be asked about",
            Stance::Deny => "it would be denied",
        };
        Ok(Outcome::new(told, detail).record(by(verdict)))
    }
}

impl Primitive for CapabilityRequest {
    fn subject(&self) -> String {
        self.grant.to_string()
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<CapabilityId>, SysError> {
        if self.why.len() > WHY_MOST {
            let message = format!(
                "the reason has `{}` bytes, `{WHY_MOST}` is the most",
                self.why.len()
            );
            return Err(SysError::new(Code::Limit, message).hint("say it shorter"));
        }
        let lifetime_ms = lifetime(self.expires_ms)?;
        ctx.may_be_asked_for(&self.grant)?;
        ctx.check(Resource::Human, Right::Use).await?;
        let kind = Some(EffectKind::Grant);
        let needs = vec![Need::new(Resource::Capabilities, Right::Use)];
        let verdict = ctx.rule(&needs, kind).await?;
        // No capability lets a process give itself rights: only the person does, now or by a policy.
        let mut once = None;
        if verdict.stance == Stance::Ask || verdict.standing.is_none() {
            let digest = human::binding(ctx.info.pid, ctx.row.seq, ctx.name, &self);
            let approval = Approval {
                path: self.grant.to_string(),
                preview: Preview::between(None, Some(shown_lines(&self.why).as_bytes())),
                ..ctx.approval(EffectKind::Grant, digest)
            };
            let asking = Asking {
                approval,
                by: verdict.by,
                paths: Vec::new(),
                lifetime_ms,
            };
            let refused = || {
                SysError::new(Code::Refused, "the person said no to that right")
                    .hint("go on without it, or ask what they want instead")
            };
            once = Some(ctx.ask_for_yes(asking).await?.or_refused(refused)?);
        }
        let authority = ctx.authority(needs, kind, once);
        let issued = ctx
            .inner
            .journal
            .issue_requested(ctx.row.id, ctx.at(), authority, self.grant)
            .await?;
        ctx.inner.rights_changed(Some(ctx.info.pid));
        ctx.inner.standing_changed();
        let Some(id) = issued else {
            let message = "the approval was used or taken back already";
            return Err(SysError::new(Code::Denied, message).hint("ask again"));
        };
        let whose = once.map_or_else(
            || by(verdict),
            |once| format!(", by your yes (capability {once})"),
        );
        ctx.taken_with_the_effect();
        Ok(Outcome::new(id, format!("capability {id}")).record(whose))
    }
}

impl Primitive for CapabilityDelegate {
    fn subject(&self) -> String {
        format!("{} grants to process {}", self.grants.len(), self.to)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Vec<CapabilityId>>, SysError> {
        let verdict = ctx.check(Resource::Capabilities, Right::Grant).await?;
        let (to, below) = ctx.relative(self.to).await?;
        if to.pid == ctx.info.pid {
            return Err(
                SysError::new(Code::Invalid, "a process passes nothing on to itself")
                    .hint("name another process of this run"),
            );
        }
        let (journal, now) = (&ctx.inner.journal, ctx.inner.now());
        let given = journal
            .delegate(ctx.row.id, ctx.at(), to.pid, self.grants, below, now)
            .await?;
        ctx.inner.rights_changed(Some(to.pid));
        let detail = format!("{} capabilities to process {}", given.len(), to.pid);
        Ok(Outcome::new(given, detail).record(by(verdict)))
    }
}

impl Primitive for CapabilityRevoke {
    fn subject(&self) -> String {
        format!("capability {}", self.id)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<bool>, SysError> {
        let verdict = ctx.check(Resource::Capabilities, Right::Revoke).await?;
        let line = ctx.inner.journal.line(self.id).await?;
        if !line.contains(&ctx.info.pid) {
            return Err(not_to_be_seen(self.id));
        }
        let issuer = format!("pid {}", ctx.info.pid);
        let now = ctx.inner.providers.clock.now_ms();
        let revoked = ctx.inner.journal.revoke(self.id, issuer, now).await?;
        ctx.inner.rights_changed(None);
        let detail = if revoked {
            "taken back"
        } else {
            "it did not count any more"
        };
        Ok(Outcome::new(revoked, detail).record(by(verdict)))
    }
}

impl Primitive for AccessAddPrivilege {
    fn subject(&self) -> String {
        format!("process {} to process {}", self.subject, self.target)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Vec<CapabilityId>>, SysError> {
        let verdict = ctx.check(Resource::Capabilities, Right::Grant).await?;
        ctx.own(self.target).await?;
        let (subject, _) = ctx.relative(self.subject).await?;
        let [objects, messages] = privilege(self.target);
        let grants = [
            Grant::allow(objects, [Right::Read, Right::Diff, Right::Materialize]),
            Grant::allow(messages, [Right::Read, Right::Write]),
        ];
        let grants = grants.map(|grant| Grant {
            depth: Some(0),
            ..grant
        });
        let from = Some((ctx.row.id, ctx.at(), verdict.by));
        let issuer = format!("pid {}", ctx.info.pid);
        let (journal, now) = (&ctx.inner.journal, ctx.inner.now());
        let given = journal
            .grant(subject.pid, grants.into(), from, issuer, now)
            .await?;
        ctx.inner.rights_changed(Some(subject.pid));
        let detail = format!("process {} may reach process {}", subject.pid, self.target);
        Ok(Outcome::new(given, detail).record(by(verdict)))
    }
}

impl Primitive for AccessCheck {
    fn subject(&self) -> String {
        format!("process {} to process {}", self.subject, self.target)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Privilege>, SysError> {
        let verdict = ctx.check(Resource::Capabilities, Right::Read).await?;
        ctx.own(self.subject).await?;
        let (held, now) = (ctx.inner.journal.held(self.subject).await?, ctx.inner.now());
        let may = |resource: Resource, right| {
            let own = self.subject == self.target;
            own || capability::decide(&held, &Need::new(resource, right), &now).is_ok()
        };
        let [objects, messages] = privilege(self.target);
        let told = Privilege {
            objects: may(objects, Right::Read),
            messages: may(messages, Right::Write),
        };
        let word = |may| if may { "may" } else { "may not" };
        let detail = format!(
            "objects: {}, messages: {}",
            word(told.objects),
            word(told.messages)
        );
        Ok(Outcome::new(told, detail).record(by(verdict)))
    }
}

/// What a privilege over a process is about.
fn privilege(target: Pid) -> [Resource; 2] {
    let namespace = format!("proc/{target}");
    [
        Resource::Objects { namespace },
        Resource::Process { pid: target },
    ]
}

fn told(capability: Capability, now: &Now) -> CapabilityInfo {
    let status = capability.status_at(now);
    let left = capability
        .lease
        .as_ref()
        .map(|lease| lease.left_ms(&now.steady));
    CapabilityInfo {
        id: capability.id,
        subject: capability.subject,
        words: capability.grant.to_string(),
        grant: capability.grant,
        parent: capability.parent,
        issuer: capability.issuer,
        left_ms: left,
        status,
    }
}

/// The same for one that is not there and for one that is another's: a number is no right.
fn not_to_be_seen(id: CapabilityId) -> SysError {
    SysError::new(
        Code::Denied,
        format!("capability `{id}` is none of the caller's"),
    )
    .hint("use a number that capability.list gave")
}

impl Ctx {
    /// Whether a right may be asked for at all.
    fn may_be_asked_for(&self, grant: &Grant) -> Result<(), SysError> {
        grant.check()?;
        let why = match &grant.resource {
            Resource::Workspace { root } if *root != self.info.workspace => {
                "the workspace is another one"
            }
            _ if grant.stance == Stance::Deny => "a deny gives no right",
            _ => return Ok(()),
        };
        Err(
            SysError::new(Code::Invalid, format!("this cannot be asked for: {why}"))
                .hint("ask for a right in the process's own workspace, to allow or to ask"),
        )
    }

    /// A process of this run that has not ended, and whether it is below the caller.
    async fn relative(&self, pid: Pid) -> Result<(ProcessInfo, bool), SysError> {
        let family = self.inner.journal.processes_of_run(self.info.run).await?;
        let below = is_below(&family, pid, self.info.pid);
        let found = family.into_iter().find(|process| process.pid == pid);
        match found {
            Some(process) if !process.state.is_final() => Ok((process, below)),
            Some(_) => Err(
                SysError::new(Code::NotFound, format!("process `{pid}` has ended"))
                    .hint("name one that runs"),
            ),
            None => Err(no_relative(pid)),
        }
    }

    /// Whether a process is the caller or below it.
    async fn own(&self, pid: Pid) -> Result<(), SysError> {
        if pid == self.info.pid {
            return Ok(());
        }
        let family = self.inner.journal.processes_of_run(self.info.run).await?;
        match is_below(&family, pid, self.info.pid) {
            true => Ok(()),
            false => Err(SysError::new(
                Code::Denied,
                format!("process `{pid}` is neither the caller nor below it"),
            )
            .hint("use a pid that process.spawn gave")),
        }
    }
}

fn no_relative(pid: Pid) -> SysError {
    SysError::new(Code::Denied, format!("process `{pid}` is not of this run"))
        .hint("use a pid that process.list gave")
}

/// Whether a process descends from another; parents come before their children.
fn is_below(family: &[ProcessInfo], pid: Pid, above: Pid) -> bool {
    let mut line = Some(pid);
    for process in family.iter().rev() {
        if Some(process.pid) == line {
            if process.parent == Some(above) {
                return true;
            }
            line = process.parent;
        }
    }
    false
}
