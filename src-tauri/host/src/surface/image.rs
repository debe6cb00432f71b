//! What processes are started from.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// One image in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ImageView {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u32,
    /// SHA-256 (hex) of its definition.
    pub digest: String,
    /// What it is for, in a sentence (escaped).
    pub about: String,
    /// Whether it comes with Steward.
    pub built_in: bool,
    /// Who registered it: `built in`, `person` or `pid N`.
    pub by: String,
    /// Unix time in milliseconds when it was registered; absent for one that is built in.
    pub at_ms: Option<u64>,
}

/// One image with its definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ImageDetail {
    /// The image.
    pub image: ImageView,
    /// Its definition, as it was registered (escaped).
    pub yaml: String,
}

/// Where the definition of an image is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ImageSource {
    /// Here, as YAML.
    Yaml(String),
    /// In a file: its absolute path.
    File(String),
}
