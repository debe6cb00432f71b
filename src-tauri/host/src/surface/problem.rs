//! What went wrong, in words.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Something that went wrong, in words for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Problem {
    /// A stable word for programs, such as `not_found` or `denied`.
    pub code: String,
    /// One lower-case sentence.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}
