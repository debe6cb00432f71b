//! Has the chain's head signed, beside the writer: the witness may take its time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::audit::chain::{Head, Sealed};
use crate::error::{Code, SysError};
use crate::provider::Witness;

/// Heads that come within this time are signed as one.
const PAUSE: Duration = Duration::from_millis(500);

/// Takes the writer's heads and signs the latest of them.
pub(super) struct Sealer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    witness: Arc<dyn Witness>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// To be signed.
    next: Option<Head>,
    /// Signed, and not yet carried by the database.
    sealed: Option<Sealed>,
    ends: bool,
}

impl Sealer {
    /// Without a thread, heads are signed when the journal is closed.
    pub(super) fn new(witness: Arc<dyn Witness>, threads: bool) -> Result<Self, SysError> {
        let shared = Arc::new(Shared {
            witness,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let thread = threads.then(|| {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("journal witness".to_owned())
                .spawn(move || shared.seal_all())
        });
        let thread = thread.transpose().map_err(|e| {
            SysError::new(Code::Unavailable, format!("cannot start a thread: {e}"))
                .hint("end other programs")
        })?;
        Ok(Self { shared, thread })
    }

    /// Takes the head after a commit.
    pub(super) fn take(&self, head: Head) {
        self.shared.lock().next = Some(head);
        self.shared.changed.notify_one();
    }

    /// What was signed since this was asked last.
    pub(super) fn sealed(&self) -> Option<Sealed> {
        self.shared.lock().sealed.take()
    }

    /// Signs the last head at once, if one waits, and no more after it.
    pub(super) fn close(&mut self) -> Option<Sealed> {
        self.shared.lock().ends = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
        if let Some(head) = self.shared.lock().next.take() {
            return self.shared.seal(&head);
        }
        self.sealed()
    }
}

impl Shared {
    fn seal_all(&self) {
        loop {
            let mut state = self.lock();
            while state.next.is_none() && !state.ends {
                state = self.wait(state, None);
            }
            if state.ends {
                return;
            }
            let head = state.next.take();
            drop(state);
            let sealed = head.and_then(|head| self.seal(&head));
            let mut state = self.lock();
            state.sealed = sealed.or(state.sealed.take());
            if !state.ends {
                drop(self.wait(state, Some(PAUSE)));
            }
        }
    }

    fn seal(&self, head: &Head) -> Option<Sealed> {
        self.witness.seal(head).unwrap_or_else(|error| {
            tracing::warn!(%error, "the journal's head was not signed");
            None
        })
    }

    /// Waits for a change, or for as long as to let more come together.
    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        pause: Option<Duration>,
    ) -> MutexGuard<'a, State> {
        let Some(pause) = pause else {
            return self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        };
        self.changed
            .wait_timeout_while(state, pause, |state| !state.ends)
            .map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
