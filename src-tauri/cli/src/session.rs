//! `steward` without a command: a prompt, answers, approvals.

use std::path::PathBuf;
use std::process::ExitCode;

use steward_host::{Command, Problem, Reply, Resume};

use crate::Ended;
use crate::args::Approve;
use crate::ask::{Follow, submit};
use crate::link::Link;
use crate::print::Printer;

pub(crate) async fn run(workspace: &Option<PathBuf>, printer: &Printer) -> Ended {
    let link = Link::open(Resume::All).await?;
    greet(&link, printer).await?;
    let mut after = None;
    while let Some(line) = printer.ask("\nsteward> ").await {
        match line.trim() {
            "" => {}
            "exit" | "quit" => break,
            request => {
                let command = submit(request.to_owned(), workspace.clone(), after)?;
                after = follow(&link, command, printer).await.or(after);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Follows one request; the run to go on from. What goes wrong is told and ends only the request.
async fn follow(link: &Link, command: Command, printer: &Printer) -> Option<u64> {
    let mut follow = match Follow::start(link, command, Approve::Ask, printer).await {
        Ok(follow) => follow,
        Err(problem) => {
            printer.problem(&problem);
            return None;
        }
    };
    if let Err(problem) = follow.follow().await {
        printer.problem(&problem);
    }
    Some(follow.run())
}

async fn greet(link: &Link, printer: &Printer) -> Result<(), Problem> {
    printer.note("Say what you want, in English or Chinese; `exit` ends. Ctrl+C stops a request.");
    if let Reply::Approvals { approvals } = link.request(Command::Approvals).await?
        && !approvals.is_empty()
    {
        printer.note(&format!(
            "{} approvals wait for you: `steward approvals`",
            approvals.len()
        ));
    }
    Ok(())
}
