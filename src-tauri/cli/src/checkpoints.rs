//! `steward checkpoints`: points in a process's history.

use std::process::ExitCode;

use clap::Subcommand;
use steward_host::surface::{CheckpointDetail, CheckpointReplay, CheckpointView};
use steward_host::{Command, Reply};

use crate::Ended;
use crate::args::number;
use crate::ask::unexpected;
use crate::link::Link;
use crate::print::Printer;
use crate::show::clock;
use crate::waiting::go_on;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List them.
    List {
        /// Only those of this process.
        #[arg(value_parser = number())]
        pid: Option<u64>,
    },
    /// Show what is in one, and which effects outside stand since then.
    Show {
        /// The checkpoint.
        #[arg(value_parser = number())]
        id: u64,
    },
    /// Tell what lies between two.
    Diff {
        /// The one to compare from.
        #[arg(value_parser = number())]
        from: u64,
        /// The one to compare to.
        #[arg(value_parser = number())]
        to: u64,
    },
    /// Make one of a process as it stands.
    Create {
        /// The process.
        #[arg(value_parser = number())]
        pid: u64,
        /// What to call it.
        label: Vec<String>,
    },
    /// Take a process back to one. What was done outside since then stands.
    Restore {
        /// The checkpoint.
        #[arg(value_parser = number())]
        id: u64,
    },
    /// Run the program of one again on the answers that are recorded, without any effect.
    ///
    /// Exits with 1 where it does not make the recorded calls again.
    Replay {
        /// The checkpoint.
        #[arg(value_parser = number())]
        id: u64,
    },
    /// Start a new process from one.
    Fork {
        /// The checkpoint.
        #[arg(value_parser = number())]
        id: u64,
    },
}

pub(crate) async fn run(link: &mut Link, verb: Option<Verb>, printer: &Printer) -> Ended {
    match verb.unwrap_or(Verb::List { pid: None }) {
        Verb::List { pid } => list(link, pid, printer).await,
        Verb::Show { id } => show(link, Command::Checkpoint { id }, printer).await,
        Verb::Create { pid, label } => {
            let label = label.join(" ");
            show(link, Command::CreateCheckpoint { pid, label }, printer).await
        }
        Verb::Diff { from, to } => diff(link, from, to, printer).await,
        Verb::Replay { id } => replay(link, id, printer).await,
        Verb::Restore { id } => {
            let events = link.events().await?;
            let Reply::Checkpoint(restored) =
                link.request(Command::RestoreCheckpoint { id }).await?
            else {
                return Err(unexpected());
            };
            tell(&restored, printer);
            go_on(link, events, restored.checkpoint.run, printer).await
        }
        Verb::Fork { id } => {
            let events = link.events().await?;
            let command = Command::ForkCheckpoint { id };
            let Reply::Started { pid, run } = link.request(command).await? else {
                return Err(unexpected());
            };
            printer.note(&format!("process {pid} goes on from checkpoint {id}"));
            go_on(link, events, run, printer).await
        }
    }
}

async fn list(link: &mut Link, pid: Option<u64>, printer: &Printer) -> Ended {
    let command = Command::Checkpoints { pid };
    let Reply::Checkpoints { checkpoints } = link.request(command).await? else {
        return Err(unexpected());
    };
    for checkpoint in &checkpoints {
        if printer.is_json() {
            printer.json(checkpoint);
        } else {
            printer.line(&row(checkpoint));
        }
    }
    if checkpoints.is_empty() && !printer.is_json() {
        printer.note("no checkpoint; `steward checkpoints create PID` makes one");
    }
    Ok(ExitCode::SUCCESS)
}

fn row(checkpoint: &CheckpointView) -> String {
    let CheckpointView {
        id,
        pid,
        seq,
        label,
        digest,
        at_ms,
        ..
    } = checkpoint;
    let short = digest.get(..12).unwrap_or(digest);
    format!(
        "{id:>5}  {}  process {pid} after call {seq}  {short}  {label}",
        clock(*at_ms)
    )
}

async fn show(link: &mut Link, command: Command, printer: &Printer) -> Ended {
    let Reply::Checkpoint(detail) = link.request(command).await? else {
        return Err(unexpected());
    };
    tell(&detail, printer);
    Ok(ExitCode::SUCCESS)
}

fn tell(detail: &CheckpointDetail, printer: &Printer) {
    if printer.is_json() {
        printer.json(detail);
        return;
    }
    printer.line(&row(&detail.checkpoint));
    for (name, value) in &detail.facts {
        printer.line(&format!("  {name:<12} {value}"));
    }
    if !detail.outside.is_empty() {
        printer.line("  not undone by going back to it:");
        for effect in &detail.outside {
            printer.line(&format!("  · {effect}"));
        }
    }
}

async fn diff(link: &mut Link, from: u64, to: u64, printer: &Printer) -> Ended {
    let command = Command::DiffCheckpoints { from, to };
    let Reply::CheckpointDiff(diff) = link.request(command).await? else {
        return Err(unexpected());
    };
    if printer.is_json() {
        printer.json(&diff);
    } else {
        diff.lines.iter().for_each(|line| printer.line(line));
        if diff.lines.is_empty() {
            printer.note(&format!("checkpoints {from} and {to} do not differ"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn replay(link: &mut Link, id: u64, printer: &Printer) -> Ended {
    let command = Command::ReplayCheckpoint { id };
    let Reply::CheckpointReplay(replay) = link.request(command).await? else {
        return Err(unexpected());
    };
    if printer.is_json() {
        printer.json(&replay);
    } else {
        let CheckpointReplay { calls, verdict, .. } = &replay;
        printer.line(&format!(
            "{verdict}; calls answered from the record: {calls}"
        ));
    }
    Ok(if replay.same {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
