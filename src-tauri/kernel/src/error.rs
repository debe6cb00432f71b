//! The one error that crosses the system call boundary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What kind of refusal or failure it was: stable words that programs may match on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The process has no capability for it, or a deny stands.
    Denied,
    /// The person said no.
    Refused,
    /// The person did not answer in time.
    Expired,
    /// What is named is not there.
    NotFound,
    /// It is there already.
    Exists,
    /// An argument is not of the form the call takes.
    Invalid,
    /// It changed since it was looked at.
    Conflict,
    /// A path leads out of the workspace, or to something that is not a regular file or folder.
    Confined,
    /// A bound was reached: size, count, context, budget.
    Limit,
    /// Ended by a signal or by the person.
    Interrupted,
    /// The storage, core or other provider failed.
    Unavailable,
    /// It is not known whether the effect took place before a crash.
    Unknown,
    /// A fault of the kernel or a provider.
    Internal,
}

impl Code {
    /// The stable word, such as `not_found`.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::Denied => "denied",
            Code::Refused => "refused",
            Code::Expired => "expired",
            Code::NotFound => "not_found",
            Code::Exists => "exists",
            Code::Invalid => "invalid",
            Code::Conflict => "conflict",
            Code::Confined => "confined",
            Code::Limit => "limit",
            Code::Interrupted => "interrupted",
            Code::Unavailable => "unavailable",
            Code::Unknown => "unknown",
            Code::Internal => "internal",
        }
    }
}

/// Why a system call did not do what was asked. The message is one lower-case sentence with the
/// offending value in backticks; the hint says what to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
pub struct SysError {
    /// The kind.
    pub code: Code,
    /// What happened, to what.
    pub message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl SysError {
    /// An error without a hint.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
        }
    }

    /// The same error with what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
