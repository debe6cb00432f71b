//! The central scheduler: it holds every module's queue; modules only execute.
//!
//! A call takes a place in its module's queue and gets a [`Slot`] when the policy picks it and the
//! module has room. A call that waits for something else (a person, a child, time) gives its slot
//! back first. A generation runs in slices and asks after each whether it is to give way
//! ([`Slot::after_slice`]).
//!
//! Every module has a queue, a lock and a policy of its own, so modules never wait for each other.
//! Where there is room a call passes with one short lock and no allocation; otherwise entering,
//! leaving and giving up take O(log n).

mod line;
pub mod policy;
#[cfg(test)]
mod tests;
mod turn;
mod waits;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use policy::{Caller, PolicyChoice};
pub use turn::{AfterSlice, Entering, Slot};

use crate::error::{Code, SysError};
use crate::provider::Clock;
use crate::syscall::Module;
use line::{Arrival, Comer, Granted, Line, Next};

/// Calls of one module that may run at once, at most.
const LIMIT_MOST: usize = 4_096;

/// How one module's queue stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModuleLoad {
    /// The module.
    pub module: Module,
    /// Its policy, as the configuration would write it.
    pub policy: String,
    /// Calls that may run at once.
    pub limit: u32,
    /// Calls that wait.
    pub waiting: u32,
    /// Calls that run.
    pub running: u32,
    /// Turns given since the kernel was opened; a generation in slices has several.
    pub turns: u64,
    /// Mean wait for a turn, over the latest thousand or so.
    pub mean_wait_ms: f64,
    /// The wait that nine of ten of those turns did not exceed.
    pub p90_wait_ms: u64,
}

/// Queues of all modules.
pub struct Scheduler {
    /// In the order of [`Module::ALL`].
    lines: Vec<Mutex<Line>>,
    clock: Arc<dyn Clock>,
}

impl Scheduler {
    /// Empty queues, all under one policy.
    ///
    /// # Errors
    /// None for a choice that was read.
    pub fn new(choice: &PolicyChoice, clock: Arc<dyn Clock>) -> Result<Arc<Self>, SysError> {
        let line =
            |module: &Module| Ok(Mutex::new(Line::new(choice.clone(), usual_limit(*module))?));
        let lines = Module::ALL
            .iter()
            .map(line)
            .collect::<Result<_, SysError>>()?;
        Ok(Arc::new(Self { lines, clock }))
    }

    /// Waits for a turn in a module.
    pub fn enter(self: &Arc<Self>, module: Module, caller: Caller) -> Entering {
        self.entering(module, caller, false)
    }

    /// As [`Scheduler::enter`], for a generation that can give way in the middle.
    pub fn enter_sliced(self: &Arc<Self>, module: Module, caller: Caller) -> Entering {
        self.entering(module, caller, true)
    }

    fn entering(self: &Arc<Self>, module: Module, caller: Caller, sliced: bool) -> Entering {
        let comer = Comer {
            caller,
            sliced,
            before: None,
        };
        Entering::new(Arc::clone(self), module, comer)
    }

    /// Takes another policy, for one module or for all. Calls that wait keep their arrival and are
    /// ranked anew; what runs goes on.
    ///
    /// # Errors
    /// None for a choice that was read.
    pub fn set_policy(
        &self,
        module: Option<Module>,
        choice: &PolicyChoice,
    ) -> Result<(), SysError> {
        let all = Module::ALL.iter().copied();
        for each in all.filter(|each| module.is_none_or(|module| module == *each)) {
            self.line(each).set_policy(choice.clone())?;
        }
        Ok(())
    }

    /// Sets how many calls of a module may run at once. Where more run, they run to their end.
    ///
    /// # Errors
    /// [`Code::Invalid`] for 0 or more than 4096.
    pub fn set_limit(&self, module: Module, limit: usize) -> Result<(), SysError> {
        if !(1..=LIMIT_MOST).contains(&limit) {
            let message = format!("`{limit}` calls at once cannot be allowed");
            return Err(
                SysError::new(Code::Invalid, message).hint(format!("use 1 to {LIMIT_MOST}"))
            );
        }
        self.line(module).set_limit(limit);
        let next = || {
            let now_ms = self.clock.monotonic_ms();
            self.line(module).advance(now_ms)
        };
        while let Some(waker) = next() {
            waker.wake();
        }
        Ok(())
    }

    /// Calls of a module that may run at once.
    pub fn limit(&self, module: Module) -> usize {
        self.line(module).limit()
    }

    /// How many calls wait in a module's queue and how many run.
    pub fn load(&self, module: Module) -> (usize, usize) {
        self.line(module).load()
    }

    /// How every module's queue stands.
    pub fn loads(&self) -> Vec<ModuleLoad> {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let load = |module: &Module| {
            let line = self.line(*module);
            let (waiting, running) = line.load();
            ModuleLoad {
                module: *module,
                policy: line.choice().to_string(),
                limit: count(line.limit()),
                waiting: count(waiting),
                running: count(running),
                turns: line.waits().turns(),
                mean_wait_ms: line.waits().mean_ms(),
                p90_wait_ms: line.waits().p90_ms(),
            }
        };
        Module::ALL.iter().map(load).collect()
    }

    fn arrive(&self, module: Module, comer: Comer, waker: &Waker) -> Arrival {
        let mut line = self.line(module);
        // Read under the lock, so that arrivals stand in order of time.
        let now_ms = self.clock.monotonic_ms();
        line.arrive(comer, now_ms, waker)
    }

    fn withdraw(&self, module: Module, ticket: u64) {
        let next = {
            let mut line = self.line(module);
            let now_ms = self.clock.monotonic_ms();
            line.withdraw(ticket, now_ms)
        };
        next.into_iter().for_each(Waker::wake);
    }

    fn leave(&self, module: Module, turn: &Granted, tokens: u32) {
        let next = {
            let mut line = self.line(module);
            let now_ms = self.clock.monotonic_ms();
            line.leave(turn, tokens, now_ms)
        };
        next.into_iter().for_each(Waker::wake);
    }

    fn after_slice(&self, module: Module, turn: &mut Granted, tokens: u32) -> Next {
        let mut line = self.line(module);
        let now_ms = self.clock.monotonic_ms();
        line.after_slice(turn, tokens, now_ms)
    }

    fn line(&self, module: Module) -> MutexGuard<'_, Line> {
        self.lines[module as usize]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls of a module that may run at once where nothing else is set.
fn usual_limit(module: Module) -> usize {
    match module {
        // A core says how many it serves; see `LlmCore::at_once`.
        Module::Llm => 1,
        Module::Fs | Module::Shell => 4,
        Module::Net => 8,
        Module::Human | Module::Process | Module::Clock | Module::Object | Module::Image => 64,
    }
}
