//! What was done: rows of the journal, and the chain behind an effect.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::capability::CapabilityView;
use super::policy::GrantView;
use super::process::StepState;

/// Which journal rows to read. What is given must all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
#[ts(optional_fields = nullable)]
pub struct LogQuery {
    /// Only this process.
    pub pid: Option<u64>,
    /// Only this run (a process and its children).
    pub run: Option<u64>,
    /// Only what this capability let pass or refused.
    pub capability: Option<u64>,
    /// Only this system call, such as `fs.write`; `fs.*` for all of its kind.
    pub call: Option<String>,
    /// Only what concerns this resource; a path stands for all below it.
    pub resource: Option<String>,
    /// Only rows with this decision, such as `allow`, `ask`, `deny`, `yes` or `no`.
    pub decision: Option<String>,
    /// Only what this one decided, such as `terminal`.
    pub by: Option<String>,
    /// Not before this Unix time in milliseconds.
    pub since_ms: Option<u64>,
    /// Not after this Unix time in milliseconds.
    pub until_ms: Option<u64>,
    /// Only rows before this number: the next page of what is shown newest first.
    pub before: Option<u64>,
    /// Only rows whose detail has this text.
    pub text: Option<String>,
    /// Rows at most (1 to 10,000; 100 where absent).
    pub limit: Option<u32>,
}

/// One journal row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct LogRow {
    /// Row number, ascending in time.
    pub id: u64,
    /// Unix time in milliseconds.
    pub at_ms: u64,
    /// The process.
    pub pid: u64,
    /// Its run.
    pub run: u64,
    /// The call's number within its process; absent for rows about the process itself.
    pub seq: Option<u64>,
    /// What happened: `intent`, `approval`, `decision`, `executing`, `outcome`, `process`.
    pub kind: String,
    /// The system call or process event.
    pub name: String,
    /// On what, by which right or whose decision, how it ended (escaped; digests, never contents).
    pub detail: String,
    /// The resource concerned (escaped).
    pub resource: Option<String>,
    /// The capability that decided.
    pub capability: Option<u64>,
    /// What was decided, such as `allow`, `ask`, `deny`, `yes` or `no`.
    pub decision: Option<String>,
    /// Who decided: `window`, `terminal`, or the kernel by a capability or a policy.
    pub by: Option<String>,
    /// Milliseconds that the call waited in its queue.
    pub wait_ms: Option<u64>,
    /// Milliseconds that it ran.
    pub run_ms: Option<u64>,
}

/// An effect from its cause to its end: who asked, by what right or whose yes, what happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Chain {
    /// The process that acted.
    pub pid: u64,
    /// Its run.
    pub run: u64,
    /// The call's number within its process.
    pub seq: u64,
    /// The system call.
    pub name: String,
    /// What it does (escaped, one line).
    pub title: String,
    /// Who asked: the process that acted first, then who started it, up to the person's request.
    pub asked: Vec<Ancestor>,
    /// By what right, or whose yes.
    pub authority: Authority,
    /// Where it stands.
    pub state: StepState,
    /// What happened (escaped).
    pub detail: String,
    /// Unix time in milliseconds when it was asked for.
    pub asked_ms: u64,
    /// Unix time in milliseconds when it ended.
    pub ended_ms: Option<u64>,
    /// The rows of the journal that tell so, oldest first.
    pub rows: Vec<LogRow>,
}

/// One process on the way from an effect to the person's request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Ancestor {
    /// The process.
    pub pid: u64,
    /// Its image.
    pub image: String,
    /// What it was asked for (escaped).
    pub goal: String,
}

/// By what right an effect took place, or was refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Authority {
    /// The capability that covered the call.
    pub capability: Option<CapabilityView>,
    /// The person's answer, where there was a question.
    pub approval: Option<ApprovalTold>,
    /// The standing answer that counted, where one did.
    pub grant: Option<GrantView>,
}

/// How an approval was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ApprovalTold {
    /// Its number.
    pub id: u64,
    /// Where it stands: `waiting`, `yes`, `no`, `expired`, `lapsed`.
    pub state: String,
    /// Who answered, such as `terminal`.
    pub by: Option<String>,
    /// The digest that was answered.
    pub digest: String,
    /// Unix time in milliseconds when it was asked.
    pub asked_ms: u64,
    /// Unix time in milliseconds when it was answered.
    pub answered_ms: Option<u64>,
}

/// What a check of the journal found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Verified {
    /// Whether the journal is whole and as it was written.
    pub ok: bool,
    /// Rows that were checked.
    pub rows: u64,
    /// The first row that is not as it was written.
    pub first_bad: Option<u64>,
    /// What was found to be wrong, or how far the journal is signed.
    pub words: String,
}

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ExportForm {
    /// One journal row a line, as JSON.
    Jsonl,
    /// One OpenTelemetry span a line, as JSON, with the names of the GenAI conventions.
    Otel,
}
