//! The way to the kernel: in this program, or in the one that has the data directory.

use std::sync::Arc;

use steward_host::{
    Attached, Client, Command, Event, Host, Problem, Reply, Resume, Surface, attach,
};
use tokio::sync::{broadcast, mpsc};

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

    /// Sends a command; an error reply becomes an error.
    pub(crate) async fn request(&self, command: Command) -> Result<Reply, Problem> {
        let reply = match self {
            Link::Own(host) => host.handle(command, Surface::Terminal).await,
            Link::Other(client) => client.request(&command).await,
        };
        match reply {
            Reply::Error(problem) => Err(problem),
            reply => Ok(reply),
        }
    }

    pub(crate) async fn events(&self) -> Result<Events, Problem> {
        Ok(match self {
            Link::Own(host) => Events::Own(host.subscribe()),
            Link::Other(client) => Events::Other(client.events().await?),
        })
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
