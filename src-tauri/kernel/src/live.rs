//! Processes that run in this kernel.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::attention::Attention;
use crate::capability::Capability;
use crate::error::{Code, SysError};
use crate::journal::CallRow;
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

    /// Keeps what was read after `version` was looked up.
    pub(crate) fn keep(&self, version: Version, held: Arc<Vec<Capability>>) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        *read = Some((version, held));
    }
}

/// Why a process is to end now.
#[derive(Debug, Clone)]
pub(crate) enum Stop {
    /// It asked to, by `process.exit`.
    Exit(Exit),
    /// It was killed, by whom.
    Killed(String),
}

/// What is told of a process.
struct Told {
    info: Arc<ProcessInfo>,
    /// Where it stands, a pause left out.
    behind: ProcessState,
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
    seq: AtomicU64,
    busy: AtomicBool,
    pub(crate) attention: Attention,
    pub(crate) stop: watch::Sender<Option<Stop>>,
    pub(crate) ended: watch::Sender<Option<Exit>>,
    /// Held from `executing` to `outcome`: a process ends only between effects, never within one.
    pub(crate) acting: tokio::sync::Mutex<()>,
}

impl Live {
    pub(crate) fn new(info: ProcessInfo, history: Vec<Turn>, past: Vec<CallRow>) -> Self {
        let attention = Attention::new(info.paused);
        let told = Told {
            behind: info.state,
            info: Arc::new(info),
        };
        Self {
            pid: told.info.pid,
            info: Mutex::new(told),
            attention,
            rights: Rights::default(),
            history,
            past: Mutex::new(past.into()),
            seq: AtomicU64::new(0),
            busy: AtomicBool::new(false),
            stop: watch::Sender::new(None),
            ended: watch::Sender::new(None),
            acting: tokio::sync::Mutex::new(()),
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
        doing.clone_into(&mut info.status);
        Arc::clone(&told.info)
    }

    /// Stands still at its next system call, or goes on.
    pub(crate) fn pause(&self, paused: bool) -> Arc<ProcessInfo> {
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

    /// Asks the process to end; the first reason counts.
    pub(crate) fn stop(&self, why: Stop) {
        self.stop.send_if_modified(|current| {
            let first = current.is_none();
            if first {
                *current = Some(why);
            }
            first
        });
        self.attention.stop();
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
