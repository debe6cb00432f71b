//! What the kernel needs from the world, as traits that other rooms implement.
//!
//! A provider only executes: it decides nothing about rights, approvals or order. The kernel has
//! checked the capability and holds the approval before it calls [`Files::apply`].

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::audit::chain::{Head, Sealed};
use crate::context::text;
use crate::error::SysError;

mod sampling;

pub use sampling::Sampling;

/// SHA-256 of some bytes, as 64 lower-case hexadecimal digits.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Digest(pub String);

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
}

/// A regular file or folder inside a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileStat {
    /// Path within the workspace, `/`-separated.
    pub path: String,
    /// File or folder.
    pub kind: FileKind,
    /// Bytes of a file; 0 for a folder.
    pub bytes: u64,
    /// Modification time, Unix milliseconds.
    pub modified_ms: u64,
    /// Unix permission bits.
    pub mode: u32,
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Name within its folder (lossy where it is not UTF-8).
    pub name: String,
    /// File or folder; absent for links, devices, sockets, which cannot be opened.
    pub kind: Option<FileKind>,
    /// Bytes of a file.
    pub bytes: u64,
}

/// A folder's entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listing {
    /// Path within the workspace; empty for its root.
    pub path: String,
    /// Sorted by name.
    pub entries: Vec<Entry>,
    /// Entries left out because the limit was reached.
    pub left_out: u64,
}

/// Bytes of a file, or of a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileBytes {
    /// The bytes, at most the limit asked for.
    pub bytes: Vec<u8>,
    /// Bytes of the whole file.
    pub total: u64,
    /// SHA-256 of the whole file where all of it was read, else absent.
    pub sha256: Option<Digest>,
}

/// A change to a workspace that a process wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Write these bytes; parents are made.
    Write {
        /// Path within the workspace.
        path: String,
        /// The whole new content.
        bytes: Arc<Vec<u8>>,
    },
    /// Make a folder; parents are made.
    Mkdir {
        /// Path within the workspace.
        path: String,
    },
    /// Move a file or folder.
    Move {
        /// From, within the workspace.
        from: String,
        /// To, within the workspace.
        to: String,
    },
    /// Delete a file or an empty folder.
    Delete {
        /// Path within the workspace.
        path: String,
    },
    /// Put back an earlier version (for undo), with its permission bits.
    Restore {
        /// Path within the workspace.
        path: String,
        /// The version's content.
        sha256: Digest,
        /// Its permission bits.
        mode: u32,
    },
}

/// State of a path, exact enough to tell whether it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum PathState {
    /// Nothing is there.
    Absent,
    /// A regular file.
    File {
        /// SHA-256 of its bytes.
        sha256: Digest,
        /// Its size.
        bytes: u64,
        /// Its permission bits.
        mode: u32,
    },
    /// A folder.
    Folder {
        /// Its permission bits.
        mode: u32,
    },
}

impl PathState {
    /// Size where it is a file.
    pub fn bytes(&self) -> Option<u64> {
        match self {
            PathState::File { bytes, .. } => Some(*bytes),
            _ => None,
        }
    }
}

/// What a [`Change`] would do, looked at now. An approval is bound to all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Absolute path, links in the workspace's own path resolved.
    pub absolute: String,
    /// Path within the workspace, normalised.
    pub path: String,
    /// What is there now.
    pub before: PathState,
    /// What would be there afterwards.
    pub after: PathState,
    /// For a move: where it goes.
    pub target: Option<Target>,
    /// Folders that would be made first, outermost first, within the workspace.
    pub makes: Vec<String>,
}

/// The target of a move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Absolute path.
    pub absolute: String,
    /// Path within the workspace, normalised.
    pub path: String,
    /// What is there now.
    pub before: PathState,
}

/// A person's files, opened beneath a workspace only, with old bytes kept by content.
///
/// Every path argument is untrusted and relative to the workspace. Calls block; the kernel runs
/// them off its own threads.
pub trait Files: Send + Sync {
    /// Checks that a workspace is there and readable; its absolute path with links resolved.
    fn workspace(&self, root: &Path) -> Result<std::path::PathBuf, SysError>;
    /// Looks at one path.
    fn stat(&self, root: &Path, path: &str) -> Result<FileStat, SysError>;
    /// The state of a path, exact enough to tell whether it changed; absent is a state, not an
    /// error.
    fn state(&self, root: &Path, path: &str) -> Result<PathState, SysError>;
    /// Reads at most `limit` bytes from `offset`.
    fn read(&self, root: &Path, path: &str, offset: u64, limit: u64)
    -> Result<FileBytes, SysError>;
    /// Lists a folder, at most `limit` entries.
    fn list(&self, root: &Path, path: &str, limit: usize) -> Result<Listing, SysError>;
    /// What a change would do, and the bytes there now put into the version store (for a write,
    /// delete or replacing move), so that they are safe before anything happens.
    fn plan(&self, root: &Path, change: &Change) -> Result<Plan, SysError>;
    /// Carries out a change if the paths still stand as `plan` says ([`crate::Code::Conflict`]
    /// otherwise): whole or not at all, durable when it returns.
    fn apply(&self, root: &Path, change: &Change, plan: &Plan) -> Result<(), SysError>;
    /// Bytes of a kept version, at most `limit`.
    fn version(&self, sha256: &Digest, limit: u64) -> Result<Vec<u8>, SysError>;
}

/// Who says a message of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions.
    System,
    /// The person, or data on their behalf.
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: String,
}

/// The form that generated text must have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "form", rename_all = "snake_case")]
pub enum Constraint {
    /// JSON under a schema.
    JsonSchema {
        /// The schema.
        schema: serde_json::Value,
    },
    /// Text that matches a regular expression as a whole.
    Regex {
        /// The expression.
        pattern: String,
    },
    /// Text of a grammar in Lark's notation.
    Lark {
        /// The grammar.
        grammar: String,
    },
}

/// A request to a core.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChatRequest {
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// Text the assistant's turn begins with, already said.
    #[serde(default)]
    pub prefix: String,
    /// Tokens to generate at most.
    pub max_tokens: u32,
    /// How tokens are chosen.
    #[serde(default)]
    pub sampling: Sampling,
    /// Texts that end the generation and are not part of it.
    #[serde(default)]
    pub stop: Vec<String>,
    /// The form the text must have.
    #[serde(default)]
    pub constraint: Option<Constraint>,
    /// Width of the search for the likeliest text, 1 to 8; at 1 token follows token. A core that
    /// cannot search refuses more than 1.
    #[serde(default = "one")]
    pub beams: u32,
}

fn one() -> u32 {
    1
}

/// Why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model ended its turn, a stop text came, or the constraint was complete.
    Stop,
    /// The limit of tokens was reached.
    Length,
    /// It was cancelled.
    Cancelled,
}

/// What a core generated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChatReply {
    /// The text, without the prefix.
    pub text: String,
    /// Why it ended.
    pub finish: Finish,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens of the prompt that were still in the core's cache.
    pub cached_tokens: u32,
    /// Tokens generated.
    pub tokens: u32,
}

/// What a core's tokens cost, in millionths of a currency for a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// Tokens of a prompt.
    pub prompt: u64,
    /// Tokens generated.
    pub generated: u64,
}

impl Price {
    const PER: u64 = 1_000_000;

    /// Millionths of the currency for so many tokens, rounded up.
    pub fn of(self, prompt: u64, generated: u64) -> u64 {
        let prompt = self.prompt.saturating_mul(prompt);
        let generated = self.generated.saturating_mul(generated);
        prompt.saturating_add(generated).div_ceil(Self::PER)
    }

    /// How many tokens can be generated for `micros` after the prompt; `None` where there is not
    /// enough for one.
    pub fn generated_for(self, prompt: u64, micros: u64) -> Option<u64> {
        let rest = micros
            .saturating_mul(Self::PER)
            .checked_sub(self.prompt.saturating_mul(prompt))?;
        let most = rest.checked_div(self.generated).unwrap_or(u64::MAX);
        (most > 0).then_some(most)
    }
}

/// What a core is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreInfo {
    /// Name of the model.
    pub model: String,
    /// Tokens of context.
    pub context: u32,
    /// Whether it runs on this machine.
    pub local: bool,
}

/// Asks running work to stop. Cheap to clone; once set it stays set.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Default for Cancel {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Cancel {
    /// Asks for the stop.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Whether the stop was asked for.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the stop is asked for.
    pub async fn cancelled(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let mut set = self.0.subscribe();
        let _ = set.wait_for(|set| *set).await;
    }
}

/// Called with each piece of generated text as it comes.
pub type TokenSink = Box<dyn Fn(&str) + Send + Sync>;

/// How far a generation has come when it stands still.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// The quantum is used up, or it was asked to yield.
    Paused,
    /// It has ended.
    Done(ChatReply),
}

/// A generation that can stand still and go on, owned by whoever runs it.
#[async_trait]
pub trait Generation: Send {
    /// Generates until `quantum` more tokens (`None`: to the end), the end, `yield_now` or
    /// `cancel`. Up to 128 tokens of the prompt, read together, count as one token of a quantum.
    ///
    /// Text goes to `sink` as it comes. After [`Progress::Done`] it cannot be run again.
    async fn run(
        &mut self,
        quantum: Option<u32>,
        sink: &TokenSink,
        yield_now: &Cancel,
        cancel: &Cancel,
    ) -> Result<Progress, SysError>;
    /// Bytes of memory that it holds while it waits.
    fn resident_bytes(&self) -> u64;
    /// The whole state, for [`LlmCore::restore`].
    async fn snapshot(&mut self) -> Result<Vec<u8>, SysError>;
}

/// How a core's generations go on after they stood still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumption {
    /// With the same token ids as without the pause, and at no cost: the state is kept.
    Exact,
    /// From the decoded text, as the beginning of the assistant's turn ([`ChatRequest::prefix`]).
    /// The text may be cut into other tokens than it was made of, and the core reads everything
    /// anew in every slice.
    Prefix,
    /// By a new request that is told what was already said; a model may then word the joint
    /// differently, or say something twice. Costs what [`Resumption::Prefix`] costs.
    Retold,
}

/// A language model that answers.
#[async_trait]
pub trait LlmCore: Send + Sync + 'static {
    /// What it is, without loading it.
    fn info(&self) -> CoreInfo;
    /// What its tokens cost; nothing, where it runs on this machine.
    fn price(&self) -> Price {
        Price::default()
    }
    /// Generations that it serves well at once.
    fn at_once(&self) -> usize {
        1
    }
    /// How its generations go on after a pause.
    fn resumption(&self) -> Resumption {
        Resumption::Prefix
    }
    /// A generation that can pause. It does nothing before it is run.
    ///
    /// By default it goes by text, for cores that give nothing else: each slice is a
    /// [`chat`](Self::chat) of its own that goes on as [`resumption`](Self::resumption) says. A
    /// constrained text and a search with beams cannot be taken up from their text; they run
    /// whole, whatever the quantum. A core that keeps a generation's state overrides this,
    /// [`restore`](Self::restore) and [`resumption`](Self::resumption) together.
    async fn begin(self: Arc<Self>, request: ChatRequest) -> Result<Box<dyn Generation>, SysError> {
        Ok(Box::new(text::TextGeneration::new(self, request)))
    }
    /// The generation of `request` as [`Generation::snapshot`] gave it. A snapshot that is broken,
    /// or of another request or model, is refused.
    async fn restore(
        self: Arc<Self>,
        request: ChatRequest,
        snapshot: Vec<u8>,
    ) -> Result<Box<dyn Generation>, SysError> {
        let generation = text::TextGeneration::restore(self, request, &snapshot)?;
        Ok(Box::new(generation))
    }
    /// Generates the assistant's turn. Returns within 100 ms of a cancel.
    async fn chat(
        &self,
        request: ChatRequest,
        sink: TokenSink,
        cancel: Cancel,
    ) -> Result<ChatReply, SysError>;
    /// Log-likelihood (nats, summed over tokens) of each choice as the assistant's turn after
    /// `messages` and `prefix`, in order.
    async fn score(
        &self,
        messages: Vec<Message>,
        prefix: String,
        choices: Vec<String>,
        cancel: Cancel,
    ) -> Result<Vec<f64>, SysError>;
    /// Tokens that `text` takes by this core's own tokenizer.
    async fn count_tokens(&self, text: String) -> Result<u32, SysError>;
}

/// Keeps the state of generations that wait, outside memory. Calls block, except
/// [`remove`](Self::remove), which is quick. Nothing of it is of use to a later run of the program:
/// it begins empty each time.
pub trait Snapshots: Send + Sync {
    /// Keeps a snapshot under a number that is new.
    fn put(&self, number: u64, snapshot: Vec<u8>) -> Result<(), SysError>;
    /// Gives a snapshot back, exactly, and forgets it.
    fn take(&self, number: u64) -> Result<Vec<u8>, SysError>;
    /// Forgets a snapshot, where it is there.
    fn remove(&self, number: u64);
}

/// Time, so that tests can set it.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Unix time in milliseconds.
    fn now_ms(&self) -> u64;
    /// Milliseconds of a clock that never goes back (since an arbitrary start).
    fn monotonic_ms(&self) -> u64;
    /// Waits that long.
    async fn sleep_ms(&self, ms: u64);
    /// Milliseconds since the machine was started, its sleep counted in: what leases are measured
    /// by. Without [`Clock::boot`], since an arbitrary start of this clock.
    fn steady_ms(&self) -> u64 {
        self.monotonic_ms()
    }
    /// Which start of the machine it counts from. Where that is not known, leases end with the
    /// program.
    fn boot(&self) -> Option<String> {
        None
    }
}

/// Vouches for where the journal ends, with a key and a memory outside the database. Calls block.
pub trait Witness: Send + Sync {
    /// Signs a head and remembers it in the place of the one before it; nothing where there is no
    /// key.
    fn seal(&self, head: &Head) -> Result<Option<Sealed>, SysError>;
    /// The head that was remembered last.
    fn last(&self) -> Result<Option<Sealed>, SysError>;
    /// Whether a signed head is this witness's.
    fn judge(&self, sealed: &Sealed) -> Judgement;
}

/// What a [`Witness`] says to a signed head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// It signed this.
    Genuine,
    /// Another key did.
    OtherKey,
    /// The signature does not fit.
    Forged,
}

/// Signs nothing and remembers nothing: the chain is kept, but a removed tail is not seen.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoWitness;

impl Witness for NoWitness {
    fn seal(&self, _: &Head) -> Result<Option<Sealed>, SysError> {
        Ok(None)
    }

    fn last(&self) -> Result<Option<Sealed>, SysError> {
        Ok(None)
    }

    fn judge(&self, _: &Sealed) -> Judgement {
        Judgement::OtherKey
    }
}
