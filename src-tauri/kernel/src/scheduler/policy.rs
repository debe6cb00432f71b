//! Scheduling policies: pure functions from a queue to the next call.

use crate::process::Pid;

/// A call that waits in a module's queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Order of arrival, over all queues.
    pub ticket: u64,
    /// Who called.
    pub pid: Pid,
    /// Monotonic milliseconds of its arrival.
    pub since_ms: u64,
}

/// Decides who is next. Adding a policy changes no other.
pub trait Policy: Send + Sync {
    /// Its name, as in the configuration.
    fn name(&self) -> &'static str;
    /// Index of the next call in a queue that is not empty; the queue is in order of arrival.
    fn next(&self, queue: &[Waiting], now_ms: u64) -> usize;
}

/// First in, first out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fifo;

impl Policy for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn next(&self, _queue: &[Waiting], _now_ms: u64) -> usize {
        0
    }
}
