//! The one that writes: jobs in order, many to a commit.
//!
//! A commit waits for the disk, so the writer takes all that has come meanwhile into the next one
//! (group commit). Each job is a savepoint of its own: one that fails takes back its own rows only.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::seal::Sealer;
use super::{CommitHook, ends, failed};
use crate::error::{Code, SysError};
use crate::provider::Witness;

/// Jobs of one commit at most: bounds how long the first of them waits.
const BATCH_MOST: usize = 1024;

/// The open transaction, for a job.
pub(crate) struct Tx<'a> {
    db: &'a Connection,
}

impl Deref for Tx<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.db
    }
}

/// What a job does, and what it tells once that is on disk.
trait Job: Send {
    /// Whether it writes. One that only reads is told at once.
    fn writes(&self) -> bool;
    fn run(&mut self, tx: &Tx<'_>) -> Result<(), ()>;
    fn finish(self: Box<Self>, committed: Result<(), SysError>);
}

struct Work<T, F> {
    work: Option<F>,
    writes: bool,
    value: Option<Result<T, SysError>>,
    done: Option<oneshot::Sender<Result<T, SysError>>>,
    failing: Arc<AtomicBool>,
}

impl<T, F> Job for Work<T, F>
where
    T: Send,
    F: FnOnce(&Tx<'_>) -> Result<T, SysError> + Send,
{
    fn writes(&self) -> bool {
        self.writes
    }

    fn run(&mut self, tx: &Tx<'_>) -> Result<(), ()> {
        let value = match self.work.take() {
            Some(work) => work(tx),
            None => Err(SysError::new(Code::Internal, "a journal job ran twice")),
        };
        let ended = value.as_ref().map(drop).map_err(drop);
        self.value = Some(value);
        ended
    }

    fn finish(self: Box<Self>, committed: Result<(), SysError>) {
        let value = match (self.value, committed) {
            (Some(Ok(value)), Ok(())) => Ok(value),
            (Some(Err(error)), _) | (_, Err(error)) => Err(error),
            (None, Ok(())) => Err(SysError::new(Code::Internal, "a journal job did not run")),
        };
        match self.done {
            Some(done) => drop(done.send(value)),
            None => {
                if let Err(error) = value {
                    tracing::error!(%error, "a record was not written");
                    self.failing.store(true, Ordering::Release);
                }
            }
        }
    }
}

struct Database {
    connection: Connection,
    commits: u64,
    hook: Option<CommitHook>,
    sealer: Sealer,
    /// Number of the last row that is on disk.
    rows: Arc<AtomicU64>,
}

impl Database {
    /// Runs jobs as one transaction, and tells each how it ended.
    fn commit(&mut self, next: Box<dyn Job>, mut more: impl FnMut() -> Option<Box<dyn Job>>) {
        let mut ran: Vec<Box<dyn Job>> = Vec::new();
        let mut open = false;
        let before = self.connection.total_changes();
        let mut next = Some(next);
        while let Some(mut job) = next {
            if !job.writes() {
                let _told_below = job.run(&Tx {
                    db: &self.connection,
                });
                job.finish(Ok(()));
            } else if let Err(error) = self.step(&mut open, job.as_mut()) {
                job.finish(Err(error));
            } else {
                ran.push(job);
            }
            next = (ran.len() < BATCH_MOST).then(&mut more).flatten();
        }
        if !open {
            return;
        }
        let committed = self.connection.execute_batch("COMMIT").map_err(failed);
        if committed.is_err() {
            let _nothing_stays_open = self.connection.execute_batch("ROLLBACK");
        } else if self.connection.total_changes() != before {
            self.commits += 1;
            self.tell_sealer();
            if let Some(hook) = &self.hook {
                hook(self.commits);
            }
        }
        for job in ran {
            job.finish(committed.clone());
        }
    }

    /// Runs one job within the transaction; its own failure is kept by the job.
    fn step(&self, open: &mut bool, job: &mut dyn Job) -> Result<(), SysError> {
        let run = |sql| {
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.raw_execute().map(drop)
        };
        if !*open {
            run("BEGIN IMMEDIATE").map_err(failed)?;
            *open = true;
            if let Some(sealed) = self.sealer.sealed() {
                ends::carry(&self.connection, &sealed)?;
            }
        }
        run("SAVEPOINT job").map_err(failed)?;
        let tx = Tx {
            db: &self.connection,
        };
        if job.run(&tx).is_err() {
            run("ROLLBACK TO job").map_err(failed)?;
        }
        run("RELEASE job").map_err(failed)
    }
}

impl Database {
    /// Has the chain's new end signed, if it has one. What cannot be read now is read at the next
    /// commit.
    fn tell_sealer(&mut self) {
        if let Ok(head) = ends::head(&self.connection)
            && head.sequence != self.rows.load(Ordering::Relaxed)
        {
            self.rows.store(head.sequence, Ordering::Relaxed);
            self.sealer.take(head);
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(sealed) = self.sealer.close()
            && let Err(error) = ends::carry(&self.connection, &sealed)
        {
            tracing::warn!(%error, "the journal's signed head is not kept in it");
        }
    }
}

enum Way {
    /// To the writer's thread.
    Thread {
        jobs: Option<Mutex<Sender<Box<dyn Job>>>>,
        thread: Option<JoinHandle<()>>,
    },
    /// At once, on the caller's.
    Here(Mutex<Database>),
}

/// The writing end of the database; its last clone's end closes it, with all that was queued on
/// disk.
pub(super) struct Writer {
    way: Way,
    failing: Arc<AtomicBool>,
    rows: Arc<AtomicU64>,
}

impl Writer {
    pub(super) fn new(
        connection: Connection,
        witness: Arc<dyn Witness>,
        hook: Option<CommitHook>,
        threads: bool,
    ) -> Result<Self, SysError> {
        connection.set_prepared_statement_cache_capacity(128);
        let rows = Arc::new(AtomicU64::new(ends::last(&connection)?.0));
        let mut database = Database {
            rows: Arc::clone(&rows),
            connection,
            commits: 0,
            hook,
            sealer: Sealer::new(witness, threads)?,
        };
        let way = if threads {
            let (jobs, queue) = channel();
            let thread = std::thread::Builder::new()
                .name("journal".to_owned())
                .spawn(move || write_all(&mut database, &queue))
                .map_err(|e| {
                    SysError::new(Code::Unavailable, format!("cannot start a thread: {e}"))
                        .hint("end other programs")
                })?;
            Way::Thread {
                jobs: Some(Mutex::new(jobs)),
                thread: Some(thread),
            }
        } else {
            Way::Here(Mutex::new(database))
        };
        Ok(Self {
            way,
            failing: Arc::default(),
            rows,
        })
    }

    /// Runs a job after all before it. Told once its rows are on disk; at once if it only reads.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        writes: bool,
        work: impl FnOnce(&Tx<'_>) -> Result<T, SysError> + Send + 'static,
    ) -> Result<T, SysError> {
        let (done, value) = oneshot::channel();
        self.queue(writes, work, Some(done));
        let value = value.await.map_err(|_| closed())?;
        if writes && value.is_ok() {
            self.failing.store(false, Ordering::Release);
        }
        value
    }

    /// Queues a job that nobody waits for: its rows are on disk before those of any later job.
    pub(super) fn later(
        &self,
        work: impl FnOnce(&Tx<'_>) -> Result<(), SysError> + Send + 'static,
    ) {
        self.queue(true, work, None);
    }

    /// Number of the last row of the journal that is on disk.
    pub(super) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Whether a record that nobody waited for was lost since the last that was written.
    pub(super) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Acquire)
    }

    fn queue<T: Send + 'static>(
        &self,
        writes: bool,
        work: impl FnOnce(&Tx<'_>) -> Result<T, SysError> + Send + 'static,
        done: Option<oneshot::Sender<Result<T, SysError>>>,
    ) {
        let job = Box::new(Work {
            work: Some(work),
            writes,
            value: None,
            done,
            failing: Arc::clone(&self.failing),
        });
        match &self.way {
            Way::Here(database) => {
                let mut database = database.lock().unwrap_or_else(PoisonError::into_inner);
                database.commit(job, || None);
            }
            Way::Thread { jobs, .. } => {
                if let Some(jobs) = jobs {
                    // A writer that has gone drops the job, and whoever waits is told so.
                    let _gone = jobs
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .send(job);
                }
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Way::Thread { jobs, thread } = &mut self.way {
            drop(jobs.take());
            let own = |thread: &JoinHandle<()>| thread.thread().id() == std::thread::current().id();
            if let Some(thread) = thread.take().filter(|thread| !own(thread)) {
                let _ended = thread.join();
            }
        }
    }
}

fn write_all(database: &mut Database, queue: &Receiver<Box<dyn Job>>) {
    while let Ok(job) = queue.recv() {
        database.commit(job, || queue.try_recv().ok());
    }
}

fn closed() -> SysError {
    SysError::new(Code::Internal, "the journal is closed")
        .hint("this is a fault of Steward; start it again")
}
