//! What is looked at before any call is carried out: whether the process may still make calls, and
//! calls of this kind.

use super::Ctx;
use crate::error::{Code, SysError};
use crate::live::Stop;
use crate::process::ForkMode;
use crate::syscall::{Effect, Module, Record, Syscall};

impl Ctx {
    /// Counts the call and says whether it may be carried out. A process whose budget is used up is
    /// told so once; if it does anything but end, it is ended.
    pub(super) async fn admit<S: Syscall>(&self) -> Result<(), SysError> {
        if self.live.is_spent()
            && let Err(error) = self.live.take_grace(ends::<S>())
        {
            self.live.stop(Stop::Spent(error));
            // The process ends here.
            std::future::pending::<()>().await;
        }
        if S::RECORD != Record::Nothing
            && !self.again
            && let Err(error) = self.inner.ledger.call(self.live.pid)
            && !ends::<S>()
        {
            return Err(self.over_budget(error));
        }
        if self.info.mode == Some(ForkMode::Speculative) && reaches_out::<S>() {
            return Err(speculative(S::NAME));
        }
        Ok(())
    }

    /// Takes note that a budget is used up, by which this call is refused.
    pub(super) fn over_budget(&self, error: SysError) -> SysError {
        self.live.spend(error.clone());
        error
    }
}

/// Why a speculative process does not do something.
pub(super) fn speculative(name: &str) -> SysError {
    let message = format!("a speculative process does not reach out by `{name}`");
    SysError::new(Code::Denied, message).hint("leave it in an object, for the parent to take over")
}

/// Calls by which something outside is changed or asked.
fn reaches_out<S: Syscall>() -> bool {
    S::EFFECT == Effect::Irreversible
        || S::MODULE == Module::Human
        || matches!(
            S::NAME,
            "process.send"
                | "capability.request"
                | "capability.delegate"
                | "capability.revoke"
                | "access.add_privilege"
        )
}

/// Calls by which a process tells what it has, and ends.
fn ends<S: Syscall>() -> bool {
    matches!(S::NAME, "process.exit" | "process.status" | "human.tell")
        || S::NAME.starts_with("object.")
}
