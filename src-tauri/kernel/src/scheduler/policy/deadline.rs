//! Earliest deadline first.

use super::{Call, Kind, MS_MOST, Policy};

pub(super) const KIND: Kind = Kind {
    name: "deadline",
    help: "the earliest deadline first; calls without one have a deadline by their arrival",
    make: |params| {
        let quantum = params.quantum()?;
        let patience_ms = params.number("patience_ms", 30_000, 1..=MS_MOST)?;
        Ok(Box::new(Deadline {
            patience_ms,
            quantum,
        }))
    },
};

/// The earliest deadline first. A call without one, or with one further away, counts as due
/// `patience_ms` after its arrival; one that is overdue on arrival counts as due then.
///
/// **Waiting:** no call goes first that arrives `patience_ms` or more after this one.
struct Deadline {
    patience_ms: u64,
    quantum: u32,
}

impl Policy for Deadline {
    fn rank(&self, call: &Call) -> u64 {
        let latest = call.arrived_ms + self.patience_ms;
        let due = call.caller.deadline_ms.unwrap_or(latest);
        due.clamp(call.arrived_ms, latest)
    }

    fn quantum(&self) -> Option<u32> {
        Some(self.quantum)
    }
}
