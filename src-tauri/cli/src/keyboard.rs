//! What a person types.

use std::io::{BufRead, IsTerminal};

use steward_host::Problem;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Mutex, mpsc};

/// Lines that wait to be read at most, where standard input is a file.
const AHEAD: usize = 64;

/// Standard input by lines, and Ctrl+C. Nothing is read before the first line is asked for; Ctrl+C
/// ends the program no more, and none is missed.
pub(crate) struct Keyboard {
    lines: Mutex<Option<mpsc::Receiver<String>>>,
    interrupts: Mutex<Signal>,
}

impl Keyboard {
    pub(crate) fn new() -> Result<Self, Problem> {
        let interrupts = signal(SignalKind::interrupt())
            .map_err(|e| Problem::new("unavailable", format!("cannot listen for Ctrl+C: {e}")))?;
        Ok(Self {
            lines: Mutex::default(),
            interrupts: Mutex::new(interrupts),
        })
    }

    /// Whether a person can answer there.
    pub(crate) fn is_there() -> bool {
        std::io::stdin().is_terminal()
    }

    /// The next line; `None` at the end of the input. Safe to be given up: no line is lost.
    pub(crate) async fn line(&self) -> Option<String> {
        let mut lines = self.lines.lock().await;
        lines.get_or_insert_with(listen).recv().await
    }

    /// Waits for Ctrl+C. Safe to be given up.
    pub(crate) async fn interrupted(&self) {
        if self.interrupts.lock().await.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Drops the lines that were typed before a question was shown: they are no answer to it.
    pub(crate) fn forget(&self) {
        if let Ok(mut lines) = self.lines.try_lock()
            && let Some(lines) = lines.as_mut()
        {
            while lines.try_recv().is_ok() {}
        }
    }
}

/// A thread of its own: a read from a terminal cannot be given up.
fn listen() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            match input.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let line = String::from_utf8_lossy(&line).into_owned();
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
