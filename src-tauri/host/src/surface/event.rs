//! What surfaces are told as it happens.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::approval::{ApprovalView, QuestionView};
use super::problem::Problem;
use super::process::{ProcessView, StepView};

/// Something that happened. Tagged by `type` in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export)]
pub enum Event {
    /// A piece of an answer as it is generated.
    Token {
        /// The process that speaks.
        pid: u64,
        /// Its run.
        run: u64,
        /// The piece.
        text: String,
    },
    /// A step began, waits or ended.
    Step {
        /// The process.
        pid: u64,
        /// Its run.
        run: u64,
        /// The step.
        step: StepView,
    },
    /// A process was made or changed.
    Process {
        /// The process.
        process: ProcessView,
    },
    /// An approval was filed.
    Approval(ApprovalView),
    /// An approval was answered, by whom and how, or lapsed with its process.
    Decided {
        /// The approval's id.
        id: u64,
        /// Whether it was approved.
        approved: bool,
        /// Who decided: `window`, `terminal`, `process ended`, `expired`.
        by: String,
    },
    /// A process asks something.
    Question(QuestionView),
    /// A process says something to the person.
    Message {
        /// The process.
        pid: u64,
        /// Its run.
        run: u64,
        /// What it says (escaped).
        text: String,
    },
    /// The final answer of a run.
    Answer {
        /// The process.
        pid: u64,
        /// Its run.
        run: u64,
        /// The answer.
        text: String,
    },
    /// A run ended.
    Done {
        /// The process.
        pid: u64,
        /// Its run.
        run: u64,
        /// Whether it ended well.
        ok: bool,
        /// What went wrong, where it did not.
        error: Option<Problem>,
    },
    /// The model is being loaded, or is ready.
    Model {
        /// Its name.
        name: String,
        /// True once it can answer.
        ready: bool,
        /// What went wrong, where it did.
        error: Option<Problem>,
        /// How much of it was read, where that takes a while.
        percent: Option<u8>,
    },
    /// This listener fell behind and missed this many events; read the state anew.
    Missed {
        /// How many.
        count: u64,
    },
}
