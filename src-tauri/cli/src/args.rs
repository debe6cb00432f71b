//! The command line's form.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Parser, Subcommand, ValueEnum, value_parser};

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
    /// List processes.
    Ps {
        /// Those that have ended, too.
        #[arg(long, short)]
        all: bool,
    },
    /// List approvals and questions that wait, or answer one.
    Approvals {
        /// The approval's number.
        #[arg(value_parser = number())]
        id: Option<u64>,
        /// The answer.
        #[arg(value_enum, requires = "id")]
        answer: Option<Answer>,
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
    /// End a process and its children.
    Kill {
        /// The process.
        #[arg(value_parser = number())]
        pid: u64,
    },
    /// Show the journal, newest last; check it; write it out.
    Log(Box<crate::journal::LogArgs>),
    /// List, fetch or check models.
    Models {
        #[command(subcommand)]
        verb: Option<ModelVerb>,
    },
    /// Tell what works on this machine and what to do about what does not.
    Doctor,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelVerb {
    /// List the catalogue.
    List,
    /// Fetch a model; goes on from where an earlier try stopped.
    Get {
        /// Its name; the default model where absent.
        name: Option<String>,
    },
    /// Compare a model's file with the catalogue's SHA-256.
    Verify {
        /// Its name; the default model where absent.
        name: Option<String>,
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
}

/// Numbers as the journal gives them.
pub(crate) fn number() -> RangedU64ValueParser {
    value_parser!(u64).range(1..=i64::MAX.unsigned_abs())
}
