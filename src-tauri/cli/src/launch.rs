//! `steward run`: a session with an image, under the rights that the person names.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use steward_host::surface::{Access, Limits, Run, ShellAccess};
use steward_host::{Command, Problem, Reply, Resume};

use crate::Ended;
use crate::args::Approve;
use crate::ask::{self, Follow, absolute, unexpected};
use crate::keyboard::Keyboard;
use crate::link::Link;
use crate::print::Printer;
use crate::show;

#[derive(Debug, clap::Args)]
pub(crate) struct Launch {
    /// The image, as `steward images` lists it.
    image: String,
    /// What you want, in your words; a session opens where it is absent.
    request: Vec<String>,
    /// The folder that it works in; the current one where absent.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// What it may do to files there.
    #[arg(long, value_enum, default_value_t = FileAccess::Edit)]
    access: FileAccess,
    /// Which programs it may run.
    #[arg(long, value_enum, default_value_t = Shell::None)]
    shell: Shell,
    /// How approvals are answered, where a request is given.
    #[arg(long, value_enum, default_value_t = Approve::Ask)]
    approve: Approve,
    /// Tokens that a request may use, its children's included.
    #[arg(long, value_name = "NUMBER")]
    tokens: Option<u64>,
    /// System calls that a request may make.
    #[arg(long, value_name = "NUMBER")]
    calls: Option<u64>,
    /// Seconds that a request may take.
    #[arg(long, value_name = "NUMBER")]
    seconds: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FileAccess {
    /// Look.
    Read,
    /// Look, and change after your yes to each change.
    Edit,
    /// Look and change, without asking.
    Full,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    /// None.
    None,
    /// Any, after your yes to each.
    Ask,
    /// Those of a list without asking, others after your yes.
    Allowlist,
    /// Any, without asking.
    Full,
}

pub(crate) async fn run(
    link: &mut Link,
    launch: Launch,
    workspace: Option<PathBuf>,
    printer: &Printer,
) -> Ended {
    let (request, approve) = (launch.request.join(" "), launch.approve);
    let mut session = Session::new(launch, workspace)?;
    if !request.is_empty() {
        return ask::run(link, session.request(request), approve, printer).await;
    }
    session.hold(link, printer).await
}

/// What the next request is made with.
struct Session {
    image: String,
    workspace: String,
    /// The working directory within the workspace; empty for the workspace itself.
    folder: String,
    access: Access,
    shell: ShellAccess,
    limits: Limits,
    after: Option<u64>,
}

/// A line that is typed in a session.
#[derive(Debug, PartialEq, Eq)]
enum Typed<'a> {
    Nothing,
    Cd(&'a str),
    Exec(&'a str),
    Ps,
    Exit,
    Request(&'a str),
}

fn typed(line: &str) -> Typed<'_> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    match (word, rest) {
        ("", _) => Typed::Nothing,
        ("cd", folder) => Typed::Cd(folder),
        ("exec", image) if !image.is_empty() && !image.contains(char::is_whitespace) => {
            Typed::Exec(image)
        }
        ("ps", "") => Typed::Ps,
        ("exit" | "quit", "") => Typed::Exit,
        _ => Typed::Request(line),
    }
}

impl Session {
    fn new(launch: Launch, workspace: Option<PathBuf>) -> Result<Self, Problem> {
        Ok(Self {
            image: launch.image,
            workspace: absolute(launch.workspace.or(workspace))?,
            folder: String::new(),
            access: match launch.access {
                FileAccess::Read => Access::Read,
                FileAccess::Edit => Access::Edit,
                FileAccess::Full => Access::Full,
            },
            shell: match launch.shell {
                Shell::None => ShellAccess::None,
                Shell::Ask => ShellAccess::Ask,
                Shell::Allowlist => ShellAccess::Allowlist,
                Shell::Full => ShellAccess::Full,
            },
            limits: Limits {
                tokens: launch.tokens,
                calls: launch.calls,
                seconds: launch.seconds,
                ..Limits::default()
            },
            after: None,
        })
    }

    fn request(&self, request: String) -> Command {
        Command::Run(Run {
            image: self.image.clone(),
            request,
            workspace: self.workspace.clone(),
            folder: self.folder.clone(),
            access: self.access,
            shell: self.shell,
            limits: self.limits,
            after: self.after,
        })
    }

    /// Reads and carries out lines until the person leaves.
    async fn hold(&mut self, link: &mut Link, printer: &Printer) -> Ended {
        let keyboard = Keyboard::new()?;
        self.check(link).await?;
        printer.note(
            "Say what you want. `cd FOLDER`, `exec IMAGE`, `ps` and `exit` are for the session; \
             Ctrl+C interrupts.",
        );
        loop {
            let at = match self.folder.as_str() {
                "" => String::new(),
                folder => format!(":{folder}"),
            };
            let prompt = format!("\n{}{at}> ", self.image);
            printer.prompt(&steward_host::escape_lines(&prompt));
            let line = tokio::select! {
                line = keyboard.line() => line,
                // There is no request to interrupt.
                () = keyboard.interrupted() => continue,
            };
            let Some(line) = line else {
                return Ok(ExitCode::SUCCESS);
            };
            let done = match typed(&line) {
                Typed::Nothing => Ok(()),
                Typed::Exit => return Ok(ExitCode::SUCCESS),
                Typed::Ps => show::processes(link, false, printer).await.map(drop),
                Typed::Cd(folder) => self.cd(folder),
                Typed::Exec(image) => self.exec(link, image).await,
                Typed::Request(request) => self.follow(link, request, (printer, &keyboard)).await,
            };
            if let Err(problem) = done {
                printer.problem(&problem);
                // The program that was the kernel may have ended.
                if let Link::Other(_) = link {
                    *link = Link::open(Resume::All).await?;
                }
            }
        }
    }

    /// Follows one request. What goes wrong on the way ends only the request.
    async fn follow(
        &mut self,
        link: &mut Link,
        request: &str,
        person: (&Printer, &Keyboard),
    ) -> Result<(), Problem> {
        let command = self.request(request.to_owned());
        let follow = Follow::start(link, command, Approve::Ask, person).await?;
        let mut follow = follow.interruptible();
        if let Err(problem) = follow.follow().await {
            person.0.problem(&problem);
        }
        self.after = Some(follow.run());
        Ok(())
    }

    /// Another image for the requests to come, under the same rights.
    async fn exec(&mut self, link: &mut Link, image: &str) -> Result<(), Problem> {
        let before = std::mem::replace(&mut self.image, image.to_owned());
        let checked = self.check(link).await;
        if checked.is_err() {
            self.image = before;
        }
        checked
    }

    /// Whether the image is there.
    async fn check(&self, link: &mut Link) -> Result<(), Problem> {
        let name = self.image.clone();
        match link.request(Command::Image { name }).await? {
            Reply::Image(_) => Ok(()),
            _ => Err(unexpected()),
        }
    }

    /// Another working directory; whether it is there shows when a request begins in it.
    fn cd(&mut self, folder: &str) -> Result<(), Problem> {
        self.folder = inside(&self.folder, folder).ok_or_else(|| {
            let shown = steward_host::escape_line(folder);
            Problem::new(
                "invalid",
                format!("`{shown}` leads out of the workspace `{}`", self.workspace),
            )
            .hint("name a folder of the workspace; `cd` alone goes back to it")
        })?;
        Ok(())
    }
}

/// A folder as seen from another one of the workspace; `None` where it leads out.
fn inside(from: &str, to: &str) -> Option<String> {
    if to.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = match to {
        "" => Vec::new(),
        _ => from.split('/').filter(|part| !part.is_empty()).collect(),
    };
    for part in to.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_of_the_session_or_a_request() {
        let table = [
            ("", Typed::Nothing),
            ("  \n", Typed::Nothing),
            ("cd", Typed::Cd("")),
            ("cd letters\n", Typed::Cd("letters")),
            ("cd  a folder ", Typed::Cd("a folder")),
            ("exec reviewer", Typed::Exec("reviewer")),
            ("exec", Typed::Request("exec")),
            ("exec this for me", Typed::Request("exec this for me")),
            ("ps", Typed::Ps),
            ("ps what is it?", Typed::Request("ps what is it?")),
            ("exit", Typed::Exit),
            ("quit\n", Typed::Exit),
            ("exit the room", Typed::Request("exit the room")),
            (" read notes.md\n", Typed::Request("read notes.md")),
        ];
        for (line, meant) in table {
            assert_eq!(typed(line), meant, "{line:?}");
        }
    }

    #[test]
    fn a_folder_stays_in_the_workspace() {
        let table = [
            ("", "letters", Some("letters")),
            ("letters", "old", Some("letters/old")),
            ("letters", "./old//", Some("letters/old")),
            ("letters/old", "..", Some("letters")),
            ("letters/old", "../../x", Some("x")),
            ("letters", "", Some("")),
            ("letters", ".", Some("letters")),
            ("", "..", None),
            ("letters", "../..", None),
            ("letters", "x/../../../etc", None),
            ("", "/etc", None),
        ];
        for (from, to, found) in table {
            assert_eq!(inside(from, to).as_deref(), found, "{from:?} {to:?}");
        }
    }
}
