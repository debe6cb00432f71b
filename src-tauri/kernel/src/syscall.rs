//! The system calls: one typed definition each, which drives the Rust call, the JSON schema and
//! the call by name.

mod files;
mod outside;
mod person;
mod process;
mod rights;

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use self::files::*;
pub use self::outside::*;
pub use self::person::*;
pub use self::rights::*;
use crate::capability::Explanation;
use crate::checkpoint::{
    CheckpointCreate, CheckpointDetail, CheckpointDiff, CheckpointDiffer, CheckpointFork,
    CheckpointInfo, CheckpointInspect, CheckpointList, CheckpointReplay, CheckpointRestore,
    Checkpointed, Replayed, Restored,
};
use crate::error::SysError;
pub use crate::image::call::*;
pub use crate::object::call::*;
use crate::object::compose::Context;
use crate::object::{Link, ObjectInfo};
use crate::outside::{Fetched, Ran};
use crate::process::{Pid, ProcessInfo, Signal};
use crate::provider::{ChatReply, ChatRequest, FileStat, Listing, Message};

macro_rules! modules {
    ($($(#[$doc:meta])* $module:ident,)*) => {
        pub use process::{
    ChildEnded, Forked, ProcessChdir, ProcessExec, ProcessFork, ProcessReceive, ProcessSend,
    ProcessSpawn, ProcessStatus, ProcessWaitAny, Received,
};

/// The module whose queue a call waits in.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum Module {
            $($(#[$doc])* $module,)*
        }

        impl Module {
            /// Every module, in order.
            pub const ALL: &'static [Module] = &[$(Module::$module),*];
        }
    };
}

modules! {
    /// Cores.
    Llm,
    /// Files.
    Fs,
    /// The person.
    Human,
    /// Processes.
    Process,
    /// Time and chance.
    Clock,
    /// Objects.
    Object,
    /// Images.
    Image,
    /// Other programs.
    Shell,
    /// The network.
    Net,
}

/// What a call does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Looks only.
    Read,
    /// Changes the kernel's own state only.
    Internal,
    /// Changes a person's files, or something outside; asks unless a right allows it.
    Irreversible,
}

/// How a call is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// Not at all: it has no result and no effect.
    Nothing,
    /// Once, when it has ended: it looks and is soon done.
    Outcome,
    /// When it begins and when it has ended, a little later than it happens: it looks and takes its
    /// time.
    Later,
    /// Step by step, each on disk before the next.
    Steps,
}

/// One system call: its arguments are the type's fields.
pub trait Syscall:
    Serialize + DeserializeOwned + JsonSchema + Clone + Send + Sync + 'static
{
    /// What it gives back.
    type Output: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    /// Its name, `module.verb`.
    const NAME: &'static str;
    /// The module whose queue it waits in.
    const MODULE: Module;
    /// What it does to the world.
    const EFFECT: Effect;
    /// How it is written down.
    const RECORD: Record;
    /// One sentence for people and models.
    const DOC: &'static str;
    /// What this call is about, in a few words, for a step's title. Untrusted; escaped by whoever
    /// shows it.
    fn title(&self) -> Cow<'static, str>;
}

macro_rules! syscalls {
    ($($(#[$doc:meta])* $ty:ident => $out:ty, $name:literal, $module:ident, $effect:ident, $record:ident, $help:literal, |$it:ident| $title:expr;)*) => {
        $(
            impl Syscall for $ty {
                type Output = $out;
                const NAME: &'static str = $name;
                const MODULE: Module = Module::$module;
                const EFFECT: Effect = Effect::$effect;
                const RECORD: Record = Record::$record;
                const DOC: &'static str = $help;
                fn title(&self) -> Cow<'static, str> {
                    let $it = self;
                    $title.into()
                }
            }
        )*

        /// Every system call, in a fixed order.
        pub fn catalogue() -> Vec<SyscallInfo> {
            vec![$(SyscallInfo {
                name: $name,
                module: Module::$module,
                effect: Effect::$effect,
                doc: $help,
                input: schemars::schema_for!($ty).into(),
                output: schemars::schema_for!($out).into(),
            }),*]
        }

        /// What a call of this name does to the world.
        pub(crate) fn effect_of(name: &str) -> Option<Effect> {
            match name {
                $($name => Some(Effect::$effect),)*
                _ => None,
            }
        }

        /// Calls a system call by name with JSON arguments.
        pub(crate) async fn call_by_name(
            sys: &crate::Sys,
            name: &str,
            args: serde_json::Value,
        ) -> Result<serde_json::Value, SysError> {
            match name {
                $($name => {
                    let call: $ty = serde_json::from_value(args).map_err(|e| {
                        SysError::new(crate::Code::Invalid, format!("arguments of `{name}` do not fit: {e}"))
                            .hint("send arguments of the call's JSON schema")
                    })?;
                    // One call's future is not as large as the largest of all.
                    let output = Box::pin(sys.call(call)).await?;
                    serde_json::to_value(output).map_err(|e| SysError::new(crate::Code::Internal, e.to_string()))
                })*
                _ => Err(SysError::new(crate::Code::NotFound, format!("there is no system call `{name}`"))
                    .hint("use a name from the catalogue of system calls")),
            }
        }
    };
}

/// Description of a system call.
#[derive(Debug, Clone, Serialize)]
pub struct SyscallInfo {
    /// Its name.
    pub name: &'static str,
    /// Its module.
    pub module: Module,
    /// What it does to the world.
    pub effect: Effect,
    /// One sentence.
    pub doc: &'static str,
    /// JSON schema of its arguments.
    pub input: serde_json::Value,
    /// JSON schema of its result.
    pub output: serde_json::Value,
}

syscalls! {
    LlmChat => ChatReply, "llm.chat", Llm, Read, Later, "generates the assistant's turn of a conversation", |c| c.purpose.clone();
    LlmScore => Vec<f64>, "llm.score", Llm, Read, Later, "weighs given answers by their likelihood", |c| c.purpose.clone();
    FsRead => FileText, "fs.read", Fs, Read, Outcome, "reads a text file of the workspace", |c| format!("read {}", c.path);
    FsList => Listing, "fs.list", Fs, Read, Outcome, "lists a folder of the workspace", |c| format!("list {}", shown_folder(&c.path));
    FsStat => FileStat, "fs.stat", Fs, Read, Outcome, "looks at a path of the workspace", |c| format!("look at {}", shown_folder(&c.path));
    FsWrite => Written, "fs.write", Fs, Irreversible, Steps, "writes a whole text file, making it where it is not there", |c| format!("write {}", c.path);
    FsMkdir => Changed, "fs.mkdir", Fs, Irreversible, Steps, "makes a folder", |c| format!("make folder {}", c.path);
    FsMove => Changed, "fs.move", Fs, Irreversible, Steps, "moves or renames a file or folder", |c| format!("move {} to {}", c.from, c.to);
    FsDelete => Changed, "fs.delete", Fs, Irreversible, Steps, "deletes a file or an empty folder", |c| format!("delete {}", c.path);
    FsUndo => Undone, "fs.undo", Fs, Irreversible, Steps, "puts back the files that a run changed", |c| match c.run { Some(run) => format!("undo run {run}"), None => "undo the last run".to_owned() };
    HumanAsk => String, "human.ask", Human, Internal, Steps, "asks the person and waits for the answer", |c| format!("ask: {}", c.text);
    HumanTell => (), "human.tell", Human, Internal, Steps, "tells the person something", |c| format!("tell: {}", c.text);
    HumanApprove => bool, "human.approve", Human, Internal, Steps, "asks the person for a yes to a step described in words", |c| format!("ask for a yes: {}", c.title);
    CapabilityList => Vec<CapabilityInfo>, "capability.list", Process, Read, Outcome, "lists the capabilities of the calling process or of one below it", |_c| "list capabilities";
    CapabilityInspect => CapabilityInfo, "capability.inspect", Process, Read, Outcome, "tells about one capability", |c| format!("look at capability {}", c.id);
    CapabilityExplain => Explanation, "capability.explain", Process, Read, Outcome, "tells what would be said to a call, and why", |c| format!("explain {}", c.call);
    CapabilityRequest => u64, "capability.request", Human, Internal, Steps, "asks the person for a right; a yes gives it", |c| format!("ask for a right: {}", c.why);
    CapabilityDelegate => Vec<u64>, "capability.delegate", Process, Internal, Steps, "passes rights on to another process of this run, never more than are held", |c| format!("pass rights on to process {}", c.to);
    CapabilityRevoke => bool, "capability.revoke", Process, Internal, Steps, "takes a capability back, and all that were derived from it", |c| format!("take back capability {}", c.id);
    AccessAddPrivilege => Vec<u64>, "access.add_privilege", Process, Internal, Steps, "lets a process of this run reach the objects and messages of the caller or of one below it", |c| format!("let process {} reach process {}", c.subject, c.target);
    AccessCheck => Privilege, "access.check", Process, Read, Outcome, "tells whether a process may reach the objects and messages of another", |c| format!("check whether process {} may reach process {}", c.subject, c.target);
    ProcessSpawn => Pid, "process.spawn", Process, Internal, Steps, "starts a child with a goal of its own", |c| format!("start {}: {}", c.image, c.goal);
    ProcessWait => Exit, "process.wait", Process, Internal, Steps, "waits until a child has ended", |c| format!("wait for process {}", c.pid);
    ProcessExit => (), "process.exit", Process, Internal, Steps, "ends the calling process with its answer", |_c| "answer";
    ProcessList => Vec<ProcessInfo>, "process.list", Process, Read, Outcome, "lists the processes of this run", |_c| "list processes";
    ProcessFork => Forked, "process.fork", Process, Internal, Steps, "makes a second process that goes on from here", |c| format!("fork, {}: {}", c.mode.as_str(), c.task);
    ProcessExec => (), "process.exec", Process, Internal, Steps, "goes on as another image with another goal", |c| format!("go on as {}: {}", c.image, c.goal);
    ProcessWaitAny => ChildEnded, "process.wait_any", Process, Internal, Steps, "waits until one of some children has ended", |c| format!("wait for one of {} processes", c.pids.len());
    ProcessChdir => Changed, "process.chdir", Process, Internal, Steps, "goes to another folder of the workspace", |c| c.title();
    ProcessStatus => (), "process.status", Process, Internal, Steps, "says in a few words what the process does", |_c| "";
    ProcessSend => (), "process.send", Process, Internal, Steps, "sends a message to another process", |c| format!("write to process {}", c.to);
    ProcessReceive => Option<Received>, "process.receive", Process, Internal, Steps, "waits for a message", |_c| "wait for a message";
    ProcessYield => (), "process.yield", Process, Internal, Nothing, "lets others have their turn", |_c| "";
    ProcessSignal => (), "process.signal", Process, Internal, Steps, "sends a signal to a child", |c| format!("signal process {}", c.pid);
    ProcessMerge => Vec<ObjectInfo>, "process.merge", Process, Internal, Steps, "takes over objects of a child", |c| format!("take over from process {}", c.child);
    ObjectCreate => ObjectInfo, "object.create", Object, Internal, Steps, "makes an object in a namespace", |c| format!("note: {}", c.kind.counted(1));
    ObjectRead => ObjectText, "object.read", Object, Read, Outcome, "reads an object that is a text", |c| format!("recall {}", c.object);
    ObjectInspect => ObjectHistory, "object.inspect", Object, Read, Outcome, "tells how an object came to be", |c| format!("look at {}", c.object);
    ObjectUpdate => ObjectInfo, "object.update", Object, Internal, Steps, "gives an object its next version", |c| format!("change {}", c.object);
    ObjectDelete => (), "object.delete", Object, Internal, Steps, "takes an object away", |c| format!("forget {}", c.object);
    ObjectList => Objects, "object.list", Object, Read, Outcome, "lists the objects of a namespace", |_c| "list objects";
    ObjectLink => Link, "object.link", Object, Internal, Steps, "ties an object to another", |c| format!("link {} to {}", c.from, c.to);
    ObjectDiff => Difference, "object.diff", Object, Read, Outcome, "compares two versions or objects", |c| format!("compare {}", c.object);
    ObjectKeep => ObjectInfo, "object.keep", Object, Internal, Steps, "lets an object stay when its process ends", |c| format!("keep {}", c.object);
    ObjectImport => ObjectInfo, "object.import", Object, Internal, Steps, "makes an object of a file, without telling what is in it", |c| format!("take in {}", c.path);
    ObjectExport => Written, "object.export", Fs, Irreversible, Steps, "writes an object to a file, without telling what is in it", |c| format!("write {} from {}", c.path, c.object);
    ObjectView => ViewInfo, "object.view", Object, Internal, Steps, "keeps a list of objects as what a model is to be shown", |_c| "choose what to show";
    ObjectMaterialize => Context, "object.materialize", Object, Read, Outcome, "makes of objects a text for a model, within a budget of tokens", |_c| "put objects into a context";
    ImageList => Vec<ImageInfo>, "image.list", Image, Read, Outcome, "lists the images that processes start from", |_c| "list images";
    ImageInspect => ImageDetail, "image.inspect", Image, Read, Outcome, "tells what an image says", |c| format!("look at image {}", c.name);
    ImageRegister => ImageInfo, "image.register", Image, Internal, Steps, "registers an image, or a new version of one", |_c| "register an image";
    ImageCommit => ImageInfo, "image.commit", Image, Internal, Steps, "makes an image of a checkpoint: what its process was and remembered", |c| format!("make image {} of checkpoint {}", c.name, c.checkpoint);
    ShellRun => Ran, "shell.run", Shell, Irreversible, Steps, "runs a program, confined, by its argument vector", |c| format!("run {}", c.argv.join(" "));
    NetFetch => Fetched, "net.fetch", Net, Irreversible, Steps, "makes a request to a host", |c| format!("{} {}", c.method, c.url);
    RandomBytes => String, "random.bytes", Clock, Read, Outcome, "random bytes, in hexadecimal digits", |_c| "";
    CheckpointCreate => Checkpointed, "checkpoint.create", Process, Internal, Steps, "makes a point in the history that the process can be taken back to", |c| format!("checkpoint: {}", c.label);
    CheckpointList => Vec<CheckpointInfo>, "checkpoint.list", Process, Read, Outcome, "lists the checkpoints of this run", |_c| "list checkpoints";
    CheckpointInspect => CheckpointDetail, "checkpoint.inspect", Process, Read, Outcome, "tells what is in a checkpoint, and what was done outside since", |c| format!("look at checkpoint {}", c.id);
    CheckpointDiffer => CheckpointDiff, "checkpoint.diff", Process, Read, Outcome, "tells what lies between two checkpoints", |c| format!("compare checkpoints {} and {}", c.from, c.to);
    CheckpointRestore => Restored, "checkpoint.restore", Process, Internal, Steps, "takes the process, or a child, back to a checkpoint", |c| format!("go back to checkpoint {}", c.id);
    CheckpointFork => Pid, "checkpoint.fork", Process, Internal, Steps, "makes a process that goes on from a checkpoint", |c| format!("fork from checkpoint {}: {}", c.id, c.task);
    CheckpointReplay => Replayed, "checkpoint.replay", Process, Read, Later, "runs a checkpoint's program on the recorded answers, without any effect", |c| format!("replay checkpoint {}", c.id);
    ClockNow => u64, "clock.now", Clock, Read, Outcome, "Unix time in milliseconds", |_c| "look at the clock";
    ClockSleep => (), "clock.sleep", Clock, Internal, Steps, "waits a number of milliseconds", |c| format!("wait {} ms", c.ms);
}

fn shown_folder(path: &str) -> &str {
    if path.is_empty() || path == "." {
        "the workspace"
    } else {
        path
    }
}

/// Arguments of `llm.chat`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LlmChat {
    /// The request to the core.
    pub request: ChatRequest,
    /// Whether the person sees the text as it comes (it is part of the answer).
    #[serde(default)]
    pub visible: bool,
    /// What it is for, in a few words.
    #[serde(default)]
    pub purpose: String,
}

/// Arguments of `llm.score`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LlmScore {
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// Text the assistant's turn begins with.
    #[serde(default)]
    pub prefix: String,
    /// The answers to weigh (1 to 64).
    pub choices: Vec<String>,
    /// What it is for, in a few words.
    #[serde(default)]
    pub purpose: String,
}

/// Arguments of `process.wait`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessWait {
    /// The child.
    pub pid: Pid,
}

/// How a process ended, and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exit {
    /// Whether it did what was asked.
    pub ok: bool,
    /// The answer for the person or the parent.
    pub answer: String,
    /// What went wrong, where it did not.
    #[serde(default)]
    pub error: Option<SysError>,
}

/// Arguments of `process.exit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessExit {
    /// How it ends.
    pub exit: Exit,
}

/// Arguments of `process.list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessList {}

/// Arguments of `process.yield`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessYield {}

/// Arguments of `process.signal`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessSignal {
    /// The process.
    pub pid: Pid,
    /// The signal.
    pub signal: Signal,
}

/// Arguments of `random.bytes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RandomBytes {
    /// How many (1 to 1,024).
    pub count: u32,
}

/// Arguments of `clock.now`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockNow {}

/// Arguments of `clock.sleep`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockSleep {
    /// Milliseconds (at most one year).
    pub ms: u64,
}
