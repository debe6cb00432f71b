//! Processes that run in this kernel.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::capability::Capability;
use crate::error::{Code, SysError};
use crate::journal::CallRow;
use crate::process::{Pid, ProcessInfo, ProcessState};
use crate::provider::Cancel;
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

/// A process that runs in this kernel.
pub(crate) struct Live {
    pub(crate) pid: Pid,
    info: Mutex<Arc<ProcessInfo>>,
    pub(crate) rights: Rights,
    pub(crate) history: Vec<Turn>,
    /// Calls it made before the kernel was started, to be given the results they had.
    past: Mutex<VecDeque<CallRow>>,
    seq: AtomicU64,
    busy: AtomicBool,
    pub(crate) cancel: Cancel,
    pub(crate) stop: watch::Sender<Option<Stop>>,
    pub(crate) ended: watch::Sender<Option<Exit>>,
    /// Held from `executing` to `outcome`: a process ends only between effects, never within one.
    pub(crate) acting: tokio::sync::Mutex<()>,
}

impl Live {
    pub(crate) fn new(info: ProcessInfo, history: Vec<Turn>, past: Vec<CallRow>) -> Self {
        Self {
            pid: info.pid,
            info: Mutex::new(Arc::new(info)),
            rights: Rights::default(),
            history,
            past: Mutex::new(past.into()),
            seq: AtomicU64::new(0),
            busy: AtomicBool::new(false),
            cancel: Cancel::default(),
            stop: watch::Sender::new(None),
            ended: watch::Sender::new(None),
            acting: tokio::sync::Mutex::new(()),
        }
    }

    pub(crate) fn info(&self) -> Arc<ProcessInfo> {
        Arc::clone(&self.lock())
    }

    /// Changes what is told of the process; the new information.
    pub(crate) fn update(&self, change: impl FnOnce(&mut ProcessInfo)) -> Arc<ProcessInfo> {
        let mut info = self.lock();
        change(Arc::make_mut(&mut info));
        Arc::clone(&info)
    }

    pub(crate) fn set(&self, state: ProcessState, status: &str) -> Arc<ProcessInfo> {
        self.update(|info| {
            info.state = state;
            status.clone_into(&mut info.status);
        })
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
        Ok(Busy(&self.busy))
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
        self.cancel.cancel();
    }

    fn lock(&self) -> MutexGuard<'_, Arc<ProcessInfo>> {
        self.info.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Mark of a running call; taken away when dropped.
pub(crate) struct Busy<'a>(&'a AtomicBool);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
