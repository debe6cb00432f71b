//! `clock.now`, `clock.sleep`.

use super::{Ctx, Outcome, Primitive};
use crate::capability::{Resource, Right};
use crate::error::{Code, SysError};
use crate::process::ProcessState;
use crate::syscall::{ClockNow, ClockSleep};

/// Memo of a sleeping call: Unix milliseconds when it ends.
const DUE: &str = "due";
const YEAR_MS: u64 = 366 * 24 * 60 * 60 * 1000;

impl Primitive for ClockNow {
    fn subject(&self) -> String {
        String::new()
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<u64>, SysError> {
        ctx.check(Resource::Clock, Right::Use).await?;
        let now = ctx.inner.providers.clock.now_ms();
        Ok(Outcome::new(now, now.to_string()))
    }
}

impl Primitive for ClockSleep {
    fn subject(&self) -> String {
        format!("{} ms", self.ms)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<()>, SysError> {
        if self.ms > YEAR_MS {
            return Err(SysError::new(
                Code::Invalid,
                format!("`{}` ms is more than a year", self.ms),
            )
            .hint("wait a shorter time"));
        }
        ctx.check(Resource::Clock, Right::Use).await?;
        let clock = &ctx.inner.providers.clock;
        // While the program runs, the monotonic clock counts; across a restart only the wall clock
        // can tell, and a clock set back never makes the wait longer than it was.
        let left = match ctx.memo(DUE).and_then(serde_json::Value::as_u64) {
            Some(due) => due.saturating_sub(clock.now_ms()).min(self.ms),
            None => {
                let due = clock.now_ms().saturating_add(self.ms);
                ctx.inner
                    .journal
                    .remember(ctx.row.id, ctx.info.pid, ctx.memo_with(DUE, due.into()))
                    .await?;
                self.ms
            }
        };
        ctx.enter_state(ProcessState::WaitingEvent);
        ctx.waiting(clock.sleep_ms(left)).await?;
        Ok(Outcome::new((), format!("{} ms passed", self.ms)))
    }
}
