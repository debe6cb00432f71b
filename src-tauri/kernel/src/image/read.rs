//! Reading an image from YAML: bounded, and with the place of what is wrong.

use std::fmt;

use serde::Deserialize;
use serde_saphyr::{Error, Location, MergeKeyPolicy, Options, Spanned};

use super::{Image, YAML_MOST};
use crate::error::{Code, SysError};
use crate::escape::shown;

/// Why a text is no image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageError {
    /// Line, from 1 on; 0 where it is about the whole.
    pub line: u64,
    /// Column, from 1 on; 0 where it is about the whole.
    pub column: u64,
    /// The field, such as `needs[2].rights`; empty for the whole.
    pub field: String,
    /// What is wrong, in one lower-case sentence.
    pub message: String,
    /// What to do next.
    pub hint: String,
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}, column {}: ", self.line, self.column)?;
        }
        if !self.field.is_empty() {
            write!(f, "`{}`: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ImageError {}

impl ImageError {
    /// As the error of a system call.
    pub fn into_sys(self) -> SysError {
        let message = format!("the image cannot be read: {self}");
        SysError::new(Code::Invalid, message).hint(self.hint)
    }

    fn whole(message: impl Into<String>, hint: &str) -> Self {
        Self {
            line: 0,
            column: 0,
            field: String::new(),
            message: message.into(),
            hint: hint.to_owned(),
        }
    }
}

/// Reads an image from bytes of unknown origin.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(bytes: &[u8]) -> Result<Image, ImageError> {
    match std::str::from_utf8(bytes) {
        Ok(yaml) => read(yaml),
        Err(e) => {
            let message = format!("it is not UTF-8 from byte `{}` on", e.valid_up_to());
            Err(ImageError::whole(message, "save the file as UTF-8"))
        }
    }
}

/// Reads an image.
///
/// # Errors
/// The text is too long, no YAML, or says something that an image does not say; the error names
/// the line, the column and the field.
pub fn read(yaml: &str) -> Result<Image, ImageError> {
    if yaml.len() > YAML_MOST {
        let message = format!("it has `{}` bytes, `{YAML_MOST}` is the most", yaml.len());
        return Err(ImageError::whole(message, "shorten its system prompt"));
    }
    let mut field = String::new();
    let read = serde_saphyr::with_deserializer_from_str_with_options(yaml, options(), |yaml| {
        serde_path_to_error::deserialize(yaml).map_err(|error| {
            field = error.path().to_string();
            error.into_inner()
        })
    });
    read.map_err(|error| told(&error, field))
}

impl Image {
    /// Checks that every tool it names is one of `known`; `yaml` is what it was read from.
    ///
    /// # Errors
    /// One is not; the error names its place.
    pub fn check_tools(&self, yaml: &str, known: &[String]) -> Result<(), ImageError> {
        let Some(at) = self.tools.iter().position(|tool| !known.contains(tool)) else {
            return Ok(());
        };
        #[derive(Deserialize)]
        struct Tools {
            tools: Vec<Spanned<String>>,
        }
        let placed: Result<Tools, _> = serde_saphyr::from_str_with_options(yaml, options());
        let place = placed
            .ok()
            .and_then(|found| Some(found.tools.get(at)?.referenced));
        let (line, column) = place.map_or((0, 0), |place| (place.line(), place.column()));
        Err(ImageError {
            line,
            column,
            field: format!("tools[{at}]"),
            message: format!("there is no tool `{}`", self.tools[at]),
            hint: format!("use one of: {}", known.join(", ")),
        })
    }
}

/// An image is a small mapping: aliases may spare some repetition and no more.
fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 16,
            flow_nesting_limit: 16,
            max_events: 10_000,
            max_nodes: 5_000,
            max_anchors: 16,
            max_aliases: 32,
            max_recorded_anchor_events: 1_000,
            max_recorded_anchor_bytes: YAML_MOST,
            max_documents: 2,
            max_total_scalar_bytes: YAML_MOST,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 1_000,
            max_replay_stack_depth: 4,
        },
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

fn told(error: &Error, field: String) -> ImageError {
    let error = error.without_snippet();
    let place = error.location().filter(|place| *place != Location::UNKNOWN);
    let (line, column) = place.map_or((0, 0), |place| (place.line(), place.column()));
    let (message, hint) = in_words(error);
    let known = |part: &&str| !matches!(*part, "" | "?");
    let field = shown(&field.split('.').filter(known).collect::<Vec<_>>().join("."));
    // A field is missing in the mapping as a whole, not where it ends.
    let (line, column) = match error {
        Error::SerdeMissingField { .. } if field.is_empty() => (1, 1),
        _ => (line, column),
    };
    ImageError {
        line,
        column,
        field,
        message,
        hint,
    }
}

const FORM: &str = "see docs/image.schema.json for the form of an image";

fn in_words(error: &Error) -> (String, String) {
    let one_of = |words: &[&str]| format!("use one of: {}", words.join(", "));
    let plain = |message: String| (message, FORM.to_owned());
    match error {
        Error::Message { msg, .. } => plain(msg.clone()),
        Error::SerdeUnknownField {
            field, expected, ..
        } => (
            format!("there is no field `{}`", shown(field)),
            one_of(expected),
        ),
        Error::SerdeUnknownVariant {
            variant, expected, ..
        } => (
            format!("`{}` is no word for this", shown(variant)),
            one_of(expected),
        ),
        Error::SerdeMissingField { field, .. } => (
            format!("the field `{field}` is missing"),
            format!("add `{field}:`"),
        ),
        Error::SerdeInvalidType {
            unexpected,
            expected,
            ..
        }
        | Error::SerdeInvalidValue {
            unexpected,
            expected,
            ..
        } => plain(format!(
            "{} stands where {expected} belongs",
            shown(unexpected)
        )),
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or("key");
            (
                format!("the field `{}` is there twice", shown(key)),
                "leave one of them".to_owned(),
            )
        }
        Error::InvalidScalar { ty, .. } if ty.starts_with('u') => {
            plain("the value is no whole number from 0 on".to_owned())
        }
        Error::InvalidScalar { ty, .. } => plain(format!("the value is no {ty}")),
        Error::ExternallyTaggedEnumExpectedScalarOrMapping { .. } => {
            plain("a list stands where a word belongs".to_owned())
        }
        Error::NullIntoString { .. } => (
            "the value is empty".to_owned(),
            "write the text after the colon, in quotes where it is a word such as null".to_owned(),
        ),
        Error::MergeKeyNotAllowed { .. } => (
            "`<<` is not read in an image".to_owned(),
            "write the fields out".to_owned(),
        ),
        Error::MultipleDocuments { .. } => (
            "there is more than one document".to_owned(),
            "put each image into a file of its own".to_owned(),
        ),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::Budget { .. } => (
            "it is nested too deeply, or has too many parts or aliases".to_owned(),
            "write it out plainly; an image is a small mapping".to_owned(),
        ),
        Error::AliasError { error, .. } => in_words(error),
        Error::Eof { .. } => plain("it ends too early".to_owned()),
        Error::ExternalMessage { msg, .. } => plain(format!("it is no YAML: `{}`", shown(msg))),
        other => {
            let text = other.render_with_formatter(&serde_saphyr::UserMessageFormatter);
            plain(format!(
                "an image cannot be read from it: `{}`",
                shown(&text)
            ))
        }
    }
}
