//! The way to the kernel: in this program, or in the one that has the data directory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use steward_host::{
    Attached, Client, Command, Event, Host, Problem, Reply, Resume, Surface, attach,
};
use tokio::sync::{broadcast, mpsc};

/// How long a program may take to end, and how often to look.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) enum Link {
    Own(Arc<Host>),
    Other(Client),
}

impl Link {
    pub(crate) async fn open(resume: Resume) -> Result<Self, Problem> {
        Ok(match attach(resume).await? {
            Attached::Own(host) => Self::Own(host),
            Attached::Other(client) => Self::Other(client),
        })
    }

    /// Sends a command; an error reply becomes an error. Where the other program has ended, this one
    /// takes its place.
    pub(crate) async fn request(&mut self, command: Command) -> Result<Reply, Problem> {
        // Twice does what once does, unless it starts something.
        let starts = matches!(
            command,
            Command::Submit(_)
                | Command::Run(_)
                | Command::Undo { .. }
                | Command::SendMessage { .. }
                | Command::CreateCheckpoint { .. }
                | Command::ForkCheckpoint { .. }
        );
        let begun = Instant::now();
        loop {
            let reply = match self {
                Link::Own(host) => host.handle(command.clone(), Surface::Terminal).await,
                Link::Other(client) => client.request(&command).await,
            };
            match reply {
                Reply::Error(problem) if problem.is_ending() || (problem.is_gone() && !starts) => {
                    self.succeed(begun, problem).await?;
                }
                Reply::Error(problem) => return Err(problem),
                reply => return Ok(reply),
            }
        }
    }

    /// After the other program has ended: this one takes its place, or finds the one that did.
    async fn succeed(&mut self, begun: Instant, problem: Problem) -> Result<(), Problem> {
        if begun.elapsed() > PATIENCE {
            return Err(problem);
        }
        tokio::time::sleep(PAUSE).await;
        *self = Self::open(Resume::All).await?;
        Ok(())
    }

    /// Ends the kernel, where it is in this program: what other programs asked of it is answered
    /// first, and their runs go on in one of them.
    pub(crate) async fn close(self) {
        if let Link::Own(host) = self {
            host.close().await;
        }
    }

    pub(crate) async fn events(&mut self) -> Result<Events, Problem> {
        let begun = Instant::now();
        loop {
            match self {
                Link::Own(host) => return Ok(Events::Own(host.subscribe())),
                Link::Other(client) => match client.events().await {
                    Ok(events) => return Ok(Events::Other(events)),
                    Err(problem) if problem.is_gone() => self.succeed(begun, problem).await?,
                    Err(problem) => return Err(problem),
                },
            }
        }
    }
}

pub(crate) enum Events {
    Own(broadcast::Receiver<Event>),
    Other(mpsc::Receiver<Event>),
}

impl Events {
    /// The next event; `None` when the kernel has gone.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        match self {
            Events::Own(events) => match events.recv().await {
                Ok(event) => Some(event),
                Err(broadcast::error::RecvError::Lagged(count)) => Some(Event::Missed { count }),
                Err(broadcast::error::RecvError::Closed) => None,
            },
            Events::Other(events) => events.recv().await,
        }
    }
}
