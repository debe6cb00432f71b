//! Arguments and results of the object calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ContextPolicy, Link, Name, Namespace, ObjectId, ObjectInfo, ObjectKind, Relation, Version,
};
use crate::escape::shown;
use crate::process::Pid;

/// How an object is named in a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ObjectRef {
    /// By its handle.
    Handle(ObjectId),
    /// By its name.
    Named(Named),
}

/// A name in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Named {
    /// The namespace; the caller's own where absent.
    #[serde(default)]
    pub namespace: Option<Namespace>,
    /// The name.
    pub name: Name,
}

impl std::fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ObjectRef::Handle(id) => write!(f, "object {id}"),
            ObjectRef::Named(named) => named.fmt(f),
        }
    }
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}: {}", shown(self.name.as_str())),
            None => f.write_str(&shown(self.name.as_str())),
        }
    }
}

/// Arguments of `object.create`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectCreate {
    /// What it is.
    pub kind: ObjectKind,
    /// Its content.
    pub text: String,
    /// Where it is to live; in the caller's own namespace where absent.
    #[serde(default)]
    pub namespace: Option<Namespace>,
    /// Its name there.
    #[serde(default)]
    pub name: Option<Name>,
    /// Whether it takes no further version.
    #[serde(default)]
    pub immutable: bool,
    /// The objects it is made from (16 at most).
    #[serde(default)]
    pub made_from: Vec<ObjectId>,
}

/// Arguments of `object.read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectRead {
    /// The object.
    pub object: ObjectRef,
    /// The version; the newest where absent.
    #[serde(default)]
    pub version: Option<u32>,
    /// Bytes at most (1 to 1 MiB; 256 KiB where absent).
    #[serde(default)]
    pub limit: Option<u64>,
}

/// An object with its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectText {
    /// The object.
    pub object: ObjectInfo,
    /// Its text, at most the limit asked for.
    pub text: String,
    /// Whether the text is only its beginning.
    pub cut: bool,
}

/// Arguments of `object.inspect`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectInspect {
    /// The object.
    pub object: ObjectRef,
}

/// How an object came to be: all but its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectHistory {
    /// The object.
    pub object: ObjectInfo,
    /// Its versions, newest first, 100 at most.
    pub versions: Vec<Version>,
    /// Its ties to other objects, 1,000 at most.
    pub links: Vec<Link>,
}

/// Arguments of `object.update`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectUpdate {
    /// The object.
    pub object: ObjectRef,
    /// Its new content.
    pub text: String,
    /// The version that this was made from; it is a conflict where there is a newer one. Absent: no
    /// version is expected.
    #[serde(default)]
    pub base: Option<u32>,
}

/// Arguments of `object.delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectDelete {
    /// The object.
    pub object: ObjectRef,
}

/// Arguments of `object.list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectList {
    /// The namespace, with all below it; the caller's own where absent.
    #[serde(default)]
    pub namespace: Option<Namespace>,
    /// Only objects of this kind.
    #[serde(default)]
    pub kind: Option<ObjectKind>,
    /// Objects at most (1 to 1,000; 100 where absent).
    #[serde(default)]
    pub limit: Option<u32>,
}

/// Objects found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Objects {
    /// The objects, oldest first.
    pub objects: Vec<ObjectInfo>,
    /// How many more there are.
    pub left_out: u64,
}

/// Arguments of `object.link`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectLink {
    /// The object it goes from.
    pub from: ObjectRef,
    /// The object it goes to.
    pub to: ObjectRef,
    /// What the first is to the second.
    pub relation: Relation,
}

/// Arguments of `object.diff`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectDiff {
    /// The object that is compared.
    pub object: ObjectRef,
    /// Its version; the newest where absent.
    #[serde(default)]
    pub version: Option<u32>,
    /// The object it is compared with; itself where absent.
    #[serde(default)]
    pub with: Option<ObjectRef>,
    /// The version of that; the newest where absent, the one before where it is the same object.
    #[serde(default)]
    pub with_version: Option<u32>,
}

/// How two versions differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Whether they have the same content.
    pub same: bool,
    /// The lines that go and come, as a unified diff; cut where it is long.
    pub text: String,
    /// Whether the text was cut.
    pub cut: bool,
}

/// Arguments of `object.keep`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectKeep {
    /// The object.
    pub object: ObjectRef,
}

/// Arguments of `object.import`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectImport {
    /// Path of the file within the workspace.
    pub path: String,
    /// What the object is; a text where absent.
    #[serde(default = "text")]
    pub kind: ObjectKind,
    /// Where it is to live; in the caller's own namespace where absent.
    #[serde(default)]
    pub namespace: Option<Namespace>,
    /// Its name there.
    #[serde(default)]
    pub name: Option<Name>,
}

fn text() -> ObjectKind {
    ObjectKind::Text
}

/// Arguments of `object.export`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectExport {
    /// The object.
    pub object: ObjectRef,
    /// Its version; the newest where absent.
    #[serde(default)]
    pub version: Option<u32>,
    /// Path of the file within the workspace.
    pub path: String,
    /// SHA-256 of the file's version that is to be replaced; it is a conflict where the file has
    /// changed since. Absent: no version is expected.
    #[serde(default)]
    pub base: Option<String>,
}

/// Arguments of `object.view`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectView {
    /// Where the view is to live; in the caller's own namespace where absent.
    #[serde(default)]
    pub namespace: Option<Namespace>,
    /// Its name there. A view of this name is replaced.
    pub name: Name,
    /// The objects, oldest first (256 at most).
    pub objects: Vec<ObjectRef>,
    /// What stays and what goes where they do not fit; as the image of whoever shows it says, where
    /// absent.
    #[serde(default)]
    pub policy: Option<ContextPolicy>,
}

/// A view as it was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ViewInfo {
    /// Where it lives.
    pub namespace: Namespace,
    /// Its name.
    pub name: Name,
    /// Its objects, in order.
    pub objects: Vec<ObjectId>,
    /// In which order they are dropped, in words.
    pub order: String,
}

/// Arguments of `object.materialize`: either a view or objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectMaterialize {
    /// A view that was kept.
    #[serde(default)]
    pub view: Option<Named>,
    /// Objects, oldest first (256 at most).
    #[serde(default)]
    pub objects: Vec<ObjectRef>,
    /// What stays and what goes; as the view says, or else the caller's image, where absent.
    #[serde(default)]
    pub policy: Option<ContextPolicy>,
    /// Tokens at most; those of the policy where absent.
    #[serde(default)]
    pub tokens: Option<u32>,
}

/// Arguments of `process.merge`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessMerge {
    /// The child. Of one that has ended, the objects that it kept are there.
    pub child: Pid,
    /// The objects to be taken over; all of them where empty.
    #[serde(default)]
    pub objects: Vec<ObjectId>,
}
