//! Leases: how long a capability counts, by a clock that nobody sets.
//!
//! The wall clock can be set, so it measures no lease. The steady clock counts from the start of the
//! machine and through its sleep; where the machine was started anew in between, nothing can tell how
//! long that took, and what was lent before is over. So a lease is never longer than granted.

use serde::{Deserialize, Serialize};

use super::Grant;

/// A reading of the steady clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steady {
    /// Which start of the machine (or, where that is not known, of the kernel) it counts from.
    pub boot: String,
    /// Milliseconds since.
    pub ms: u64,
}

/// The time when rights are checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Now {
    /// Unix milliseconds by the wall clock: for constraints on times of day.
    pub wall_ms: u64,
    /// By the steady clock: for leases.
    pub steady: Steady,
}

/// Until when a capability counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The end, by the steady clock.
    pub ends: Steady,
}

impl Lease {
    /// A lease of some milliseconds from now.
    pub fn of(ms: u64, now: &Steady) -> Self {
        Self {
            ends: Steady {
                boot: now.boot.clone(),
                ms: now.ms.saturating_add(ms),
            },
        }
    }

    /// The lease of a grant made now out of a capability: no longer than that one's.
    pub fn granted(grant: &Grant, from: Option<&Self>, now: &Steady) -> Option<Self> {
        match (grant.lease_ms, from) {
            (None, from) => from.cloned(),
            (Some(ms), from) => {
                let left = from.map_or(ms, |from| from.left_ms(now).min(ms));
                Some(Self::of(left, now))
            }
        }
    }

    /// Whether it is over.
    pub fn is_over(&self, now: &Steady) -> bool {
        self.ends.boot != now.boot || now.ms >= self.ends.ms
    }

    /// Milliseconds left.
    pub fn left_ms(&self, now: &Steady) -> u64 {
        match self.ends.boot == now.boot {
            true => self.ends.ms.saturating_sub(now.ms),
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(boot: &str, ms: u64) -> Steady {
        let boot = boot.into();
        Steady { boot, ms }
    }

    #[test]
    fn a_lease_ends_on_time_or_with_the_machine() {
        let lease = Lease::of(100, &steady("a", 1_000));
        let rows = [
            (steady("a", 1_000), 100),
            (steady("a", 1_099), 1),
            (steady("a", 1_100), 0),
            (steady("a", u64::MAX), 0),
            // Started anew: it may have been off for longer than the lease.
            (steady("b", 0), 0),
            (steady("b", 1_050), 0),
        ];
        for (now, left) in rows {
            assert_eq!(lease.left_ms(&now), left, "{now:?}");
            assert_eq!(lease.is_over(&now), left == 0, "{now:?}");
        }
    }

    #[test]
    fn what_is_passed_on_ends_no_later_than_where_it_comes_from() {
        use crate::capability::{Grant, Resource};
        let now = steady("a", 1_000);
        let ends = |ms| Some(Lease::of(ms, &steady("a", 0)));
        let old = Some(Lease::of(100, &steady("b", 0)));
        let rows = [
            (None, None, None),
            (Some(50), None, ends(1_050)),
            (None, ends(1_100), ends(1_100)),
            (Some(50), ends(1_100), ends(1_050)),
            (Some(500), ends(1_100), ends(1_100)),
            (Some(500), old, ends(1_000)),
        ];
        for (lease_ms, from, lease) in rows {
            let grant = Grant {
                lease_ms,
                ..Grant::allow(Resource::Clock, [])
            };
            assert_eq!(Lease::granted(&grant, from.as_ref(), &now), lease);
        }
    }
}
