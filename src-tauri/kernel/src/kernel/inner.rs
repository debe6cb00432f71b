//! What the kernel's parts share: events, living processes and their rights, calls that wait.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::Inner;
use crate::budget::Used;
use crate::capability::{Capability, Grant, Resource};
use crate::error::SysError;
use crate::event::KernelEvent;
use crate::journal::CallId;
use crate::live::Live;
use crate::process::{Pid, ProcessInfo, ProcessState};

impl Inner {
    pub(crate) fn tell(&self, event: KernelEvent) {
        // Nobody listening is no fault: everything stands in the journal.
        let _listeners = self.events.send(event);
    }

    /// Whether anyone listens to events.
    pub(crate) fn is_watched(&self) -> bool {
        self.events.receiver_count() > 0
    }

    /// How often capabilities changed: of any process, of this one. To be looked up before what it
    /// stands for is read.
    pub(crate) fn rights_version(&self, live: &Live) -> (u64, u64) {
        (self.rights.load(Ordering::Acquire), live.rights.version())
    }

    /// What a process may do, now: as read when it last changed.
    pub(crate) async fn rights_of(&self, live: &Live) -> Result<Arc<Vec<Capability>>, SysError> {
        let version = self.rights_version(live);
        if let Some(held) = live.rights.as_of(version) {
            return Ok(held);
        }
        let held = Arc::new(self.journal.held(live.pid).await?);
        live.rights.keep(version, Arc::clone(&held));
        Ok(held)
    }

    /// Says that capabilities changed, once that is written: of one process, or of any.
    pub(crate) fn rights_changed(&self, of: Option<Pid>) {
        match of {
            Some(pid) => {
                if let Some(live) = self.find(pid) {
                    live.rights.outdate();
                }
            }
            None => {
                self.rights.fetch_add(1, Ordering::AcqRel);
            }
        }
    }

    pub(crate) fn waiter(self: &Arc<Self>, call: CallId) -> Waiter {
        let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        let notify = Arc::clone(waiters.entry(call).or_default());
        Waiter {
            inner: Arc::clone(self),
            call,
            notify,
        }
    }

    pub(crate) fn wake(&self, call: CallId) {
        let waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiter) = waiters.get(&call) {
            waiter.notify_one();
        }
    }

    pub(crate) fn lock_live(&self) -> MutexGuard<'_, HashMap<Pid, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find(&self, pid: Pid) -> Option<Arc<Live>> {
        self.lock_live().get(&pid).cloned()
    }

    pub(crate) fn as_it_stands(&self, process: ProcessInfo) -> ProcessInfo {
        if process.state.is_final() {
            return process;
        }
        match self.find(process.pid) {
            Some(live) => {
                let ran_ms = live.ran_ms(self.providers.clock.monotonic_ms());
                let used = self.ledger.used(live.pid).unwrap_or_default();
                let seconds = ran_ms / 1000;
                ProcessInfo {
                    used: Used { seconds, ..used },
                    ..ProcessInfo::clone(&live.info())
                }
            }
            None if process.paused => ProcessInfo {
                state: ProcessState::Paused,
                ..process
            },
            None if process.state == ProcessState::WaitingHuman => process,
            None => ProcessInfo {
                state: ProcessState::Suspended,
                ..process
            },
        }
    }

    /// The workspace with the links in its path resolved, so that no link swapped later leads its
    /// processes elsewhere, and the grants on it.
    pub(super) async fn settled(
        &self,
        workspace: PathBuf,
        grants: Vec<Grant>,
    ) -> Result<(PathBuf, Vec<Grant>), SysError> {
        let asked = workspace.clone();
        let root = self.on_files(move |files| files.workspace(&asked)).await?;
        let meant = Resource::Workspace { root: workspace };
        let grants = grants
            .into_iter()
            .map(|grant| match grant.resource == meant {
                true => Grant {
                    resource: Resource::Workspace { root: root.clone() },
                    ..grant
                },
                false => grant,
            });
        let grants = grants.collect();
        Ok((root, grants))
    }
}

/// A call that waits for the person; forgotten when dropped.
pub(crate) struct Waiter {
    inner: Arc<Inner>,
    call: CallId,
    notify: Arc<Notify>,
}

impl Waiter {
    /// Waits until an answer was given since this was made or last waited.
    pub(crate) async fn notified(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiters = self
            .inner
            .waiters
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        waiters.remove(&self.call);
    }
}
