//! The order in which waiting calls run.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// How calls are ordered, and the queues as they stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct SchedulingView {
    /// The policy.
    pub policy: SchedulingPolicy,
    /// Tokens of a time slice on a core, where the policy has slices.
    pub quantum: Option<u32>,
    /// One entry a module, such as `llm`.
    pub modules: Vec<ModuleView>,
}

/// A queue of the scheduler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ModuleView {
    /// Its name, such as `llm`.
    pub name: String,
    /// Calls that may run at once.
    pub limit: u32,
    /// Calls that run.
    pub running: u32,
    /// Calls that wait.
    pub waiting: u32,
}

/// Who goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum SchedulingPolicy {
    /// Who came first.
    Fifo,
    /// In turns, a time slice each.
    RoundRobin,
    /// By priority; who waits rises.
    Priority,
    /// Who has used least.
    FairShare,
    /// What a person waits for, before the rest.
    Interactive,
    /// Whose time is up first.
    Deadline,
}

/// What to change of the scheduling; absent entries stay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
#[ts(optional_fields = nullable)]
pub struct SchedulingChange {
    /// Another policy.
    #[serde(default)]
    pub policy: Option<SchedulingPolicy>,
    /// Tokens of a time slice.
    #[serde(default)]
    pub quantum: Option<u32>,
    /// Calls that may run at once, a module and a number each.
    #[serde(default)]
    pub limits: Vec<(String, u32)>,
}
