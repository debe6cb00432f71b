//! What was done, as it can be asked for, checked and taken elsewhere.
//!
//! Every row of the journal holds the hash of the row before it and of itself ([`chain`]), so that a
//! row that is altered, taken out or put in breaks the chain from there on. The chain's head is
//! signed by a [`crate::provider::Witness`] that keeps key and last head outside the database, so
//! that a removed tail is seen, too ([`verify`]).

pub mod chain;
pub mod export;
mod otel;
#[cfg(test)]
pub(crate) mod pen;
pub(crate) mod query;
pub mod verify;

use serde::{Serialize, Serializer};

use crate::process::{Pid, RunId};
use chain::Hash;

pub use crate::journal::{
    Retention, export as export_journal, export_piece, verify as verify_journal,
};
pub use export::{Format, Span};
pub(crate) use otel::Agent;
pub use query::{JournalQuery, ROWS_MOST};

/// A row of the journal, as told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JournalRow {
    /// Number, ascending by one: the order in which rows were written.
    pub id: u64,
    /// Unix milliseconds.
    pub at_ms: u64,
    /// The process; 0 for the kernel itself.
    pub pid: Pid,
    /// Its run.
    pub run: RunId,
    /// The call's number within its process.
    pub seq: Option<u64>,
    /// What happened: `process`, `intent`, `approval`, `decision`, `executing`, `outcome` …
    pub kind: String,
    /// The system call or process event.
    pub name: String,
    /// On what, by which right or whose decision, how it ended.
    pub detail: String,
    /// What it was done to: a path, a process, a core, an object.
    pub resource: Option<String>,
    /// The capability that covered it.
    pub capability: Option<u64>,
    /// `allow`, `ask`, `deny`, `yes`, `no` or `expired`.
    pub decision: Option<String>,
    /// Who or what decided: `capability 12`, `terminal`, `standing grant 3` …
    pub by: Option<String>,
    /// Milliseconds it waited for its turn.
    pub wait_ms: Option<u64>,
    /// Milliseconds it ran.
    pub run_ms: Option<u64>,
    /// Figures as a JSON object: the model, tokens read and written …
    #[serde(serialize_with = "as_json")]
    pub facts: Option<String>,
    /// The chain's hash up to this row.
    pub hash: Hash,
}

/// Facts are kept as the text that was hashed; told, they are JSON. What is no JSON (a damaged row)
/// is told as text.
fn as_json<S: Serializer>(facts: &Option<String>, out: S) -> Result<S::Ok, S::Error> {
    let value = facts.as_ref().map(|text| {
        serde_json::from_str(text).unwrap_or_else(|_| serde_json::Value::String(text.clone()))
    });
    value.serialize(out)
}
