//! Commands that show or settle one thing: `ps`, `approvals`, `kill`, `log`, `doctor`, `--toggle`.

use std::process::ExitCode;

use steward_host::surface::{
    self, ApprovalView, CheckState, Decide, ProcessView, SignalView, StateView,
};
use steward_host::{Command, Paths, Problem, Reply};

use crate::Ended;
use crate::approval::{approval_lines, shortened};
use crate::args::Answer;
use crate::ask::{Follow, unexpected};
use crate::keyboard::Keyboard;
use crate::link::{Events, Link};
use crate::print::Printer;

pub(crate) async fn processes(link: &mut Link, all: bool, printer: &Printer) -> Ended {
    let Reply::Processes { processes } = link.request(Command::Processes).await? else {
        return Err(unexpected());
    };
    let shown: Vec<_> = processes
        .into_iter()
        .filter(|p| all || p.ended_ms.is_none())
        .collect();
    for process in &shown {
        if printer.is_json() {
            printer.json(process);
        } else {
            printer.line(&row(process));
        }
    }
    if shown.is_empty() && !printer.is_json() {
        printer.note(if all {
            "no process yet; ask for something with `steward ask`"
        } else {
            "nothing runs; `steward ps --all` shows what has ended"
        });
    }
    Ok(ExitCode::SUCCESS)
}

fn row(process: &ProcessView) -> String {
    let state = match process.state {
        StateView::Created => "starting",
        StateView::Runnable => "waiting for its turn",
        StateView::Running => "running",
        StateView::WaitingEvent => "waiting",
        StateView::WaitingTool => "waiting for a file or a tool",
        StateView::WaitingHuman => "waiting for you",
        StateView::Paused => "paused",
        StateView::Suspended => "suspended",
        StateView::Exited => "done",
        StateView::Failed => "failed",
        StateView::Killed => "stopped",
    };
    let run = if process.run == process.pid {
        String::new()
    } else {
        format!(" run {}", process.run)
    };
    let undo = if process.undoable {
        ", can be undone"
    } else {
        ""
    };
    let goal = shortened(&process.goal);
    format!(
        "{:>5}{run}  {state:<16}  {:<8}  {} steps, {} tokens{undo}  {goal}",
        process.pid, process.image, process.steps, process.tokens
    )
}

pub(crate) async fn approvals(link: &mut Link, printer: &Printer) -> Ended {
    let Reply::Approvals { approvals } = link.request(Command::Approvals).await? else {
        return Err(unexpected());
    };
    let Reply::Questions { questions } = link.request(Command::Questions).await? else {
        return Err(unexpected());
    };
    approvals.iter().for_each(|asked| show(asked, printer));
    for asked in &questions {
        if printer.is_json() {
            printer.json(asked);
        } else {
            printer.line(&format!(
                "\nQuestion {} of process {}: {}",
                asked.id, asked.pid, asked.text
            ));
        }
    }
    if approvals.is_empty() && questions.is_empty() && !printer.is_json() {
        printer.note("nothing waits for you");
    }
    Ok(ExitCode::SUCCESS)
}

fn show(asked: &ApprovalView, printer: &Printer) {
    if printer.is_json() {
        printer.json(asked);
        return;
    }
    for line in approval_lines(asked) {
        printer.line(&line);
    }
}

/// Answers an approval; where this program is the kernel, the run goes on to its end here.
pub(crate) async fn decide(
    link: &mut Link,
    id: u64,
    answer: Option<Answer>,
    printer: &Printer,
) -> Ended {
    let Reply::Approvals { approvals } = link.request(Command::Approvals).await? else {
        return Err(unexpected());
    };
    let Some(asked) = approvals.into_iter().find(|a| a.id == id) else {
        return Err(
            Problem::new("not_found", format!("approval `{id}` does not wait"))
                .hint("list those that wait with `steward approvals`"),
        );
    };
    let Some(answer) = answer else {
        show(&asked, printer);
        return Ok(ExitCode::SUCCESS);
    };
    let events = link.events().await?;
    let decide = Decide {
        id,
        answer: match answer {
            Answer::Yes => surface::Answer::Yes,
            Answer::No => surface::Answer::No,
        },
        digest: asked.digest.clone(),
    };
    match link.request(Command::Decide(decide)).await? {
        Reply::Decided { counted: true, .. } => {}
        Reply::Decided { note, .. } => {
            return Err(Problem::new("conflict", note.unwrap_or_default()));
        }
        _ => return Err(unexpected()),
    }
    go_on(link, events, asked.run, printer).await
}

/// Answers a question; where this program is the kernel, the run goes on to its end here.
pub(crate) async fn answer(link: &mut Link, id: u64, text: String, printer: &Printer) -> Ended {
    let Reply::Questions { questions } = link.request(Command::Questions).await? else {
        return Err(unexpected());
    };
    let Some(asked) = questions.into_iter().find(|q| q.id == id) else {
        return Err(
            Problem::new("not_found", format!("question `{id}` does not wait"))
                .hint("list those that wait with `steward approvals`"),
        );
    };
    let events = link.events().await?;
    let command = Command::AnswerQuestion { id, text };
    if let Reply::Decided {
        counted: false,
        note,
    } = link.request(command).await?
    {
        return Err(Problem::new("conflict", note.unwrap_or_default()));
    }
    go_on(link, events, asked.run, printer).await
}

/// Follows a run to its end where this program is the kernel; else it goes on in the other one.
async fn go_on(link: &mut Link, events: Events, run: u64, printer: &Printer) -> Ended {
    if let Link::Own(_) = link {
        let keyboard = Keyboard::new()?;
        let person = (printer, &keyboard);
        return Follow::existing(link, events, person, (run, run))
            .follow()
            .await;
    }
    printer.note("taken; the run goes on in the Steward that has it");
    done(printer);
    Ok(ExitCode::SUCCESS)
}

/// The last line of a command that has nothing else to tell to a script.
fn done(printer: &Printer) {
    if printer.is_json() {
        printer.json(&serde_json::json!({ "type": "done", "ok": true }));
    }
}

pub(crate) async fn kill(link: &mut Link, pid: u64, printer: &Printer) -> Ended {
    let signal = SignalView::Kill;
    link.request(Command::Signal { pid, signal }).await?;
    printer.note(&format!("process {pid} and its children are stopped"));
    done(printer);
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn doctor(printer: &Printer) -> Ended {
    let checks = steward_host::diagnose(&Paths::from_env()?).await;
    let mut missing = false;
    for check in &checks {
        missing |= check.state == CheckState::Missing;
        if printer.is_json() {
            printer.json(check);
            continue;
        }
        let sign = match check.state {
            CheckState::Works => "✓",
            CheckState::Limited => "·",
            CheckState::Missing => "✗",
        };
        printer.line(&format!("{sign} {:<10} {}", check.name, check.found));
        if let Some(hint) = &check.hint {
            printer.line(&format!("             {hint}"));
        }
    }
    Ok(if missing {
        ExitCode::from(3)
    } else {
        ExitCode::SUCCESS
    })
}

pub(crate) async fn toggle(link: &mut Link, printer: &Printer) -> Ended {
    if let Link::Own(_) = link {
        return Err(Problem::new("unavailable", "no Steward desktop runs")
            .hint("start it with `steward-desktop`"));
    }
    link.request(Command::Toggle).await?;
    done(printer);
    Ok(ExitCode::SUCCESS)
}
