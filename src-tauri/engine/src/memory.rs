//! How much memory the machine has left.

use std::sync::{Mutex, PoisonError};

use sysinfo::{MemoryRefreshKind, System};

/// Bytes that a program takes besides weights, keys and values.
pub(crate) const BESIDES: u64 = 60 << 20;

/// Bytes of memory that can be taken without the system swapping; less where a control group allows
/// less. `None` where the system does not tell.
pub fn available_memory() -> Option<u64> {
    static SYSTEM: Mutex<Option<System>> = Mutex::new(None);
    let mut system = SYSTEM.lock().unwrap_or_else(PoisonError::into_inner);
    let system = system.get_or_insert_with(System::new);
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    let free = system.available_memory();
    let allowed = system.cgroup_limits().map(|limits| limits.free_memory);
    let least = allowed.map_or(free, |allowed| free.min(allowed));
    (system.total_memory() > 0).then_some(least)
}
