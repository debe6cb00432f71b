//! What a person does to processes that are there.

use crate::error::{Code, SysError};
use crate::kernel::Kernel;
use crate::process::{Pid, Signal, Urgency};

impl Kernel {
    /// Sends a signal to a process.
    ///
    /// # Errors
    /// [`Code::NotFound`](Code::NotFound) for a number that is none,
    /// [`Code::Conflict`](Code::Conflict) where it has ended, or is to be interrupted and
    /// does not run.
    pub async fn signal(&self, pid: Pid, signal: Signal, by: &str) -> Result<(), SysError> {
        self.inner.signal(pid, signal, by).await
    }

    /// Sets how urgent a process is, from its next turn on. Children that it starts afterwards are
    /// as urgent.
    ///
    /// # Errors
    /// [`Code::Invalid`](Code::Invalid) for a class that is none,
    /// [`Code::NotFound`](Code::NotFound) for a number that is none,
    /// [`Code::Conflict`](Code::Conflict) where it has ended.
    pub async fn set_urgency(&self, pid: Pid, urgency: Urgency, by: &str) -> Result<(), SysError> {
        if urgency.priority > Urgency::LAST {
            let message = format!("there is no class `{}`", urgency.priority);
            let hint = format!("use 0 (first) to {}", Urgency::LAST);
            return Err(SysError::new(Code::Invalid, message).hint(hint));
        }
        let now_ms = self.inner.providers.clock.now_ms();
        let journal = &self.inner.journal;
        journal
            .set_urgency(pid, urgency, by.to_owned(), now_ms)
            .await?;
        if let Some(live) = self.inner.find(pid) {
            let info = live.update(|info| info.urgency = urgency);
            self.inner.tell_process(&info);
        }
        Ok(())
    }
}
