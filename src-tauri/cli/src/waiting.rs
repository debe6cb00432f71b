//! `steward approvals` and `steward answer`: what waits for the person.

use std::process::ExitCode;

use steward_host::surface::{self, ApprovalView, Decide};
use steward_host::{Command, Problem, Reply};

use crate::Ended;
use crate::approval::approval_lines;
use crate::args::Answer;
use crate::ask::{Follow, unexpected};
use crate::keyboard::Keyboard;
use crate::link::{Events, Link};
use crate::print::Printer;
use crate::show::done;

pub(crate) async fn list(link: &mut Link, printer: &Printer) -> Ended {
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
    (answer, scope): (Option<Answer>, Option<String>),
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
    let answer = said(&asked, answer, scope)?;
    let events = link.events().await?;
    let decide = Decide {
        id,
        answer,
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

/// An answer with its scope, which the person must have named: an "always" counts only for what
/// they were shown.
fn said(
    asked: &ApprovalView,
    answer: Answer,
    scope: Option<String>,
) -> Result<surface::Answer, Problem> {
    match (answer, scope) {
        (Answer::Yes, None) => Ok(surface::Answer::Yes),
        (Answer::No, None) => Ok(surface::Answer::No),
        (Answer::Always, Some(scope)) => Ok(surface::Answer::Always { scope }),
        (Answer::Always, None) => {
            let message = format!("approval {}: no scope is named for `always`", asked.id);
            Err(Problem::new("invalid", message).hint(scopes_hint(asked)))
        }
        (Answer::Yes | Answer::No, Some(scope)) => {
            let shown = steward_host::escape_line(&scope);
            let message = format!("the scope `{shown}` goes with `always` only");
            Err(Problem::new("invalid", message).hint("leave --scope out"))
        }
    }
}

fn scopes_hint(asked: &ApprovalView) -> String {
    if asked.scopes.is_empty() {
        return "only yes and no are offered for this".to_owned();
    }
    let scopes = asked.scopes.iter();
    let lines: Vec<String> = scopes
        .map(|scope| format!("--scope {}: {}", scope.id, scope.words))
        .collect();
    format!("name one of these:\n  {}", lines.join("\n  "))
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
pub(crate) async fn go_on(link: &mut Link, events: Events, run: u64, printer: &Printer) -> Ended {
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
