//! `steward ask` and `steward undo`: start a run, follow it, answer what it asks.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::ExitCode;

use steward_host::surface::{
    Answer, ApprovalView, Decide, QuestionView, SignalView, StateView, Submit,
};
use steward_host::{Command, Event, Problem, Reply, Resume};

use crate::args::Approve;
use crate::keyboard::Keyboard;
use crate::link::{Events, Link};
use crate::print::Printer;
use crate::{BROKEN, Ended, is_broken};

/// The command for a request in a workspace.
pub(crate) fn submit(
    request: String,
    workspace: Option<PathBuf>,
    after: Option<u64>,
) -> Result<Command, Problem> {
    Ok(Command::Submit(Submit {
        request,
        workspace: Some(absolute(workspace)?),
        after,
    }))
}

/// The whole path of a folder; of the current one where none is named.
pub(crate) fn absolute(folder: Option<PathBuf>) -> Result<String, Problem> {
    let here = match folder {
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
    folder.into_os_string().into_string().map_err(|folder| {
        let shown = steward_host::escape_line(&folder.to_string_lossy());
        Problem::new(
            "invalid",
            format!("the workspace's name is not UTF-8: `{shown}`"),
        )
        .hint("rename the folder")
    })
}

/// Starts a run and follows it to its end.
pub(crate) async fn run(
    link: &mut Link,
    command: Command,
    approve: Approve,
    printer: &Printer,
) -> Ended {
    let keyboard = Keyboard::new()?;
    let mut follow = Follow::start(link, command, approve, (printer, &keyboard)).await?;
    follow.follow().await
}

/// A run that is followed.
pub(crate) struct Follow<'a> {
    link: &'a mut Link,
    events: Events,
    approve: Approve,
    printer: &'a Printer,
    keyboard: &'a Keyboard,
    pid: u64,
    run: u64,
    /// What waits for the person, oldest first; the first one is on the screen.
    asked: VecDeque<Asked>,
    /// Whether a person can still type an answer.
    listens: bool,
    /// What Ctrl+C does to the process.
    on_interrupt: SignalView,
}

#[derive(Clone)]
enum Asked {
    Approval(Box<ApprovalView>),
    Question(QuestionView),
}

impl Asked {
    /// The process that asks, and the number of what it asks. Approvals and questions are numbered
    /// apart.
    fn key(&self) -> (u64, u64, bool) {
        match self {
            Asked::Approval(asked) => (asked.pid, asked.id, true),
            Asked::Question(asked) => (asked.pid, asked.id, false),
        }
    }
}

impl<'a> Follow<'a> {
    pub(crate) async fn start(
        link: &'a mut Link,
        command: Command,
        approve: Approve,
        person: (&'a Printer, &'a Keyboard),
    ) -> Result<Self, Problem> {
        // Listen before the run starts, so that its first event is not missed.
        let events = link.events().await?;
        let Reply::Started { pid, run } = link.request(command).await? else {
            return Err(unexpected());
        };
        let follow = Self::existing(link, events, person, (pid, run));
        Ok(Self { approve, ..follow })
    }

    /// Follows a run that exists already.
    pub(crate) fn existing(
        link: &'a mut Link,
        events: Events,
        (printer, keyboard): (&'a Printer, &'a Keyboard),
        (pid, run): (u64, u64),
    ) -> Self {
        Self {
            link,
            events,
            approve: Approve::Ask,
            printer,
            keyboard,
            pid,
            run,
            asked: VecDeque::new(),
            listens: Keyboard::is_there(),
            on_interrupt: SignalView::Kill,
        }
    }

    /// The first Ctrl+C ends only the call that the process waits in; the next one ends the process.
    pub(crate) fn interruptible(mut self) -> Self {
        self.on_interrupt = SignalView::Interrupt;
        self
    }

    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    pub(crate) async fn follow(&mut self) -> Ended {
        loop {
            let ended = tokio::select! {
                event = self.events.next() => match event {
                    Some(event) => self.take(event).await?,
                    None => self.take_over().await?,
                },
                line = self.keyboard.line(), if self.listens && !self.asked.is_empty() => {
                    self.typed(line).await?;
                    None
                }
                () = self.keyboard.interrupted() => {
                    self.interrupt().await?;
                    None
                }
            };
            if let Some(code) = ended {
                return Ok(code);
            }
        }
    }

    async fn interrupt(&mut self) -> Result<(), Problem> {
        let signal = std::mem::replace(&mut self.on_interrupt, SignalView::Kill);
        let pid = self.pid;
        self.link.request(Command::Signal { pid, signal }).await?;
        if signal == SignalView::Interrupt {
            self.printer.note("\ninterrupted; Ctrl+C again stops it");
        }
        Ok(())
    }

    async fn take(&mut self, event: Event) -> Result<Option<ExitCode>, Problem> {
        if !self.concerns(&event) {
            return Ok(None);
        }
        self.printer.event(&event);
        match event {
            Event::Approval(asked) => self.ask(Asked::Approval(Box::new(asked))).await?,
            Event::Question(asked) => self.ask(Asked::Question(asked)).await?,
            Event::Decided { id, approved, .. } => self.decided(id, approved),
            Event::Process { process } if process.state != StateView::WaitingHuman => {
                self.asked.retain(|asked| asked.key().0 != process.pid);
            }
            Event::Done { ok, error, .. } => return Ok(Some(exit_code(ok, error.as_ref()))),
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

    /// The program that was the kernel has ended: this one takes its place, or finds the one that
    /// did, and the run goes on.
    async fn take_over(&mut self) -> Result<Option<ExitCode>, Problem> {
        if let Link::Other(_) = self.link {
            *self.link = Link::open(Resume::All).await?;
        }
        self.events = self.link.events().await?;
        self.catch_up().await
    }

    /// After missed events the state is read anew, so that an approval or the end is not missed.
    async fn catch_up(&mut self) -> Result<Option<ExitCode>, Problem> {
        let (pid, run) = (self.pid, self.run);
        let Reply::Process(detail) = self.link.request(Command::Process { pid }).await? else {
            return Err(unexpected());
        };
        if let Some(ok) = detail.ok {
            let (text, error) = (detail.answer.unwrap_or_default(), detail.problem);
            let code = exit_code(ok, error.as_ref());
            self.printer.event(&Event::Answer { pid, run, text });
            self.printer.event(&Event::Done {
                pid,
                run,
                ok,
                error,
            });
            return Ok(Some(code));
        }
        let Reply::Approvals { approvals } = self.link.request(Command::Approvals).await? else {
            return Err(unexpected());
        };
        for asked in approvals.into_iter().filter(|a| a.run == run) {
            self.printer.event(&Event::Approval(asked.clone()));
            self.ask(Asked::Approval(Box::new(asked))).await?;
        }
        let Reply::Questions { questions } = self.link.request(Command::Questions).await? else {
            return Err(unexpected());
        };
        for asked in questions.into_iter().filter(|q| q.run == run) {
            self.printer.event(&Event::Question(asked.clone()));
            self.ask(Asked::Question(asked)).await?;
        }
        Ok(None)
    }

    /// Answers as `--approve` says, or asks the person.
    async fn ask(&mut self, asked: Asked) -> Result<(), Problem> {
        if self.asked.iter().any(|known| known.key() == asked.key()) {
            return Ok(());
        }
        match (self.approve, asked) {
            (Approve::Ask, asked) => {
                self.asked.push_back(asked);
                if self.asked.len() == 1 {
                    self.show();
                }
                Ok(())
            }
            (Approve::All, Asked::Approval(asked)) => self.decide(&asked, Answer::Yes).await,
            (Approve::None, Asked::Approval(asked)) => self.decide(&asked, Answer::No).await,
            // A script said that nobody is there to answer.
            (_, Asked::Question(asked)) => self.reply(asked.id, String::new()).await,
        }
    }

    /// Puts the oldest of what waits on the screen.
    fn show(&self) {
        let Some(asked) = self.asked.front() else {
            return;
        };
        match asked {
            Asked::Approval(asked) => self.printer.approval(asked),
            Asked::Question(asked) => self.printer.question(asked),
        }
        if self.listens {
            self.keyboard.forget();
            self.prompt(asked);
        } else {
            self.tell_how(asked);
        }
    }

    fn prompt(&self, asked: &Asked) {
        self.printer.prompt(match asked {
            Asked::Approval(asked) if asked.scopes.is_empty() => "yes or no? ",
            Asked::Approval(_) => "always NUMBER, yes or no? ",
            Asked::Question(_) => "> ",
        });
    }

    fn tell_how(&self, asked: &Asked) {
        self.printer.note(&match asked {
            Asked::Approval(asked) => {
                let id = asked.id;
                format!("waiting; answer with `steward approvals {id} yes` or `no`")
            }
            Asked::Question(asked) => {
                format!("waiting; answer with `steward answer {} TEXT`", asked.id)
            }
        });
    }

    /// A line that the person typed, or the end of what they type.
    async fn typed(&mut self, line: Option<String>) -> Result<(), Problem> {
        let Some(asked) = self.asked.front().cloned() else {
            return Ok(());
        };
        let Some(line) = line else {
            self.listens = false;
            self.printer.prompt("\n");
            self.tell_how(&asked);
            return Ok(());
        };
        match &asked {
            Asked::Approval(approval) => match said(&line, approval) {
                Some(answer) => {
                    self.asked.pop_front();
                    self.decide(approval, answer).await?;
                }
                None => {
                    self.prompt(&asked);
                    return Ok(());
                }
            },
            Asked::Question(question) => {
                self.asked.pop_front();
                self.reply(question.id, chosen(&line, &question.choices))
                    .await?;
            }
        }
        self.show();
        Ok(())
    }

    /// An approval was answered, here or elsewhere.
    fn decided(&mut self, id: u64, approved: bool) {
        let is_it = |asked: &Asked| matches!(asked, Asked::Approval(a) if a.id == id);
        let shown = self.asked.front().is_some_and(is_it);
        self.asked.retain(|asked| !is_it(asked));
        if shown {
            let word = if approved { "approved" } else { "denied" };
            self.printer.note(&format!("\n{word} elsewhere"));
            self.show();
        }
    }

    async fn decide(&mut self, asked: &ApprovalView, answer: Answer) -> Result<(), Problem> {
        let decide = Decide {
            id: asked.id,
            answer,
            digest: asked.digest.clone(),
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

    async fn reply(&mut self, id: u64, text: String) -> Result<(), Problem> {
        self.link
            .request(Command::AnswerQuestion { id, text })
            .await
            .map(drop)
    }
}

/// The answer that a line gives to an approval. An "always" names one of the scopes that are on the
/// screen.
fn said(line: &str, asked: &ApprovalView) -> Option<Answer> {
    let line = line.trim();
    match line {
        "yes" | "y" | "是" | "好" => return Some(Answer::Yes),
        "no" | "n" | "否" | "不" => return Some(Answer::No),
        _ => {}
    }
    let always = ["always", "总是"];
    let named = always
        .iter()
        .find_map(|word| line.strip_prefix(word))?
        .trim();
    let scope = asked.scopes.iter().find(|scope| scope.id == named)?;
    Some(Answer::Always {
        scope: scope.id.clone(),
    })
}

/// The choice that a line names by its number, or the line.
fn chosen(line: &str, choices: &[String]) -> String {
    let line = line.trim();
    let number = line.parse::<usize>().ok();
    let choice = number.and_then(|n| choices.get(n.wrapping_sub(1)));
    choice.cloned().unwrap_or_else(|| line.to_owned())
}

/// What a run's end says to the shell.
fn exit_code(ok: bool, error: Option<&Problem>) -> ExitCode {
    match error {
        _ if ok => ExitCode::SUCCESS,
        Some(problem) if is_broken(problem) => ExitCode::from(BROKEN),
        _ => ExitCode::FAILURE,
    }
}

pub(crate) fn unexpected() -> Problem {
    Problem::new(
        "internal",
        "the kernel gave another kind of reply than was asked for",
    )
}
