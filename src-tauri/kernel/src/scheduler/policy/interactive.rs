//! What a person waits for goes before what runs in the background.

use super::{Call, Kind, MS_MOST, Policy};

pub(super) const KIND: Kind = Kind {
    name: "interactive",
    help: "what a person waits for goes before the background, until that has waited long",
    make: |params| {
        let quantum = params.quantum()?;
        let patience_ms = params.number("patience_ms", 5_000, 1..=MS_MOST)?;
        Ok(Box::new(Interactive {
            patience_ms,
            quantum,
        }))
    },
};

/// Interactive calls have a head start of `patience_ms` on background ones; among their like, in
/// order of arrival.
///
/// **Waiting:** an interactive call lets no call go first that arrives later; a background call
/// none that arrives `patience_ms` or more after it. A background generation gives way at once
/// until it has waited that long, and then runs for at least a quantum.
struct Interactive {
    patience_ms: u64,
    quantum: u32,
}

impl Policy for Interactive {
    fn rank(&self, call: &Call) -> u64 {
        match call.caller.interactive {
            true => call.arrived_ms,
            false => call.arrived_ms + self.patience_ms,
        }
    }

    fn quantum(&self) -> Option<u32> {
        Some(self.quantum)
    }
}
