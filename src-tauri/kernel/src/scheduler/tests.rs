//! Arrivals, endings and cancellations in any order, driven by hand: no thread and no time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use proptest::prelude::*;

use super::{Fifo, Scheduler, Slot};
use crate::error::{Code, SysError};
use crate::process::Pid;
use crate::provider::Clock;
use crate::syscall::Module;

struct Stopped;

#[async_trait]
impl Clock for Stopped {
    fn now_ms(&self) -> u64 {
        0
    }
    fn monotonic_ms(&self) -> u64 {
        0
    }
    async fn sleep_ms(&self, _ms: u64) {}
}

type Entering = Pin<Box<dyn Future<Output = Result<Slot, SysError>>>>;

/// Calls of one module, each by the number of its arrival.
struct Calls {
    scheduler: Arc<Scheduler>,
    module: Module,
    arrived: u64,
    waiting: Vec<(u64, Entering)>,
    running: Vec<(u64, Slot)>,
    started: Vec<u64>,
}

impl Calls {
    fn of(module: Module) -> Self {
        Self {
            scheduler: Scheduler::new(Box::new(Fifo), Arc::new(Stopped)),
            module,
            arrived: 0,
            waiting: Vec::new(),
            running: Vec::new(),
            started: Vec::new(),
        }
    }

    fn arrive(&mut self) {
        let (scheduler, module, pid) =
            (Arc::clone(&self.scheduler), self.module, Pid(self.arrived));
        let entering = Box::pin(async move { scheduler.enter(module, pid).await });
        self.waiting.push((self.arrived, entering));
        self.arrived += 1;
        // It takes its place when it is first polled.
        self.poll_last();
    }

    fn poll_last(&mut self) {
        let (number, mut entering) = self.waiting.pop().unwrap();
        match entering
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(slot) => {
                self.started.push(number);
                self.running.push((number, slot.unwrap()));
            }
            Poll::Pending => self.waiting.push((number, entering)),
        }
    }

    /// Lets every call whose turn came go on.
    fn poll_all(&mut self) {
        for _ in 0..self.waiting.len() {
            let first = self.waiting.remove(0);
            self.waiting.push(first);
            self.poll_last();
        }
    }

    /// What must hold whenever every call that can go on has.
    fn check(&self) {
        let limit = Scheduler::limit(self.module);
        let load = self.scheduler.load(self.module);
        assert_eq!(load, (self.waiting.len(), self.running.len()));
        assert!(load.1 <= limit, "{} run, {limit} may", load.1);
        assert!(load.0 == 0 || load.1 == limit, "a call waits beside room");
        assert!(
            self.started.is_sorted(),
            "not in order of arrival: {:?}",
            self.started
        );
    }
}

#[derive(Debug, Clone)]
enum Event {
    Arrive,
    /// One of those that run ends.
    End(prop::sample::Index),
    /// One of those that wait gives up, before it has learnt whether its turn came.
    GiveUp(prop::sample::Index),
    /// As [`Event::End`], and one of those that wait gives up before it learns of the free slot.
    EndAndGiveUp(prop::sample::Index, prop::sample::Index),
}

fn event() -> impl Strategy<Value = Event> {
    let any = any::<prop::sample::Index>;
    prop_oneof![
        4 => Just(Event::Arrive),
        2 => any().prop_map(Event::End),
        1 => any().prop_map(Event::GiveUp),
        1 => (any(), any()).prop_map(|(a, b)| Event::EndAndGiveUp(a, b)),
    ]
}

fn take<T>(of: &mut Vec<T>, which: &prop::sample::Index) -> Option<T> {
    (!of.is_empty()).then(|| of.remove(which.index(of.len())))
}

proptest! {
    #[test]
    fn no_more_than_the_limit_run_in_order_and_all_come_to_an_end(
        module in prop::sample::select(vec![Module::Llm, Module::Fs]),
        events in prop::collection::vec(event(), 0..200),
    ) {
        let mut calls = Calls::of(module);
        let mut given_up = 0;
        for event in &events {
            match event {
                Event::Arrive => calls.arrive(),
                Event::End(which) => drop(take(&mut calls.running, which)),
                Event::GiveUp(which) => {
                    given_up += usize::from(take(&mut calls.waiting, which).is_some());
                }
                Event::EndAndGiveUp(ends, gives_up) => {
                    drop(take(&mut calls.running, ends));
                    given_up += usize::from(take(&mut calls.waiting, gives_up).is_some());
                }
            }
            calls.poll_all();
            calls.check();
        }
        while !calls.running.is_empty() {
            calls.running.remove(0);
            calls.poll_all();
            calls.check();
        }
        prop_assert_eq!(calls.started.len() + given_up, usize::try_from(calls.arrived).unwrap());
        prop_assert_eq!(calls.scheduler.load(module), (0, 0));
    }
}

#[test]
fn modules_do_not_wait_for_each_other() {
    let mut llm = Calls::of(Module::Llm);
    llm.arrive();
    llm.arrive();
    assert_eq!(llm.scheduler.load(Module::Llm), (1, 1));
    let mut files = Calls {
        scheduler: Arc::clone(&llm.scheduler),
        ..Calls::of(Module::Fs)
    };
    files.arrive();
    assert_eq!(files.scheduler.load(Module::Fs), (0, 1));
}

#[test]
fn a_queue_is_bounded() {
    let mut calls = Calls::of(Module::Llm);
    for _ in 0..=super::QUEUE_LIMIT {
        calls.arrive();
    }
    let scheduler = Arc::clone(&calls.scheduler);
    let mut entering = Box::pin(async move { scheduler.enter(Module::Llm, Pid(0)).await });
    let refused = entering
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(refused, Poll::Ready(Err(e)) if e.code == Code::Limit));
    assert_eq!(
        calls.scheduler.load(Module::Llm),
        (super::QUEUE_LIMIT, 1),
        "a refused call takes no place"
    );
}
