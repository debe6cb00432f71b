//! Waiting for a turn, and having it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::Scheduler;
use super::line::{Arrival, Comer, Granted, Next, QUEUE_LIMIT};
use crate::error::{Code, SysError};
use crate::provider::Cancel;
use crate::syscall::Module;

/// A call on its way to a turn. It takes its place when it is first polled; dropping it gives the
/// place up.
pub struct Entering {
    scheduler: Arc<Scheduler>,
    module: Module,
    comer: Comer,
    state: State,
}

enum State {
    New,
    Waiting(u64),
    Over,
}

impl Entering {
    pub(super) fn new(scheduler: Arc<Scheduler>, module: Module, comer: Comer) -> Self {
        Self {
            scheduler,
            module,
            comer,
            state: State::New,
        }
    }

    fn slot(&mut self, granted: Granted) -> Poll<Result<Slot, SysError>> {
        self.state = State::Over;
        Poll::Ready(Ok(Slot {
            scheduler: Arc::clone(&self.scheduler),
            module: self.module,
            granted,
            comer: self.comer,
            tokens: 0,
        }))
    }
}

impl Future for Entering {
    type Output = Result<Slot, SysError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.state {
            State::New => match self.scheduler.arrive(self.module, self.comer, cx.waker()) {
                Arrival::Turn(granted) => self.slot(granted),
                Arrival::Waits(ticket) => {
                    self.state = State::Waiting(ticket);
                    Poll::Pending
                }
                Arrival::Full => {
                    self.state = State::Over;
                    let message = format!("`{QUEUE_LIMIT}` calls wait for this module already");
                    Poll::Ready(Err(
                        SysError::new(Code::Limit, message).hint("try again when some have ended")
                    ))
                }
            },
            State::Waiting(ticket) => {
                let turn = self.scheduler.line(self.module).take(ticket, cx.waker());
                turn.map_or(Poll::Pending, |granted| self.slot(granted))
            }
            State::Over => Poll::Pending,
        }
    }
}

impl Drop for Entering {
    fn drop(&mut self) {
        if let State::Waiting(ticket) = self.state {
            self.scheduler.withdraw(self.module, ticket);
        }
    }
}

/// What a generation does after a slice.
pub enum AfterSlice {
    /// It goes on.
    GoOn(Slot),
    /// It gives way, and comes again.
    GiveWay(Entering),
}

/// A turn in a module; given back when dropped.
pub struct Slot {
    scheduler: Arc<Scheduler>,
    module: Module,
    granted: Granted,
    comer: Comer,
    /// Tokens used in this turn.
    tokens: u32,
}

impl Slot {
    /// Monotonic milliseconds when the call took its place in the queue.
    pub fn entered_ms(&self) -> u64 {
        self.granted.entered_ms
    }

    /// Monotonic milliseconds when its turn came.
    pub fn started_ms(&self) -> u64 {
        self.granted.started_ms
    }

    /// Milliseconds that it waited.
    pub fn wait_ms(&self) -> u64 {
        self.started_ms().saturating_sub(self.entered_ms())
    }

    /// Counts tokens as used in this turn.
    pub fn charge(&mut self, tokens: u32) {
        self.tokens = self.tokens.saturating_add(tokens);
    }

    /// Tokens to generate before [`Slot::after_slice`]; `None`: to the end.
    pub fn quantum(&self) -> Option<u32> {
        let quantum = self.scheduler.line(self.module).quantum();
        quantum.map(|most| most.saturating_sub(self.tokens).max(1))
    }

    /// Set when a call that goes before this one waits. Never set for a call that is not sliced.
    pub fn yield_now(&self) -> Cancel {
        self.granted.yield_now.clone().unwrap_or_default()
    }

    /// What the generation does after a slice. The slot is given back where it is to give way.
    pub fn after_slice(mut self) -> AfterSlice {
        let next = self
            .scheduler
            .after_slice(self.module, &mut self.granted, self.tokens);
        match next {
            Next::GoOn { anew } => {
                if anew {
                    self.tokens = 0;
                }
                AfterSlice::GoOn(self)
            }
            Next::GiveWay { keeps_arrival } => AfterSlice::GiveWay(self.again(keeps_arrival)),
        }
    }

    /// Gives the slot back in the middle of a generation; the way to its next turn.
    pub fn give_back(self) -> Entering {
        self.again(false)
    }

    fn again(self, keeps_arrival: bool) -> Entering {
        let comer = Comer {
            before: keeps_arrival.then_some(self.granted.call),
            ..self.comer
        };
        Entering::new(Arc::clone(&self.scheduler), self.module, comer)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.scheduler
            .leave(self.module, &self.granted, self.tokens);
    }
}
