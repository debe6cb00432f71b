//! What the kernel tells its surfaces as it happens.

use crate::human::{Approval, Question};
use crate::process::{Pid, ProcessInfo, RunId};
use crate::syscall::Exit;

/// Something that happened.
#[derive(Debug, Clone)]
pub enum KernelEvent {
    /// A piece of an answer as it is generated.
    Token {
        /// The process.
        pid: Pid,
        /// Its run.
        run: RunId,
        /// The piece.
        text: String,
    },
    /// A system call began, waits or ended.
    Step {
        /// The process.
        pid: Pid,
        /// Its run.
        run: RunId,
        /// The call.
        step: Step,
    },
    /// A process was made or changed.
    Process(ProcessInfo),
    /// An approval was filed.
    Approval(Box<Approval>),
    /// An approval was answered, or lapsed.
    Decided {
        /// Its number.
        id: u64,
        /// The answer.
        approved: bool,
        /// Who decided.
        by: String,
    },
    /// A question was filed.
    Question(Question),
    /// A process says something to the person.
    Message {
        /// The process.
        pid: Pid,
        /// Its run.
        run: RunId,
        /// What it says, escaped.
        text: String,
    },
    /// A process ended.
    Ended {
        /// The process.
        process: ProcessInfo,
        /// How.
        exit: Exit,
    },
}

/// A system call as a step to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The call's number within its process.
    pub seq: u64,
    /// The system call.
    pub name: String,
    /// What it does, escaped, one line.
    pub title: String,
    /// How it went, or what it waits for.
    pub detail: String,
    /// Where it stands.
    pub state: StepState,
    /// How long it took, waiting included.
    pub elapsed_ms: Option<u64>,
}

/// Where a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepState {
    /// In a queue or running.
    Running,
    /// Waits for the person.
    Waiting,
    /// Done.
    Done,
    /// Refused.
    Denied,
    /// Failed.
    Failed,
    /// Not known whether it took effect.
    Unknown,
}
