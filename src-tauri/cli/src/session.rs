//! `steward` without a command: a prompt, answers, approvals.

use std::path::PathBuf;
use std::process::ExitCode;

use steward_host::{Command, Problem, Reply, Resume};

use crate::Ended;
use crate::args::Approve;
use crate::ask::{Follow, submit};
use crate::keyboard::Keyboard;
use crate::link::Link;
use crate::print::Printer;

pub(crate) async fn run(link: &mut Link, workspace: &Option<PathBuf>, printer: &Printer) -> Ended {
    let keyboard = Keyboard::new()?;
    greet(link, printer).await?;
    let mut after = None;
    loop {
        printer.prompt("\nsteward> ");
        let line = tokio::select! {
            line = keyboard.line() => line,
            // There is no request to stop.
            () = keyboard.interrupted() => continue,
        };
        match line.as_deref().map(str::trim) {
            Some("") => {}
            None | Some("exit" | "quit") => break,
            Some(request) => {
                let asked = submit(request.to_owned(), workspace.clone(), after);
                match follow(link, asked, (printer, &keyboard)).await {
                    Ok(run) => after = Some(run),
                    Err(problem) => {
                        printer.problem(&problem);
                        // The program that was the kernel may have ended.
                        if let Link::Other(_) = link {
                            *link = Link::open(Resume::All).await?;
                        }
                    }
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Follows one request; the run to go on from. What goes wrong on the way ends only the request.
async fn follow(
    link: &mut Link,
    command: Result<Command, Problem>,
    person: (&Printer, &Keyboard),
) -> Result<u64, Problem> {
    let mut follow = Follow::start(link, command?, Approve::Ask, person).await?;
    if let Err(problem) = follow.follow().await {
        person.0.problem(&problem);
    }
    Ok(follow.run())
}

async fn greet(link: &mut Link, printer: &Printer) -> Result<(), Problem> {
    printer.note("Say what you want, in English or Chinese; `exit` ends. Ctrl+C stops a request.");
    if let Reply::Approvals { approvals } = link.request(Command::Approvals).await?
        && !approvals.is_empty()
    {
        let waiting = match approvals.len() {
            1 => "1 approval waits".to_owned(),
            count => format!("{count} approvals wait"),
        };
        printer.note(&format!(
            "{waiting} for you; list with `steward approvals` in another terminal"
        ));
    }
    Ok(())
}
