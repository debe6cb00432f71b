use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks a running generation to end; clones share one flag.
///
/// The flag is read before every token and, during prefill, before every layer of a chunk.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the flag; it cannot be cleared.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether the flag is set.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
