//! First in, first out.

use super::{Call, Kind, Policy};

pub(super) const KIND: Kind = Kind {
    name: "fifo",
    help: "in order of arrival, each to its end",
    make: |_| Ok(Box::new(Fifo)),
};

/// In order of arrival, each call to its end.
///
/// **Waiting:** no call that arrives later goes first.
struct Fifo;

impl Policy for Fifo {
    fn rank(&self, call: &Call) -> u64 {
        call.arrived_ms
    }
}
