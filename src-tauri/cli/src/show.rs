//! Commands that show or settle one thing: `ps`, signals, `message`, `objects`, `log`, `doctor`,
//! `--toggle`.

use std::process::ExitCode;

use steward_host::surface::{CheckState, ProcessView, SignalView, StateView};
use steward_host::{Command, Paths, Problem, Reply};

use crate::Ended;
use crate::approval::shortened;
use crate::ask::unexpected;
use crate::link::Link;
use crate::print::Printer;
use crate::waiting::go_on;

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
    nothing_runs(shown.is_empty(), all, printer);
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn nothing_runs(empty: bool, all: bool, printer: &Printer) {
    if empty && !printer.is_json() {
        printer.note(if all {
            "no process yet; ask for something with `steward ask`"
        } else {
            "nothing runs; `steward ps --all` shows what has ended"
        });
    }
}

pub(crate) fn state_words(state: StateView) -> &'static str {
    match state {
        StateView::Created => "starting",
        StateView::Runnable => "waiting for its turn",
        StateView::Running => "running",
        StateView::WaitingEvent => "waiting",
        StateView::WaitingTool => "waiting for a file or a tool",
        StateView::WaitingHuman => "waiting for you",
        StateView::Paused => "paused",
        StateView::Suspended => "put aside",
        StateView::Exited => "done",
        StateView::Failed => "failed",
        StateView::Killed => "stopped",
    }
}

fn row(process: &ProcessView) -> String {
    let state = state_words(process.state);
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

/// The last line of a command that has nothing else to tell to a script.
pub(crate) fn done(printer: &Printer) {
    if printer.is_json() {
        printer.json(&serde_json::json!({ "type": "done", "ok": true }));
    }
}

pub(crate) async fn signal(
    link: &mut Link,
    pid: u64,
    signal: SignalView,
    printer: &Printer,
) -> Ended {
    let events = link.events().await?;
    link.request(Command::Signal { pid, signal }).await?;
    printer.note(&match signal {
        SignalView::Pause => {
            format!("process {pid} stands still; `steward resume {pid}` has it go on")
        }
        SignalView::Resume => format!("process {pid} goes on"),
        SignalView::Interrupt => format!("the call that process {pid} waited in is ended"),
        SignalView::Kill => format!("process {pid} and its children are stopped"),
    });
    if signal == SignalView::Resume
        && let Link::Own(_) = link
    {
        let Reply::Process(detail) = link.request(Command::Process { pid }).await? else {
            return Err(unexpected());
        };
        return go_on(link, events, detail.process.run, printer).await;
    }
    done(printer);
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn message(link: &mut Link, pid: u64, text: String, printer: &Printer) -> Ended {
    link.request(Command::SendMessage { pid, text }).await?;
    printer.note(&format!("it is in the mailbox of process {pid}"));
    done(printer);
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn objects(link: &mut Link, pid: u64, printer: &Printer) -> Ended {
    let Reply::Objects { objects } = link.request(Command::Objects { pid }).await? else {
        return Err(unexpected());
    };
    for object in &objects {
        if printer.is_json() {
            printer.json(object);
            continue;
        }
        let name = object.name.as_deref().unwrap_or("-");
        let kept = if object.kept { ", kept" } else { "" };
        let fixed = if object.immutable { ", immutable" } else { "" };
        printer.line(&format!(
            "{:>5}  {}/{name}  {}, version {}, {} bytes, by process {}{kept}{fixed}",
            object.id, object.namespace, object.kind, object.version, object.bytes, object.creator
        ));
    }
    if objects.is_empty() && !printer.is_json() {
        printer.note(&format!("process {pid} remembers nothing"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Unix milliseconds in UTC, to the second (RFC 3339).
pub(crate) fn clock(ms: u64) -> String {
    let seconds = i64::try_from(ms / 1000).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| ms.to_string(), |time| time.to_string())
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
