//! The command line's form.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Parser, Subcommand, ValueEnum, value_parser};

use crate::{caps, checkpoints, images, launch, sched, standing};

/// Steward: agents that do what you say, and nothing irreversible before your yes.
#[derive(Debug, Parser)]
#[command(name = "steward", version, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Print one JSON object a line, for scripts.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The folder that agents work in; the current one where absent.
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Show or hide the launcher of the desktop that runs (to be bound to a key under Wayland).
    #[arg(long)]
    pub(crate) toggle: bool,
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

const EXAMPLES: &str = "\
Without a command, a session opens: type a request, see the answer, answer approvals.

Examples:
  steward ask \"Summarise notes.md and save it as summary.md\"
  steward ask --approve none --json \"what files are in letters?\"
  steward approvals 3 yes
  steward undo 12

Exit codes: 0 done, 1 not done, 2 wrong use, 3 something is missing or broken here.";

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Ask an agent to do something, and wait for its answer.
    Ask {
        /// What you want, in your words.
        #[arg(required = true)]
        request: Vec<String>,
        /// The folder that the agent works in; the current one where absent.
        #[arg(long, value_name = "DIR")]
        workspace: Option<PathBuf>,
        /// How approvals are answered: ask you, or yes to all, or no to all (a question then gets an
        /// empty answer).
        #[arg(long, value_enum, default_value_t = Approve::Ask)]
        approve: Approve,
    },
    /// Put back the files that a run changed.
    Undo {
        /// The run's number, as `steward ps` shows it.
        #[arg(value_parser = number())]
        run: u64,
        /// How the approval is answered.
        #[arg(long, value_enum, default_value_t = Approve::Ask)]
        approve: Approve,
    },
    /// Open a session with an image, with the rights that you give it, or carry out one request.
    Run(launch::Launch),
    /// List processes.
    Ps {
        /// Those that have ended, too.
        #[arg(long, short)]
        all: bool,
        /// Children below their parents, with what they do now and what they may use.
        #[arg(long, short)]
        tree: bool,
    },
    /// List approvals and questions that wait, or answer one.
    Approvals {
        /// The approval's number.
        #[arg(value_parser = number())]
        id: Option<u64>,
        /// The answer.
        #[arg(value_enum, requires = "id")]
        answer: Option<Answer>,
        /// How far an `always` reaches: the number of a scope, as `steward approvals ID` shows it.
        #[arg(long, value_name = "NUMBER", requires = "answer")]
        scope: Option<String>,
    },
    /// Answer a question that an agent asks.
    Answer {
        /// The question's number, as `steward approvals` shows it.
        #[arg(value_parser = number())]
        id: u64,
        /// The answer.
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// Have a process stand still at its next step.
    Pause(Pid),
    /// Have a paused process go on.
    Resume(Pid),
    /// End the call that a process waits in; it goes on from there.
    Interrupt(Pid),
    /// End a process and its children.
    Kill(Pid),
    /// Put a message into a process's mailbox.
    Message {
        /// The process.
        #[arg(value_parser = number())]
        pid: u64,
        /// What it is told.
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// Show what a process may do, tell why a call would be let pass, or take a right back.
    Caps(caps::Caps),
    /// List your standing answers, or take one back.
    Grants {
        #[command(subcommand)]
        verb: Option<standing::GrantsVerb>,
    },
    /// List the policies that are set, or set one.
    Policy {
        #[command(subcommand)]
        verb: Option<standing::PolicyVerb>,
    },
    /// List, make and compare checkpoints, and go back to one.
    Checkpoints {
        #[command(subcommand)]
        verb: Option<checkpoints::Verb>,
    },
    /// List, show and register what processes are started from.
    Images {
        #[command(subcommand)]
        verb: Option<images::Verb>,
    },
    /// List what a process remembers, by name, kind and size.
    Objects(Pid),
    /// Show the queues of calls, or change who goes first.
    Sched {
        #[command(subcommand)]
        verb: Option<sched::Verb>,
    },
    /// Show the journal, newest last; check it; write it out.
    Log(Box<crate::journal::LogArgs>),
    /// List, fetch or check models.
    Models {
        #[command(subcommand)]
        verb: Option<ModelVerb>,
    },
    /// Measure how fast a model is on this machine.
    Bench {
        /// Its name, as `steward models` lists it; the one in use where absent.
        model: Option<String>,
        /// Threads to compute with; the machine's cores where absent.
        #[arg(long, value_parser = number())]
        threads: Option<u64>,
    },
    /// Tell what works on this machine and what to do about what does not.
    Doctor,
}

/// A process by its number.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Pid {
    /// The process.
    #[arg(value_parser = number())]
    pub(crate) pid: u64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelVerb {
    /// List those of the catalogue, and those that are here, whoever fetched them, with whether they
    /// fit in memory.
    List,
    /// Fetch a model; goes on from where an earlier try stopped.
    Get {
        /// A name of the catalogue, or one of Hugging Face: `OWNER/REPO/FILE.gguf`, or
        /// `OWNER/REPO:Q4_K_M` for the file with that in its name; the default model where absent.
        name: Option<String>,
    },
    /// Compare a model's file with the SHA-256 that it came with.
    Verify {
        /// Its name; the default model where absent.
        name: Option<String>,
    },
    /// Use a model from the next start on.
    Use {
        /// Its name, as `steward models` lists it, or the whole path of a GGUF file.
        name: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// Ask in the terminal.
    Ask,
    /// Yes to all.
    All,
    /// No to all.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Answer {
    /// Do it.
    Yes,
    /// Leave it.
    No,
    /// Do it, and what lies in the scope named with --scope, from now on without asking.
    Always,
}

/// Numbers as the journal gives them.
pub(crate) fn number() -> RangedU64ValueParser {
    value_parser!(u64).range(1..=i64::MAX.unsigned_abs())
}
