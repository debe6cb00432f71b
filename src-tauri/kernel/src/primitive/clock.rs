//! `clock.now`, `clock.sleep`.

use super::{Ctx, Outcome, Primitive};
use crate::capability::{Resource, Right};
use crate::error::{Code, SysError};
use crate::process::ProcessState;
use crate::syscall::{ClockNow, ClockSleep};

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
        let left = ctx.time_left(self.ms).await?;
        let clock = &ctx.inner.providers.clock;
        ctx.enter_state(ProcessState::WaitingEvent);
        ctx.waiting(clock.sleep_ms(left)).await?;
        Ok(Outcome::new((), format!("{} ms passed", self.ms)))
    }
}
