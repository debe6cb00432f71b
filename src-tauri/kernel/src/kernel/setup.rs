//! What a kernel is built from, and what a run is asked for with.

use std::path::PathBuf;
use std::sync::Arc;

use crate::budget::Budget;
use crate::capability::Grant;
use crate::context::MemorySnapshots;
use crate::error::{Code, SysError};
use crate::executor::{Executor, TokioExecutor};
use crate::image::Image;
use crate::outside::{Network, Random, Shell, SystemRandom};
use crate::process::RunId;
use crate::program::Program;
use crate::provider::{Clock, Files, LlmCore, NoWitness, Snapshots, Witness};

/// What the kernel needs from the world.
#[derive(Clone)]
pub struct Providers {
    /// A person's files.
    pub files: Arc<dyn Files>,
    /// The language model.
    pub core: Arc<dyn LlmCore>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Where tasks run.
    pub executor: Arc<dyn Executor>,
    /// Other programs, where they can be run confined.
    pub shell: Option<Arc<dyn Shell>>,
    /// The way out to the network, where there is one.
    pub network: Option<Arc<dyn Network>>,
    /// Chance.
    pub random: Arc<dyn Random>,
    /// Where generations go that wait while memory is short.
    pub snapshots: Arc<dyn Snapshots>,
    /// Who vouches for the journal's end.
    pub witness: Arc<dyn Witness>,
}

impl Providers {
    /// These, and what a program has by itself: tasks on tokio, snapshots in memory, a journal whose
    /// end nobody signs.
    pub fn new(files: Arc<dyn Files>, core: Arc<dyn LlmCore>, clock: Arc<dyn Clock>) -> Self {
        Self {
            files,
            core,
            clock,
            executor: Arc::new(TokioExecutor),
            shell: None,
            network: None,
            random: Arc::new(SystemRandom),
            snapshots: Arc::new(MemorySnapshots::default()),
            witness: Arc::new(NoWitness),
        }
    }
}

/// Programs by the name of their image.
pub trait Images: Send + Sync {
    /// The program of an image that is built in, where there is one.
    fn program(&self, image: &str) -> Option<Arc<dyn Program>>;

    /// The images that are built in, in YAML.
    fn built_in(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Names of the tools that an image may have.
    fn tools(&self) -> Vec<String> {
        Vec::new()
    }

    /// The program of an image that was registered.
    ///
    /// # Errors
    /// The image asks for what is not there.
    fn make(&self, image: &Image) -> Result<Arc<dyn Program>, SysError> {
        let message = format!("no program can be made of image `{}`", image.name);
        Err(SysError::new(Code::Invalid, message).hint("use an image that is built in"))
    }
}

/// A request for a new run.
#[derive(Debug, Clone)]
pub struct Submission {
    /// The image to start from.
    pub image: String,
    /// What is to be reached.
    pub goal: String,
    /// The workspace, a folder that is there.
    pub workspace: PathBuf,
    /// The rights it starts with.
    pub grants: Vec<Grant>,
    /// The run it goes on from.
    pub after: Option<RunId>,
    /// What it and its children may use.
    pub budget: Budget,
}
