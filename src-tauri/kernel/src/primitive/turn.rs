//! Waiting in the course of a call: for a turn in its module, for the process to go on, for anything
//! outside.

use std::future::Future;
use std::sync::atomic::Ordering;

use futures::FutureExt;

use super::Ctx;
use crate::error::{Code, SysError};
use crate::process::ProcessState;
use crate::scheduler::{Caller, Entering, Slot};

impl Ctx {
    /// Waits for this module's turn.
    pub(super) async fn turn(&self) -> Result<Slot, SysError> {
        let enter = || self.inner.scheduler.enter(self.module, self.caller());
        self.have_turn(enter(), enter).await
    }

    /// As [`Ctx::turn`], for a generation that can give way in the middle.
    pub(super) async fn turn_of_slice(&self) -> Result<Slot, SysError> {
        self.next_slice(self.enter_sliced()).await
    }

    /// Waits for the next turn of a generation that gave its slot back.
    pub(super) async fn next_slice(&self, entering: Entering) -> Result<Slot, SysError> {
        self.have_turn(entering, || self.enter_sliced()).await
    }

    fn enter_sliced(&self) -> Entering {
        let scheduler = &self.inner.scheduler;
        scheduler.enter_sliced(self.module, self.caller())
    }

    /// Waits for a turn. A process that is to stand still takes none, and enters again when it
    /// goes on.
    async fn have_turn(
        &self,
        mut entering: Entering,
        again: impl Fn() -> Entering,
    ) -> Result<Slot, SysError> {
        loop {
            if self.live.attention.is_paused() {
                drop(entering);
                self.stand_still().await?;
                entering = again();
            }
            let slot = match (&mut entering).now_or_never() {
                Some(slot) => slot?,
                None => self.queue(&mut entering).await?,
            };
            self.waited_ms.fetch_add(slot.wait_ms(), Ordering::Relaxed);
            if !self.live.attention.is_paused() {
                return Ok(slot);
            }
        }
    }

    async fn queue(&self, entering: &mut Entering) -> Result<Slot, SysError> {
        self.enter_state(ProcessState::Runnable);
        let slot = self.waiting(entering).await??;
        self.enter_state(ProcessState::WaitingTool);
        Ok(slot)
    }

    async fn stand_still(&self) -> Result<(), SysError> {
        self.enter_state(ProcessState::Runnable);
        self.waiting(self.live.attention.resumed()).await?;
        self.enter_state(ProcessState::WaitingTool);
        Ok(())
    }

    /// Waits for something, unless this call is interrupted meanwhile: whatever leaves no effect
    /// half done is waited for in this way.
    pub(super) async fn waiting<T>(&self, what: impl Future<Output = T>) -> Result<T, SysError> {
        self.live.attention.unless_interrupted(what).await
    }

    /// Why a provider stopped in the middle of this call.
    pub(super) fn stopped(&self) -> SysError {
        let why = self.live.attention.interrupt_of_call();
        why.unwrap_or_else(|| SysError::new(Code::Interrupted, "the call was stopped"))
    }

    /// What the scheduler knows of the caller.
    fn caller(&self) -> Caller {
        let info = self.live.info();
        let urgency = info.urgency;
        let clock = &self.inner.providers.clock;
        // By the wall clock it was set; from here on it only comes nearer.
        let deadline_ms = urgency.deadline_ms.map(|due| {
            let left = due.saturating_sub(clock.now_ms());
            clock.monotonic_ms().saturating_add(left)
        });
        Caller {
            priority: urgency.priority,
            interactive: urgency.interactive,
            deadline_ms,
            ..Caller::new(info.pid, info.run)
        }
    }
}
