//! Calls that ask or tell the person.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Arguments of `human.ask`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HumanAsk {
    /// The question.
    pub text: String,
    /// Answers offered; free text where empty.
    #[serde(default)]
    pub choices: Vec<String>,
}

/// Arguments of `human.tell`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HumanTell {
    /// The message.
    pub text: String,
}

/// Arguments of `human.approve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HumanApprove {
    /// The question in a few words.
    pub title: String,
    /// What a yes means.
    pub text: String,
    /// Milliseconds to wait for an answer at most. What expires is not a yes.
    #[serde(default)]
    pub expires_ms: Option<u64>,
}
