//! What an image's work takes, in words that fit any workspace.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds;
use crate::capability::{Constraints, Grant, Resource, Right, Stance};

/// What a need is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum On {
    /// The files of the workspace.
    Workspace,
    /// Language models.
    Cores,
    /// The person.
    Human,
    /// Processes of the same run.
    Processes,
    /// Time.
    Clock,
    /// Objects that outlive runs, in `shared`.
    SharedObjects,
    /// The registry of images.
    Images,
    /// Checkpoints of the same run.
    Checkpoints,
    /// The journal.
    Journal,
    /// Other programs.
    Shell,
    /// The network.
    Network,
    /// Capabilities themselves.
    Capabilities,
}

/// A capability that an image's work takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Needed {
    /// Of what.
    pub on: On,
    /// To do what with it.
    #[serde(deserialize_with = "bounds::rights")]
    #[schemars(length(min = 1))]
    pub rights: Vec<Right>,
    /// Whether each use asks the person.
    #[serde(default = "allow", deserialize_with = "bounds::stance")]
    pub stance: Stance,
    /// What must hold of a use beyond that.
    #[serde(default, skip_serializing_if = "Constraints::is_empty")]
    pub constraints: Constraints,
}

fn allow() -> Stance {
    Stance::Allow
}

impl Needed {
    /// The grant that fills it in a workspace.
    pub fn grant(&self, workspace: &Path) -> Grant {
        let resource = match self.on {
            On::Workspace => Resource::Workspace {
                root: workspace.to_owned(),
            },
            On::Cores => Resource::Cores,
            On::Human => Resource::Human,
            On::Processes => Resource::Processes,
            On::Clock => Resource::Clock,
            On::SharedObjects => Resource::Objects {
                namespace: "shared".to_owned(),
            },
            On::Images => Resource::Images,
            On::Checkpoints => Resource::Checkpoints,
            On::Journal => Resource::Journal,
            On::Shell => Resource::Shell,
            On::Network => Resource::Network,
            On::Capabilities => Resource::Capabilities,
        };
        Grant::new(resource, self.rights.clone(), self.stance).under(self.constraints.clone())
    }
}
