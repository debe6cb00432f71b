//! What a running process listens to: whether it is to stand still, and what ends its current call.

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use crate::error::SysError;
use crate::provider::Cancel;

/// Pause and interrupts of one process.
pub(crate) struct Attention {
    paused: watch::Sender<bool>,
    call: Mutex<Call>,
    interrupted: Notify,
}

/// What reaches the call that runs.
#[derive(Default)]
struct Call {
    /// Why it is to end now.
    interrupt: Option<SysError>,
    /// Whether the whole process is to end.
    stopped: bool,
    /// What a provider at work looks at; made when one is.
    cancel: Option<Cancel>,
    /// What a generation at work looks at.
    give_way: Option<Cancel>,
}

impl Attention {
    pub(crate) fn new(paused: bool) -> Self {
        Self {
            paused: watch::Sender::new(paused),
            call: Mutex::default(),
            interrupted: Notify::new(),
        }
    }

    pub(crate) fn is_paused(&self) -> bool {
        *self.paused.borrow()
    }

    /// Asks the process to stand still at its next system call, and a generation of it to give way.
    pub(crate) fn pause(&self) {
        self.paused.send_replace(true);
        if let Some(give_way) = self.lock().give_way.take() {
            give_way.cancel();
        }
    }

    pub(crate) fn resume(&self) {
        self.paused.send_replace(false);
    }

    /// Waits until the process may go on.
    pub(crate) async fn resumed(&self) {
        let mut paused = self.paused.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = paused.wait_for(|paused| !*paused).await;
    }

    /// Waits until the process is to stand still.
    pub(crate) async fn pausing(&self) {
        let mut paused = self.paused.subscribe();
        let _ = paused.wait_for(|paused| *paused).await;
    }

    /// Has `by` set when the process is to stand still: for a generation, which then gives its slot
    /// back until the process goes on.
    pub(crate) fn gives_way_by(&self, by: Cancel) {
        let mut call = self.lock();
        if self.is_paused() {
            by.cancel();
        }
        call.give_way = Some(by);
    }

    /// Ends the call that runs, or the next where none does, as far as it waits.
    pub(crate) fn interrupt(&self, why: SysError) {
        let mut call = self.lock();
        if let Some(cancel) = &call.cancel {
            cancel.cancel();
        }
        call.interrupt.get_or_insert(why);
        drop(call);
        self.interrupted.notify_one();
    }

    /// Stops whatever a provider does for this process, now and from now on.
    pub(crate) fn stop(&self) {
        let mut call = self.lock();
        call.stopped = true;
        if let Some(cancel) = &call.cancel {
            cancel.cancel();
        }
    }

    /// What a provider that works for the current call looks at.
    pub(crate) fn cancel(&self) -> Cancel {
        let mut call = self.lock();
        let cancel = call.cancel.get_or_insert_default().clone();
        if call.stopped || call.interrupt.is_some() {
            cancel.cancel();
        }
        cancel
    }

    /// Why the current call is to end, where it is.
    pub(crate) fn interrupt_of_call(&self) -> Option<SysError> {
        self.lock().interrupt.clone()
    }

    /// Waits for something, unless the current call is interrupted meanwhile.
    pub(crate) async fn unless_interrupted<T>(
        &self,
        what: impl Future<Output = T>,
    ) -> Result<T, SysError> {
        let interrupted = async {
            loop {
                if let Some(why) = self.interrupt_of_call() {
                    return why;
                }
                self.interrupted.notified().await;
            }
        };
        tokio::select! {
            biased;
            why = interrupted => Err(why),
            done = what => Ok(done),
        }
    }

    /// The current call has ended, and what was to end it with it.
    pub(crate) fn call_ended(&self) {
        let mut call = self.lock();
        *call = Call {
            stopped: call.stopped,
            ..Call::default()
        };
    }

    fn lock(&self) -> MutexGuard<'_, Call> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures::FutureExt;

    use super::*;
    use crate::error::Code;

    fn interrupt() -> SysError {
        SysError::new(Code::Interrupted, "stop")
    }

    #[test]
    fn an_interrupt_ends_one_call_and_what_is_done_for_it() {
        let attention = Attention::new(false);
        let cancel = attention.cancel();
        attention.interrupt(interrupt());
        assert!(cancel.is_cancelled());
        assert!(attention.cancel().is_cancelled());
        let waited = attention.unless_interrupted(std::future::pending::<()>());
        assert_eq!(waited.now_or_never().unwrap(), Err(interrupt()));
        attention.call_ended();
        assert!(!attention.cancel().is_cancelled());
        let waited = attention.unless_interrupted(std::future::pending::<()>());
        assert!(waited.now_or_never().is_none());
        let waited = attention.unless_interrupted(std::future::ready(1));
        assert_eq!(waited.now_or_never().unwrap(), Ok(1));
    }

    #[test]
    fn a_pause_asks_generations_to_give_way_until_the_process_goes_on() {
        let attention = Attention::new(false);
        let [early, late] = [Cancel::default(), Cancel::default()];
        attention.gives_way_by(early.clone());
        assert!(!early.is_cancelled());
        attention.pause();
        attention.gives_way_by(late.clone());
        assert!(early.is_cancelled() && late.is_cancelled());
        assert!(attention.resumed().now_or_never().is_none());
        attention.resume();
        attention.resumed().now_or_never().unwrap();
        let next = Cancel::default();
        attention.gives_way_by(next.clone());
        assert!(!next.is_cancelled());
    }

    #[test]
    fn a_stop_reaches_providers_of_all_calls() {
        let attention = Attention::new(false);
        attention.stop();
        attention.call_ended();
        assert!(attention.cancel().is_cancelled());
    }
}
