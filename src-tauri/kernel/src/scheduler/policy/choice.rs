//! A policy by its name and parameters, as the configuration has them: `round_robin(quantum=16)`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::{KINDS, Kind, Policy};
use crate::error::{Code, SysError};

/// Bytes of a policy's text at most.
const TEXT_MOST: usize = 256;

/// A policy that was chosen, with parameters that hold.
#[derive(Clone)]
pub struct PolicyChoice {
    kind: &'static Kind,
    given: Vec<(String, String)>,
}

impl PolicyChoice {
    /// Reads `name` or `name(parameter=value, …)`.
    ///
    /// # Errors
    /// [`Code::Invalid`] for a name or parameter that is none, or a value out of range; the hint
    /// lists what there is.
    pub fn by_name(text: &str) -> Result<Self, SysError> {
        let text = text.trim();
        if text.len() > TEXT_MOST {
            let message = format!("a policy's text has `{}` bytes", text.len());
            return Err(SysError::new(Code::Invalid, message).hint(names()));
        }
        let (name, given) = match text.split_once('(') {
            None => (text, Vec::new()),
            Some((name, rest)) => {
                let inner = rest.strip_suffix(')').ok_or_else(|| {
                    SysError::new(Code::Invalid, format!("`{text}` has no `)` at its end"))
                        .hint("write it as `round_robin(quantum=16)`")
                })?;
                (name.trim_end(), pairs(inner)?)
            }
        };
        let kind = KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
            SysError::new(Code::Invalid, format!("there is no policy `{name}`")).hint(names())
        })?;
        let choice = Self { kind, given };
        choice.try_build()?;
        Ok(choice)
    }

    /// The name alone.
    pub fn name(&self) -> &'static str {
        self.kind.name
    }

    /// A new policy of this choice, with nothing remembered.
    ///
    /// # Errors
    /// None for a choice that was read: its parameters were tried then.
    pub fn try_build(&self) -> Result<Box<dyn Policy>, SysError> {
        let mut params = Params {
            kind: self.kind.name,
            given: self.given.clone(),
            known: Vec::new(),
        };
        let policy = (self.kind.make)(&mut params)?;
        params.none_left()?;
        Ok(policy)
    }
}

impl Default for PolicyChoice {
    fn default() -> Self {
        Self {
            kind: &super::fifo::KIND,
            given: Vec::new(),
        }
    }
}

impl FromStr for PolicyChoice {
    type Err = SysError;

    fn from_str(text: &str) -> Result<Self, SysError> {
        Self::by_name(text)
    }
}

impl fmt::Display for PolicyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name)?;
        for (at, (name, value)) in self.given.iter().enumerate() {
            let before = if at == 0 { "(" } else { ", " };
            write!(f, "{before}{name}={value}")?;
        }
        if self.given.is_empty() {
            Ok(())
        } else {
            f.write_str(")")
        }
    }
}

impl fmt::Debug for PolicyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Parameters while a policy is made of them.
pub struct Params {
    kind: &'static str,
    given: Vec<(String, String)>,
    known: Vec<&'static str>,
}

impl Params {
    /// A whole number.
    pub(super) fn number(
        &mut self,
        name: &'static str,
        default: u64,
        within: RangeInclusive<u64>,
    ) -> Result<u64, SysError> {
        let Some(value) = self.take(name) else {
            return Ok(default);
        };
        let number = value.parse().ok().filter(|number| within.contains(number));
        number.ok_or_else(|| {
            let message = format!("`{name}` of `{}` is `{value}`", self.kind);
            SysError::new(Code::Invalid, message).hint(format!(
                "use a number from {} to {}",
                within.start(),
                within.end()
            ))
        })
    }

    /// A quantum of tokens.
    pub(super) fn quantum(&mut self) -> Result<u32, SysError> {
        let tokens = self.number("quantum", super::QUANTUM.into(), 1..=super::QUANTUM_MOST)?;
        Ok(u32::try_from(tokens).unwrap_or(u32::MAX))
    }

    /// One of some words; the first where none is given.
    pub(super) fn word(
        &mut self,
        name: &'static str,
        words: &[&'static str],
    ) -> Result<&'static str, SysError> {
        let Some(value) = self.take(name) else {
            return Ok(words.first().copied().unwrap_or_default());
        };
        words
            .iter()
            .copied()
            .find(|word| *word == value)
            .ok_or_else(|| {
                let message = format!("`{name}` of `{}` is `{value}`", self.kind);
                SysError::new(Code::Invalid, message)
                    .hint(format!("use one of: {}", words.join(", ")))
            })
    }

    fn take(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        let at = self.given.iter().position(|(given, _)| given == name)?;
        Some(self.given.remove(at).1)
    }

    fn none_left(self) -> Result<(), SysError> {
        let Some((name, _)) = self.given.first() else {
            return Ok(());
        };
        let message = format!(
            "`{}` takes no parameter `{name}`, or takes it once",
            self.kind
        );
        let hint = match self.known.is_empty() {
            true => "it takes none".to_owned(),
            false => format!("it takes: {}", self.known.join(", ")),
        };
        Err(SysError::new(Code::Invalid, message).hint(hint))
    }
}

fn pairs(inner: &str) -> Result<Vec<(String, String)>, SysError> {
    if inner.trim().is_empty() {
        return Ok(Vec::new());
    }
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').ok_or_else(|| {
            SysError::new(Code::Invalid, format!("`{}` is no parameter", part.trim()))
                .hint("write parameters as `name=value`, with commas between them")
        })?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    inner.split(',').map(pair).collect()
}

fn names() -> String {
    let names: Vec<_> = KINDS.iter().map(|kind| kind.name).collect();
    format!("use one of: {}", names.join(", "))
}
