//! What processes are started from: the agents' images, and the program of an undo.

use std::sync::Arc;

use steward_kernel::image::Image;
use steward_kernel::{Images, Program, SysError};

use crate::surface::Problem;
use crate::undo;

/// The images that come with Steward.
pub(super) struct AllImages(steward_agents::Images);

impl AllImages {
    pub(super) fn new() -> Result<Self, Problem> {
        steward_agents::registry()
            .map(Self)
            .map_err(|e| Problem::new("internal", e.to_string()).hint("this build is faulty"))
    }
}

impl Images for AllImages {
    fn program(&self, image: &str) -> Option<Arc<dyn Program>> {
        if image == undo::IMAGE {
            return Some(Arc::new(undo::Undo));
        }
        self.0.program(image)
    }

    fn built_in(&self) -> Vec<&'static str> {
        self.0.built_in()
    }

    fn tools(&self) -> Vec<String> {
        self.0.tools()
    }

    fn make(&self, image: &Image) -> Result<Arc<dyn Program>, SysError> {
        self.0.make(image)
    }
}
