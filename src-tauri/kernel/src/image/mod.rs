//! Agent images: what a process starts from.
//!
//! An image is written in YAML (see [`read`]), checked in full when it is read, and known by its
//! name, its version and the digest of what it says. It holds no right: what it needs is what a
//! process of it is given where its starter has it to give.

mod bounds;
pub mod call;
mod need;
mod read;
mod registry;

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::capability::Grant;
use crate::object::{ContextPolicy, Name, ObjectKind};
use crate::provider::Digest;

pub use bounds::Loop;
pub use need::{Needed, On};
pub use read::{ImageError, read, read_bytes};

/// Bytes of an image's YAML at most.
pub const YAML_MOST: usize = 64 * 1024;
/// Tools of an image at most.
const TOOLS_MOST: usize = 128;

/// What a process starts from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Steward agent image")]
pub struct Image {
    /// Its name: lower-case words joined by `-`.
    #[serde(deserialize_with = "bounds::name")]
    #[schemars(regex(pattern = bounds::NAME), length(max = 64))]
    pub name: String,
    /// Its version, from 1 on. A name's later image has a greater one.
    #[serde(default = "one", deserialize_with = "bounds::version")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub version: u32,
    /// What it is for, in a sentence.
    #[serde(deserialize_with = "bounds::text::<_, 1, 300>")]
    #[schemars(length(min = 1, max = 300))]
    pub about: String,
    /// What its model is told about itself.
    #[serde(deserialize_with = "bounds::text::<_, 0, 16384>")]
    #[schemars(length(max = 16384))]
    pub system_prompt: String,
    /// Names of its tools, each once.
    #[serde(deserialize_with = "bounds::tools")]
    #[schemars(length(max = 128), inner(regex(pattern = bounds::TOOL)))]
    pub tools: Vec<String>,
    /// How its memory is put before a model where a view says nothing else.
    #[serde(default)]
    pub context: ContextPolicy,
    /// The capabilities that its work takes.
    #[serde(default, deserialize_with = "bounds::needs")]
    #[schemars(length(max = 32))]
    pub needs: Vec<Needed>,
    /// Bounds of one process of it and all its children, which end it when they are reached.
    #[serde(default)]
    pub budget: Budget,
    /// Bounds within which its program tries.
    #[serde(default, rename = "loop")]
    pub bounds: Loop,
    /// What each process of it knows from its start.
    #[serde(
        default,
        deserialize_with = "bounds::memory",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = 64))]
    pub memory: Vec<Seed>,
}

/// Something that processes of an image know from their start: an object of their own namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    /// What it is.
    pub kind: ObjectKind,
    /// Its name; each once.
    pub name: Name,
    /// Its content.
    pub text: String,
}

fn one() -> u32 {
    1
}

impl Image {
    /// The grants that fill its needs in a workspace.
    pub fn grants(&self, workspace: &Path) -> Vec<Grant> {
        self.needs
            .iter()
            .map(|need| need.grant(workspace))
            .collect()
    }

    /// SHA-256 of what it says, however its YAML is laid out.
    pub fn digest(&self) -> Digest {
        // A struct of texts and numbers: writing it as JSON cannot fail.
        crate::human::sha256(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// It as YAML that reads back as the same image: JSON is YAML, one field a line.
    pub fn to_yaml(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// JSON schema of an image, for editors.
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Image).into()
    }
}

#[cfg(test)]
mod tests;
