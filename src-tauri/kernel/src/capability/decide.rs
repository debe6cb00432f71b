//! The judge of a call: what the capabilities that a process holds say to a need.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::constraints::Holds;
use super::{Capability, CapabilityId, Constraints, Need, Now, Stance, Status};
use crate::error::{Code, SysError};

/// What the capabilities say to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// [`Stance::Allow`] or [`Stance::Ask`]; a deny is an error.
    pub stance: Stance,
    /// The capability that says so.
    pub by: CapabilityId,
    /// The standing grant that turned what it says, where one did.
    pub standing: Option<u64>,
}

/// Why a capability counts for a call, or does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Why {
    /// It covers the call.
    Covers,
    /// It covers the call as far as is known: enough for a deny, not for anything else.
    MayCover {
        /// The fact that is not known.
        unknown: String,
    },
    /// It no longer counts.
    NoLonger {
        /// Why.
        status: Status,
    },
    /// It is about another resource.
    OtherResource,
    /// It does not give the right.
    OtherRight,
    /// A constraint does not hold.
    Constraint {
        /// Which, in words.
        fails: String,
    },
}

/// A capability that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Looked {
    /// Its number.
    pub id: CapabilityId,
    /// What it says to a call that it covers.
    pub stance: Stance,
    /// What it grants, in words.
    pub grants: String,
    /// Why it counts, or does not.
    #[serde(flatten)]
    pub why: Why,
}

/// A decision with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// What was asked, in words.
    pub need: String,
    /// The decision.
    pub stance: Stance,
    /// The capability that decides, where one does.
    pub by: Option<CapabilityId>,
    /// The standing grant that turns what the capabilities say, in words, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<String>,
    /// Every capability that was looked at.
    pub looked: Vec<Looked>,
}

/// Decides a need by the capabilities a process holds.
///
/// A deny wins. Of those that ask and those that allow the tighter counts: an allow counts where its
/// constraints lie within those of every ask that covers the call. Without any, it is denied.
///
/// # Errors
/// [`Code::Denied`], with the reason.
pub fn decide(held: &[Capability], need: &Need, now: &Now) -> Result<Verdict, SysError> {
    match judge(held, need, now) {
        Judged::Allow(by) => Ok(Verdict {
            stance: Stance::Allow,
            by,
            standing: None,
        }),
        Judged::Ask(by) => Ok(Verdict {
            stance: Stance::Ask,
            by,
            standing: None,
        }),
        Judged::Deny(by) => Err(denied(need, &format!("capability {by} denies it"))),
        Judged::Nothing => Err(denied(need, &nothing(held, need, now))),
    }
}

/// Decides a need as [`decide`] does, and tells of every capability why it counts or does not.
pub fn explain(held: &[Capability], need: &Need, now: &Now) -> Explanation {
    let (stance, by) = match judge(held, need, now) {
        Judged::Allow(by) => (Stance::Allow, Some(by)),
        Judged::Ask(by) => (Stance::Ask, Some(by)),
        Judged::Deny(by) => (Stance::Deny, Some(by)),
        Judged::Nothing => (Stance::Deny, None),
    };
    let look = |capability: &Capability| Looked {
        id: capability.id,
        stance: capability.grant.stance,
        grants: capability.grant.to_string(),
        why: coverage(capability, need, now),
    };
    Explanation {
        need: need.to_string(),
        stance,
        by,
        standing: None,
        looked: held.iter().map(look).collect(),
    }
}

enum Judged {
    Allow(CapabilityId),
    Ask(CapabilityId),
    Deny(CapabilityId),
    Nothing,
}

fn judge(held: &[Capability], need: &Need, now: &Now) -> Judged {
    let mut allows: Vec<&Capability> = Vec::new();
    let mut asks: Vec<&Capability> = Vec::new();
    for capability in held {
        // What is not known counts for a deny; where more is to come, it waits for that.
        let covers = match coverage(capability, need, now) {
            Why::Covers => true,
            Why::MayCover { .. } => (capability.grant.stance == Stance::Deny) != need.partial,
            _ => false,
        };
        match capability.grant.stance {
            _ if !covers => {}
            Stance::Deny => return Judged::Deny(capability.id),
            Stance::Ask => asks.push(capability),
            Stance::Allow => allows.push(capability),
        }
    }
    let allowed = allows.into_iter().find(|allow| {
        let (allow, mut asks) = (&allow.grant.constraints, asks.iter());
        asks.all(|ask| is_tighter(allow, &ask.grant.constraints))
    });
    match (allowed, asks.first()) {
        (Some(allow), _) => Judged::Allow(allow.id),
        (None, Some(ask)) => Judged::Ask(ask.id),
        (None, None) => Judged::Nothing,
    }
}

/// Whether constraints are provably tighter than others.
pub(super) fn is_tighter(these: &Constraints, others: &Constraints) -> bool {
    these.within(others) && !others.within(these)
}

fn coverage(capability: &Capability, need: &Need, now: &Now) -> Why {
    let grant = &capability.grant;
    if !grant.resource.covers(&need.resource) {
        return Why::OtherResource;
    }
    if !grant.has(need.right) {
        return Why::OtherRight;
    }
    if capability.status != Status::Active {
        return Why::NoLonger {
            status: capability.status,
        };
    }
    if capability.is_over(now) {
        return Why::NoLonger {
            status: Status::Expired,
        };
    }
    match grant.constraints.hold(&need.facts, now.wall_ms) {
        Holds::Yes => Why::Covers,
        Holds::No(fails) => Why::Constraint { fails },
        Holds::Unknown(fact) => Why::MayCover {
            unknown: fact.to_owned(),
        },
    }
}

impl Capability {
    /// How it stands at a time: a lease ends without being written down.
    pub fn status_at(&self, now: &Now) -> Status {
        match self.status {
            Status::Active if self.is_over(now) => Status::Expired,
            status => status,
        }
    }

    /// Whether its lease is over.
    pub fn is_over(&self, now: &Now) -> bool {
        self.lease
            .as_ref()
            .is_some_and(|lease| lease.is_over(&now.steady))
    }
}

/// Why nothing covers a need: the nearest miss, where there is one.
fn nothing(held: &[Capability], need: &Need, now: &Now) -> String {
    let miss = held.iter().rev().find_map(|capability| {
        let why = coverage(capability, need, now);
        match &why {
            Why::OtherResource | Why::OtherRight => None,
            why => Some(format!("capability {} {why}", capability.id)),
        }
    });
    miss.unwrap_or_else(|| "the process holds no capability for it".to_owned())
}

fn denied(need: &Need, why: &str) -> SysError {
    SysError::new(Code::Denied, format!("{need} is not allowed: {why}"))
        .hint("do it without this, or ask the person to grant it")
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Covers => f.write_str("covers it"),
            Why::MayCover { unknown } => write!(f, "may cover it: {unknown} is not known"),
            Why::NoLonger { status } => f.write_str(match status {
                Status::Active => "counts",
                Status::Revoked => "was taken back",
                Status::Spent => "is used up",
                Status::Expired => "has expired",
                Status::Ended => "ended with its holder",
            }),
            Why::OtherResource => f.write_str("is about something else"),
            Why::OtherRight => f.write_str("gives other rights"),
            Why::Constraint { fails } => write!(f, "does not hold: {fails}"),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decided = match self.stance {
            Stance::Allow => "allowed",
            Stance::Ask => "asked about first",
            Stance::Deny => "denied",
        };
        write!(f, "{}: {decided}", self.need)?;
        match self.by {
            Some(by) => writeln!(f, ", by capability {by}")?,
            None => writeln!(f, ", because nothing that is held covers it")?,
        }
        if let Some(standing) = &self.standing {
            writeln!(f, "  {standing}")?;
        }
        for looked in &self.looked {
            let Looked {
                id, grants, why, ..
            } = looked;
            writeln!(f, "  capability {id}, {grants}: {why}")?;
        }
        Ok(())
    }
}
