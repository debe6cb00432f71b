//! `steward caps`: what a process may do, and why.

use std::process::ExitCode;

use clap::Subcommand;
use steward_host::surface::{CapabilityStatus, CapabilityView, Explanation, StanceView};
use steward_host::{Command, Problem, Reply};

use crate::Ended;
use crate::args::number;
use crate::ask::unexpected;
use crate::link::Link;
use crate::print::Printer;
use crate::show::{clock, done};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct Caps {
    /// The process.
    #[arg(value_parser = number())]
    pid: Option<u64>,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Tell whether a call would be let pass, asked about or refused, and why.
    Explain {
        /// The process.
        #[arg(value_parser = number())]
        pid: u64,
        /// The call, such as "fs.write notes.md".
        #[arg(required = true)]
        what: Vec<String>,
    },
    /// Take a capability back, and all that was derived from it.
    Revoke {
        /// The capability's number, as `steward caps PID` shows it.
        #[arg(value_parser = number())]
        id: u64,
    },
}

pub(crate) async fn run(link: &mut Link, asked: Caps, printer: &Printer) -> Ended {
    match (asked.pid, asked.verb) {
        (_, Some(Verb::Explain { pid, what })) => explain(link, pid, what.join(" "), printer).await,
        (_, Some(Verb::Revoke { id })) => {
            link.request(Command::RevokeCapability { id }).await?;
            printer.note(&format!("capability {id} counts no more"));
            done(printer);
            Ok(ExitCode::SUCCESS)
        }
        (Some(pid), None) => list(link, pid, printer).await,
        (None, None) => {
            Err(Problem::new("invalid", "no process is named").hint("name one: `steward caps PID`"))
        }
    }
}

async fn list(link: &mut Link, pid: u64, printer: &Printer) -> Ended {
    let command = Command::Capabilities { pid };
    let Reply::Capabilities { capabilities } = link.request(command).await? else {
        return Err(unexpected());
    };
    for capability in &capabilities {
        if printer.is_json() {
            printer.json(capability);
        } else {
            printer.line(&row(capability));
        }
    }
    if capabilities.is_empty() && !printer.is_json() {
        printer.note(&format!("process {pid} holds no capability"));
    }
    Ok(ExitCode::SUCCESS)
}

fn row(held: &CapabilityView) -> String {
    let mut more: Vec<String> = held.constraints.clone();
    if let Some(uses) = held.uses_left {
        more.push(format!("{uses} uses left"));
    }
    if let Some(ends) = held.expires_ms {
        more.push(format!("until {}", clock(ends)));
    }
    more.push(match held.parent {
        Some(parent) => format!("from {parent} by {}", held.issuer),
        None => format!("by {}", held.issuer),
    });
    match held.status {
        CapabilityStatus::Active => {}
        CapabilityStatus::Revoked => more.push("revoked".to_owned()),
        CapabilityStatus::Spent => more.push("spent".to_owned()),
        CapabilityStatus::Expired => more.push("expired".to_owned()),
        CapabilityStatus::Ended => more.push("ended with its process".to_owned()),
    }
    format!(
        "{:>5}  {:<5} {:<22} {}  ({})",
        held.id,
        stance(held.stance),
        held.rights.join(", "),
        held.resource,
        more.join("; ")
    )
}

fn stance(stance: StanceView) -> &'static str {
    match stance {
        StanceView::Allow => "allow",
        StanceView::Ask => "ask",
        StanceView::Deny => "deny",
    }
}

async fn explain(link: &mut Link, pid: u64, what: String, printer: &Printer) -> Ended {
    let command = Command::Explain { pid, what };
    let Reply::Explanation(why) = link.request(command).await? else {
        return Err(unexpected());
    };
    if printer.is_json() {
        printer.json(&why);
    } else {
        explained(&why).iter().for_each(|line| printer.line(line));
    }
    Ok(ExitCode::SUCCESS)
}

fn explained(why: &Explanation) -> Vec<String> {
    let by = why
        .by
        .map_or_else(String::new, |id| format!(" by capability {id}"));
    let mut lines = vec![
        format!("{}: {}{by}", why.what, stance(why.decision)),
        why.words.clone(),
    ];
    lines.extend(why.looked_at.iter().map(|looked| {
        let sign = if looked.covers { "✓" } else { "·" };
        format!(
            "{sign} {:>5}  {:<5} {}: {}",
            looked.id,
            stance(looked.stance),
            looked.words,
            looked.why
        )
    }));
    lines
}
