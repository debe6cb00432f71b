//! `steward ask` and `steward undo`: start a run, follow it, answer what it asks.

use std::path::PathBuf;
use std::process::ExitCode;

use steward_host::surface::{ApprovalView, Decide, QuestionView, StateView, Submit};
use steward_host::{Command, Event, Problem, Reply};

use crate::Ended;
use crate::args::Approve;
use crate::link::{Events, Link};
use crate::print::Printer;

/// The command for a request in a workspace.
pub(crate) fn submit(
    request: String,
    workspace: Option<PathBuf>,
    after: Option<u64>,
) -> Result<Command, Problem> {
    let here = match workspace {
        Some(folder) => std::path::absolute(&folder),
        None => std::env::current_dir(),
    };
    let folder = here.map_err(|e| {
        Problem::new(
            "unavailable",
            format!("the current folder cannot be told: {e}"),
        )
        .hint("name one with --workspace")
    })?;
    let Some(workspace) = folder.to_str() else {
        let shown = folder.to_string_lossy().into_owned();
        return Err(Problem::new(
            "invalid",
            format!("the workspace's name is not UTF-8: `{shown}`"),
        )
        .hint("rename the folder"));
    };
    Ok(Command::Submit(Submit {
        request,
        workspace: Some(workspace.to_owned()),
        after,
    }))
}

/// Starts a run and follows it to its end.
pub(crate) async fn run(
    link: &Link,
    command: Command,
    approve: Approve,
    printer: &Printer,
) -> Ended {
    let mut follow = Follow::start(link, command, approve, printer).await?;
    follow.follow().await
}

/// A run that is followed.
pub(crate) struct Follow<'a> {
    link: &'a Link,
    events: Events,
    approve: Approve,
    printer: &'a Printer,
    pid: u64,
    run: u64,
}

impl<'a> Follow<'a> {
    pub(crate) async fn start(
        link: &'a Link,
        command: Command,
        approve: Approve,
        printer: &'a Printer,
    ) -> Result<Self, Problem> {
        // Listen before the run starts, so that its first event is not missed.
        let events = link.events().await?;
        match link.request(command).await? {
            Reply::Started { pid, run } => Ok(Self {
                link,
                events,
                approve,
                printer,
                pid,
                run,
            }),
            _ => Err(unexpected()),
        }
    }

    /// Follows a run that exists already.
    pub(crate) fn existing(
        link: &'a Link,
        events: Events,
        printer: &'a Printer,
        (pid, run): (u64, u64),
    ) -> Self {
        Self {
            link,
            events,
            approve: Approve::Ask,
            printer,
            pid,
            run,
        }
    }

    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    pub(crate) async fn follow(&mut self) -> Ended {
        loop {
            let event = tokio::select! {
                event = self.events.next() => event,
                _ = tokio::signal::ctrl_c() => {
                    self.link.request(Command::Kill { pid: self.pid }).await?;
                    continue;
                }
            };
            let Some(event) = event else {
                return Err(
                    Problem::new("unavailable", "the Steward that ran this has ended")
                        .hint("start it again; what waits goes on there"),
                );
            };
            if let Some(code) = self.take(event).await? {
                return Ok(code);
            }
        }
    }

    async fn take(&mut self, event: Event) -> Result<Option<ExitCode>, Problem> {
        if !self.concerns(&event) {
            return Ok(None);
        }
        self.printer.event(&event);
        match event {
            Event::Approval(asked) => self.answer(&asked).await?,
            Event::Question(asked) => self.answer_question(&asked).await?,
            Event::Done { ok, .. } => {
                return Ok(Some(if ok {
                    ExitCode::SUCCESS
                } else {
                    ExitCode::FAILURE
                }));
            }
            Event::Missed { .. } => return self.catch_up().await,
            _ => {}
        }
        Ok(None)
    }

    fn concerns(&self, event: &Event) -> bool {
        match event {
            Event::Token { run, .. }
            | Event::Step { run, .. }
            | Event::Message { run, .. }
            | Event::Answer { run, .. }
            | Event::Done { run, .. } => *run == self.run,
            Event::Approval(asked) => asked.run == self.run,
            Event::Question(asked) => asked.run == self.run,
            Event::Process { process } => process.run == self.run,
            Event::Model { .. } | Event::Missed { .. } | Event::Decided { .. } => true,
        }
    }

    /// After missed events the state is read anew, so that an approval or the end is not missed.
    async fn catch_up(&mut self) -> Result<Option<ExitCode>, Problem> {
        let Reply::Process(detail) = self
            .link
            .request(Command::Process { pid: self.pid })
            .await?
        else {
            return Err(unexpected());
        };
        if let Some(ok) = detail.ok {
            let (pid, run) = (self.pid, self.run);
            let text = detail.answer.unwrap_or_default();
            self.printer.event(&Event::Answer { pid, run, text });
            self.printer.event(&Event::Done {
                pid,
                run,
                ok,
                error: detail.problem,
            });
            return Ok(Some(if ok {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }));
        }
        if detail.process.state == StateView::WaitingHuman {
            let Reply::Approvals { approvals } = self.link.request(Command::Approvals).await?
            else {
                return Err(unexpected());
            };
            let run = self.run;
            for asked in approvals.into_iter().filter(|a| a.run == run) {
                self.printer.event(&Event::Approval(asked.clone()));
                self.answer(&asked).await?;
            }
        }
        Ok(None)
    }

    async fn answer(&mut self, asked: &ApprovalView) -> Result<(), Problem> {
        let approve = match self.approve {
            Approve::All => true,
            Approve::None => false,
            Approve::Ask => match self.printer.yes_or_no(asked).await {
                Some(answer) => answer,
                None => {
                    self.printer.note(&format!(
                        "waiting; answer with `steward approvals {} yes` or `no`",
                        asked.id
                    ));
                    return Ok(());
                }
            },
        };
        let digest = asked.digest.clone();
        let decide = Decide {
            id: asked.id,
            approve,
            digest,
        };
        if let Reply::Decided {
            counted: false,
            note,
        } = self.link.request(Command::Decide(decide)).await?
        {
            self.printer.note(&note.unwrap_or_default());
        }
        Ok(())
    }

    async fn answer_question(&mut self, asked: &QuestionView) -> Result<(), Problem> {
        let text = match self.approve {
            // A script said that nobody is there to answer.
            Approve::All | Approve::None => String::new(),
            Approve::Ask => match self.printer.answer(asked).await {
                Some(text) => text,
                None => {
                    self.printer.note(&format!(
                        "waiting; answer with `steward answer {} TEXT`",
                        asked.id
                    ));
                    return Ok(());
                }
            },
        };
        self.link
            .request(Command::AnswerQuestion { id: asked.id, text })
            .await?;
        Ok(())
    }
}

pub(crate) fn unexpected() -> Problem {
    Problem::new(
        "internal",
        "the kernel gave another kind of reply than was asked for",
    )
}
