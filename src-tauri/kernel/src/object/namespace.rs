//! Namespaces and names: where objects live, and how they are called there.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::process::{Pid, RunId};

const NAMESPACE_BYTES_MOST: usize = 128;
const SEGMENTS_MOST: usize = 8;
const NAME_CHARS_MOST: usize = 128;
const SEGMENT: &str = "[a-z0-9][a-z0-9_.-]*";

/// Where an object lives: `proc/7`, `run/7/results`, `shared/notes`.
///
/// What a namespace covers is itself and all below it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Namespace(String);

impl Namespace {
    /// Reads one.
    ///
    /// # Errors
    /// [`Code::Invalid`] where it is of another form.
    pub fn new(text: impl Into<String>) -> Result<Self, SysError> {
        let text = text.into();
        let mut segments = text.split('/');
        let first = segments.next().unwrap_or_default();
        let second = segments.next();
        let numbered = |s: &str| s.parse::<u64>().is_ok_and(|n| n.to_string() == s);
        let begins_well = match (first, second) {
            ("proc" | "run", Some(number)) => numbered(number),
            ("shared", _) => true,
            _ => false,
        };
        let well = begins_well
            && text.len() <= NAMESPACE_BYTES_MOST
            && text.split('/').count() <= SEGMENTS_MOST
            && text.split('/').all(is_segment);
        if well {
            return Ok(Self(text));
        }
        let told: String = text.chars().take(NAMESPACE_BYTES_MOST).collect();
        Err(
            SysError::new(Code::Invalid, format!("`{}` is no namespace", shown(&told))).hint(
                "use `proc/PID`, `run/RUN` or `shared`, then lower-case words, digits, `-`, `_` \
                 and `.` separated by `/`",
            ),
        )
    }

    /// The namespace of a process.
    pub fn of_process(pid: Pid) -> Self {
        Self(format!("proc/{pid}"))
    }

    /// The namespace of a run.
    pub fn of_run(run: RunId) -> Self {
        Self(format!("run/{run}"))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part that says whose it is: `proc/7`, `run/7`, `shared/notes`.
    pub fn root(&self) -> Namespace {
        let end = self.0.match_indices('/').nth(1).map(|(at, _)| at);
        Self(self.0[..end.unwrap_or(self.0.len())].to_owned())
    }

    /// Whether `other` is this namespace or lies below it.
    pub fn covers(&self, other: &Namespace) -> bool {
        let rest = other.0.strip_prefix(&self.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

fn is_segment(segment: &str) -> bool {
    let mut chars = segment.chars();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    chars.next().is_some_and(plain) && chars.all(|c| plain(c) || matches!(c, '-' | '_' | '.'))
}

impl TryFrom<String> for Namespace {
    type Error = SysError;
    fn try_from(text: String) -> Result<Self, SysError> {
        Self::new(text)
    }
}

impl From<Namespace> for String {
    fn from(namespace: Namespace) -> String {
        namespace.0
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for Namespace {
    fn schema_name() -> Cow<'static, str> {
        "Namespace".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "Where objects live: `proc/PID`, `run/RUN` or `shared`, and what lies below.",
            "pattern": format!("^((proc|run)/[0-9]+|shared)(/{SEGMENT})*$"),
            "maxLength": NAMESPACE_BYTES_MOST,
        })
    }
}

/// How an object is called in its namespace: one line of text without `/`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// Reads one.
    ///
    /// # Errors
    /// [`Code::Invalid`] where it is empty, too long, or holds `/` or a control character.
    pub fn new(text: impl Into<String>) -> Result<Self, SysError> {
        let text = text.into();
        let well = !text.trim().is_empty()
            && text.chars().count() <= NAME_CHARS_MOST
            && !text.chars().any(|c| c == '/' || c.is_control());
        if well {
            return Ok(Self(text));
        }
        let told: String = text.chars().take(NAME_CHARS_MOST).collect();
        Err(SysError::new(
            Code::Invalid,
            format!("`{}` is no name for an object", shown(&told)),
        )
        .hint(format!(
            "use 1 to {NAME_CHARS_MOST} characters of one line, without `/`"
        )))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Name {
    type Error = SysError;
    fn try_from(text: String) -> Result<Self, SysError> {
        Self::new(text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0
    }
}

impl JsonSchema for Name {
    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "The name of an object in its namespace: one line without `/`.",
            "minLength": 1,
            "maxLength": NAME_CHARS_MOST,
            "pattern": "^[^/\\x00-\\x1f\\x7f]+$",
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_namespace_has_one_form_only() {
        for good in ["proc/7", "run/12/results", "shared", "shared/a-b_c.d/e"] {
            assert_eq!(Namespace::new(good).unwrap().as_str(), good);
        }
        let long = format!("shared/{}", "a".repeat(200));
        let deep = format!("shared{}", "/a".repeat(8));
        let bad = [
            "",
            "proc",
            "run",
            "proc/x",
            "proc/07",
            "other/7",
            "shared/",
            "shared//a",
            "/shared",
            "shared/..",
            "shared/A",
            "shared/a b",
            "shared/é",
            "proc/7/*",
            &long,
            &deep,
        ];
        for bad in bad {
            let error = Namespace::new(bad).unwrap_err();
            assert!(error.code == Code::Invalid && error.hint.is_some(), "{bad}");
        }
    }

    #[test]
    fn a_namespace_covers_itself_and_what_lies_below() {
        let rows = [
            ("proc/7", "proc/7", true),
            ("proc/7", "proc/7/notes", true),
            ("proc/7", "proc/77", false),
            ("proc/7/notes", "proc/7", false),
            ("shared", "shared/a/b", true),
            ("shared", "run/7", false),
        ];
        for (outer, inner, covers) in rows {
            let (outer, inner) = (
                Namespace::new(outer).unwrap(),
                Namespace::new(inner).unwrap(),
            );
            assert_eq!(outer.covers(&inner), covers, "{outer} {inner}");
        }
    }

    #[test]
    fn a_name_is_one_line_without_a_slash() {
        for good in ["build log", "结果", "a.b", "§"] {
            assert_eq!(Name::new(good).unwrap().as_str(), good);
        }
        let long = "x".repeat(129);
        for bad in ["", " ", "a/b", "a\nb", "a\u{1b}b", "\0", &long] {
            assert_eq!(Name::new(bad).unwrap_err().code, Code::Invalid, "{bad:?}");
        }
    }
}
