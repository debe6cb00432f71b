//! What surfaces ask of the host, and what it answers.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::approval::{ApprovalView, Decide, QuestionView};
use super::capability::{CapabilityView, Explanation};
use super::checkpoint::{CheckpointDetail, CheckpointDiff, CheckpointReplay, CheckpointView};
use super::image::{ImageDetail, ImageSource, ImageView};
use super::journal::{Chain, ExportForm, LogQuery, LogRow, Verified};
use super::machine::{Check, FoundModel, ModelView, Settings, SettingsChange};
use super::object::ObjectView;
use super::policy::{GrantView, PolicyChange, PolicyView};
use super::problem::Problem;
use super::process::{ProcessDetail, ProcessView};
use super::run::{Run, SignalView, Submit};
use super::scheduling::{SchedulingChange, SchedulingView};

/// A request a surface makes of the host. Tagged by `command` in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "command", rename_all = "snake_case")]
#[ts(export)]
pub enum Command {
    /// Starts an agent on a request; answers [`Reply::Started`].
    Submit(Submit),
    /// Starts an image on a request, with the rights that are named; answers [`Reply::Started`].
    Run(Run),
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
    /// Pauses, resumes, interrupts or kills a process and its children; answers [`Reply::Done`].
    Signal {
        /// The process.
        pid: u64,
        /// What it is told.
        signal: SignalView,
    },
    /// Puts a message into a process's mailbox; answers [`Reply::Done`].
    SendMessage {
        /// The process.
        pid: u64,
        /// What it is told.
        text: String,
    },
    /// Starts the undo of a run; answers [`Reply::Started`] with the process that carries it out.
    Undo {
        /// The run to undo.
        run: u64,
    },
    /// Reads the journal, newest first; answers [`Reply::Log`].
    Log(LogQuery),
    /// Who asked for an effect, by what right or whose yes, and what happened; answers
    /// [`Reply::Chain`].
    Chain {
        /// The process that acted.
        pid: u64,
        /// The call's number within its process.
        seq: u64,
    },
    /// Checks that the journal is whole and as it was written; answers [`Reply::Verified`].
    LogVerify,
    /// A piece of the journal in another form; answers [`Reply::Exported`].
    LogExport {
        /// The form.
        form: ExportForm,
        /// Where to go on, as the last piece told; from the beginning where absent.
        #[serde(default)]
        after: Option<u64>,
    },
    /// What a process may do; answers [`Reply::Capabilities`].
    Capabilities {
        /// The process.
        pid: u64,
    },
    /// Why a call of a process would be let pass, asked about or refused; answers
    /// [`Reply::Explanation`].
    Explain {
        /// The process.
        pid: u64,
        /// The call, such as `fs.write notes.md`.
        what: String,
    },
    /// Takes a capability back, and all that was derived from it; answers [`Reply::Done`].
    RevokeCapability {
        /// The capability.
        id: u64,
    },
    /// Lists standing answers; answers [`Reply::Grants`].
    Grants,
    /// Takes a standing answer back; answers [`Reply::Done`].
    RevokeGrant {
        /// The standing answer.
        id: u64,
    },
    /// Lists policies that are set; answers [`Reply::Policies`].
    Policies,
    /// Sets a policy; answers [`Reply::Policies`].
    SetPolicy(PolicyChange),
    /// Lists checkpoints; answers [`Reply::Checkpoints`].
    Checkpoints {
        /// Only those of this process.
        #[serde(default)]
        pid: Option<u64>,
    },
    /// One checkpoint with what is in it; answers [`Reply::Checkpoint`].
    Checkpoint {
        /// The checkpoint.
        id: u64,
    },
    /// What lies between two checkpoints; answers [`Reply::CheckpointDiff`].
    DiffCheckpoints {
        /// The one to compare from.
        from: u64,
        /// The one to compare to.
        to: u64,
    },
    /// Makes a checkpoint of a process; answers [`Reply::Checkpoint`].
    CreateCheckpoint {
        /// The process.
        pid: u64,
        /// What to call it.
        #[serde(default)]
        label: String,
    },
    /// Takes a process back to a checkpoint; answers [`Reply::Checkpoint`], with the effects that
    /// stand.
    RestoreCheckpoint {
        /// The checkpoint.
        id: u64,
    },
    /// Runs a checkpoint's program on the answers that are recorded, without any effect; answers
    /// [`Reply::CheckpointReplay`].
    ReplayCheckpoint {
        /// The checkpoint.
        id: u64,
    },
    /// Starts a new process from a checkpoint; answers [`Reply::Started`].
    ForkCheckpoint {
        /// The checkpoint.
        id: u64,
    },
    /// Lists images; answers [`Reply::Images`].
    Images,
    /// One image with its definition; answers [`Reply::Image`].
    Image {
        /// Its name.
        name: String,
    },
    /// Registers an image; answers [`Reply::Image`].
    RegisterImage {
        /// Its definition.
        source: ImageSource,
    },
    /// The JSON schema of image files; answers [`Reply::ImageSchema`].
    ImageSchema,
    /// What a process remembers, by name, kind and size; answers [`Reply::Objects`].
    Objects {
        /// The process.
        pid: u64,
    },
    /// How calls are ordered; answers [`Reply::Scheduling`].
    Scheduling,
    /// Changes how calls are ordered; answers [`Reply::Scheduling`].
    SetScheduling(SchedulingChange),
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
    /// An effect from its cause to its end.
    Chain(Box<Chain>),
    /// What a check of the journal found.
    Verified(Verified),
    /// A piece of an export.
    Exported {
        /// Lines, oldest first.
        lines: Vec<String>,
        /// Where the next piece goes on; absent after the last one.
        after: Option<u64>,
    },
    /// What a process may do.
    Capabilities {
        /// One entry a capability, the newest first.
        capabilities: Vec<CapabilityView>,
    },
    /// Why a call would be let pass, asked about or refused.
    Explanation(Explanation),
    /// Standing answers.
    Grants {
        /// One entry an answer, the newest first.
        grants: Vec<GrantView>,
    },
    /// Policies that are set.
    Policies {
        /// One entry a policy.
        policies: Vec<PolicyView>,
    },
    /// Checkpoints.
    Checkpoints {
        /// One entry a checkpoint, the newest first.
        checkpoints: Vec<CheckpointView>,
    },
    /// One checkpoint in full.
    Checkpoint(CheckpointDetail),
    /// What lies between two checkpoints.
    CheckpointDiff(CheckpointDiff),
    /// How a replay went.
    CheckpointReplay(CheckpointReplay),
    /// Images.
    Images {
        /// One entry an image, by name.
        images: Vec<ImageView>,
    },
    /// One image with its definition.
    Image(ImageDetail),
    /// The JSON schema of image files.
    ImageSchema {
        /// The schema, as JSON text.
        schema: String,
    },
    /// What a process remembers.
    Objects {
        /// One entry an object, the newest first.
        objects: Vec<ObjectView>,
    },
    /// How calls are ordered.
    Scheduling(SchedulingView),
    /// Checks of this machine.
    Doctor {
        /// One entry a check.
        checks: Vec<Check>,
    },
    /// Models.
    Models {
        /// One entry a model of the catalogue.
        models: Vec<ModelView>,
        /// One entry a model that is here besides.
        found: Vec<FoundModel>,
    },
    /// Settings.
    Settings(Settings),
    /// Done; there is nothing to tell.
    Done,
    /// It could not be done.
    Error(Problem),
}
