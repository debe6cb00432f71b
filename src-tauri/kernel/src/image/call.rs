//! Arguments and results of the image calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Image;
use crate::checkpoint::CheckpointId;
use crate::provider::Digest;

/// An image of the registry, as told to others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u32,
    /// SHA-256 of what it says.
    pub digest: Digest,
    /// What it is for.
    pub about: String,
    /// Whether it comes with Steward.
    pub built_in: bool,
    /// Who registered it: `built in`, `person` or `pid N`.
    pub by: String,
    /// Unix milliseconds when it was registered; absent where it is built in.
    pub at_ms: Option<u64>,
}

/// Arguments of `image.list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageList {}

/// Arguments of `image.inspect`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageInspect {
    /// Its name.
    pub name: String,
    /// Its version; the newest where absent.
    #[serde(default)]
    pub version: Option<u32>,
}

/// An image with what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageDetail {
    /// The image.
    pub info: ImageInfo,
    /// What it says.
    pub image: Image,
    /// As it was written.
    pub yaml: String,
}

/// Arguments of `image.register`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageRegister {
    /// The image in YAML.
    pub yaml: String,
}

/// Arguments of `image.commit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageCommit {
    /// The checkpoint of the process that the image is made of: its image, its budget, and the texts
    /// that it remembered in its own namespace.
    pub checkpoint: CheckpointId,
    /// The name of the new image.
    pub name: String,
    /// Its version; one more than the newest of its name where absent.
    #[serde(default)]
    pub version: Option<u32>,
    /// What it is for; as the image that it comes from where absent.
    #[serde(default)]
    pub about: Option<String>,
}
