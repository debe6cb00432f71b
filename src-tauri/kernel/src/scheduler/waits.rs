//! How long calls of one module waited.

/// Waits that are remembered.
const KEPT: usize = 1024;

/// Waiting times of the latest turns.
#[derive(Default)]
pub(super) struct Waits {
    latest: Vec<u32>,
    next: usize,
    turns: u64,
}

impl Waits {
    pub(super) fn add(&mut self, ms: u64) {
        let ms = u32::try_from(ms).unwrap_or(u32::MAX);
        match self.latest.get_mut(self.next) {
            Some(oldest) => *oldest = ms,
            None => self.latest.push(ms),
        }
        self.next = (self.next + 1) % KEPT;
        self.turns += 1;
    }

    /// Turns given since the kernel was opened.
    pub(super) fn turns(&self) -> u64 {
        self.turns
    }

    /// Mean of the latest turns, in milliseconds.
    pub(super) fn mean_ms(&self) -> f64 {
        let total: u64 = self.latest.iter().copied().map(u64::from).sum();
        // At most 1024 waits of 32 bits: exact in a double.
        total as f64 / self.latest.len().max(1) as f64
    }

    /// The wait that nine of ten of the latest turns did not exceed.
    pub(super) fn p90_ms(&self) -> u64 {
        let mut sorted = self.latest.clone();
        sorted.sort_unstable();
        let at = (sorted.len() * 9).div_ceil(10).saturating_sub(1);
        sorted.get(at).copied().unwrap_or(0).into()
    }
}
