//! What the kernel needs from the world, as traits that other rooms implement.
//!
//! A provider only executes: it decides nothing about rights, approvals or order. The kernel has
//! checked the capability and holds the approval before it calls [`Files::apply`].

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::audit::chain::{Head, Sealed};
use crate::error::SysError;

mod core;
mod files;
mod sampling;

pub use self::core::*;
pub use files::*;
pub use sampling::Sampling;

/// SHA-256 of some bytes, as 64 lower-case hexadecimal digits.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Digest(pub String);

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Keeps the state of generations that wait, outside memory. Calls block, except
/// [`remove`](Self::remove), which is quick. Nothing of it is of use to a later run of the program:
/// it begins empty each time.
pub trait Snapshots: Send + Sync {
    /// Keeps a snapshot under a number that is new.
    fn put(&self, number: u64, snapshot: Vec<u8>) -> Result<(), SysError>;
    /// Gives a snapshot back, exactly, and forgets it.
    fn take(&self, number: u64) -> Result<Vec<u8>, SysError>;
    /// Forgets a snapshot, where it is there.
    fn remove(&self, number: u64);
}

/// Time, so that tests can set it.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Unix time in milliseconds.
    fn now_ms(&self) -> u64;
    /// Milliseconds of a clock that never goes back (since an arbitrary start).
    fn monotonic_ms(&self) -> u64;
    /// Waits that long.
    async fn sleep_ms(&self, ms: u64);
    /// Milliseconds since the machine was started, its sleep counted in: what leases are measured
    /// by. Without [`Clock::boot`], since an arbitrary start of this clock.
    fn steady_ms(&self) -> u64 {
        self.monotonic_ms()
    }
    /// Which start of the machine it counts from. Where that is not known, leases end with the
    /// program.
    fn boot(&self) -> Option<String> {
        None
    }
}

/// Vouches for where the journal ends, with a key and a memory outside the database. Calls block.
pub trait Witness: Send + Sync {
    /// Signs a head and remembers it in the place of the one before it; nothing where there is no
    /// key.
    fn seal(&self, head: &Head) -> Result<Option<Sealed>, SysError>;
    /// The head that was remembered last.
    fn last(&self) -> Result<Option<Sealed>, SysError>;
    /// Whether a signed head is this witness's.
    fn judge(&self, sealed: &Sealed) -> Judgement;
}

/// What a [`Witness`] says to a signed head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// It signed this.
    Genuine,
    /// Another key did.
    OtherKey,
    /// The signature does not fit.
    Forged,
}

/// Signs nothing and remembers nothing: the chain is kept, but a removed tail is not seen.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoWitness;

impl Witness for NoWitness {
    fn seal(&self, _: &Head) -> Result<Option<Sealed>, SysError> {
        Ok(None)
    }

    fn last(&self) -> Result<Option<Sealed>, SysError> {
        Ok(None)
    }

    fn judge(&self, _: &Sealed) -> Judgement {
        Judgement::OtherKey
    }
}
