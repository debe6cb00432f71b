//! What a process may do, and why.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A right that a process holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CapabilityView {
    /// Its number; the same after a restart.
    pub id: u64,
    /// Who holds it.
    pub pid: u64,
    /// What it is about, in words (escaped).
    pub resource: String,
    /// What may be done, such as `read`.
    pub rights: Vec<String>,
    /// What it says to a call that it covers.
    pub stance: StanceView,
    /// What must hold besides, a phrase each (escaped).
    pub constraints: Vec<String>,
    /// Calls that it still covers; any number where absent.
    pub uses_left: Option<u32>,
    /// How many times over it may be passed on; any number where absent.
    pub depth: Option<u32>,
    /// The capability it was derived from; taking that back takes this back.
    pub parent: Option<u64>,
    /// Who issued it: `person` or `pid N`.
    pub issuer: String,
    /// Unix time in milliseconds when it was issued.
    pub issued_ms: u64,
    /// Unix time in milliseconds when it ends.
    pub expires_ms: Option<u64>,
    /// Whether it still counts.
    pub status: CapabilityStatus,
}

/// What a capability, or all of them together, say to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum StanceView {
    /// It may.
    Allow,
    /// It may after a yes to exactly this.
    Ask,
    /// It may not.
    Deny,
}

/// Whether a capability still counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum CapabilityStatus {
    /// It counts.
    Active,
    /// It was taken back.
    Revoked,
    /// Its uses are spent.
    Spent,
    /// Its time is over.
    Expired,
    /// Its holder has ended.
    Ended,
}

/// What would be said to a call, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Explanation {
    /// The process asked about.
    pub pid: u64,
    /// The call asked about, as it was understood (escaped), such as `fs.write notes.md`.
    pub what: String,
    /// What would be said to it.
    pub decision: StanceView,
    /// The capability that decides, where one does.
    pub by: Option<u64>,
    /// The decision in a sentence.
    pub words: String,
    /// Every capability that was looked at, and why it covers the call or does not.
    pub looked_at: Vec<LookedAt>,
}

/// A capability that was looked at for a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct LookedAt {
    /// Its number.
    pub id: u64,
    /// What it is, in words (escaped).
    pub words: String,
    /// What it says to a call that it covers.
    pub stance: StanceView,
    /// Whether it covers this one.
    pub covers: bool,
    /// Why, or why not.
    pub why: String,
}
