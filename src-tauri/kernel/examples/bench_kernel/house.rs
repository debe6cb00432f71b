//! A kernel on a journal in a temporary folder, with programs that do nothing but call it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::StreamExt;
use steward_kernel::capability::{Grant, Resource, Right, Stance};
use steward_kernel::provider::{
    Cancel, Change, ChatReply, ChatRequest, Clock, CoreInfo, Digest, FileBytes, FileStat, Files,
    Finish, Listing, LlmCore, Message, PathState, Plan, TokenSink,
};
use steward_kernel::{
    Code, Exit, Images, Kernel, Pid, Program, Providers, Submission, Sys, SysError,
};
use tempfile::TempDir;

pub(crate) struct House {
    pub(crate) kernel: Kernel,
    _folder: TempDir,
}

impl House {
    /// A kernel that knows the one image `bench`.
    pub(crate) fn new(program: impl Program + 'static) -> Result<Self, SysError> {
        let folder = TempDir::new()
            .map_err(|e| SysError::new(Code::Unavailable, format!("no temporary folder: {e}")))?;
        Ok(Self {
            kernel: kernel(&folder.path().join("journal.db"), program)?,
            _folder: folder,
        })
    }

    /// Starts that many processes.
    pub(crate) async fn start(&self, count: usize) -> Result<Vec<Pid>, SysError> {
        let started: Vec<_> = futures::stream::iter(0..count)
            .map(|_| async {
                let submission = Submission {
                    image: "bench".to_owned(),
                    goal: "go".to_owned(),
                    workspace: PathBuf::from("/workspace"),
                    grants: rights(),
                    after: None,
                    budget: steward_kernel::budget::Budget::default(),
                };
                self.kernel.submit(submission).await.map(|p| p.pid)
            })
            .buffer_unordered(512)
            .collect()
            .await;
        started.into_iter().collect()
    }

    /// Waits until they have ended well.
    pub(crate) async fn wait(&self, pids: &[Pid]) -> Result<(), SysError> {
        for pid in pids {
            let exit = self.kernel.wait(*pid).await?;
            if let Some(error) = exit.error {
                return Err(error);
            }
        }
        self.kernel.flush().await
    }
}

/// A kernel on this journal, whose one image is `bench`.
pub(crate) fn kernel(journal: &Path, program: impl Program + 'static) -> Result<Kernel, SysError> {
    let providers = Providers::new(
        Arc::new(NoFiles),
        Arc::new(Instantly),
        Arc::new(Wall(Instant::now())),
    );
    Kernel::open(journal, providers, Arc::new(One(Arc::new(program))))
}

fn rights() -> Vec<Grant> {
    [
        Resource::Processes,
        Resource::Clock,
        Resource::Cores,
        Resource::Human,
    ]
    .map(|resource| Grant::new(resource, [Right::Use, Right::Read], Stance::Allow))
    .to_vec()
}

/// A program from a function of its door.
pub(crate) struct Runs<F>(pub(crate) F);

#[async_trait]
impl<F, R> Program for Runs<F>
where
    F: Fn(Sys) -> R + Send + Sync,
    R: Future<Output = Result<(), SysError>> + Send,
{
    async fn run(&self, sys: Sys) -> Result<Exit, SysError> {
        (self.0)(sys).await?;
        Ok(Exit {
            ok: true,
            answer: String::new(),
            error: None,
        })
    }
}

struct One(Arc<dyn Program>);

impl Images for One {
    fn program(&self, image: &str) -> Option<Arc<dyn Program>> {
        (image == "bench").then(|| Arc::clone(&self.0))
    }
}

struct Wall(Instant);

#[async_trait]
impl Clock for Wall {
    fn now_ms(&self) -> u64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
    }
    fn monotonic_ms(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
    async fn sleep_ms(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

/// A core that answers at once.
struct Instantly;

#[async_trait]
impl LlmCore for Instantly {
    fn info(&self) -> CoreInfo {
        CoreInfo {
            model: "stub".to_owned(),
            context: 1024,
            local: true,
        }
    }
    async fn chat(&self, _: ChatRequest, _: TokenSink, _: Cancel) -> Result<ChatReply, SysError> {
        Ok(ChatReply {
            text: "done".to_owned(),
            finish: Finish::Stop,
            prompt_tokens: 1,
            cached_tokens: 0,
            tokens: 1,
        })
    }
    async fn score(
        &self,
        _: Vec<Message>,
        _: String,
        choices: Vec<String>,
        _: Cancel,
    ) -> Result<Vec<f64>, SysError> {
        Ok(vec![0.0; choices.len()])
    }
    async fn count_tokens(&self, text: String) -> Result<u32, SysError> {
        Ok(u32::try_from(text.len()).unwrap_or(u32::MAX))
    }
}

/// No files: these programs open none.
struct NoFiles;

fn none<T>() -> Result<T, SysError> {
    Err(SysError::new(Code::Unavailable, "there are no files here"))
}

impl Files for NoFiles {
    fn workspace(&self, root: &Path) -> Result<PathBuf, SysError> {
        Ok(root.to_owned())
    }
    fn stat(&self, _: &Path, _: &str) -> Result<FileStat, SysError> {
        none()
    }
    fn state(&self, _: &Path, _: &str) -> Result<PathState, SysError> {
        none()
    }
    fn read(&self, _: &Path, _: &str, _: u64, _: u64) -> Result<FileBytes, SysError> {
        none()
    }
    fn list(&self, _: &Path, _: &str, _: usize) -> Result<Listing, SysError> {
        none()
    }
    fn plan(&self, _: &Path, _: &Change) -> Result<Plan, SysError> {
        none()
    }
    fn apply(&self, _: &Path, _: &Change, _: &Plan) -> Result<(), SysError> {
        none()
    }
    fn version(&self, _: &Digest, _: u64) -> Result<Vec<u8>, SysError> {
        none()
    }
}
