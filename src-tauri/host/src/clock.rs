//! The machine's clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use steward_kernel::provider::Clock;

/// Wall time and monotonic time of this machine.
pub(crate) struct SystemClock {
    start: Instant,
}

impl SystemClock {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

/// Unix time in milliseconds.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, millis)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds since the machine was started, its sleep counted in.
#[cfg(target_os = "linux")]
fn steady() -> Option<u64> {
    let since = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(since.tv_sec).ok()?;
    let nanos = u64::try_from(since.tv_nsec).ok()?;
    Some(seconds * 1000 + nanos / 1_000_000)
}

/// Not told here: leases end with the program.
#[cfg(not(target_os = "linux"))]
fn steady() -> Option<u64> {
    None
}

/// Which start of the machine that is.
#[allow(
    clippy::disallowed_methods,
    reason = "the operating system's own word, not a person's file"
)]
fn boot() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let id = id.trim();
    (!id.is_empty()).then(|| id.to_owned())
}

#[async_trait]
impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        now_ms()
    }

    fn monotonic_ms(&self) -> u64 {
        millis(self.start.elapsed())
    }

    fn steady_ms(&self) -> u64 {
        steady().unwrap_or_else(|| self.monotonic_ms())
    }

    fn boot(&self) -> Option<String> {
        steady().and(boot())
    }

    async fn sleep_ms(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_steady_clock_is_the_machines_and_the_same_for_every_program() {
        let (one, other) = (SystemClock::new(), SystemClock::new());
        let before = one.steady_ms();
        assert!(
            other.steady_ms() >= before,
            "it does not begin with a program"
        );
        assert_eq!(one.boot(), other.boot());
        assert!(one.boot().is_some_and(|boot| boot.len() == 36));
    }
}
