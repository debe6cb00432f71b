//! Stand-ins for what is outside the kernel, each controllable by a test.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::Value;
use steward_kernel::image::Image;
use steward_kernel::provider::{
    Cancel, Change, ChatReply, ChatRequest, Clock, CoreInfo, Digest, FileBytes, FileStat, Files,
    Finish, Listing, LlmCore, Message, PathState, Plan, Price, TokenSink,
};
use steward_kernel::{Exit, Images, Program, Sys, SysError};
use steward_store::WorkspaceFiles;
use tokio::sync::{Semaphore, watch};

/// The result of each call of a script.
pub(crate) type Results = Vec<Result<Value, SysError>>;

/// Makes the calls that its goal lists (`[[name, arguments], …]`); its answer is their results. An
/// argument `"$N"` is the result of the N-th call, `"$N.field"` a field of it. In a forked child the
/// task lists the calls that follow.
pub(crate) struct Script;

#[async_trait]
impl Program for Script {
    async fn run(&self, sys: Sys) -> Result<Exit, SysError> {
        let mut calls: VecDeque<(String, Value)> = serde_json::from_str(sys.goal()).unwrap();
        let mut results = Results::new();
        while let Some((name, mut args)) = calls.pop_front() {
            put_in(&mut args, &results);
            let result = sys.call_by_name(&name, args).await;
            if let Some(task) = as_child(&result) {
                calls = serde_json::from_str(task).unwrap();
            }
            results.push(result);
        }
        Ok(Exit {
            ok: results.iter().all(Result::is_ok),
            answer: serde_json::to_string(&results).unwrap(),
            error: None,
        })
    }
}

/// Puts results in the place of what names them, in lists too.
fn put_in(args: &mut Value, results: &Results) {
    match args {
        Value::Object(fields) => fields.values_mut().for_each(|value| put_in(value, results)),
        Value::Array(all) => all.iter_mut().for_each(|value| put_in(value, results)),
        Value::String(text) => {
            let Some(named) = text.strip_prefix('$') else {
                return;
            };
            let (number, field) = named.split_once('.').unwrap_or((named, ""));
            if let Ok(number) = number.parse::<usize>() {
                let result = results[number].clone().unwrap_or(Value::Null);
                *args = match field {
                    "" => result,
                    field => result[field].clone(),
                };
            }
        }
        _ => {}
    }
}

fn as_child(result: &Result<Value, SysError>) -> Option<&str> {
    let result = result.as_ref().ok()?;
    (result["as"] == "child").then(|| result["task"].as_str())?
}

type Running = Pin<Box<dyn Future<Output = Result<Exit, SysError>> + Send>>;

/// A program from a closure.
struct Closure<F>(F);

#[async_trait]
impl<F: Fn(Sys) -> Running + Send + Sync> Program for Closure<F> {
    async fn run(&self, sys: Sys) -> Result<Exit, SysError> {
        (self.0)(sys).await
    }
}

/// Images by name; `script` is always there.
#[derive(Clone)]
pub(crate) struct Table(HashMap<&'static str, Arc<dyn Program>>);

impl Table {
    pub(crate) fn new() -> Self {
        let script: Arc<dyn Program> = Arc::new(Script);
        Self(HashMap::from([("script", script)]))
    }

    pub(crate) fn with<F, R>(mut self, name: &'static str, run: F) -> Self
    where
        F: Fn(Sys) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Exit, SysError>> + Send + 'static,
    {
        let boxed = move |sys| -> Running { Box::pin(run(sys)) };
        self.0.insert(name, Arc::new(Closure(boxed)));
        self
    }
}

impl Images for Table {
    fn program(&self, image: &str) -> Option<Arc<dyn Program>> {
        self.0.get(image).cloned()
    }

    fn built_in(&self) -> Vec<&'static str> {
        vec![concat!(
            "{ name: script, about: makes calls, system_prompt: '', tools: [call],",
            "  context: { tokens: 300, drop: [goal] } }"
        )]
    }

    fn tools(&self) -> Vec<String> {
        vec!["call".to_owned(), "look".to_owned()]
    }

    /// Whatever it says, it makes the calls of its goal.
    fn make(&self, _: &Image) -> Result<Arc<dyn Program>, SysError> {
        Ok(Arc::new(Script))
    }
}

/// A core that says `said`, once its gate lets it.
pub(crate) struct StandInCore {
    gate: Semaphore,
    price: u64,
    asked_for: AtomicU64,
}

impl StandInCore {
    /// Answers at once.
    pub(crate) fn open() -> Arc<Self> {
        let core = Self::closed();
        core.let_through(1_000_000);
        core
    }

    /// Answers only as often as it is let.
    pub(crate) fn closed() -> Arc<Self> {
        Arc::new(Self {
            gate: Semaphore::new(0),
            price: 0,
            asked_for: AtomicU64::new(0),
        })
    }

    /// Answers at once, at a price for a million tokens.
    pub(crate) fn open_at(price: u64) -> Arc<Self> {
        Arc::new(Self {
            gate: Semaphore::new(1_000_000),
            price,
            asked_for: AtomicU64::new(0),
        })
    }

    /// Tokens that the last request asked for at most.
    pub(crate) fn asked_for(&self) -> u64 {
        self.asked_for.load(Ordering::SeqCst)
    }

    pub(crate) fn let_through(&self, answers: usize) {
        self.gate.add_permits(answers);
    }
}

#[async_trait]
impl LlmCore for StandInCore {
    fn info(&self) -> CoreInfo {
        CoreInfo {
            model: "stand-in".to_owned(),
            context: 1000,
            local: true,
        }
    }

    fn price(&self) -> Price {
        Price {
            prompt: self.price,
            generated: self.price,
        }
    }

    async fn chat(
        &self,
        request: ChatRequest,
        sink: TokenSink,
        cancel: Cancel,
    ) -> Result<ChatReply, SysError> {
        self.asked_for
            .store(request.max_tokens.into(), Ordering::SeqCst);
        let finish = tokio::select! {
            permit = self.gate.acquire() => {
                permit.unwrap().forget();
                sink("said");
                Finish::Stop
            }
            () = cancel.cancelled() => Finish::Cancelled,
        };
        Ok(ChatReply {
            text: "said".to_owned(),
            finish,
            prompt_tokens: 3,
            cached_tokens: 0,
            tokens: 1,
        })
    }

    async fn score(
        &self,
        _messages: Vec<Message>,
        _prefix: String,
        choices: Vec<String>,
        _cancel: Cancel,
    ) -> Result<Vec<f64>, SysError> {
        Ok(vec![0.0; choices.len()])
    }

    async fn count_tokens(&self, text: String) -> Result<u32, SysError> {
        Ok(u32::try_from(text.len()).unwrap())
    }
}

/// A clock that a test sets. Its wall time may jump; its monotonic time only goes on.
pub(crate) struct StandInClock {
    boot: Option<&'static str>,
    wall: AtomicU64,
    monotonic: watch::Sender<u64>,
    sleeping: AtomicUsize,
}

impl StandInClock {
    pub(crate) fn at(wall_ms: u64) -> Arc<Self> {
        Self::of(None, wall_ms, 0)
    }

    /// Of a machine that was started under a name, and since when.
    pub(crate) fn of(boot: Option<&'static str>, wall_ms: u64, steady_ms: u64) -> Arc<Self> {
        Arc::new(Self {
            boot,
            wall: AtomicU64::new(wall_ms),
            monotonic: watch::Sender::new(steady_ms),
            sleeping: AtomicUsize::new(0),
        })
    }

    /// Sets the wall clock, as a person or a time server does.
    pub(crate) fn set_wall(&self, ms: u64) {
        self.wall.store(ms, Ordering::Relaxed);
    }

    /// How many sleep now.
    pub(crate) fn sleeping(&self) -> usize {
        self.sleeping.load(Ordering::SeqCst)
    }

    /// Lets time pass.
    pub(crate) fn advance(&self, ms: u64) {
        self.wall.fetch_add(ms, Ordering::Relaxed);
        self.monotonic.send_modify(|now| *now += ms);
    }
}

/// Counted as asleep until dropped.
struct Asleep<'a>(&'a AtomicUsize);

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for StandInClock {
    fn now_ms(&self) -> u64 {
        self.wall.load(Ordering::Relaxed)
    }

    fn monotonic_ms(&self) -> u64 {
        *self.monotonic.borrow()
    }

    fn boot(&self) -> Option<String> {
        self.boot.map(str::to_owned)
    }

    async fn sleep_ms(&self, ms: u64) {
        let until = self.monotonic_ms() + ms;
        let mut now = self.monotonic.subscribe();
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        let _asleep = Asleep(&self.sleeping);
        now.wait_for(|now| *now >= until).await.unwrap();
    }
}

/// What the file provider is about to do, or has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Reading,
    Planning,
    Applying,
    Applied,
}

type Watcher = dyn Fn(Moment) + Send + Sync;

/// The real file provider, with a function called at each [`Moment`], which may block it.
pub(crate) struct Watched {
    files: WorkspaceFiles,
    watcher: Box<Watcher>,
}

impl Watched {
    pub(crate) fn new(
        files: WorkspaceFiles,
        watcher: impl Fn(Moment) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            files,
            watcher: Box::new(watcher),
        })
    }
}

impl Files for Watched {
    fn workspace(&self, root: &Path) -> Result<PathBuf, SysError> {
        self.files.workspace(root)
    }
    fn stat(&self, root: &Path, path: &str) -> Result<FileStat, SysError> {
        self.files.stat(root, path)
    }
    fn state(&self, root: &Path, path: &str) -> Result<PathState, SysError> {
        self.files.state(root, path)
    }
    fn read(
        &self,
        root: &Path,
        path: &str,
        offset: u64,
        limit: u64,
    ) -> Result<FileBytes, SysError> {
        (self.watcher)(Moment::Reading);
        self.files.read(root, path, offset, limit)
    }
    fn list(&self, root: &Path, path: &str, limit: usize) -> Result<Listing, SysError> {
        self.files.list(root, path, limit)
    }
    fn plan(&self, root: &Path, change: &Change) -> Result<Plan, SysError> {
        (self.watcher)(Moment::Planning);
        self.files.plan(root, change)
    }
    fn apply(&self, root: &Path, change: &Change, plan: &Plan) -> Result<(), SysError> {
        (self.watcher)(Moment::Applying);
        let applied = self.files.apply(root, change, plan);
        (self.watcher)(Moment::Applied);
        applied
    }
    fn version(&self, sha256: &Digest, limit: u64) -> Result<Vec<u8>, SysError> {
        self.files.version(sha256, limit)
    }
}
