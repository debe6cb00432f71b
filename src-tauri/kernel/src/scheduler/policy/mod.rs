//! Scheduling policies: small pure types that give each waiting call its place.
//!
//! A policy turns a call into a *rank*; a queue hands its next turn to the lowest rank, and to the
//! earlier arrival where two are equal. A running generation gives way when a call of lower rank
//! waits, and once its quantum is used up when a waiting call's rank is lower than the one it would
//! get if it came again now. Nothing else is decided here: a policy knows neither queues nor locks
//! nor clocks.
//!
//! A new policy is a file with a [`Kind`], and a line in [`KINDS`].

mod choice;
mod deadline;
mod fair_share;
mod fifo;
mod interactive;
mod priority;
mod round_robin;

pub use choice::{Params, PolicyChoice};

use crate::process::{Pid, RunId, Urgency};

/// What a policy may know of whoever calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// The process.
    pub pid: Pid,
    /// The run it belongs to.
    pub run: RunId,
    /// Its class, from 0 (first) to [`Urgency::LAST`].
    pub priority: u8,
    /// Whether a person waits for it.
    pub interactive: bool,
    /// Monotonic milliseconds by which its call should have its turn.
    pub deadline_ms: Option<u64>,
}

impl Caller {
    /// A process of the usual class in the background, without a deadline.
    pub fn new(pid: Pid, run: RunId) -> Self {
        Self {
            pid,
            run,
            priority: Urgency::USUAL,
            interactive: false,
            deadline_ms: None,
        }
    }
}

/// A call in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Order of arrival in its queue.
    pub ticket: u64,
    /// Who called.
    pub caller: Caller,
    /// Monotonic milliseconds of its arrival.
    pub arrived_ms: u64,
}

/// Decides who is next.
///
/// The calls of one queue reach it in order: each arrival, each start, each end. A policy that only
/// looks at the call implements [`Policy::rank`] and no more.
pub trait Policy: Send {
    /// The place of a call that arrives now: the lowest is next.
    fn rank(&self, call: &Call) -> u64;

    /// Tokens after which a running generation gives way to others; `None`: it runs to its end
    /// unless a call of lower rank comes.
    fn quantum(&self) -> Option<u32> {
        None
    }

    /// A call arrives; its rank, which stands until it starts.
    fn arrive(&mut self, call: &Call) -> u64 {
        self.rank(call)
    }

    /// The rank that a running call would get if it came again now, having used `tokens` in this
    /// turn.
    fn again(&self, call: &Call, _tokens: u32, now_ms: u64) -> u64 {
        self.rank(&Call {
            arrived_ms: now_ms,
            ..*call
        })
    }

    /// The waiting call of this rank has its turn.
    fn start(&mut self, _rank: u64) {}

    /// A call's turn is over, or it gave up waiting (then with no tokens used).
    fn end(&mut self, _call: &Call, _tokens: u32) {}
}

/// A kind of policy, as the configuration names it.
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// In a few words, for people.
    pub help: &'static str,
    /// Makes one from its parameters.
    make: fn(&mut Params) -> Result<Box<dyn Policy>, crate::SysError>,
}

/// Every kind of policy.
pub const KINDS: &[&Kind] = &[
    &fifo::KIND,
    &round_robin::KIND,
    &priority::KIND,
    &fair_share::KIND,
    &interactive::KIND,
    &deadline::KIND,
];

/// Tokens of a quantum where the configuration sets none.
const QUANTUM: u32 = 16;
/// Tokens of a quantum at most.
const QUANTUM_MOST: u64 = 65_536;
/// Milliseconds that a parameter may be at most: a day.
const MS_MOST: u64 = 86_400_000;
