//! Calls about rights.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capability::{Grant, Status};
use crate::process::Pid;

/// Arguments of `capability.list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapabilityList {
    /// The process; the caller where absent.
    #[serde(default)]
    pub pid: Option<Pid>,
}

/// Arguments of `capability.inspect`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapabilityInspect {
    /// The capability's number.
    pub id: u64,
}

/// A capability, as told to a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapabilityInfo {
    /// Its number.
    pub id: u64,
    /// Who holds it.
    pub subject: Pid,
    /// What it grants, in words.
    pub words: String,
    /// What it grants; the uses are those left.
    pub grant: Grant,
    /// The capability it was derived from.
    pub parent: Option<u64>,
    /// Who issued it: `person`, `kernel` or `pid N`.
    pub issuer: String,
    /// Milliseconds that it still counts; until it is taken back where absent.
    pub left_ms: Option<u64>,
    /// Whether it counts.
    pub status: Status,
}

/// Arguments of `capability.explain`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapabilityExplain {
    /// A system call and what it is about, such as `fs.write notes/a.md`.
    pub call: String,
}

/// Arguments of `capability.request`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapabilityRequest {
    /// What is asked for.
    pub grant: Grant,
    /// What for, in the process's words.
    pub why: String,
    /// Milliseconds to wait for an answer at most.
    #[serde(default)]
    pub expires_ms: Option<u64>,
}

/// Arguments of `capability.delegate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapabilityDelegate {
    /// Who gets it.
    pub to: Pid,
    /// What: cut to what the caller holds, or refused.
    pub grants: Vec<Grant>,
}

/// Arguments of `capability.revoke`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapabilityRevoke {
    /// One of the caller's, or one that was derived from one of these.
    pub id: u64,
}

/// Arguments of `access.add_privilege`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccessAddPrivilege {
    /// Who may reach.
    pub subject: Pid,
    /// Whose objects and messages: the caller's own, or those of a process below it.
    pub target: Pid,
}

/// Arguments of `access.check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccessCheck {
    /// Who would reach: the caller, or a process below it.
    pub subject: Pid,
    /// Whose.
    pub target: Pid,
}

/// What one process may reach of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Privilege {
    /// Look at its objects.
    pub objects: bool,
    /// Send it messages.
    pub messages: bool,
}
