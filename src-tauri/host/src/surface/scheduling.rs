//! The order in which waiting calls run.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// How calls are ordered, and the queues as they stand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct SchedulingView {
    /// One entry a module, such as `llm`.
    pub modules: Vec<ModuleView>,
    /// Generations that wait for their next time slice.
    pub context: ContextView,
    /// Every policy that can be set.
    pub policies: Vec<PolicyKind>,
}

/// A queue of the scheduler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ModuleView {
    /// Its name, such as `llm`.
    pub name: String,
    /// The policy of its queue, such as `round_robin(quantum=16)`.
    pub policy: String,
    /// Calls that may run at once.
    pub limit: u32,
    /// Calls that run.
    pub running: u32,
    /// Calls that wait.
    pub waiting: u32,
    /// Turns that were given since Steward started.
    pub turns: u64,
    /// Milliseconds that a call waited for its turn, on average.
    pub mean_wait_ms: f64,
    /// Milliseconds that nine of ten turns were not waited longer for.
    pub p90_wait_ms: u64,
}

/// Generations that gave way and wait for their next time slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ContextView {
    /// Bytes of memory that they may hold; beyond them their state goes to disk.
    pub limit_bytes: u64,
    /// How many wait with their state in memory.
    pub resident: u32,
    /// Bytes that these hold.
    pub resident_bytes: u64,
    /// How many wait with their state on disk.
    pub stored: u32,
    /// How often one gave way since Steward started.
    pub switches: u64,
    /// How often one went to disk.
    pub spills: u64,
}

/// A policy that can be set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct PolicyKind {
    /// Its name, such as `fifo`.
    pub name: String,
    /// Who goes first under it.
    pub help: String,
}

/// What to change of the scheduling; absent entries stay. It is kept in the settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
#[ts(optional_fields = nullable)]
pub struct SchedulingChange {
    /// Another policy for every queue, such as `round_robin(quantum=16)`.
    pub policy: Option<String>,
    /// Calls that may run at once, by module.
    pub limits: Option<std::collections::BTreeMap<String, u32>>,
    /// MiB of memory that waiting generations may hold.
    pub context_mib: Option<u64>,
}
