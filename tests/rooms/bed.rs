//! A workspace, a folder outside it, a version store and a journal in one temporary folder; a kernel
//! over them; and a person who answers.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steward_kernel::capability::{Grant, workspace_defaults};
use steward_kernel::human::Approval;
use steward_kernel::provider::{Files, LlmCore};
use steward_kernel::{
    Code, CommitHook, JournalQuery, JournalRow, Kernel, KernelEvent, Pid, ProcessInfo,
    ProcessState, Providers, Submission, Taken,
};
use steward_store::WorkspaceFiles;
use tempfile::TempDir;
use tokio::sync::broadcast::Receiver;

use crate::stand_ins::{Results, StandInClock, StandInCore, Table};

/// Wall time at which stand-in clocks begin.
pub(crate) const NOON: u64 = 1_700_000_000_000;
/// After this nothing comes any more.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Bed {
    pub(crate) root: PathBuf,
    pub(crate) outside: PathBuf,
    pub(crate) data: PathBuf,
    _temp: Option<TempDir>,
}

impl Bed {
    /// With files of the workspace; a path that ends in `/` is a folder.
    pub(crate) fn with(entries: &[(&str, &str)]) -> Self {
        let temp = TempDir::new().unwrap();
        for name in ["workspace", "outside", "data"] {
            std::fs::create_dir(temp.path().join(name)).unwrap();
        }
        let bed = Self::at(temp.path());
        std::fs::write(bed.outside.join("secret"), "outside").unwrap();
        for (path, text) in entries {
            bed.fill(path, text);
        }
        Self {
            _temp: Some(temp),
            ..bed
        }
    }

    /// One that another process made.
    pub(crate) fn at(path: &Path) -> Self {
        let path = path.canonicalize().unwrap();
        Self {
            root: path.join("workspace"),
            outside: path.join("outside"),
            data: path.join("data"),
            _temp: None,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.root.parent().unwrap()
    }

    pub(crate) fn fill(&self, path: &str, text: &str) {
        let at = self.root.join(path);
        if path.ends_with('/') {
            std::fs::create_dir_all(at).unwrap();
        } else {
            std::fs::create_dir_all(at.parent().unwrap()).unwrap();
            std::fs::write(at, text).unwrap();
        }
    }

    pub(crate) fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).unwrap()
    }

    pub(crate) fn set_mode(&self, path: &str, mode: u32) {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.root.join(path), mode).unwrap();
    }

    pub(crate) fn store(&self) -> WorkspaceFiles {
        WorkspaceFiles::open(self.data.join("blobs")).unwrap()
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.data.join("journal.db")
    }

    /// A second connection to the journal, to look at what the kernel does not tell.
    pub(crate) fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.journal()).unwrap()
    }

    /// One number that a query of the journal gives.
    pub(crate) fn count(&self, sql: &str) -> u64 {
        self.database().query_row(sql, (), |r| r.get(0)).unwrap()
    }

    pub(crate) fn opening(&self) -> Opening {
        Opening {
            journal: self.journal(),
            providers: Providers::new(
                Arc::new(self.store()),
                StandInCore::open(),
                StandInClock::at(NOON),
            ),
            images: Table::new(),
            hook: None,
        }
    }

    /// A kernel with the usual stand-ins.
    pub(crate) fn kernel(&self) -> Kernel {
        self.opening().open()
    }

    pub(crate) fn defaults(&self) -> Vec<Grant> {
        workspace_defaults(&self.root)
    }

    /// Starts a process that makes these calls, with the usual rights.
    pub(crate) async fn start(&self, kernel: &Kernel, calls: &[Value]) -> Pid {
        self.start_with(kernel, calls, self.defaults()).await
    }

    pub(crate) async fn start_with(
        &self,
        kernel: &Kernel,
        calls: &[Value],
        grants: Vec<Grant>,
    ) -> Pid {
        self.start_image(kernel, "script", &script(calls), grants)
            .await
    }

    pub(crate) async fn start_image(
        &self,
        kernel: &Kernel,
        image: &str,
        goal: &str,
        grants: Vec<Grant>,
    ) -> Pid {
        let submission = Submission {
            image: image.to_owned(),
            goal: goal.to_owned(),
            workspace: self.root.clone(),
            grants,
            after: None,
            budget: steward_kernel::budget::Budget::default(),
        };
        kernel.submit(submission).await.unwrap().pid
    }

    /// Every path of the workspace and of what is outside: kind and bytes, mode, time of change.
    pub(crate) fn print(&self) -> Print {
        let mut all = Print::new();
        let mut open = vec![self.root.clone(), self.outside.clone()];
        while let Some(path) = open.pop() {
            let meta = std::fs::symlink_metadata(&path).unwrap();
            let bytes = if meta.is_dir() {
                let entries = std::fs::read_dir(&path).unwrap();
                open.extend(entries.map(|entry| entry.unwrap().path()));
                None
            } else if meta.is_symlink() {
                Some(path_bytes(&std::fs::read_link(&path).unwrap()))
            } else if meta.is_file() {
                Some(std::fs::read(&path).unwrap())
            } else {
                None
            };
            all.insert(path, (bytes, meta.mode(), meta.mtime(), meta.mtime_nsec()));
        }
        all
    }

    /// As [`Bed::print`], without the times.
    pub(crate) fn contents(&self) -> BTreeMap<PathBuf, (Option<Vec<u8>>, u32)> {
        let print = self.print();
        print
            .into_iter()
            .map(|(path, (bytes, mode, ..))| (path, (bytes, mode)))
            .collect()
    }
}

pub(crate) type Print = BTreeMap<PathBuf, (Option<Vec<u8>>, u32, i64, i64)>;

fn path_bytes(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().to_vec()
}

/// What a kernel is opened with.
pub(crate) struct Opening {
    pub(crate) journal: PathBuf,
    pub(crate) providers: Providers,
    pub(crate) images: Table,
    pub(crate) hook: Option<CommitHook>,
}

impl Opening {
    pub(crate) fn files(mut self, files: Arc<dyn Files>) -> Self {
        self.providers.files = files;
        self
    }

    pub(crate) fn core(mut self, core: Arc<impl LlmCore>) -> Self {
        self.providers.core = core;
        self
    }

    pub(crate) fn clock(mut self, clock: Arc<StandInClock>) -> Self {
        self.providers.clock = clock;
        self
    }

    pub(crate) fn images(mut self, images: Table) -> Self {
        self.images = images;
        self
    }

    pub(crate) fn hook(mut self, hook: CommitHook) -> Self {
        self.hook = Some(hook);
        self
    }

    pub(crate) fn open(self) -> Kernel {
        let images = Arc::new(self.images);
        Kernel::open_observed(&self.journal, self.providers, images, self.hook).unwrap()
    }
}

/// Hears what the kernel tells from now on, and answers.
pub(crate) struct Person {
    kernel: Kernel,
    events: Receiver<KernelEvent>,
}

impl Person {
    pub(crate) fn of(kernel: &Kernel) -> Self {
        Self {
            kernel: kernel.clone(),
            events: kernel.subscribe(),
        }
    }

    /// The first event from which `pick` gives something.
    pub(crate) async fn hears<T>(&mut self, mut pick: impl FnMut(KernelEvent) -> Option<T>) -> T {
        let heard = async {
            loop {
                if let Some(found) = pick(self.events.recv().await.unwrap()) {
                    return found;
                }
            }
        };
        tokio::time::timeout(PATIENCE, heard)
            .await
            .expect("the kernel tells nothing of the kind")
    }

    pub(crate) async fn is_asked(&mut self) -> Approval {
        self.hears(|event| match event {
            KernelEvent::Approval(approval) => Some(*approval),
            _ => None,
        })
        .await
    }

    pub(crate) async fn sees(&mut self, pid: Pid, state: ProcessState) -> ProcessInfo {
        self.hears(|event| match event {
            KernelEvent::Process(info) if info.pid == pid && info.state == state => Some(info),
            _ => None,
        })
        .await
    }

    pub(crate) async fn says(&self, approval: &Approval, yes: bool) -> Taken {
        self.kernel
            .decide(approval.id, yes, &approval.digest.0, "test")
            .await
            .unwrap()
    }

    /// Says the same to everything, from now on.
    pub(crate) fn always_says(mut self, yes: bool) {
        tokio::spawn(async move {
            while let Ok(event) = self.events.recv().await {
                if let KernelEvent::Approval(approval) = event {
                    self.says(&approval, yes).await;
                }
            }
        });
    }
}

/// Runs until `work` is done; then everything in it ends at once, as with the program.
pub(crate) fn life<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(work)
}

/// The results of a script, once it has ended.
pub(crate) async fn results(kernel: &Kernel, pid: Pid) -> Results {
    let exit = tokio::time::timeout(PATIENCE, kernel.wait(pid))
        .await
        .expect("the process does not end")
        .unwrap();
    serde_json::from_str(&exit.answer)
        .unwrap_or_else(|e| panic!("{e}: no results of a script: {exit:?}"))
}

pub(crate) fn codes(results: &Results) -> Vec<Result<(), Code>> {
    results
        .iter()
        .map(|r| r.as_ref().map(drop).map_err(|e| e.code))
        .collect()
}

/// Waits until something holds that no event tells of.
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let wait = async {
        while !holds().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, wait)
        .await
        .unwrap_or_else(|_| panic!("this never came: {what}"));
}

/// Rows of the journal, oldest first.
pub(crate) async fn rows(kernel: &Kernel, pid: Option<Pid>) -> Vec<JournalRow> {
    let query = JournalQuery {
        pid,
        limit: 100_000,
        ..JournalQuery::default()
    };
    let mut rows = kernel.journal(query).await.unwrap();
    rows.reverse();
    rows
}

/// The journal's words on how each call of a process ended, in order.
pub(crate) async fn outcomes(kernel: &Kernel, pid: Pid) -> Vec<String> {
    let rows = rows(kernel, Some(pid)).await;
    let outcomes = rows.into_iter().filter(|row| row.kind == "outcome");
    outcomes.map(|row| row.detail).collect()
}

pub(crate) fn script(calls: &[Value]) -> String {
    Value::from(calls.to_vec()).to_string()
}

pub(crate) fn write(path: &str, text: &str) -> Value {
    json!(["fs.write", { "path": path, "text": text }])
}

pub(crate) fn write_on(path: &str, text: &str, base: &str) -> Value {
    json!(["fs.write", { "path": path, "text": text, "base": sha256(base.as_bytes()) }])
}

pub(crate) fn read(path: &str) -> Value {
    json!(["fs.read", { "path": path }])
}

pub(crate) fn mkdir(path: &str) -> Value {
    json!(["fs.mkdir", { "path": path }])
}

pub(crate) fn delete(path: &str) -> Value {
    json!(["fs.delete", { "path": path }])
}

pub(crate) fn rename(from: &str, to: &str) -> Value {
    json!(["fs.move", { "from": from, "to": to }])
}

pub(crate) fn undo(run: Option<Pid>) -> Value {
    json!(["fs.undo", { "run": run }])
}

pub(crate) fn sleep(ms: u64) -> Value {
    json!(["clock.sleep", { "ms": ms }])
}

pub(crate) fn approve(title: &str) -> Value {
    json!(["human.approve", { "title": title, "text": "" }])
}

pub(crate) fn chat() -> Value {
    let message = json!({ "role": "user", "content": "hello" });
    json!(["llm.chat", { "request": { "messages": [message], "max_tokens": 5 } }])
}

pub(crate) fn spawn(calls: &[Value], may_change: bool) -> Value {
    let goal = script(calls);
    json!(["process.spawn", { "image": "script", "goal": goal, "may_change": may_change }])
}

/// Waits for the child that an earlier call started.
pub(crate) fn wait_for(call: usize) -> Value {
    json!(["process.wait", { "pid": format!("${call}") }])
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    hex::encode(sha2::Sha256::digest(bytes))
}
