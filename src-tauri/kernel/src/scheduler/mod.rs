//! The central scheduler: it holds every module's queue; modules only execute.
//!
//! A call takes a place in its module's queue and gets a [`Slot`] when the policy picks it and the
//! module has room. A call that waits for something else (a person, a child, time) gives its slot
//! back first.

mod policy;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

pub use policy::{Fifo, Policy, Waiting};

use crate::error::{Code, SysError};
use crate::process::Pid;
use crate::provider::Clock;
use crate::syscall::Module;

/// Calls that may wait in one module's queue; more are refused, so that memory stays bounded.
const QUEUE_LIMIT: usize = 10_000;

struct Place {
    waiting: Waiting,
    turn: oneshot::Sender<()>,
}

#[derive(Default)]
struct Queue {
    places: Vec<Place>,
    running: usize,
}

struct State {
    queues: BTreeMap<Module, Queue>,
    policy: Box<dyn Policy>,
    next_ticket: u64,
}

/// Queues of all modules under one policy.
pub struct Scheduler {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
}

impl Scheduler {
    /// Empty queues under a policy.
    pub fn new(policy: Box<dyn Policy>, clock: Arc<dyn Clock>) -> Arc<Self> {
        let state = State {
            queues: BTreeMap::new(),
            policy,
            next_ticket: 0,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            clock,
        })
    }

    /// Calls of a module that may run at once.
    pub fn limit(module: Module) -> usize {
        match module {
            // One generation at a time uses every core of the machine.
            Module::Llm => 1,
            Module::Fs => 4,
            Module::Human | Module::Process | Module::Clock => 64,
        }
    }

    /// Waits for a turn in a module. Dropping the future gives the place up.
    pub async fn enter(self: &Arc<Self>, module: Module, pid: Pid) -> Result<Slot, SysError> {
        let (turn, my_turn) = oneshot::channel();
        let ticket = {
            let mut state = self.lock();
            let ticket = state.next_ticket;
            state.next_ticket += 1;
            let queue = state.queues.entry(module).or_default();
            if queue.places.len() >= QUEUE_LIMIT {
                return Err(SysError::new(
                    Code::Limit,
                    format!("`{QUEUE_LIMIT}` calls wait for this module already"),
                )
                .hint("try again when some have ended"));
            }
            let waiting = Waiting {
                ticket,
                pid,
                since_ms: self.clock.monotonic_ms(),
            };
            queue.places.push(Place { waiting, turn });
            ticket
        };
        // From here on the place is given up however this future ends.
        let slot = Slot {
            scheduler: Arc::clone(self),
            module,
            ticket,
        };
        self.advance(module);
        match my_turn.await {
            Ok(()) => Ok(slot),
            Err(_) => Err(SysError::new(Code::Internal, "a queue lost a call")),
        }
    }

    /// How many calls wait in a module's queue and how many run.
    pub fn load(&self, module: Module) -> (usize, usize) {
        self.lock()
            .queues
            .get(&module)
            .map_or((0, 0), |q| (q.places.len(), q.running))
    }

    fn advance(&self, module: Module) {
        let mut state = self.lock();
        let State { queues, policy, .. } = &mut *state;
        let Some(queue) = queues.get_mut(&module) else {
            return;
        };
        while queue.running < Self::limit(module) && !queue.places.is_empty() {
            let view: Vec<Waiting> = queue.places.iter().map(|p| p.waiting.clone()).collect();
            let next = policy
                .next(&view, self.clock.monotonic_ms())
                .min(view.len() - 1);
            let place = queue.places.remove(next);
            // Whoever gave up waiting still gives the slot back, so it counts either way.
            queue.running += 1;
            let _gone = place.turn.send(()).is_err();
        }
    }

    fn leave(&self, module: Module, ticket: u64) {
        {
            let mut state = self.lock();
            let Some(queue) = state.queues.get_mut(&module) else {
                return;
            };
            match queue.places.iter().position(|p| p.waiting.ticket == ticket) {
                Some(still_waiting) => drop(queue.places.remove(still_waiting)),
                None => queue.running = queue.running.saturating_sub(1),
            }
        }
        self.advance(module);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A turn in a module; given back when dropped.
pub struct Slot {
    scheduler: Arc<Scheduler>,
    module: Module,
    ticket: u64,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.scheduler.leave(self.module, self.ticket);
    }
}
