//! What every surface (window, terminal, local socket) sends to the host and gets back.
//!
//! These types are the whole contract between the host and its surfaces. The web UI's TypeScript
//! is generated from them, and the local socket speaks them as JSON, one object a line.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A request a surface makes of the host. Tagged by `command` in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "command", rename_all = "snake_case")]
#[ts(export)]
pub enum Command {
    /// Starts an agent on a request; answers [`Reply::Started`].
    Submit(Submit),
    /// Lists processes, newest first; answers [`Reply::Processes`].
    Processes,
    /// One process with its steps and answer; answers [`Reply::Process`].
    Process {
        /// The process asked about.
        pid: u64,
    },
    /// Lists approvals that wait, oldest first; answers [`Reply::Approvals`].
    Approvals,
    /// Answers one approval; answers [`Reply::Decided`]. The first answer wins.
    Decide(Decide),
    /// Answers a question a process asked; answers [`Reply::Decided`].
    AnswerQuestion {
        /// The question's id.
        id: u64,
        /// What the person said.
        text: String,
    },
    /// Lists questions that wait; answers [`Reply::Questions`].
    Questions,
    /// Kills a process and its children; answers [`Reply::Done`].
    Kill {
        /// The process to end.
        pid: u64,
    },
    /// Starts the undo of a run; answers [`Reply::Started`] with the process that carries it out.
    Undo {
        /// The run to undo.
        run: u64,
    },
    /// Reads the journal, newest first; answers [`Reply::Log`].
    Log(LogQuery),
    /// What works on this machine and what to do about what does not; answers [`Reply::Doctor`].
    Doctor,
    /// The models of the catalogue and where they are; answers [`Reply::Models`].
    Models,
    /// Settings as they stand; answers [`Reply::Settings`].
    Settings,
    /// Changes settings that are given, leaves the rest; answers [`Reply::Settings`].
    ChangeSettings(SettingsChange),
    /// Asks a running desktop to show or hide its launcher; answers [`Reply::Done`].
    Toggle,
    /// Streams events from now on (local socket only); every line after the reply is an [`Event`].
    Watch,
}

/// A request for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Submit {
    /// What the person asks, in their words.
    pub request: String,
    /// Absolute path of the workspace; the configured default where absent.
    #[serde(default)]
    pub workspace: Option<String>,
    /// The run this goes on from (a follow-up in the same chat), if any.
    #[serde(default)]
    pub after: Option<u64>,
}

/// An answer to an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Decide {
    /// The approval's id.
    pub id: u64,
    /// Yes or no.
    pub approve: bool,
    /// The digest that was shown; an answer to something else does not count.
    pub digest: String,
}

/// Which journal rows to read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct LogQuery {
    /// Only this process.
    #[serde(default)]
    pub pid: Option<u64>,
    /// Only this run (a process and its children).
    #[serde(default)]
    pub run: Option<u64>,
    /// Rows at most (1 to 10,000; 100 where absent).
    #[serde(default)]
    pub limit: Option<u32>,
}

/// The host's answer to a [`Command`]. Tagged by `reply` in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "reply", rename_all = "snake_case")]
#[ts(export)]
pub enum Reply {
    /// An agent was started.
    Started {
        /// Its process.
        pid: u64,
        /// Its run.
        run: u64,
    },
    /// Processes, newest first.
    Processes {
        /// One row a process.
        processes: Vec<ProcessView>,
    },
    /// One process in full.
    Process(Box<ProcessDetail>),
    /// Approvals that wait.
    Approvals {
        /// One entry an approval.
        approvals: Vec<ApprovalView>,
    },
    /// Questions that wait.
    Questions {
        /// One entry a question.
        questions: Vec<QuestionView>,
    },
    /// The decision was taken.
    Decided {
        /// Whether this answer was the one that counted.
        counted: bool,
        /// What was decided, in words, where another answer came first.
        note: Option<String>,
    },
    /// Journal rows.
    Log {
        /// Newest first.
        rows: Vec<LogRow>,
    },
    /// Checks of this machine.
    Doctor {
        /// One entry a check.
        checks: Vec<Check>,
    },
    /// The catalogue.
    Models {
        /// One entry a model.
        models: Vec<ModelView>,
    },
    /// Settings.
    Settings(Settings),
    /// Done; there is nothing to tell.
    Done,
    /// It could not be done.
    Error(Problem),
}

/// Something that went wrong, in words for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Problem {
    /// A stable word for programs, such as `not_found` or `denied`.
    pub code: String,
    /// One lower-case sentence.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

/// State of a process, as shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum StateView {
    /// Made, not yet queued.
    Created,
    /// Ready, waiting for its turn.
    Runnable,
    /// Running.
    Running,
    /// Waits for a child, a clock or a message.
    WaitingEvent,
    /// Waits for a core, a file or a tool.
    WaitingTool,
    /// Waits for the person.
    WaitingHuman,
    /// Stopped by the person; can go on.
    Paused,
    /// Put aside by the kernel.
    Suspended,
    /// Ended by itself.
    Exited,
    /// Ended by an error.
    Failed,
    /// Ended from outside.
    Killed,
}

/// One process in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ProcessView {
    /// Process id.
    pub pid: u64,
    /// The process that started it.
    pub parent: Option<u64>,
    /// The run it belongs to (the pid of the run's first process).
    pub run: u64,
    /// The image it was started from.
    pub image: String,
    /// The request or goal.
    pub goal: String,
    /// Where it stands.
    pub state: StateView,
    /// What it does now, in a few words.
    pub status: String,
    /// Absolute path of its workspace.
    pub workspace: String,
    /// Tokens used (prompt and generated).
    pub tokens: u64,
    /// Steps taken.
    pub steps: u32,
    /// Unix time in milliseconds when it was made.
    pub created_ms: u64,
    /// Unix time in milliseconds when it ended.
    pub ended_ms: Option<u64>,
    /// Whether what it did can be undone: it changed files, and that was not undone yet.
    pub undoable: bool,
}

/// One process with everything about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ProcessDetail {
    /// The process.
    pub process: ProcessView,
    /// What it did, oldest first.
    pub steps: Vec<StepView>,
    /// Its answer, once it has ended.
    pub answer: Option<String>,
    /// Whether it ended well, once it has ended.
    pub ok: Option<bool>,
    /// What went wrong, where it did not end well.
    pub problem: Option<Problem>,
}

/// One step: a system call a person would want to see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct StepView {
    /// The call's number within its process.
    pub seq: u64,
    /// The system call, such as `fs.read`.
    pub name: String,
    /// What it does, in a few words (escaped, one line).
    pub title: String,
    /// How it went, or what it waits for.
    pub detail: String,
    /// Where it stands.
    pub state: StepState,
    /// How long it took, waiting included, in milliseconds; absent while it runs.
    pub elapsed_ms: Option<u64>,
}

/// Where a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum StepState {
    /// In a queue or running.
    Running,
    /// Waits for the person.
    Waiting,
    /// Done.
    Done,
    /// Refused by the person or by a missing right.
    Denied,
    /// Failed.
    Failed,
    /// It is not known whether it took effect (the program ended in between).
    Unknown,
}

/// Something an agent may do only after a yes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ApprovalView {
    /// The approval's id; the same after a restart.
    pub id: u64,
    /// Who asks.
    pub pid: u64,
    /// The run it belongs to.
    pub run: u64,
    /// The image of who asks.
    pub image: String,
    /// The request it is done for.
    pub goal: String,
    /// The system call, such as `fs.write`.
    pub action: String,
    /// What it would do to the path.
    pub effect: EffectView,
    /// The absolute path (escaped for display).
    pub path: String,
    /// The path within the workspace (escaped for display).
    pub relative: String,
    /// For a move: the absolute path it goes to (escaped for display).
    pub target: Option<String>,
    /// Bytes there now; absent where nothing is there.
    pub bytes_before: Option<u64>,
    /// Bytes there afterwards; absent where nothing will be there.
    pub bytes_after: Option<u64>,
    /// SHA-256 (hex) of the bytes that would be written; absent where none are.
    pub sha256: Option<String>,
    /// What would change, line by line (escaped), or what is in the file to be deleted.
    pub diff: Vec<DiffLine>,
    /// True where the diff was cut to a bounded length.
    pub diff_cut: bool,
    /// Lines that change, and lines in all.
    pub lines_changed: u32,
    /// Lines in all.
    pub lines_total: u32,
    /// Risks worth a sentence each.
    pub risks: Vec<RiskView>,
    /// Whether undo can put it back.
    pub undoable: bool,
    /// For an undo: every file it would put back (escaped), with what happens to it.
    pub items: Vec<String>,
    /// Digest of all of the above that the answer is bound to.
    pub digest: String,
    /// Unix time in milliseconds when it was asked.
    pub asked_ms: u64,
}

/// What an approval would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum EffectView {
    /// Writes a file where none is.
    Create,
    /// Replaces a file's bytes.
    Overwrite,
    /// Deletes a file or an empty folder.
    Delete,
    /// Moves or renames, with nothing at the target.
    Move,
    /// Moves onto an existing file.
    Replace,
    /// Makes a folder.
    MakeFolder,
    /// Puts back what a run changed.
    Undo,
    /// A step a process asks about in its own words.
    Other,
}

/// A risk worth telling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum RiskView {
    /// The same effect may have happened already, before a crash; a yes does it again.
    Repeat,
    /// The file there now can be run as a program.
    Executable,
    /// The file is hidden, or in a hidden folder.
    Hidden,
    /// The text or the path holds characters that cannot be seen; they are shown escaped.
    Invisible,
}

/// One line of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct DiffLine {
    /// `same`, `removed`, `added`, or `gap` (lines left out between).
    pub kind: DiffKind,
    /// The line without its end, escaped.
    pub text: String,
}

/// Kind of a diff line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum DiffKind {
    /// Stands before and after.
    Same,
    /// Goes.
    Removed,
    /// Comes.
    Added,
    /// Unchanged lines left out; the text says how many.
    Gap,
}

/// A question a process asks the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct QuestionView {
    /// The question's id.
    pub id: u64,
    /// Who asks.
    pub pid: u64,
    /// Its run.
    pub run: u64,
    /// The question (escaped).
    pub text: String,
    /// Answers offered; free text where empty.
    pub choices: Vec<String>,
    /// Unix time in milliseconds when it was asked.
    pub asked_ms: u64,
}

/// One journal row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct LogRow {
    /// Row number, ascending in time.
    pub id: u64,
    /// Unix time in milliseconds.
    pub at_ms: u64,
    /// The process.
    pub pid: u64,
    /// The call's number within its process; absent for rows about the process itself.
    pub seq: Option<u64>,
    /// What happened: `intent`, `approval`, `decision`, `executing`, `outcome`, `process`.
    pub kind: String,
    /// The system call or process event.
    pub name: String,
    /// On what, by which right or whose decision, how it ended (escaped; digests, never contents).
    pub detail: String,
}

/// One check of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Check {
    /// What was checked, such as `model` or `hotkey`.
    pub name: String,
    /// How it stands.
    pub state: CheckState,
    /// What was found.
    pub found: String,
    /// What to do, where something is to be done.
    pub hint: Option<String>,
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum CheckState {
    /// Works.
    Works,
    /// Works in part or is not needed here.
    Limited,
    /// Does not work.
    Missing,
}

/// One model of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ModelView {
    /// Its name in the catalogue.
    pub name: String,
    /// Its licence (SPDX).
    pub licence: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its SHA-256 (hex).
    pub sha256: String,
    /// Tokens of context it was made for.
    pub context: u32,
    /// Memory it needs, in MiB.
    pub memory_mib: u32,
    /// What it is good for.
    pub good_for: String,
    /// Where the file is, once it is there.
    pub path: Option<String>,
    /// Whether it is the default.
    pub is_default: bool,
}

/// Settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Settings {
    /// The hotkey, such as `Ctrl+Shift+Space`.
    pub hotkey: String,
    /// The default workspace of the desktop (absolute).
    pub workspace: String,
    /// `system`, `en` or `zh`.
    pub language: String,
    /// `system`, `light` or `dark`.
    pub theme: String,
    /// The model in use.
    pub model: String,
}

/// Settings to change; absent ones stay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct SettingsChange {
    /// A new hotkey.
    #[serde(default)]
    pub hotkey: Option<String>,
    /// A new default workspace.
    #[serde(default)]
    pub workspace: Option<String>,
    /// A new language.
    #[serde(default)]
    pub language: Option<String>,
    /// A new theme.
    #[serde(default)]
    pub theme: Option<String>,
}

/// Something that happened. Tagged by `type` in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export)]
pub enum Event {
    /// A piece of an answer as it is generated.
    Token {
        /// The process that speaks.
        pid: u64,
        /// Its run.
        run: u64,
        /// The piece.
        text: String,
    },
    /// A step began, waits or ended.
    Step {
        /// The process.
        pid: u64,
        /// Its run.
        run: u64,
        /// The step.
        step: StepView,
    },
    /// A process was made or changed.
    Process {
        /// The process.
        process: ProcessView,
    },
    /// An approval was filed.
    Approval(ApprovalView),
    /// An approval was answered, by whom and how, or lapsed with its process.
    Decided {
        /// The approval's id.
        id: u64,
        /// Whether it was approved.
        approved: bool,
        /// Who decided: `window`, `terminal`, `process ended`.
        by: String,
    },
    /// A process asks something.
    Question(QuestionView),
    /// A process says something to the person.
    Message {
        /// The process.
        pid: u64,
        /// Its run.
        run: u64,
        /// What it says (escaped).
        text: String,
    },
    /// The final answer of a run.
    Answer {
        /// The process.
        pid: u64,
        /// Its run.
        run: u64,
        /// The answer.
        text: String,
    },
    /// A run ended.
    Done {
        /// The process.
        pid: u64,
        /// Its run.
        run: u64,
        /// Whether it ended well.
        ok: bool,
        /// What went wrong, where it did not.
        error: Option<Problem>,
    },
    /// The model is being loaded, or is ready.
    Model {
        /// Its name.
        name: String,
        /// True once it can answer.
        ready: bool,
        /// What went wrong, where it did.
        error: Option<Problem>,
    },
    /// This listener fell behind and missed this many events; read the state anew.
    Missed {
        /// How many.
        count: u64,
    },
}
