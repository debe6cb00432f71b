//! Capabilities: what a process may do, checked by every primitive at every call.
//!
//! A [`Grant`] says what of what resource, under which [`Constraints`], for how often and how long.
//! [`decide`] is the only judge of a [`Need`]; [`explain`] is the same judge, telling its reasons;
//! [`narrow`] makes what a process passes on, never looser than what it holds.

mod access;
mod constraints;
mod decide;
mod lease;
mod narrow;
mod patterns;
#[cfg(test)]
mod tests;
mod words;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::process::Pid;
use crate::provider::Digest;

pub use access::{FileAccess, workspace_grants};
pub use constraints::{AnyOf, CONSTRAINTS_MOST, Constraints, Daily, Facts, Holds, PATTERNS_MOST};
pub use decide::{Explanation, Looked, Verdict, Why, decide, explain};
pub use lease::{Lease, Now, Steady};
pub use narrow::narrow;
pub(crate) use patterns::normal_path;
pub use patterns::{ArgvPattern, HostPattern, Method, NoPattern, PATTERN_MOST, PathGlob};

/// Number of a capability. Never used twice in one data directory.
pub type CapabilityId = u64;

/// What a capability is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// One process, of whatever run: its messages and its state.
    Process {
        /// Which.
        pid: Pid,
    },
    /// Time.
    Clock,
    /// Objects of a namespace and of all beneath it.
    Objects {
        /// Names joined by `/`, such as `proc/7`.
        namespace: String,
    },
    /// The registry of images.
    Images,
    /// Checkpoints of the same run.
    Checkpoints,
    /// The journal.
    Journal,
    /// Other programs.
    Shell,
    /// The network.
    Network,
    /// Capabilities themselves.
    Capabilities,
    /// Exactly one effect, as shown to the person.
    Exactly {
        /// Digest of what was shown.
        digest: Digest,
    },
}

impl Resource {
    /// Whether this includes all of another.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Resource::Objects { namespace: all }, Resource::Objects { namespace: part }) => {
                match part.strip_prefix(all.as_str()) {
                    Some(rest) => rest.is_empty() || rest.starts_with('/'),
                    None => false,
                }
            }
            _ => self == other,
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.covers(other) || other.covers(self)
    }
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
    /// Run as a program.
    Execute,
    /// Put into relation with another.
    Link,
    /// Compare two versions.
    Diff,
    /// Show to a model.
    Materialize,
    /// Give to others.
    Grant,
    /// Take back from others.
    Revoke,
    /// Answer in the person's place.
    Approve,
    /// All of these.
    Admin,
}

impl Right {
    /// Whether it includes another.
    pub fn includes(self, other: Self) -> bool {
        self == other || self == Right::Admin
    }

    fn overlaps(self, other: Self) -> bool {
        self.includes(other) || other.includes(self)
    }
}

/// What a capability says to a call it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It counts.
    Active,
    /// It was taken back; it stays taken back.
    Revoked,
    /// Its uses are spent.
    Spent,
    /// Its lease is over.
    Expired,
    /// Its holder has ended.
    Ended,
}

/// A grant to be made: a capability before it has a number and a holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Grant {
    /// What it is about.
    pub resource: Resource,
    /// What may be done.
    pub rights: Vec<Right>,
    /// What it says to a call it covers.
    pub stance: Stance,
    /// How many calls it covers; any number where absent.
    #[serde(default)]
    pub uses: Option<u32>,
    /// What must hold of a call beyond that.
    #[serde(default, skip_serializing_if = "Constraints::is_empty")]
    pub constraints: Constraints,
    /// Milliseconds that it counts from when it is issued; until it is taken back where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// How many times over it may be passed on; any number where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
}

impl Grant {
    /// Without constraints, for any number of calls, until it is taken back.
    pub fn new(resource: Resource, rights: impl Into<Vec<Right>>, stance: Stance) -> Self {
        Self {
            resource,
            rights: rights.into(),
            stance,
            uses: None,
            constraints: Constraints::default(),
            lease_ms: None,
            depth: None,
        }
    }

    /// A grant that allows.
    pub fn allow(resource: Resource, rights: impl Into<Vec<Right>>) -> Self {
        Self::new(resource, rights, Stance::Allow)
    }

    /// A grant that allows what the person says yes to.
    pub fn ask(resource: Resource, rights: impl Into<Vec<Right>>) -> Self {
        Self::new(resource, rights, Stance::Ask)
    }

    /// A grant that denies, whatever else is held.
    pub fn deny(resource: Resource, rights: impl Into<Vec<Right>>) -> Self {
        Self::new(resource, rights, Stance::Deny)
    }

    /// The same under constraints.
    #[must_use]
    pub fn under(self, constraints: Constraints) -> Self {
        Self {
            constraints,
            ..self
        }
    }

    /// The same for a number of calls.
    #[must_use]
    pub fn times(self, uses: u32) -> Self {
        Self {
            uses: Some(uses),
            ..self
        }
    }

    /// The same for some milliseconds.
    #[must_use]
    pub fn lasting(self, ms: u64) -> Self {
        Self {
            lease_ms: Some(ms),
            ..self
        }
    }

    fn has(&self, right: Right) -> bool {
        self.rights.iter().any(|mine| mine.includes(right))
    }
}

/// A process's right to something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    /// Its number.
    pub id: CapabilityId,
    /// Who holds it.
    pub subject: Pid,
    /// What it grants; the uses are those left.
    pub grant: Grant,
    /// The capability it was derived from; taking that back takes this back.
    pub parent: Option<CapabilityId>,
    /// Who issued it: `person` or `pid N`.
    pub issuer: String,
    /// Unix milliseconds when it was issued.
    pub issued_ms: u64,
    /// Until when it counts; until it is taken back where absent.
    #[serde(default)]
    pub lease: Option<Lease>,
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
    /// What is known of the call.
    pub facts: Facts,
    /// Whether more will be known before it takes effect: then what is not known yet neither allows
    /// for good nor denies.
    pub partial: bool,
}

impl Need {
    /// Of a call of which nothing more is known.
    pub fn new(resource: Resource, right: Right) -> Self {
        Self {
            resource,
            right,
            facts: Facts::default(),
            partial: false,
        }
    }

    /// The same, of which more will be known.
    #[must_use]
    pub fn partially(self) -> Self {
        Self {
            partial: true,
            ..self
        }
    }

    /// The same with what is known of the call.
    #[must_use]
    pub fn with(self, facts: Facts) -> Self {
        Self { facts, ..self }
    }

    /// The same on a path within the workspace.
    #[must_use]
    pub fn at(mut self, path: &str) -> Self {
        self.facts.path = Some(path.to_owned());
        self
    }

    /// The same with the number of bytes that it moves.
    #[must_use]
    pub fn of_bytes(mut self, bytes: u64) -> Self {
        self.facts.bytes = Some(bytes);
        self
    }
}

/// The rights a run starts with: look at its workspace, ask before changing it, use the rest.
pub fn workspace_defaults(root: &Path) -> Vec<Grant> {
    let workspace = || Resource::Workspace {
        root: root.to_owned(),
    };
    vec![
        Grant::allow(workspace(), [Right::Read]),
        Grant::ask(workspace(), [Right::Write, Right::Delete]),
        Grant::allow(Resource::Cores, [Right::Use]),
        Grant::allow(Resource::Human, [Right::Use]),
        Grant::allow(Resource::Processes, [Right::Use, Right::Read]),
        Grant::allow(Resource::Clock, [Right::Use]),
        Grant::allow(
            Resource::Capabilities,
            [Right::Read, Right::Grant, Right::Revoke],
        ),
        Grant::ask(Resource::Capabilities, [Right::Use]),
    ]
}
