//! Commands about what processes may do, and what the person said once for many times.

use std::path::PathBuf;

use steward_kernel::Pid;
use steward_kernel::capability::{
    Capability, Explanation as Explained, Looked, Right, Stance, Status, Why,
};
use steward_kernel::human::{NewPolicy, Place, Policy, Scope, Standing};

use super::{Host, Surface};
use crate::clock::now_ms;
use crate::surface::{
    CapabilityStatus, CapabilityView, Explanation, GrantView, LookedAt, PolicyChange, PolicyRule,
    PolicyScope, PolicyView, Problem, Reply, StanceView,
};

impl Host {
    pub(super) async fn capabilities(&self, pid: u64) -> Result<Reply, Problem> {
        self.kernel.process(Pid(pid)).await?;
        let held = self.kernel.all_capabilities(Pid(pid)).await?;
        let newest_first = held.into_iter().rev();
        Ok(Reply::Capabilities {
            capabilities: newest_first.map(|held| self.capability(held)).collect(),
        })
    }

    pub(super) async fn explain(&self, pid: u64, what: String) -> Result<Reply, Problem> {
        let told = self.kernel.explain(Pid(pid), &what).await?;
        Ok(Reply::Explanation(explanation(pid, told)))
    }

    pub(super) async fn revoke_capability(&self, id: u64, by: Surface) -> Result<Reply, Problem> {
        if self.kernel.revoke(id, by.name()).await? {
            return Ok(Reply::Done);
        }
        let message = format!("there is no capability `{id}` that counts");
        Err(Problem::new("not_found", message).hint("list them with `steward caps PID`"))
    }

    pub(super) async fn grants(&self) -> Result<Reply, Problem> {
        let all = self.kernel.grants().await?.into_iter();
        Ok(Reply::Grants {
            grants: all.filter_map(grant).collect(),
        })
    }

    /// One standing answer.
    pub(super) async fn grant(&self, id: u64) -> Result<Option<GrantView>, Problem> {
        let mut all = self.kernel.grants().await?.into_iter();
        Ok(all.find(|standing| standing.id == id).and_then(grant))
    }

    pub(super) async fn revoke_grant(&self, id: u64, by: Surface) -> Result<Reply, Problem> {
        if self.kernel.revoke_grant(id, by.name()).await? {
            return Ok(Reply::Done);
        }
        let message = format!("standing answer `{id}` was revoked already");
        Err(Problem::new("conflict", message).hint("list them with `steward grants`"))
    }

    pub(super) async fn policies(&self) -> Result<Reply, Problem> {
        let all = self.kernel.grants().await?.into_iter();
        let stand = all.filter(|it| it.revoked_ms.is_none() && it.uses_left != Some(0));
        Ok(Reply::Policies {
            policies: stand.map(policy).collect(),
        })
    }

    pub(super) async fn set_policy(
        &self,
        change: PolicyChange,
        by: Surface,
    ) -> Result<Reply, Problem> {
        let PolicyChange {
            action,
            scope,
            rule,
        } = change;
        let new = NewPolicy {
            action,
            scope: scope_of(scope)?,
            policy: match rule {
                PolicyRule::AlwaysAllow => Policy::AlwaysAllow,
                PolicyRule::AlwaysDeny => Policy::AlwaysDeny,
                PolicyRule::AskEachTime => Policy::AskEachTime,
                PolicyRule::AllowOnce => Policy::AllowOnce,
            },
        };
        self.kernel.set_action_policy(new, by.name()).await?;
        self.policies().await
    }

    /// A capability as it stands.
    pub(super) fn capability(&self, held: Capability) -> CapabilityView {
        let left_ms = self.kernel.left_ms(&held);
        let grant = &held.grant;
        CapabilityView {
            id: held.id,
            pid: held.subject.0,
            resource: grant.resource.to_string(),
            rights: grant.rights.iter().map(word).collect(),
            stance: stance(grant.stance),
            constraints: if grant.constraints.is_empty() {
                Vec::new()
            } else {
                vec![grant.constraints.to_string()]
            },
            uses_left: grant.uses,
            depth: grant.depth,
            parent: held.parent,
            issued_ms: held.issued_ms,
            expires_ms: left_ms.map(|ms| now_ms().saturating_add(ms)),
            status: match held.status {
                Status::Active => CapabilityStatus::Active,
                Status::Revoked => CapabilityStatus::Revoked,
                Status::Spent => CapabilityStatus::Spent,
                Status::Expired => CapabilityStatus::Expired,
                Status::Ended => CapabilityStatus::Ended,
            },
            issuer: held.issuer,
        }
    }
}

/// The stable word of a right, such as `read`.
fn word(right: &Right) -> String {
    let word = serde_json::to_value(right).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

fn stance(stance: Stance) -> StanceView {
    match stance {
        Stance::Allow => StanceView::Allow,
        Stance::Ask => StanceView::Ask,
        Stance::Deny => StanceView::Deny,
    }
}

fn explanation(pid: u64, told: Explained) -> Explanation {
    let why = match (told.stance, told.by, &told.standing) {
        (_, _, Some(standing)) => standing.clone(),
        (_, Some(by), None) => format!("capability {by}"),
        (_, None, None) => "no capability covers it".to_owned(),
    };
    let words = match told.stance {
        Stance::Allow => format!("it is let pass: {why}"),
        Stance::Ask => format!("you are asked first: {why}"),
        Stance::Deny => format!("it is refused: {why}"),
    };
    Explanation {
        pid,
        what: told.need,
        decision: stance(told.stance),
        by: told.by,
        words,
        looked_at: told.looked.into_iter().map(looked_at).collect(),
    }
}

fn looked_at(looked: Looked) -> LookedAt {
    LookedAt {
        id: looked.id,
        words: looked.grants,
        stance: stance(looked.stance),
        covers: looked.why == Why::Covers,
        why: looked.why.to_string(),
    }
}

/// A policy as a standing answer; one that asks each time is no answer.
fn grant(standing: Standing) -> Option<GrantView> {
    let allow = match standing.policy {
        Policy::AlwaysAllow | Policy::AllowOnce => true,
        Policy::AlwaysDeny => false,
        Policy::AskEachTime => return None,
    };
    Some(GrantView {
        id: standing.id,
        action: standing.action,
        scope: scope(standing.scope),
        words: standing.words,
        allow,
        issued_ms: standing.issued_ms,
        by: standing.by,
        uses: standing.used,
        revoked_ms: standing.revoked_ms,
    })
}

fn policy(standing: Standing) -> PolicyView {
    PolicyView {
        id: standing.id,
        action: standing.action,
        scope: scope(standing.scope),
        rule: match standing.policy {
            Policy::AlwaysAllow => PolicyRule::AlwaysAllow,
            Policy::AlwaysDeny => PolicyRule::AlwaysDeny,
            Policy::AskEachTime => PolicyRule::AskEachTime,
            Policy::AllowOnce => PolicyRule::AllowOnce,
        },
        words: standing.words,
        set_ms: standing.issued_ms,
        by: standing.by,
    }
}

fn scope(scope: Scope) -> PolicyScope {
    let Scope {
        workspace,
        place,
        kind: _,
        image,
        run,
        pid,
    } = scope;
    let (path, folder) = match place {
        Some(Place::Path(path)) => (Some(path), None),
        Some(Place::Folder(folder)) => (None, Some(folder)),
        None => (None, None),
    };
    PolicyScope {
        workspace: workspace.map(|root| root.to_string_lossy().into_owned()),
        path,
        folder,
        image,
        run,
        pid: pid.map(|pid| pid.0),
    }
}

fn scope_of(scope: PolicyScope) -> Result<Scope, Problem> {
    let PolicyScope {
        workspace,
        path,
        folder,
        image,
        run,
        pid,
    } = scope;
    let place = match (path, folder) {
        (Some(_), Some(_)) => {
            let message = "a policy is for a path or for a folder, not for both";
            return Err(Problem::new("invalid", message).hint("leave one of them out"));
        }
        (Some(path), None) => Some(Place::Path(path)),
        (None, Some(folder)) => Some(Place::Folder(folder)),
        (None, None) => None,
    };
    Ok(Scope {
        workspace: workspace.map(PathBuf::from),
        place,
        kind: None,
        image,
        run,
        pid: pid.map(Pid),
    })
}
