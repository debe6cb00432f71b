//! The images built in, and the programs made of images.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use steward_kernel::image::{self, Image};
use steward_kernel::{Code, Program, SysError};

use crate::agent::Agent;

/// The images built in, as they are written.
pub const BUILT_IN: [&str; 4] = [
    include_str!("../images/base.yaml"),
    include_str!("../images/coder.yaml"),
    include_str!("../images/reviewer.yaml"),
    include_str!("../images/toolmaker.yaml"),
];

/// The images there are.
#[derive(Debug, Clone, Default)]
pub struct Images {
    known: BTreeMap<String, Known>,
}

/// An image, and its agent once it is used: making one compiles hundreds of wordings.
#[derive(Debug, Clone)]
struct Known {
    image: Image,
    agent: Arc<OnceLock<Option<Arc<Agent>>>>,
}

/// Why an image was not registered.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// It cannot be read.
    #[error("a built-in image cannot be read: {0}")]
    Unreadable(#[from] image::ImageError),
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
        if self.known.contains_key(&image.name) {
            return Err(ImageError::Exists(image.name));
        }
        crate::agent::tools_of(&image)?;
        let agent = Arc::default();
        self.known
            .insert(image.name.clone(), Known { image, agent });
        Ok(())
    }

    /// An image by name.
    pub fn get(&self, name: &str) -> Option<&Image> {
        self.known.get(name).map(|known| &known.image)
    }

    /// Names of all images, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }
}

impl steward_kernel::Images for Images {
    fn program(&self, image: &str) -> Option<Arc<dyn Program>> {
        let Known { image, agent } = self.known.get(image)?;
        // The wordings of our own tools compile; a test holds that.
        let agent = agent.get_or_init(|| Agent::new(image.clone()).ok().map(Arc::new));
        Some(Arc::clone(agent.as_ref()?) as Arc<dyn Program>)
    }

    fn built_in(&self) -> Vec<&'static str> {
        BUILT_IN.to_vec()
    }

    fn tools(&self) -> Vec<String> {
        let names = crate::tools::all().into_iter().map(|tool| tool.card().name);
        names.map(str::to_owned).collect()
    }

    fn make(&self, image: &Image) -> Result<Arc<dyn Program>, SysError> {
        match Agent::new(image.clone()) {
            Ok(agent) => Ok(Arc::new(agent)),
            Err(error) => Err(SysError::new(Code::Invalid, error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use steward_kernel::Images as _;

    use super::*;

    #[test]
    fn the_images_built_in_are_there_and_name_tools_that_are() {
        let images = crate::registry().unwrap();
        let names: Vec<&str> = images.names().collect();
        assert_eq!(names, ["base", "coder", "reviewer", "toolmaker"]);
        for yaml in images.built_in() {
            let image = image::read(yaml).unwrap();
            image.check_tools(yaml, &images.tools()).unwrap();
            assert!(images.program(&image.name).is_some(), "{}", image.name);
        }
    }

    #[test]
    fn the_base_image_has_every_tool_and_the_rights_a_run_starts_with() {
        let images = crate::registry().unwrap();
        let base = images.get("base").unwrap();
        assert_eq!(base.tools, images.tools());
        assert_eq!(base.bounds, image::Loop::default());
        let root = Path::new("/w");
        let defaults = steward_kernel::capability::workspace_defaults(root);
        assert_eq!(base.grants(root), defaults);
    }
}
