//! A small thread pool for the phases of a step, which are far shorter than a thread's wake-up.
//!
//! A phase is cut into chunks that the calling thread and the workers claim one by one, so that a
//! worker whose core is busy elsewhere delays nobody. Between phases workers spin for a moment;
//! then they sleep and use no time.

#![allow(unsafe_code)]

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a worker looks for the next phase before it sleeps.
const SPIN: Duration = Duration::from_micros(200);

/// Claims per thread and phase: enough that an unequal share evens out.
const CLAIMS: usize = 4;

/// A worker that keeps a phase waiting for longer than this, beyond what its share can take, has
/// lost its core to another program.
const STALL: Duration = Duration::from_micros(300);

/// How long the calling thread works alone after a stall: without a core of their own the workers
/// cost more time than they save. Doubled with each stall that follows at once.
const ALONE: Duration = Duration::from_millis(20);
const ALONE_LONGEST: Duration = Duration::from_millis(640);

/// Threads that run one phase at a time; the calling thread is one of them.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// The end of the last time alone, and its length.
    alone: Option<(Instant, Duration)>,
}

type Job = *const (dyn Fn(usize) + Sync);

struct Shared {
    /// The phase's number in the upper half, chunks not yet claimed in the lower.
    ticket: AtomicU64,
    /// Chunks not yet finished.
    pending: AtomicUsize,
    /// Set before `ticket` announces a phase, and not again until `pending` is zero.
    job: UnsafeCell<Option<Job>>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    stop: AtomicBool,
    sleepers: AtomicUsize,
    sleep: Mutex<()>,
    wake: Condvar,
}

// SAFETY: `job` is written only while no chunk of a phase is claimed or pending, and read only by
// threads that have claimed a chunk; the closure behind it is `Sync`.
unsafe impl Sync for Shared {}
// SAFETY: the pointer in `job` is used only as described for `Sync`.
unsafe impl Send for Shared {}

impl Pool {
    /// A pool of `threads`, the calling thread included.
    pub(crate) fn new(threads: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            ticket: AtomicU64::new(0),
            pending: AtomicUsize::new(0),
            job: UnsafeCell::new(None),
            panic: Mutex::new(None),
            stop: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
            sleep: Mutex::new(()),
            wake: Condvar::new(),
        });
        let mut pool = Self {
            shared,
            workers: Vec::new(),
            alone: None,
        };
        for index in 1..threads {
            let shared = Arc::clone(&pool.shared);
            let worker = std::thread::Builder::new()
                .name(format!("engine-{index}"))
                .spawn(move || shared.work())?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    pub(crate) fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `task` once for each index below `chunks`, on all threads, and waits for all of them.
    ///
    /// # Panics
    /// Goes on with the panic of a task, once no other runs.
    pub(crate) fn run(&mut self, chunks: usize, task: impl Fn(usize) + Sync) {
        let begun = Instant::now();
        if self.workers.is_empty() || chunks < 2 || self.alone.is_some_and(|(end, _)| begun < end) {
            (0..chunks).for_each(task);
            return;
        }
        let task: &(dyn Fn(usize) + Sync) = &task;
        // SAFETY: only the lifetime is erased. No thread uses the job without a claimed chunk, and
        // this function does not return before every claimed chunk is finished.
        let job = unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), Job>(task) };
        let shared = &*self.shared;
        // SAFETY: `&mut self` and the wait below leave no chunk of an earlier phase.
        unsafe { *shared.job.get() = Some(job) };
        shared.pending.store(chunks, Ordering::Relaxed);
        let phase = (shared.ticket.load(Ordering::Relaxed) >> 32).wrapping_add(1);
        shared
            .ticket
            .store(phase << 32 | chunks as u64, Ordering::SeqCst);
        if shared.sleepers.load(Ordering::SeqCst) > 0 {
            drop(lock(&shared.sleep));
            shared.wake.notify_all();
        }
        while shared.work_on_one() {}
        let own = begun.elapsed();
        let mut spins = 0u32;
        while shared.pending.load(Ordering::Acquire) > 0 {
            spins += 1;
            if spins.is_multiple_of(1024) {
                // A worker holds a chunk and not its core: let it run.
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        let panic = lock(&shared.panic).take();
        let now = Instant::now();
        if now - begun > 2 * own + STALL {
            let again = self.alone.filter(|(end, length)| now < *end + *length);
            let length = again.map_or(ALONE, |(_, length)| (2 * length).min(ALONE_LONGEST));
            self.alone = Some((now + length, length));
        }
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Calls `task(index, piece)` for every piece of `piece_len` elements of `data`. Pieces that
    /// lie together are handled by one thread, and `task` makes a state for each such run.
    pub(crate) fn pieces<T: Send, S>(
        &mut self,
        data: &mut [T],
        piece_len: usize,
        state: impl Fn() -> S + Sync,
        task: impl Fn(&mut S, usize, &mut [T]) + Sync,
    ) {
        let count = data.len().div_ceil(piece_len);
        let claims = (self.threads() * CLAIMS).min(count);
        let data = Whole {
            start: data.as_mut_ptr(),
            len: data.len(),
        };
        self.run(claims, |claim| {
            let mut state = state();
            for piece in count * claim / claims..count * (claim + 1) / claims {
                // SAFETY: the ranges of pieces of different claims are disjoint, each claim runs
                // once, and `data` is borrowed mutably until all claims are done.
                let piece_data = unsafe { data.piece(piece * piece_len, piece_len) };
                task(&mut state, piece, piece_data);
            }
        });
    }
}

/// A slice whose disjoint pieces are lent to different threads.
struct Whole<T> {
    start: *mut T,
    len: usize,
}

// SAFETY: access goes through `piece`, whose caller keeps the pieces disjoint.
unsafe impl<T: Send> Sync for Whole<T> {}

impl<T> Whole<T> {
    /// # Safety
    /// No two live pieces may overlap, and none may outlive the slice's borrow.
    #[allow(clippy::mut_from_ref)]
    unsafe fn piece(&self, start: usize, len: usize) -> &mut [T] {
        assert!(start < self.len);
        // SAFETY: within the slice by the assertion and the minimum; disjoint by the contract.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), len.min(self.len - start)) }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        drop(lock(&self.shared.sleep));
        self.shared.wake.notify_all();
        for worker in self.workers.drain(..) {
            // A worker catches its tasks' panics, so there is nothing to learn from it.
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn work(&self) {
        let mut since = Instant::now();
        let mut spins = 0u32;
        while !self.stop.load(Ordering::SeqCst) {
            if self.work_on_one() {
                since = Instant::now();
                continue;
            }
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(64) && since.elapsed() > SPIN {
                self.sleep_until_called();
                since = Instant::now();
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Claims and runs one chunk; false if there was none.
    fn work_on_one(&self) -> bool {
        let mut ticket = self.ticket.load(Ordering::Acquire);
        loop {
            if ticket as u32 == 0 {
                return false;
            }
            // The chunk's number is the count before the claim, less one.
            match self.ticket.compare_exchange_weak(
                ticket,
                ticket - 1,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => break,
                Err(now) => ticket = now,
            }
        }
        let chunk = ticket as u32 as usize - 1;
        // SAFETY: with a claimed chunk the phase cannot end, so the job stays set and alive.
        let result = catch_unwind(AssertUnwindSafe(|| unsafe {
            if let Some(job) = *self.job.get() {
                (*job)(chunk);
            }
        }));
        if let Err(panic) = result {
            lock(&self.panic).get_or_insert(panic);
        }
        self.pending.fetch_sub(1, Ordering::Release);
        true
    }

    fn sleep_until_called(&self) {
        let mut guard = lock(&self.sleep);
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        // Sequentially consistent with `run`: either it sees the sleeper or this sees its ticket.
        while self.ticket.load(Ordering::SeqCst) as u32 == 0 && !self.stop.load(Ordering::SeqCst) {
            guard = self
                .wake
                .wait(guard)
                .unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Threads to use by default: the physical cores that this process may run on.
pub(crate) fn default_threads() -> usize {
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    num_cpus::get_physical().clamp(1, usable)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn every_chunk_runs_once() {
        for threads in [1, 2, 5] {
            let mut pool = Pool::new(threads).unwrap();
            for chunks in [0, 1, 2, 3, 100] {
                let counts: Vec<_> = (0..chunks).map(|_| AtomicUsize::new(0)).collect();
                for _ in 0..50 {
                    pool.run(chunks, |chunk| {
                        counts[chunk].fetch_add(1, Ordering::Relaxed);
                    });
                }
                assert!(
                    counts
                        .iter()
                        .all(|count| count.load(Ordering::Relaxed) == 50)
                );
            }
        }
    }

    #[test]
    fn pieces_cover_the_slice() {
        let mut pool = Pool::new(3).unwrap();
        for (len, piece_len) in [(1, 1), (10, 3), (64, 64), (1000, 7), (5, 9)] {
            let mut data = vec![0usize; len];
            pool.pieces(
                &mut data,
                piece_len,
                || (),
                |(), index, piece| {
                    for (offset, value) in piece.iter_mut().enumerate() {
                        *value += index * piece_len + offset + 1;
                    }
                },
            );
            assert!(
                data.iter().copied().eq(1..=len),
                "{len} in pieces of {piece_len}"
            );
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_leaves_the_pool_usable() {
        let mut pool = Pool::new(2).unwrap();
        for bad in 0..4 {
            let result = catch_unwind(AssertUnwindSafe(|| {
                pool.run(4, |chunk| assert_ne!(chunk, bad, "chunk {chunk}"));
            }));
            assert!(result.is_err());
        }
        let ran = AtomicUsize::new(0);
        pool.run(4, |_| {
            ran.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(ran.into_inner(), 4);
    }

    #[test]
    fn sleeping_workers_wake_for_the_next_phase() {
        let mut pool = Pool::new(2).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while pool.shared.sleepers.load(Ordering::SeqCst) == 0 {
            assert!(Instant::now() < deadline, "the worker never sleeps");
            std::thread::yield_now();
        }
        // Each chunk waits for the other, so both threads must take part.
        let arrived = AtomicUsize::new(0);
        pool.run(2, |_| {
            arrived.fetch_add(1, Ordering::SeqCst);
            while arrived.load(Ordering::SeqCst) < 2 {
                std::thread::yield_now();
            }
        });
        assert_eq!(arrived.into_inner(), 2);
    }
}
