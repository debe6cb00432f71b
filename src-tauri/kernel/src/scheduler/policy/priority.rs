//! Classes of priority, with ageing.

use super::{Call, Kind, MS_MOST, Policy};
use crate::process::Urgency;

pub(super) const KIND: Kind = Kind {
    name: "priority",
    help: "more urgent classes first; waiting makes every call more urgent",
    make: |params| {
        let quantum = params.quantum()?;
        let age_ms = params.number("age_ms", 2_000, 1..=MS_MOST)?;
        Ok(Box::new(Priority { age_ms, quantum }))
    },
};

/// Class 0 first; a call gains one class for every `age_ms` that it waits.
///
/// All calls age alike, so their order never changes while they wait and the rank is fixed at
/// arrival: the time at which the call will have come to class 0.
///
/// **Waiting:** a call of class `c` lets no call go first that arrives `c · age_ms` or more after
/// it. One that gives way before its quantum is used up keeps its age, so it comes to run for at
/// least a quantum each time.
struct Priority {
    age_ms: u64,
    quantum: u32,
}

impl Policy for Priority {
    fn rank(&self, call: &Call) -> u64 {
        let class = call.caller.priority.min(Urgency::LAST);
        call.arrived_ms + u64::from(class) * self.age_ms
    }

    fn quantum(&self) -> Option<u32> {
        Some(self.quantum)
    }
}
