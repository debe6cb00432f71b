//! A kernel with stand-ins for files, model and clock, and a person who answers by a script.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};
use steward_kernel::capability::workspace_defaults;

use steward_kernel::provider::{
    Cancel, Change, ChatReply, ChatRequest, Clock, CoreInfo, Digest, Entry, FileBytes, FileKind,
    FileStat, Files, Finish, Listing, LlmCore, Message, PathState, Plan, Target, TokenSink,
};
use steward_kernel::syscall::Exit;
use steward_kernel::{Code, Kernel, KernelEvent, Providers, Submission, SysError};

/// Files in memory: enough of a file system for the loop, with no confinement of its own but the
/// refusal of `..` and absolute paths.
#[derive(Default)]
pub(crate) struct MemoryFiles {
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    folders: Mutex<BTreeSet<String>>,
    versions: Mutex<HashMap<Digest, Vec<u8>>>,
}

fn digest(bytes: &[u8]) -> Digest {
    Digest(hex::encode(Sha256::digest(bytes)))
}

fn inside(path: &str) -> Result<String, SysError> {
    if path.starts_with('/') || path.split('/').any(|part| part == "..") {
        let what = format!("`{path}` leads out of the workspace");
        return Err(SysError::new(Code::Confined, what));
    }
    Ok(path.trim_matches('/').to_owned())
}

fn not_there(path: &str) -> SysError {
    SysError::new(Code::NotFound, format!("`{path}` is not there"))
}

impl MemoryFiles {
    fn of(files: &[(&str, &str)]) -> Self {
        let memory = Self::default();
        for (path, text) in files {
            memory.put(path, text.as_bytes().to_vec());
        }
        memory
    }

    fn put(&self, path: &str, bytes: Vec<u8>) {
        for (at, _) in path.match_indices('/') {
            self.folders.lock().unwrap().insert(path[..at].to_owned());
        }
        self.files.lock().unwrap().insert(path.to_owned(), bytes);
    }

    fn state_of(&self, path: &str) -> PathState {
        if let Some(bytes) = self.files.lock().unwrap().get(path) {
            self.versions
                .lock()
                .unwrap()
                .insert(digest(bytes), bytes.clone());
            return PathState::File {
                sha256: digest(bytes),
                bytes: bytes.len() as u64,
                mode: 0o644,
            };
        }
        match path.is_empty() || self.folders.lock().unwrap().contains(path) {
            true => PathState::Folder { mode: 0o755 },
            false => PathState::Absent,
        }
    }

    /// Every file with its text.
    pub(crate) fn all(&self) -> BTreeMap<String, String> {
        let files = self.files.lock().unwrap();
        files
            .iter()
            .map(|(p, b)| (p.clone(), String::from_utf8_lossy(b).into_owned()))
            .collect()
    }
}

impl Files for MemoryFiles {
    fn workspace(&self, root: &Path) -> Result<PathBuf, SysError> {
        Ok(root.to_owned())
    }

    fn stat(&self, _: &Path, path: &str) -> Result<FileStat, SysError> {
        let path = inside(path)?;
        let (kind, bytes) = match self.state_of(&path) {
            PathState::File { bytes, .. } => (FileKind::File, bytes),
            PathState::Folder { .. } => (FileKind::Folder, 0),
            PathState::Absent => return Err(not_there(&path)),
        };
        Ok(FileStat {
            path,
            kind,
            bytes,
            modified_ms: 0,
            mode: 0o644,
        })
    }

    fn state(&self, _: &Path, path: &str) -> Result<PathState, SysError> {
        Ok(self.state_of(&inside(path)?))
    }

    fn read(&self, _: &Path, path: &str, at: u64, limit: u64) -> Result<FileBytes, SysError> {
        let path = inside(path)?;
        let files = self.files.lock().unwrap();
        let all = files.get(&path).ok_or_else(|| not_there(&path))?;
        let bytes: Vec<u8> = all
            .iter()
            .skip(at as usize)
            .take(limit as usize)
            .copied()
            .collect();
        let sha256 = (bytes.len() == all.len()).then(|| digest(all));
        Ok(FileBytes {
            bytes,
            total: all.len() as u64,
            sha256,
        })
    }

    fn list(&self, _: &Path, path: &str, limit: usize) -> Result<Listing, SysError> {
        let path = inside(path)?;
        if !matches!(self.state_of(&path), PathState::Folder { .. }) {
            return Err(not_there(&path));
        }
        let below = |full: &str| -> Option<String> {
            let rest = match path.is_empty() {
                true => full,
                false => full.strip_prefix(&path)?.strip_prefix('/')?,
            };
            (!rest.is_empty() && !rest.contains('/')).then(|| rest.to_owned())
        };
        let mut entries = Vec::new();
        for (full, bytes) in self.files.lock().unwrap().iter() {
            let name = below(full);
            entries.extend(name.map(|name| Entry {
                name,
                kind: Some(FileKind::File),
                bytes: bytes.len() as u64,
            }));
        }
        for full in self.folders.lock().unwrap().iter() {
            let name = below(full);
            entries.extend(name.map(|name| Entry {
                name,
                kind: Some(FileKind::Folder),
                bytes: 0,
            }));
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        let left_out = entries.len().saturating_sub(limit) as u64;
        entries.truncate(limit);
        Ok(Listing {
            path,
            entries,
            left_out,
        })
    }

    fn plan(&self, root: &Path, change: &Change) -> Result<Plan, SysError> {
        let (path, to) = match change {
            Change::Write { path, .. }
            | Change::Mkdir { path }
            | Change::Delete { path }
            | Change::Restore { path, .. } => (inside(path)?, None),
            Change::Move { from, to } => (inside(from)?, Some(inside(to)?)),
        };
        let before = self.state_of(&path);
        if before == PathState::Absent
            && matches!(change, Change::Delete { .. } | Change::Move { .. })
        {
            return Err(not_there(&path));
        }
        let after = match change {
            Change::Write { bytes, .. } => PathState::File {
                sha256: digest(bytes),
                bytes: bytes.len() as u64,
                mode: 0o644,
            },
            Change::Mkdir { .. } => PathState::Folder { mode: 0o755 },
            Change::Restore { sha256, mode, .. } => PathState::File {
                sha256: sha256.clone(),
                bytes: 0,
                mode: *mode,
            },
            Change::Delete { .. } | Change::Move { .. } => PathState::Absent,
        };
        let absolute = |path: &str| root.join(path).to_string_lossy().into_owned();
        let target = to.map(|path| Target {
            absolute: absolute(&path),
            before: self.state_of(&path),
            path,
        });
        Ok(Plan {
            absolute: absolute(&path),
            path,
            before,
            after,
            target,
            makes: Vec::new(),
        })
    }

    fn apply(&self, _: &Path, change: &Change, plan: &Plan) -> Result<(), SysError> {
        match change {
            Change::Write { bytes, .. } => self.put(&plan.path, bytes.to_vec()),
            Change::Mkdir { .. } => {
                self.folders.lock().unwrap().insert(plan.path.clone());
            }
            Change::Delete { .. } => {
                self.files.lock().unwrap().remove(&plan.path);
            }
            Change::Move { .. } => {
                let moved = self.files.lock().unwrap().remove(&plan.path);
                let target = plan.target.as_ref().map(|target| target.path.clone());
                self.put(&target.unwrap_or_default(), moved.unwrap_or_default());
            }
            Change::Restore { sha256, .. } => {
                let bytes = self.versions.lock().unwrap().get(sha256).cloned();
                self.put(&plan.path, bytes.unwrap_or_default());
            }
        }
        Ok(())
    }

    fn version(&self, sha256: &Digest, _: u64) -> Result<Vec<u8>, SysError> {
        self.versions
            .lock()
            .unwrap()
            .get(sha256)
            .cloned()
            .ok_or_else(|| not_there(&sha256.0))
    }
}

/// A model that says what it was given to say, in order, and prefers answers with a given word.
#[derive(Default)]
pub(crate) struct ScriptedCore {
    pub(crate) replies: Mutex<VecDeque<String>>,
    pub(crate) prefers: String,
    pub(crate) prompts: Mutex<Vec<String>>,
}

#[async_trait]
impl LlmCore for ScriptedCore {
    fn info(&self) -> CoreInfo {
        CoreInfo {
            model: "scripted".to_owned(),
            context: 2_048,
            local: true,
        }
    }

    async fn chat(
        &self,
        request: ChatRequest,
        sink: TokenSink,
        _: Cancel,
    ) -> Result<ChatReply, SysError> {
        let said: Vec<String> = request.messages.into_iter().map(|m| m.content).collect();
        self.prompts.lock().unwrap().push(said.join("\n"));
        let text = self.replies.lock().unwrap().pop_front().ok_or_else(|| {
            SysError::new(
                Code::Unavailable,
                "the scripted model has nothing more to say",
            )
        })?;
        sink(&text);
        Ok(ChatReply {
            text,
            finish: Finish::Stop,
            prompt_tokens: 1,
            cached_tokens: 0,
            tokens: 1,
        })
    }

    async fn score(
        &self,
        messages: Vec<Message>,
        _: String,
        choices: Vec<String>,
        _: Cancel,
    ) -> Result<Vec<f64>, SysError> {
        let asked = messages
            .iter()
            .all(|m| !m.content.starts_with("Request: \n"));
        let liked = |choice: &String| asked && choice.contains(&self.prefers);
        Ok(choices
            .iter()
            .map(|choice| if liked(choice) { -1.0 } else { -9.0 })
            .collect())
    }

    async fn count_tokens(&self, text: String) -> Result<u32, SysError> {
        Ok(u32::try_from(text.len()).unwrap_or(u32::MAX))
    }
}

struct CountingClock(std::sync::atomic::AtomicU64);

#[async_trait]
impl Clock for CountingClock {
    fn now_ms(&self) -> u64 {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }

    fn monotonic_ms(&self) -> u64 {
        self.now_ms()
    }

    async fn sleep_ms(&self, _: u64) {}
}

/// Compiled once: there are hundreds of wordings.
static IMAGES: LazyLock<steward_agents::Images> =
    LazyLock::new(|| steward_agents::registry().unwrap());

/// A running kernel, and the person.
pub(crate) struct House {
    pub(crate) kernel: Kernel,
    pub(crate) files: Arc<MemoryFiles>,
    pub(crate) core: Arc<ScriptedCore>,
    /// Whether the person says yes.
    pub(crate) yes: bool,
    /// What the person answers when asked.
    pub(crate) answer: String,
    folder: tempfile::TempDir,
    last: Mutex<Option<u64>>,
}

/// How a request ended, and what was asked meanwhile: `action path`, `question [choices]`.
pub(crate) struct Done {
    pub(crate) exit: Exit,
    pub(crate) asked: Vec<String>,
}

impl House {
    pub(crate) fn new(files: &[(&str, &str)], core: ScriptedCore) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (files, core) = (Arc::new(MemoryFiles::of(files)), Arc::new(core));
        let providers = Providers::new(
            Arc::clone(&files) as Arc<dyn Files>,
            Arc::clone(&core) as Arc<dyn LlmCore>,
            Arc::new(CountingClock(1.into())),
        );
        let images = Arc::new(IMAGES.clone());
        let kernel = Kernel::open(&folder.path().join("journal.db"), providers, images).unwrap();
        let (yes, answer) = (true, String::new());
        Self {
            kernel,
            files,
            core,
            yes,
            answer,
            folder,
            last: Mutex::new(None),
        }
    }

    /// Makes a request that goes on from the one before it, and waits for its end.
    pub(crate) async fn ask(&self, request: &str) -> Done {
        let mut events = self.kernel.subscribe();
        let after = *self.last.lock().unwrap();
        let submission = Submission {
            image: "base".to_owned(),
            goal: request.to_owned(),
            workspace: self.folder.path().to_owned(),
            grants: workspace_defaults(self.folder.path()),
            after,
            budget: steward_kernel::budget::Budget::default(),
        };
        let process = self.kernel.submit(submission).await.unwrap();
        *self.last.lock().unwrap() = Some(process.run);
        let mut asked = Vec::new();
        loop {
            match events.recv().await.unwrap() {
                KernelEvent::Approval(approval) => {
                    asked.push(format!("{} {}", approval.action, approval.relative));
                    let digest = approval.digest.0;
                    self.kernel
                        .decide(approval.id, self.yes, &digest, "test")
                        .await
                        .unwrap();
                }
                KernelEvent::Question(question) => {
                    asked.push(format!("question {:?}", question.choices));
                    self.kernel
                        .answer(question.id, &self.answer, "test")
                        .await
                        .unwrap();
                }
                KernelEvent::Ended {
                    process: ended,
                    exit,
                } if ended.pid == process.pid => {
                    return Done { exit, asked };
                }
                _ => {}
            }
        }
    }
}
