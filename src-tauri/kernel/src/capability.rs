//! Capabilities: what a process may do, checked by every primitive at every call.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Code, SysError};
use crate::process::Pid;
use crate::provider::Digest;

/// Number of a capability. Never used twice in one data directory.
pub type CapabilityId = u64;

/// What a capability is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Resource {
    /// The files of a workspace.
    Workspace {
        /// Absolute path of its root.
        root: PathBuf,
    },
    /// Language models.
    Cores,
    /// The person.
    Human,
    /// Processes of the same run.
    Processes,
    /// Time.
    Clock,
    /// Exactly one effect, as shown to the person.
    Exactly {
        /// Digest of what was shown.
        digest: Digest,
    },
}

/// What may be done with a resource.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// Look.
    Read,
    /// Make or replace.
    Write,
    /// Remove.
    Delete,
    /// Use: ask a core, ask the person, start a child, wait.
    Use,
}

/// What a capability says to a call it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stance {
    /// It may.
    Allow,
    /// It may once the person has said yes to exactly this.
    Ask,
    /// It may not, whatever else is held.
    Deny,
}

/// Whether a capability still counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It counts.
    Active,
    /// It was taken back; it stays taken back.
    Revoked,
    /// Its uses are spent.
    Spent,
}

/// A grant to be made: a capability before it has a number and a holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// What it is about.
    pub resource: Resource,
    /// What may be done.
    pub rights: Vec<Right>,
    /// What it says to a call it covers.
    pub stance: Stance,
    /// How many calls it covers; any number where absent.
    pub uses: Option<u32>,
}

/// A process's right to something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    /// Its number.
    pub id: CapabilityId,
    /// Who holds it.
    pub subject: Pid,
    /// What it grants.
    pub grant: Grant,
    /// The capability it was derived from; taking that back takes this back.
    pub parent: Option<CapabilityId>,
    /// Who issued it: `person` or `pid N`.
    pub issuer: String,
    /// Unix milliseconds when it was issued.
    pub issued_ms: u64,
    /// Whether it still counts.
    pub status: Status,
}

/// What a call needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Of what.
    pub resource: Resource,
    /// To do what.
    pub right: Right,
}

/// What the capabilities say to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// [`Stance::Allow`] or [`Stance::Ask`]; a deny is an error.
    pub stance: Stance,
    /// The capability that says so.
    pub by: CapabilityId,
}

/// The rights a run starts with: look at its workspace, ask before changing it, use the rest.
pub fn workspace_defaults(root: &Path) -> Vec<Grant> {
    let workspace = || Resource::Workspace {
        root: root.to_owned(),
    };
    let grant = |resource, rights: &[Right], stance| Grant {
        resource,
        rights: rights.to_vec(),
        stance,
        uses: None,
    };
    vec![
        grant(workspace(), &[Right::Read], Stance::Allow),
        grant(workspace(), &[Right::Write, Right::Delete], Stance::Ask),
        grant(Resource::Cores, &[Right::Use], Stance::Allow),
        grant(Resource::Human, &[Right::Use], Stance::Allow),
        grant(
            Resource::Processes,
            &[Right::Use, Right::Read],
            Stance::Allow,
        ),
        grant(Resource::Clock, &[Right::Use], Stance::Allow),
    ]
}

/// Decides a need by the capabilities a process holds: deny wins, then ask, then allow; without
/// any, it is denied. `held` must hold active capabilities only (the whole chain).
pub fn decide(held: &[Capability], need: &Need) -> Result<Verdict, SysError> {
    let covering = || {
        held.iter().filter(|c| {
            c.status == Status::Active
                && c.grant.resource == need.resource
                && c.grant.rights.contains(&need.right)
        })
    };
    if let Some(deny) = covering().find(|c| c.grant.stance == Stance::Deny) {
        return Err(denied(need, &format!("capability {} denies it", deny.id)));
    }
    for stance in [Stance::Ask, Stance::Allow] {
        if let Some(found) = covering().find(|c| c.grant.stance == stance) {
            return Ok(Verdict {
                stance,
                by: found.id,
            });
        }
    }
    Err(denied(need, "the process holds no capability for it"))
}

/// Picks what a child gets: each wanted right must be covered by an active capability of the
/// parent, and is never looser than it. A right comes from the capability that covers it, so that
/// taking that one back takes the child's right back too.
pub fn narrow(
    held: &[Capability],
    wanted: &[Grant],
) -> Result<Vec<(Grant, CapabilityId)>, SysError> {
    let mut given: Vec<(Grant, CapabilityId)> = Vec::new();
    for want in wanted {
        let first = given.len();
        for right in &want.rights {
            let need = Need {
                resource: want.resource.clone(),
                right: *right,
            };
            let verdict = decide(held, &need)?;
            let stance = match (want.stance, verdict.stance) {
                (Stance::Allow, held) => held,
                (want, _) => want,
            };
            let same = |(grant, by): &&mut (Grant, CapabilityId)| {
                *by == verdict.by && grant.stance == stance
            };
            match given[first..].iter_mut().find(same) {
                Some((grant, _)) => grant.rights.push(*right),
                None => {
                    let rights = vec![*right];
                    let grant = Grant {
                        rights,
                        stance,
                        ..want.clone()
                    };
                    given.push((grant, verdict.by));
                }
            }
        }
        if given.len() == first {
            return Err(SysError::new(Code::Invalid, "a grant names no right")
                .hint("name at least one right"));
        }
    }
    Ok(given)
}

fn denied(need: &Need, why: &str) -> SysError {
    let (right, what) = (
        match need.right {
            Right::Read => "reading",
            Right::Write => "writing",
            Right::Delete => "deleting",
            Right::Use => "using",
        },
        match &need.resource {
            Resource::Workspace { root } => {
                format!(
                    "the workspace `{}`",
                    crate::escape::shown(&root.to_string_lossy())
                )
            }
            Resource::Cores => "the cores".to_owned(),
            Resource::Human => "the person's attention".to_owned(),
            Resource::Processes => "processes".to_owned(),
            Resource::Clock => "the clock".to_owned(),
            Resource::Exactly { .. } => "this effect".to_owned(),
        },
    );
    SysError::new(
        Code::Denied,
        format!("{right} {what} is not allowed: {why}"),
    )
    .hint("do it without this, or ask the person to grant it")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn capability(id: u64, right: Right, stance: Stance, status: Status) -> Capability {
        Capability {
            id,
            subject: Pid(1),
            grant: Grant {
                resource: Resource::Clock,
                rights: vec![right],
                stance,
                uses: None,
            },
            parent: None,
            issuer: "person".into(),
            issued_ms: 0,
            status,
        }
    }

    #[test]
    fn deny_wins_then_ask_then_allow_and_nothing_is_no() {
        use Stance::{Allow, Ask, Deny};
        let need = Need {
            resource: Resource::Clock,
            right: Right::Use,
        };
        type Row = (&'static [(Stance, Status)], Option<Stance>);
        let rows: [Row; 7] = [
            (&[], None),
            (&[(Allow, Status::Active)], Some(Allow)),
            (&[(Allow, Status::Active), (Ask, Status::Active)], Some(Ask)),
            (&[(Allow, Status::Active), (Deny, Status::Active)], None),
            (
                &[(Allow, Status::Active), (Deny, Status::Revoked)],
                Some(Allow),
            ),
            (&[(Allow, Status::Revoked)], None),
            (&[(Allow, Status::Spent)], None),
        ];
        for (held, expected) in rows {
            let held: Vec<_> = held
                .iter()
                .enumerate()
                .map(|(i, (stance, status))| capability(i as u64, Right::Use, *stance, *status))
                .collect();
            let got = decide(&held, &need).ok().map(|v| v.stance);
            assert_eq!(got, expected, "{held:?}");
        }
    }

    #[test]
    fn a_child_never_gets_more_than_its_parent() {
        let held = [capability(7, Right::Use, Stance::Ask, Status::Active)];
        let want = |right, stance| Grant {
            resource: Resource::Clock,
            rights: vec![right],
            stance,
            uses: None,
        };
        let given = narrow(&held, &[want(Right::Use, Stance::Allow)]).unwrap();
        assert_eq!(given, vec![(want(Right::Use, Stance::Ask), 7)]);
        assert_eq!(
            narrow(&held, &[want(Right::Write, Stance::Ask)])
                .unwrap_err()
                .code,
            Code::Denied
        );
        // Each right hangs on the capability it comes from.
        let held = [
            capability(7, Right::Write, Stance::Ask, Status::Active),
            capability(8, Right::Delete, Stance::Ask, Status::Active),
        ];
        let both = Grant {
            rights: vec![Right::Write, Right::Delete],
            ..want(Right::Write, Stance::Ask)
        };
        assert_eq!(
            narrow(&held, &[both]).unwrap(),
            vec![
                (want(Right::Write, Stance::Ask), 7),
                (want(Right::Delete, Stance::Ask), 8)
            ]
        );
    }
}
