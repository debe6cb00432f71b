//! What the demonstrations stand on: a folder, a clock that stands still, a model that is not asked,
//! and how a call is told.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::Value;
use steward_kernel::audit::chain::{Head, Sealed};
use steward_kernel::provider::{
    Cancel, ChatReply, ChatRequest, Clock, CoreInfo, Judgement, LlmCore, Message, TokenSink,
    Witness,
};
use steward_kernel::{Code, Images, Kernel, Pid, Program, Providers, SysError};
use steward_store::WorkspaceFiles;

/// A workspace in a folder of its own, which goes with it.
pub(crate) struct Stage {
    pub(crate) workspace: PathBuf,
    folder: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().canonicalize().unwrap().join("workspace");
        for (path, text) in files {
            let path = workspace.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self { workspace, folder }
    }

    pub(crate) fn open(&self, images: OneImage) -> Kernel {
        let files = WorkspaceFiles::open(self.folder.path().join("blobs")).unwrap();
        let mut providers = Providers::new(Arc::new(files), Arc::new(NoModel), Arc::new(Noon));
        providers.witness = Arc::new(StandInWitness::default());
        let journal = self.folder.path().join("journal.db");
        Kernel::open(&journal, providers, Arc::new(images)).unwrap()
    }
}

pub(crate) struct OneImage {
    name: &'static str,
    program: Arc<dyn Program>,
}

impl OneImage {
    pub(crate) fn new(name: &'static str, program: impl Program + 'static) -> Self {
        let program = Arc::new(program);
        Self { name, program }
    }
}

impl Images for OneImage {
    fn program(&self, image: &str) -> Option<Arc<dyn Program>> {
        (image == self.name).then(|| Arc::clone(&self.program))
    }
}

/// Time stands still.
struct Noon;

#[async_trait]
impl Clock for Noon {
    fn now_ms(&self) -> u64 {
        1_700_000_000_000
    }

    fn monotonic_ms(&self) -> u64 {
        0
    }

    async fn sleep_ms(&self, _: u64) {}
}

/// Signs the journal's end with what anybody could write; a real one holds a key.
#[derive(Default)]
struct StandInWitness(Mutex<Option<Sealed>>);

impl StandInWitness {
    fn sign(head: Head) -> Sealed {
        Sealed {
            head,
            key: "stand-in".to_owned(),
            signature: String::from_utf8(head.statement()).unwrap(),
        }
    }
}

impl Witness for StandInWitness {
    fn seal(&self, head: &Head) -> Result<Option<Sealed>, SysError> {
        let sealed = Self::sign(*head);
        *self.0.lock().unwrap() = Some(sealed.clone());
        Ok(Some(sealed))
    }

    fn last(&self) -> Result<Option<Sealed>, SysError> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn judge(&self, sealed: &Sealed) -> Judgement {
        if *sealed == Self::sign(sealed.head) {
            Judgement::Genuine
        } else {
            Judgement::Forged
        }
    }
}

/// Nobody asks it anything.
struct NoModel;

impl NoModel {
    fn none<T>() -> Result<T, SysError> {
        Err(SysError::new(Code::Unavailable, "there is no model here"))
    }
}

#[async_trait]
impl LlmCore for NoModel {
    fn info(&self) -> CoreInfo {
        CoreInfo {
            model: "none".to_owned(),
            context: 1,
            local: true,
        }
    }

    async fn chat(&self, _: ChatRequest, _: TokenSink, _: Cancel) -> Result<ChatReply, SysError> {
        Self::none()
    }

    async fn score(
        &self,
        _: Vec<Message>,
        _: String,
        _: Vec<String>,
        _: Cancel,
    ) -> Result<Vec<f64>, SysError> {
        Self::none()
    }

    async fn count_tokens(&self, _: String) -> Result<u32, SysError> {
        Self::none()
    }
}

/// One thing that happened.
pub(crate) struct Line {
    who: Option<Pid>,
    what: String,
    came_of_it: String,
    pub(crate) refused: bool,
}

impl Line {
    /// A call and its result, without times, which differ from run to run.
    pub(crate) fn of(
        pid: Pid,
        name: &str,
        arguments: &Value,
        result: &Result<Value, SysError>,
    ) -> Self {
        let (came_of_it, refused) = match result {
            Ok(value) => (brief(value), false),
            Err(error) => (format!("refused: {}", error.message), true),
        };
        Self {
            who: Some(pid),
            what: format!("{name} {}", about(arguments)),
            came_of_it,
            refused,
        }
    }

    pub(crate) fn plain(pid: Pid, name: &str, about: &str) -> Self {
        Self {
            who: Some(pid),
            what: format!("{name} {about}"),
            came_of_it: String::new(),
            refused: false,
        }
    }

    /// The person was asked, and said yes.
    pub(crate) fn asked(title: &str, patch: &str) -> Self {
        Self {
            who: None,
            what: title.to_owned(),
            came_of_it: patch.to_owned(),
            refused: false,
        }
    }

    pub(crate) fn is_call(&self) -> bool {
        self.who.is_some()
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.who {
            None => writeln!(
                f,
                "the person is asked: {}\n{}the person says yes",
                self.what, self.came_of_it
            ),
            Some(pid) if self.came_of_it.is_empty() => writeln!(f, "[{pid}] {}", self.what),
            Some(pid) => writeln!(f, "[{pid}] {}\n      {}", self.what, self.came_of_it),
        }
    }
}

/// What a call is about.
fn about(arguments: &Value) -> String {
    let keys = [
        "path", "mode", "label", "name", "pid", "child", "object", "from", "to",
    ];
    let told = keys.iter().filter_map(|key| {
        let value = arguments.get(key)?;
        Some(
            value
                .as_str()
                .map_or_else(|| format!("{key} {value}"), str::to_owned),
        )
    });
    told.collect::<Vec<_>>().join(", ")
}

/// The parts of a result that a person would look at.
fn brief(result: &Value) -> String {
    let keys = [
        "as",
        "child",
        "id",
        "answer",
        "text",
        "bytes",
        "sha256",
        "overwritten",
        "shared",
    ];
    let told = keys.iter().filter_map(|key| {
        let value = result.get(key)?;
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let first = text.lines().next().unwrap_or_default();
        Some(format!("{key}: {first}"))
    });
    told.collect::<Vec<_>>().join("; ")
}
