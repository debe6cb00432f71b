//! Processes that run in this kernel.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot, watch};

use crate::attention::Attention;
use crate::capability::Capability;
use crate::checkpoint::{CheckpointId, Replay, Restored};
use crate::error::{Code, SysError};
use crate::journal::{CallRow, History};
use crate::process::{Pid, ProcessInfo, ProcessState};
use crate::sys::Turn;
use crate::syscall::Exit;

/// What a process may do, as last read, under the version of its rights then.
#[derive(Default)]
pub(crate) struct Rights {
    version: AtomicU64,
    read: Mutex<Option<(Version, Arc<Vec<Capability>>)>>,
}

/// How often capabilities changed: of any process, of this one.
type Version = (u64, u64);

impl Rights {
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Says that they changed.
    pub(crate) fn outdate(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// What was read, if nothing changed since.
    pub(crate) fn as_of(&self, version: Version) -> Option<Arc<Vec<Capability>>> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let (then, held) = read.as_ref()?;
        (*then == version).then(|| Arc::clone(held))
    }

    /// Frees what was read: a process that waits needs none of it, and may wait for long.
    pub(crate) fn forget(&self) {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Keeps what was read after `version` was looked up.
    pub(crate) fn keep(&self, version: Version, held: Arc<Vec<Capability>>) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        *read = Some((version, held));
    }
}

/// Why a process's program is to end now.
#[derive(Debug, Clone)]
pub(crate) enum Stop {
    /// It asked to, by `process.exit`.
    Exit(Exit),
    /// It was killed, by whom.
    Killed(String),
    /// Its budget is used up and it went on.
    Spent(SysError),
    /// The process goes on with another program, or from elsewhere.
    Anew(Anew),
}

/// How a process goes on when its program ends and it does not.
#[derive(Debug, Clone)]
pub(crate) enum Anew {
    /// As another image.
    Exec,
    /// From a checkpoint.
    Restore(Arc<Restoring>),
}

/// A process on its way back to a checkpoint.
#[derive(Debug)]
pub(crate) struct Restoring {
    pub(crate) id: CheckpointId,
    pub(crate) by: String,
    done: Mutex<Option<oneshot::Sender<Result<Restored, SysError>>>>,
}

impl Restoring {
    /// And where it is told how that went.
    pub(crate) fn new(
        id: CheckpointId,
        by: String,
    ) -> (Arc<Self>, oneshot::Receiver<Result<Restored, SysError>>) {
        let (done, told) = oneshot::channel();
        let done = Mutex::new(Some(done));
        (Arc::new(Self { id, by, done }), told)
    }

    /// Tells how it went. Gives it back where nobody listens.
    pub(crate) fn finish(&self, how: Result<Restored, SysError>) -> Result<(), SysError> {
        let done = self
            .done
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let untold = match done {
            Some(done) => done.send(how).err(),
            None => Some(how),
        };
        untold.map_or(Ok(()), |how| how.map(drop))
    }
}

/// Calls that a process may still make once its budget is used up: to tell what it has and end.
const GRACE_CALLS: u32 = 16;

/// The end of a budget.
struct Grace {
    error: SysError,
    calls: u32,
}

/// How long a process ran.
struct Time {
    ran_ms: u64,
    /// Monotonic milliseconds since when it runs on; absent while it is paused.
    since_ms: Option<u64>,
}

/// What is told of a process.
struct Told {
    info: Arc<ProcessInfo>,
    /// Where it stands, a pause left out.
    behind: ProcessState,
    /// What it says that it does; what is seen of it, where it says nothing.
    said: String,
}

/// A process that only waits stands still at once; one that is at work does at its next call.
fn as_told(state: ProcessState, paused: bool) -> ProcessState {
    use ProcessState::{Created, Paused, Runnable, WaitingEvent, WaitingHuman};
    match state {
        Created | Runnable | WaitingEvent | WaitingHuman if paused => Paused,
        state => state,
    }
}

/// A process that runs in this kernel.
pub(crate) struct Live {
    pub(crate) pid: Pid,
    info: Mutex<Told>,
    pub(crate) rights: Rights,
    pub(crate) history: Vec<Turn>,
    /// Calls it made before the kernel was started, to be given the results they had.
    past: Mutex<VecDeque<CallRow>>,
    /// Effects that a restore left as they stand.
    stands: Mutex<Vec<CallRow>>,
    seq: AtomicU64,
    /// Calls up to this one belong to an earlier program.
    base_seq: AtomicU64,
    busy: AtomicBool,
    spent: AtomicBool,
    grace: Mutex<Option<Grace>>,
    time: Mutex<Time>,
    /// Told when a message comes.
    pub(crate) mail: Notify,
    /// What it is run on, where it is only a replay.
    pub(crate) replay: Option<Box<Replay>>,
    pub(crate) attention: Attention,
    pub(crate) stop: watch::Sender<Option<Stop>>,
    pub(crate) ended: watch::Sender<Option<Exit>>,
    /// Held from `executing` to `outcome`: a process ends only between effects, never within one.
    pub(crate) acting: tokio::sync::Mutex<()>,
}

impl Live {
    pub(crate) fn new(info: ProcessInfo, history: Vec<Turn>, past: History, now_ms: u64) -> Self {
        let attention = Attention::new(info.paused);
        let told = Told {
            behind: info.state,
            said: info.status.clone(),
            info: Arc::new(info),
        };
        Self {
            pid: told.info.pid,
            info: Mutex::new(told),
            attention,
            rights: Rights::default(),
            history,
            past: Mutex::new(past.calls.into()),
            stands: Mutex::new(past.stands),
            seq: AtomicU64::new(past.base_seq),
            base_seq: AtomicU64::new(past.base_seq),
            busy: AtomicBool::new(false),
            spent: AtomicBool::new(false),
            grace: Mutex::default(),
            time: Mutex::new(Time {
                ran_ms: past.ran_ms,
                since_ms: Some(now_ms),
            }),
            mail: Notify::new(),
            replay: None,
            stop: watch::Sender::new(None),
            ended: watch::Sender::new(None),
            acting: tokio::sync::Mutex::new(()),
        }
    }

    /// A stand-in for a process, for a program that is run on a record.
    pub(crate) fn replaying(info: ProcessInfo, history: Vec<Turn>, replay: Replay) -> Self {
        Self {
            replay: Some(Box::new(replay)),
            ..Self::new(info, history, History::default(), 0)
        }
    }

    pub(crate) fn info(&self) -> Arc<ProcessInfo> {
        Arc::clone(&self.lock().info)
    }

    /// Changes what is told of the process; the new information.
    pub(crate) fn update(&self, change: impl FnOnce(&mut ProcessInfo)) -> Arc<ProcessInfo> {
        let mut told = self.lock();
        let info = Arc::make_mut(&mut told.info);
        change(info);
        Arc::clone(&told.info)
    }

    /// Says where the process stands, and what it does there.
    pub(crate) fn set(&self, state: ProcessState, doing: &str) -> Arc<ProcessInfo> {
        let mut told = self.lock();
        told.behind = state;
        let info = Arc::make_mut(&mut told.info);
        info.state = as_told(state, info.paused);
        if told.said.is_empty() {
            doing.clone_into(&mut Arc::make_mut(&mut told.info).status);
        }
        Arc::clone(&told.info)
    }

    /// Takes what the process says that it does.
    pub(crate) fn say(&self, words: &str) {
        let mut told = self.lock();
        words.clone_into(&mut told.said);
        words.clone_into(&mut Arc::make_mut(&mut told.info).status);
    }

    /// Takes over what stands in the journal of what a restore set back.
    pub(crate) fn become_of(&self, process: Option<ProcessInfo>) {
        if let Some(process) = process {
            self.say(&process.status);
            self.update(|info| {
                info.image = process.image;
                info.goal = process.goal;
                info.cwd = process.cwd;
            });
        }
    }

    /// Stands still at its next system call, or goes on.
    pub(crate) fn pause(&self, paused: bool, now_ms: u64) -> Arc<ProcessInfo> {
        self.ran_ms(now_ms);
        self.time().since_ms = (!paused).then_some(now_ms);
        let mut told = self.lock();
        let behind = told.behind;
        let info = Arc::make_mut(&mut told.info);
        info.paused = paused;
        info.state = as_told(behind, paused);
        if paused {
            self.attention.pause();
        } else {
            self.attention.resume();
        }
        Arc::clone(&told.info)
    }

    /// Milliseconds that it ran, until now.
    pub(crate) fn ran_ms(&self, now_ms: u64) -> u64 {
        let mut time = self.time();
        if let Some(since) = time.since_ms {
            time.ran_ms += now_ms.saturating_sub(since);
            time.since_ms = Some(now_ms);
        }
        time.ran_ms
    }

    /// Takes note that a budget is used up: from now on the process may only end.
    pub(crate) fn spend(&self, error: SysError) {
        let mut grace = self.grace();
        grace.get_or_insert(Grace {
            error,
            calls: GRACE_CALLS,
        });
        self.spent.store(true, Ordering::Release);
    }

    /// Whether its budget is used up.
    pub(crate) fn is_spent(&self) -> bool {
        self.spent.load(Ordering::Acquire)
    }

    /// Takes one of the calls that are left to a process whose budget is used up. Why it is to end
    /// where there is none, or the call is not one of those that are for ending.
    pub(crate) fn take_grace(&self, ends: bool) -> Result<(), SysError> {
        let mut grace = self.grace();
        let Some(grace) = grace.as_mut() else {
            return Ok(());
        };
        if !ends || grace.calls == 0 {
            return Err(grace.error.clone());
        }
        grace.calls -= 1;
        Ok(())
    }

    /// Begins anew, from a history of its own.
    pub(crate) fn begin_anew(&self, past: History) {
        self.base_seq.store(past.base_seq, Ordering::Relaxed);
        self.seq.store(past.base_seq, Ordering::Relaxed);
        *self.past.lock().unwrap_or_else(PoisonError::into_inner) = past.calls.into();
        *self.stands.lock().unwrap_or_else(PoisonError::into_inner) = past.stands;
        self.stop.send_if_modified(|current| {
            let anew = matches!(current, Some(Stop::Anew(_)));
            if anew {
                *current = None;
            }
            anew
        });
    }

    /// Takes the effect that stands from before a restore, if this call would have it again.
    pub(crate) fn take_standing(&self, name: &str, args: &str) -> Option<CallRow> {
        let mut stands = self.stands.lock().unwrap_or_else(PoisonError::into_inner);
        let found = stands
            .iter()
            .position(|row| row.name == name && row.args == args)?;
        Some(stands.remove(found))
    }

    /// Calls of the present program, this one counted in.
    pub(crate) fn calls_of_program(&self, seq: u64) -> u64 {
        seq.saturating_sub(self.base_seq.load(Ordering::Relaxed))
    }

    /// The number of the next call, and the call of that number made before, if any.
    pub(crate) fn next_call(&self) -> (u64, Option<CallRow>) {
        let seq = self.seq.fetch_add(1, Ordering::Relaxed) + 1;
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        let before = if past.front().is_some_and(|row| row.seq == seq) {
            past.pop_front()
        } else {
            None
        };
        (seq, before)
    }

    /// Lets one call at a time through: their order is what makes a replay exact.
    pub(crate) fn one_at_a_time(&self) -> Result<Busy<'_>, SysError> {
        if self.busy.swap(true, Ordering::AcqRel) {
            return Err(
                SysError::new(Code::Invalid, "a process makes one system call at a time")
                    .hint("await the first call, or start a child for work side by side"),
            );
        }
        Ok(Busy(self))
    }

    /// Asks the program to end; the first reason counts, except that a process which was to go on
    /// can still be ended.
    pub(crate) fn stop(&self, why: Stop) {
        let ends = !matches!(why, Stop::Anew(_));
        self.stop.send_if_modified(|current| {
            let counts = match current {
                None => true,
                Some(Stop::Anew(_)) => ends,
                Some(_) => false,
            };
            if counts {
                *current = Some(why);
            }
            counts
        });
        if ends {
            self.attention.stop();
        }
    }

    fn grace(&self) -> MutexGuard<'_, Option<Grace>> {
        self.grace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn time(&self) -> MutexGuard<'_, Time> {
        self.time.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.info.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Mark of a running call; taken away when dropped.
pub(crate) struct Busy<'a>(&'a Live);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.attention.call_ended();
        self.0.busy.store(false, Ordering::Release);
    }
}
