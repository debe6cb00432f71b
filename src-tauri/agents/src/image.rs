//! Agent images: what a process starts from.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use steward_kernel::Program;

use crate::agent::Agent;

/// Bounds of one process of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Tool calls at most.
    pub max_steps: u32,
    /// Further tries at most after a call that did not fit or did not work.
    pub max_retries: u32,
    /// Tokens of a text that are given to a model at most, by an estimate that errs high.
    pub reading_tokens: u32,
    /// Tokens that a model may write for one answer.
    pub answer_tokens: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            max_steps: 16,
            max_retries: 2,
            reading_tokens: 1_400,
            answer_tokens: 160,
        }
    }
}

/// What a process starts from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// What its model is told about itself.
    pub system_prompt: String,
    /// Names of its tools.
    pub tools: Vec<String>,
    /// Its bounds.
    #[serde(default)]
    pub budget: Budget,
}

impl Image {
    /// The image that a request starts from where nothing else is said.
    pub fn base() -> Self {
        Self {
            name: "base".to_owned(),
            about: "does what a person asks with the files of a workspace".to_owned(),
            // Small models know this sentence best: others make the default one stray.
            system_prompt: "You are a helpful assistant.".to_owned(),
            tools: crate::tools::all()
                .iter()
                .map(|tool| tool.card().name.to_owned())
                .collect(),
            budget: Budget::default(),
        }
    }
}

/// The images there are.
#[derive(Debug, Clone, Default)]
pub struct Images {
    agents: BTreeMap<String, Arc<Agent>>,
}

/// Why an image was not registered.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// It names a tool that is not there.
    #[error("image `{image}` names tool `{tool}`, which is not there; use one of: {known}")]
    NoTool {
        /// The image.
        image: String,
        /// The tool.
        tool: String,
        /// Tools there are.
        known: String,
    },
    /// An image of this name is there.
    #[error("an image `{0}` is registered already; give it another name")]
    Exists(String),
    /// A tool's wordings cannot be read.
    #[error("a wording of image `{image}` is no pattern: {why}; mend the tool's card")]
    Wording {
        /// The image.
        image: String,
        /// Why.
        why: String,
    },
}

impl Images {
    /// Registers an image.
    ///
    /// # Errors
    /// Its name is taken, or it names a tool that is not there.
    pub fn register(&mut self, image: Image) -> Result<(), ImageError> {
        if self.agents.contains_key(&image.name) {
            return Err(ImageError::Exists(image.name));
        }
        let name = image.name.clone();
        self.agents.insert(name, Arc::new(Agent::new(image)?));
        Ok(())
    }

    /// An image by name.
    pub fn get(&self, name: &str) -> Option<&Image> {
        self.agents.get(name).map(|agent| agent.image())
    }

    /// The program of an image.
    pub fn program(&self, name: &str) -> Option<Arc<dyn Program>> {
        self.agents
            .get(name)
            .map(|agent| Arc::clone(agent) as Arc<dyn Program>)
    }

    /// Names of all images, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.agents.keys().map(String::as_str)
    }
}
