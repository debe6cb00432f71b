//! One task at a time, in an order that a seed decides, under a clock that only moves when all wait.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};

use async_trait::async_trait;

use crate::executor::{Executor, Task};
use crate::provider::Clock;

/// Wall time at which simulations begin: Unix milliseconds.
const EPOCH_MS: u64 = 1_700_000_000_000;

/// The executor and clock of a simulated kernel.
#[derive(Clone)]
pub struct Simulation {
    world: Arc<Mutex<World>>,
}

struct World {
    random: fastrand::Rng,
    tasks: BTreeMap<u64, Option<Task>>,
    ready: Vec<u64>,
    next: u64,
    monotonic_ms: u64,
    /// What the wall clock is ahead of the monotonic one; tests move it.
    wall_ms: u64,
    sleepers: BTreeMap<(u64, u64), Waker>,
    steps: u64,
}

impl Simulation {
    /// A world in which nothing has happened.
    pub fn new(seed: u64) -> Self {
        let world = World {
            random: fastrand::Rng::with_seed(seed),
            tasks: BTreeMap::new(),
            ready: Vec::new(),
            next: 0,
            monotonic_ms: 0,
            wall_ms: EPOCH_MS,
            sleepers: BTreeMap::new(),
            steps: 0,
        };
        Self {
            world: Arc::new(Mutex::new(world)),
        }
    }

    /// Polls one of the tasks that can go on. False where none can.
    pub fn step(&self) -> bool {
        let (number, mut task) = {
            let mut world = self.lock();
            if world.ready.is_empty() {
                return false;
            }
            let count = world.ready.len();
            let chosen = world.random.usize(..count);
            let number = world.ready.swap_remove(chosen);
            world.steps += 1;
            // It may have ended since it was woken.
            match world.tasks.get_mut(&number).and_then(Option::take) {
                Some(task) => (number, task),
                None => return true,
            }
        };
        let waker = Waker::from(Arc::new(Wakes {
            world: Arc::downgrade(&self.world),
            number,
        }));
        let polled = task.as_mut().poll(&mut Context::from_waker(&waker));
        let mut world = self.lock();
        if polled.is_ready() {
            world.tasks.remove(&number);
        } else {
            world.tasks.insert(number, Some(task));
        }
        true
    }

    /// Lets every task go on as far as it can without time passing. The steps taken.
    pub fn run_until_idle(&self) -> u64 {
        let before = self.lock().steps;
        while self.step() {}
        self.lock().steps - before
    }

    /// Lets time pass to when the next sleeper wakes, if one sleeps.
    pub fn advance(&self) -> bool {
        let waker = {
            let mut world = self.lock();
            let Some(((due, _), waker)) = world.sleepers.pop_first() else {
                return false;
            };
            world.monotonic_ms = world.monotonic_ms.max(due);
            waker
        };
        waker.wake();
        true
    }

    /// Runs until nothing can go on, however much time passes. The steps taken.
    pub fn run(&self) -> u64 {
        let mut steps = self.run_until_idle();
        while self.advance() {
            steps += self.run_until_idle();
        }
        steps
    }

    /// Runs a future of a test to its end. `None` where it waits for something that never comes.
    pub fn block_on<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let result = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&result);
        self.spawn(Box::pin(async move {
            let value = future.await;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        }));
        let take = || result.lock().unwrap_or_else(PoisonError::into_inner).take();
        loop {
            while self.step() {
                if let Some(value) = take() {
                    return Some(value);
                }
            }
            if !self.advance() {
                return take();
            }
        }
    }

    /// Sets the wall clock forward or back, as a person or a time server does. The monotonic clock
    /// goes on as it was.
    pub fn set_wall_clock(&self, by_ms: i64) {
        let mut world = self.lock();
        world.wall_ms = world.wall_ms.saturating_add_signed(by_ms);
    }

    /// A number that the seed decides, below `bound` (0 where that is 0).
    pub fn pick(&self, bound: usize) -> usize {
        match bound {
            0 => 0,
            _ => self.lock().random.usize(..bound),
        }
    }

    /// Drops every task where it stands, as a power cut does.
    pub fn crash(&self) {
        let tasks = {
            let mut world = self.lock();
            world.ready.clear();
            world.sleepers.clear();
            std::mem::take(&mut world.tasks)
        };
        // What a task holds may call back into this world.
        drop(tasks);
        self.lock().ready.clear();
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Executor for Simulation {
    fn spawn(&self, task: Task) {
        let mut world = self.lock();
        let number = world.next;
        world.next += 1;
        world.tasks.insert(number, Some(task));
        world.ready.push(number);
    }

    fn blocking(&self, work: Box<dyn FnOnce() + Send>) {
        self.spawn(Box::pin(async move { work() }));
    }

    fn has_threads(&self) -> bool {
        false
    }
}

struct Wakes {
    world: Weak<Mutex<World>>,
    number: u64,
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        let Some(world) = self.world.upgrade() else {
            return;
        };
        let mut world = world.lock().unwrap_or_else(PoisonError::into_inner);
        if world.tasks.contains_key(&self.number) && !world.ready.contains(&self.number) {
            world.ready.push(self.number);
        }
    }
}

#[async_trait]
impl Clock for Simulation {
    fn now_ms(&self) -> u64 {
        let world = self.lock();
        world.wall_ms + world.monotonic_ms
    }

    fn monotonic_ms(&self) -> u64 {
        self.lock().monotonic_ms
    }

    async fn sleep_ms(&self, ms: u64) {
        let (due, number) = {
            let mut world = self.lock();
            let number = world.next;
            world.next += 1;
            (world.monotonic_ms.saturating_add(ms), number)
        };
        Sleep {
            simulation: self.clone(),
            key: (due, number),
        }
        .await;
    }
}

/// Ready once the clock stands at its due time.
struct Sleep {
    simulation: Simulation,
    key: (u64, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut world = self.simulation.lock();
        if world.monotonic_ms >= self.key.0 {
            return Poll::Ready(());
        }
        world.sleepers.insert(self.key, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.simulation.lock().sleepers.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The order in which two tasks of three sleeps each say their name.
    fn told(seed: u64) -> Vec<(u8, u64)> {
        let simulation = Simulation::new(seed);
        let told = Arc::new(Mutex::new(Vec::new()));
        for name in 0..4u8 {
            let (told, clock) = (Arc::clone(&told), simulation.clone());
            simulation.spawn(Box::pin(async move {
                for _ in 0..3 {
                    clock.sleep_ms(10).await;
                    let at = clock.monotonic_ms();
                    told.lock().unwrap().push((name, at));
                }
            }));
        }
        simulation.run();
        let told = told.lock().unwrap();
        told.clone()
    }

    #[test]
    fn a_seed_decides_the_order_and_time_passes_only_when_all_wait() {
        assert_eq!(told(7), told(7));
        assert!(
            (0..20).any(|seed| told(seed) != told(7)),
            "the seed decides nothing"
        );
        let times: Vec<u64> = told(7).iter().map(|(_, at)| *at).collect();
        assert_eq!(times, [10, 10, 10, 10, 20, 20, 20, 20, 30, 30, 30, 30]);
    }

    #[test]
    fn a_future_that_waits_for_ever_is_told() {
        let simulation = Simulation::new(1);
        assert_eq!(simulation.block_on(std::future::pending::<()>()), None);
        let clock = simulation.clone();
        let slept = async move {
            clock.sleep_ms(5).await;
            clock.monotonic_ms()
        };
        assert_eq!(simulation.block_on(slept), Some(5));
        assert!(!simulation.step(), "nothing is left to do");
    }
}
