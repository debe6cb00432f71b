//! A kernel over the local core: no files, a real clock, and a program that asks the core once.

mod model;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use steward_cores::{KvFormat, LocalCore, Source};
use steward_kernel::capability::workspace_defaults;
use steward_kernel::provider::{
    Change, ChatRequest, Clock, Digest, FileBytes, FileStat, Files, Listing, Message, PathState,
    Plan, Role, Sampling,
};
use steward_kernel::scheduler::PolicyChoice;
use steward_kernel::syscall::LlmChat;
use steward_kernel::syscall::Module;
use steward_kernel::{
    Code, Exit, Images, Kernel, Pid, Program, Providers, Submission, Sys, SysError,
};

pub(crate) use model::default_model;

pub(crate) fn core() -> Arc<LocalCore> {
    let source = Source {
        model: "test".to_owned(),
        file: Ok(default_model()),
        context: 8_192,
        threads: None,
        kv_format: KvFormat::default(),
    };
    Arc::new(LocalCore::new(source, |_| {}))
}

/// What a process asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question {
    pub(crate) text: &'static str,
    pub(crate) temperature: f32,
    pub(crate) tokens: u32,
}

impl Question {
    pub(crate) fn request(&self) -> ChatRequest {
        ChatRequest {
            messages: vec![Message {
                role: Role::User,
                content: self.text.to_owned(),
            }],
            prefix: String::new(),
            max_tokens: self.tokens,
            sampling: Sampling {
                temperature: self.temperature,
                top_p: 0.95,
                seed: 7,
                ..Sampling::default()
            },
            stop: Vec::new(),
            constraint: None,
            beams: 1,
        }
    }
}

/// Asks the question whose number is its goal; its answer is the text.
struct Asks(Vec<Question>);

#[async_trait]
impl Program for Asks {
    async fn run(&self, sys: Sys) -> Result<Exit, SysError> {
        let number: usize = sys.goal().parse().expect("a number");
        let call = LlmChat {
            request: self.0[number].request(),
            visible: true,
            purpose: String::new(),
        };
        let reply = sys.call(call).await?;
        Ok(Exit {
            ok: true,
            answer: reply.text,
            error: None,
        })
    }
}

struct One(Arc<Asks>);

impl Images for One {
    fn program(&self, _: &str) -> Option<Arc<dyn Program>> {
        Some(Arc::clone(&self.0) as Arc<dyn Program>)
    }
}

/// A kernel, its folder, and the questions that its processes ask.
pub(crate) struct House {
    pub(crate) kernel: Kernel,
    folder: tempfile::TempDir,
}

impl House {
    /// A kernel whose core serves `at_once` generations at a time.
    pub(crate) fn new(
        core: &Arc<LocalCore>,
        questions: &[Question],
        policy: &str,
        at_once: usize,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = Arc::new(Now(Instant::now()));
        let core = Arc::clone(core);
        let providers = Providers::new(Arc::new(NoFiles), core, clock);
        let images = Arc::new(One(Arc::new(Asks(questions.to_vec()))));
        let kernel = Kernel::open(&folder.path().join("journal.db"), providers, images);
        let kernel = kernel.expect("a kernel");
        let policy = PolicyChoice::by_name(policy).expect("a policy");
        kernel.set_policy(None, &policy).expect("a policy");
        kernel.set_limit(Module::Llm, at_once).expect("a limit");
        Self { kernel, folder }
    }

    /// Starts a process that asks one of the questions.
    pub(crate) async fn ask(&self, number: usize) -> Pid {
        let submission = Submission {
            image: "asks".to_owned(),
            goal: number.to_string(),
            workspace: self.folder.path().to_owned(),
            grants: workspace_defaults(self.folder.path()),
            after: None,
            budget: steward_kernel::budget::Budget::default(),
        };
        self.kernel.submit(submission).await.expect("a process").pid
    }
}

/// No files: these processes only ask the core.
struct NoFiles;

impl NoFiles {
    fn none<T>() -> Result<T, SysError> {
        Err(SysError::new(Code::Unavailable, "there are no files here"))
    }
}

impl Files for NoFiles {
    fn workspace(&self, root: &Path) -> Result<PathBuf, SysError> {
        Ok(root.to_owned())
    }
    fn stat(&self, _: &Path, _: &str) -> Result<FileStat, SysError> {
        Self::none()
    }
    fn state(&self, _: &Path, _: &str) -> Result<PathState, SysError> {
        Self::none()
    }
    fn read(&self, _: &Path, _: &str, _: u64, _: u64) -> Result<FileBytes, SysError> {
        Self::none()
    }
    fn list(&self, _: &Path, _: &str, _: usize) -> Result<Listing, SysError> {
        Self::none()
    }
    fn plan(&self, _: &Path, _: &Change) -> Result<Plan, SysError> {
        Self::none()
    }
    fn apply(&self, _: &Path, _: &Change, _: &Plan) -> Result<(), SysError> {
        Self::none()
    }
    fn version(&self, _: &Digest, _: u64) -> Result<Vec<u8>, SysError> {
        Self::none()
    }
}

struct Now(Instant);

#[async_trait]
impl Clock for Now {
    fn now_ms(&self) -> u64 {
        1_700_000_000_000 + self.monotonic_ms()
    }
    fn monotonic_ms(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
    async fn sleep_ms(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}
