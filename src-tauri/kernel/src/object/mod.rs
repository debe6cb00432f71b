//! Object memory: what processes know, as typed objects with handles.
//!
//! An object lives in a namespace, has versions that follow each other, and tells which call of
//! which process made each of them, and from what. Names resolve within a namespace; knowing one
//! gives no right to it. What a model is shown is put together by the [materializer](mod@compose)
//! and never longer than its budget.

pub mod call;
pub mod compose;
mod namespace;
mod policy;
mod surface;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::process::{Pid, RunId};
use crate::provider::Digest;

pub use compose::{Context, LeftOut, Shown};
pub use namespace::{Name, Namespace};
pub use policy::{ContextPolicy, DEFAULT_DROP_ORDER};

/// Handle of an object. Never used twice in one data directory.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct ObjectId(pub u64);

impl std::fmt::Display for ObjectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Bytes of one version of an object at most.
pub const OBJECT_MOST: u64 = 16 * 1024 * 1024;
/// Objects in a namespace at most.
pub const NAMESPACE_OBJECTS_MOST: u64 = 10_000;
/// Bytes of all that is kept in a namespace at most.
pub const NAMESPACE_BYTES_MOST: u64 = 256 * 1024 * 1024;
/// Versions of an object whose contents are kept at most; of older ones only the digest stays.
pub const VERSIONS_KEPT: u64 = 32;

/// What an object is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ObjectKind {
    /// What is to be reached.
    Goal,
    /// The steps meant to reach it.
    Plan,
    /// Something said by the person, a model or another process.
    Message,
    /// What a tool gave back.
    ToolResult,
    /// Something seen.
    Observation,
    /// What went wrong, as it was told.
    ErrorTrace,
    /// A change to be made.
    Patch,
    /// Something longer, told shorter.
    Summary,
    /// How something is done.
    Skill,
    /// Something outside, by its address.
    ExternalRef,
    /// Any other text or file.
    Text,
}

impl ObjectKind {
    /// Every kind.
    pub const ALL: [ObjectKind; 11] = [
        ObjectKind::Goal,
        ObjectKind::Plan,
        ObjectKind::Message,
        ObjectKind::ToolResult,
        ObjectKind::Observation,
        ObjectKind::ErrorTrace,
        ObjectKind::Patch,
        ObjectKind::Summary,
        ObjectKind::Skill,
        ObjectKind::ExternalRef,
        ObjectKind::Text,
    ];

    /// The stable word, such as `tool_result`.
    pub fn as_str(self) -> &'static str {
        match self {
            ObjectKind::Goal => "goal",
            ObjectKind::Plan => "plan",
            ObjectKind::Message => "message",
            ObjectKind::ToolResult => "tool_result",
            ObjectKind::Observation => "observation",
            ObjectKind::ErrorTrace => "error_trace",
            ObjectKind::Patch => "patch",
            ObjectKind::Summary => "summary",
            ObjectKind::Skill => "skill",
            ObjectKind::ExternalRef => "external_ref",
            ObjectKind::Text => "text",
        }
    }

    /// The word for some of them, in a sentence.
    pub fn counted(self, count: usize) -> &'static str {
        let one = count == 1;
        match self {
            ObjectKind::Goal if one => "goal",
            ObjectKind::Goal => "goals",
            ObjectKind::Plan if one => "plan",
            ObjectKind::Plan => "plans",
            ObjectKind::Message if one => "message",
            ObjectKind::Message => "messages",
            ObjectKind::ToolResult if one => "tool result",
            ObjectKind::ToolResult => "tool results",
            ObjectKind::Observation if one => "observation",
            ObjectKind::Observation => "observations",
            ObjectKind::ErrorTrace if one => "error trace",
            ObjectKind::ErrorTrace => "error traces",
            ObjectKind::Patch if one => "patch",
            ObjectKind::Patch => "patches",
            ObjectKind::Summary if one => "summary",
            ObjectKind::Summary => "summaries",
            ObjectKind::Skill if one => "skill",
            ObjectKind::Skill => "skills",
            ObjectKind::ExternalRef if one => "reference",
            ObjectKind::ExternalRef => "references",
            ObjectKind::Text if one => "text",
            ObjectKind::Text => "texts",
        }
    }
}

/// An object, as told to others: all but its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectInfo {
    /// Its handle.
    pub id: ObjectId,
    /// Where it lives.
    pub namespace: Namespace,
    /// Its name there, where it has one.
    pub name: Option<Name>,
    /// What it is.
    pub kind: ObjectKind,
    /// The version that this is about: the newest, where nothing else was asked for.
    pub version: u32,
    /// Bytes of that version.
    pub bytes: u64,
    /// SHA-256 of that version.
    pub sha256: Digest,
    /// Whether it takes no further version.
    pub immutable: bool,
    /// Whether it stays when its process ends.
    pub kept: bool,
    /// The process that made it.
    pub creator: Pid,
    /// The run of that process.
    pub run: RunId,
    /// Unix milliseconds when it was made.
    pub created_ms: u64,
}

/// Where the content of a version came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// The call gave it.
    Call,
    /// A file of a workspace, as it was.
    File {
        /// Path within the workspace.
        path: String,
        /// SHA-256 of its bytes.
        sha256: Digest,
    },
    /// The image of its process.
    Image {
        /// Digest of that image.
        digest: Digest,
    },
    /// It was taken over when a child's objects were merged.
    Merge {
        /// The object it was.
        object: ObjectId,
    },
}

/// One version of an object and how it came to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Version {
    /// Its number, from 1 on without a gap.
    pub version: u32,
    /// SHA-256 of its content.
    pub sha256: Digest,
    /// Bytes of it.
    pub bytes: u64,
    /// Whether its content is still there.
    pub readable: bool,
    /// The process that made it.
    pub pid: Pid,
    /// The number of the call that made it, within that process; absent where it came with the
    /// process's image.
    pub call: Option<u64>,
    /// Where its content came from.
    pub origin: Origin,
    /// Unix milliseconds when it was made.
    pub at_ms: u64,
}

/// What one object is to another.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// It was made from the other.
    MadeFrom,
    /// It is about the other.
    About,
    /// It answers the other.
    Answers,
    /// It takes the other's place.
    Supersedes,
}

impl Relation {
    /// The stable word, such as `made_from`.
    pub fn as_str(self) -> &'static str {
        match self {
            Relation::MadeFrom => "made_from",
            Relation::About => "about",
            Relation::Answers => "answers",
            Relation::Supersedes => "supersedes",
        }
    }
}

/// A tie from an object to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// The object it goes from.
    pub from: ObjectId,
    /// The object it goes to.
    pub to: ObjectId,
    /// What the first is to the second.
    pub relation: Relation,
}

/// What a model is to be shown: objects in their order, oldest first, and what is dropped first
/// where they do not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct View {
    /// The objects, oldest first, each at its newest version when it is shown.
    pub objects: Vec<ObjectId>,
    /// What stays and what goes; as the image of whoever shows it says, where absent.
    #[serde(default)]
    pub policy: Option<ContextPolicy>,
}
