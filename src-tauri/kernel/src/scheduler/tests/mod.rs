//! Arrivals, endings and cancellations in any order, driven by hand: no thread and no real time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod policies;
mod queues;
mod slices;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use async_trait::async_trait;

use super::{AfterSlice, Caller, Entering, PolicyChoice, Scheduler, Slot};
use crate::error::SysError;
use crate::process::Pid;
use crate::provider::Clock;
use crate::syscall::Module;

/// A clock that stands until it is moved.
#[derive(Default)]
struct Hands(AtomicU64);

impl Hands {
    fn pass(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for Hands {
    fn now_ms(&self) -> u64 {
        self.monotonic_ms()
    }
    fn monotonic_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    async fn sleep_ms(&self, _ms: u64) {}
}

/// Writes a call's number down when it is woken.
struct Bell {
    number: u64,
    rung: Arc<Mutex<Vec<u64>>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.lock().unwrap().push(self.number);
    }
}

/// A call as the test saw it come.
#[derive(Debug, Clone, Copy)]
struct Seen {
    number: u64,
    caller: Caller,
    at_ms: u64,
}

/// Calls of one module, each by the number of its arrival.
struct Yard {
    scheduler: Arc<Scheduler>,
    clock: Arc<Hands>,
    module: Module,
    rung: Arc<Mutex<Vec<u64>>>,
    next: u64,
    waiting: BTreeMap<u64, (Seen, Entering)>,
    running: BTreeMap<u64, (Seen, Slot)>,
}

impl Yard {
    fn new(module: Module, policy: &str) -> Self {
        let clock = Arc::<Hands>::default();
        let policy = PolicyChoice::by_name(policy).unwrap();
        Self {
            scheduler: Scheduler::new(&policy, Arc::clone(&clock) as Arc<dyn Clock>).unwrap(),
            clock,
            module,
            rung: Arc::default(),
            next: 0,
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
        }
    }

    fn now(&self) -> u64 {
        self.clock.monotonic_ms()
    }

    fn arrive(&mut self, caller: Caller) -> u64 {
        let entering = self.scheduler.enter(self.module, caller);
        self.come(caller, entering).unwrap()
    }

    fn arrive_sliced(&mut self, caller: Caller) -> u64 {
        let entering = self.scheduler.enter_sliced(self.module, caller);
        self.come(caller, entering).unwrap()
    }

    /// Takes its place; its number.
    fn come(&mut self, caller: Caller, mut entering: Entering) -> Result<u64, SysError> {
        let number = self.next;
        let seen = Seen {
            number,
            caller,
            at_ms: self.now(),
        };
        match self.poll(number, &mut entering) {
            Poll::Ready(slot) => drop(self.running.insert(number, (seen, slot?))),
            Poll::Pending => drop(self.waiting.insert(number, (seen, entering))),
        }
        self.next += 1;
        Ok(number)
    }

    fn poll(&self, number: u64, entering: &mut Entering) -> Poll<Result<Slot, SysError>> {
        let rung = Arc::clone(&self.rung);
        let waker = Waker::from(Arc::new(Bell { number, rung }));
        Pin::new(entering).poll(&mut Context::from_waker(&waker))
    }

    /// Lets every call that was woken go on; those whose turns came, in order.
    fn go_on(&mut self) -> Vec<Seen> {
        let rung = std::mem::take(&mut *self.rung.lock().unwrap());
        let mut started = Vec::new();
        for number in rung {
            // Who gave up after being woken is not there any more.
            let Some((seen, mut entering)) = self.waiting.remove(&number) else {
                continue;
            };
            match self.poll(number, &mut entering) {
                Poll::Ready(slot) => {
                    self.running.insert(number, (seen, slot.unwrap()));
                    started.push(seen);
                }
                Poll::Pending => panic!("call {number} was woken without a turn"),
            }
        }
        started
    }

    /// What must hold whenever every call that can go on has.
    fn check(&self) {
        let limit = self.scheduler.limit(self.module);
        let (waiting, running) = self.scheduler.load(self.module);
        assert_eq!((waiting, running), (self.waiting.len(), self.running.len()));
        assert!(waiting == 0 || running >= limit, "a call waits beside room");
    }
}

fn caller(pid: u64) -> Caller {
    Caller::new(Pid(pid), pid)
}
