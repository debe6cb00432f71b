//! What a person does to processes that are there.

use crate::error::SysError;
use crate::kernel::Kernel;
use crate::process::{Pid, Signal};

impl Kernel {
    /// Sends a signal to a process.
    ///
    /// # Errors
    /// [`Code::NotFound`](crate::Code::NotFound) for a number that is none,
    /// [`Code::Conflict`](crate::Code::Conflict) where it has ended, or is to be interrupted and
    /// does not run.
    pub async fn signal(&self, pid: Pid, signal: Signal, by: &str) -> Result<(), SysError> {
        self.inner.signal(pid, signal, by).await
    }
}
