//! Bounds of an image's fields, checked where they are read so that an error knows its place.

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Needed, Seed, TOOLS_MOST};
use crate::capability::{Right, Stance};
use crate::escape::shown;

/// Form of a name.
pub(super) const NAME: &str = "^[a-z][a-z0-9]*(-[a-z0-9]+)*$";
/// Form of a tool's name.
pub(super) const TOOL: &str = "^[a-z][a-z0-9_.-]{0,63}$";
const NAME_MOST: usize = 64;
const NEEDS_MOST: usize = 32;
pub(super) const MEMORY_MOST: usize = 64;

/// Bounds within which an image's program tries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Loop {
    /// Tool calls at most.
    #[serde(deserialize_with = "number::<_, 1, 1000>")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_steps: u32,
    /// Further tries at most after a call that did not fit or did not work.
    #[serde(deserialize_with = "number::<_, 0, 20>")]
    #[schemars(range(max = 20))]
    pub max_retries: u32,
    /// Tokens of a text that are given to a model at most.
    #[serde(deserialize_with = "number::<_, 64, 1000000>")]
    #[schemars(range(min = 64, max = 1_000_000))]
    pub reading_tokens: u32,
    /// Tokens that a model may write for one answer.
    #[serde(deserialize_with = "number::<_, 1, 100000>")]
    #[schemars(range(min = 1, max = 100_000))]
    pub answer_tokens: u32,
}

impl Default for Loop {
    fn default() -> Self {
        Self {
            max_steps: 16,
            max_retries: 2,
            reading_tokens: 1_400,
            answer_tokens: 160,
        }
    }
}

pub(super) fn number<'de, D, const LEAST: u32, const MOST: u32>(from: D) -> Result<u32, D::Error>
where
    D: Deserializer<'de>,
{
    let number = u32::deserialize(from)?;
    if (LEAST..=MOST).contains(&number) {
        return Ok(number);
    }
    let message = format!("`{number}` is not between {LEAST} and {MOST}");
    Err(D::Error::custom(message))
}

pub(super) fn version<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    number::<D, 1, 1_000_000>(from)
}

pub(super) fn text<'de, D, const LEAST: usize, const MOST: usize>(
    from: D,
) -> Result<String, D::Error>
where
    D: Deserializer<'de>,
{
    let text = String::deserialize(from)?;
    let chars = text.chars().count();
    if (LEAST..=MOST).contains(&chars) {
        return Ok(text);
    }
    let message = format!("a text of `{chars}` characters is not between {LEAST} and {MOST} long");
    Err(D::Error::custom(message))
}

pub(super) fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    let word = |word: &str| !word.is_empty() && word.chars().all(is_plain);
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    if name.len() <= NAME_MOST && begins && name.split('-').all(word) {
        return Ok(name);
    }
    let message = format!(
        "`{}` is no name for an image: use lower-case words joined by `-`, {NAME_MOST} bytes at most",
        shown(&beginning(&name))
    );
    Err(D::Error::custom(message))
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Tool(String);

impl TryFrom<String> for Tool {
    type Error = String;
    fn try_from(name: String) -> Result<Self, String> {
        let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
        let well = |c| is_plain(c) || matches!(c, '_' | '.' | '-');
        if begins && name.len() <= NAME_MOST && name.chars().all(well) {
            return Ok(Self(name));
        }
        Err(format!(
            "`{}` is no name of a tool",
            shown(&beginning(&name))
        ))
    }
}

pub(super) fn tools<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let tools: Vec<Tool> = Vec::deserialize(from)?;
    if tools.len() > TOOLS_MOST {
        let message = format!(
            "`{}` tools are named, {TOOLS_MOST} are the most",
            tools.len()
        );
        return Err(D::Error::custom(message));
    }
    let mut names: Vec<String> = Vec::with_capacity(tools.len());
    for Tool(name) in tools {
        if names.contains(&name) {
            return Err(D::Error::custom(format!("tool `{name}` is named twice")));
        }
        names.push(name);
    }
    Ok(names)
}

pub(super) fn needs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Needed>, D::Error> {
    let needs: Vec<Needed> = Vec::deserialize(from)?;
    if needs.len() > NEEDS_MOST {
        let message = format!(
            "`{}` needs are named, {NEEDS_MOST} are the most",
            needs.len()
        );
        return Err(D::Error::custom(message));
    }
    Ok(needs)
}

pub(super) fn memory<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Seed>, D::Error> {
    let memory: Vec<Seed> = Vec::deserialize(from)?;
    if memory.len() > MEMORY_MOST {
        let count = memory.len();
        let message = format!("`{count}` objects are named, {MEMORY_MOST} are the most");
        return Err(D::Error::custom(message));
    }
    for (at, seed) in memory.iter().enumerate() {
        if memory[..at].iter().any(|other| other.name == seed.name) {
            let name = shown(seed.name.as_str());
            return Err(D::Error::custom(format!("`{name}` is named twice")));
        }
    }
    Ok(memory)
}

pub(super) fn rights<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Right>, D::Error> {
    let rights: Vec<Right> = Vec::deserialize(from)?;
    if rights.is_empty() {
        return Err(D::Error::custom("it names no right"));
    }
    Ok(rights)
}

pub(super) fn stance<'de, D: Deserializer<'de>>(from: D) -> Result<Stance, D::Error> {
    match Stance::deserialize(from)? {
        Stance::Deny => Err(D::Error::custom("`deny` is no need: leave it out instead")),
        stance => Ok(stance),
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

fn beginning(text: &str) -> String {
    text.chars().take(NAME_MOST).collect()
}
