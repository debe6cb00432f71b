//! Round robin.

use super::{Call, Kind, Policy};

pub(super) const KIND: Kind = Kind {
    name: "round_robin",
    help: "in order of arrival, each for a quantum of tokens, then again at the end of the queue",
    make: |params| {
        let quantum = params.quantum()?;
        Ok(Box::new(RoundRobin { quantum }))
    },
};

/// In order of arrival, each for a quantum of tokens; what has not ended by then comes again.
///
/// **Waiting:** before each of its turns a call waits for one quantum at most of each call that is
/// there when it comes; none that comes later goes first.
struct RoundRobin {
    quantum: u32,
}

impl Policy for RoundRobin {
    fn rank(&self, call: &Call) -> u64 {
        call.arrived_ms
    }

    fn quantum(&self) -> Option<u32> {
        Some(self.quantum)
    }
}
