//! The context manager: generations that stand still, out of the way, until their next slice.
//!
//! A generation belongs to the call that makes it, so it ends with that call, however that ends.
//! Here stands only how much memory those hold that wait. Where it is more than the limit, the one
//! that has waited longest is told to go to the snapshots: its own call writes it there, and takes
//! it back when its turn has come.

#[cfg(test)]
mod tests;
pub(crate) mod text;

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Code, SysError};
use crate::executor::{self, Executor};
use crate::provider::{Cancel, ChatRequest, Generation, LlmCore, Snapshots};

/// Bytes that waiting generations may hold where nothing else is set.
const USUAL_LIMIT: u64 = 512 << 20;

/// How the generations that wait for a slice stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextLoad {
    /// Bytes of memory that those which wait may hold.
    pub limit_bytes: u64,
    /// Generations that wait with their state in memory.
    pub resident: u32,
    /// Bytes that these hold.
    pub resident_bytes: u64,
    /// Generations whose state is in the snapshots.
    pub stored: u32,
    /// How often a generation gave way since the kernel was opened.
    pub switches: u64,
    /// How often one was written to the snapshots.
    pub spills: u64,
}

/// What a waiting generation holds.
struct Resident {
    bytes: u64,
    /// Tells its call to write it to the snapshots.
    spill: Cancel,
}

#[derive(Default)]
struct Ledger {
    limit_bytes: u64,
    next: u64,
    /// In order of waiting: the lowest number has waited longest.
    resident: BTreeMap<u64, Resident>,
    resident_bytes: u64,
    stored: u32,
    spills: u64,
}

impl Ledger {
    /// Tells as many to go as the limit asks for. They count as gone from then on.
    fn relieve(&mut self) {
        while self.resident_bytes > self.limit_bytes
            && let Some((_, longest)) = self.resident.pop_first()
        {
            self.resident_bytes -= longest.bytes;
            longest.spill.cancel();
        }
    }
}

/// The generations that wait for their next slice.
pub(crate) struct Contexts {
    snapshots: Arc<dyn Snapshots>,
    executor: Arc<dyn Executor>,
    ledger: Mutex<Ledger>,
}

impl Contexts {
    pub(crate) fn new(snapshots: Arc<dyn Snapshots>, executor: Arc<dyn Executor>) -> Arc<Self> {
        let ledger = Ledger {
            limit_bytes: USUAL_LIMIT,
            ..Ledger::default()
        };
        Arc::new(Self {
            snapshots,
            executor,
            ledger: Mutex::new(ledger),
        })
    }

    pub(crate) fn set_limit(&self, bytes: u64) {
        let mut ledger = self.lock();
        ledger.limit_bytes = bytes;
        ledger.relieve();
    }

    pub(crate) fn load(&self) -> ContextLoad {
        let ledger = self.lock();
        ContextLoad {
            limit_bytes: ledger.limit_bytes,
            resident: u32::try_from(ledger.resident.len()).unwrap_or(u32::MAX),
            resident_bytes: ledger.resident_bytes,
            stored: ledger.stored,
            switches: ledger.next,
            spills: ledger.spills,
        }
    }

    /// Waits for a turn with a generation put aside; the turn, and the generation as it was.
    pub(crate) async fn wait<T>(
        self: &Arc<Self>,
        core: &Arc<dyn LlmCore>,
        request: &ChatRequest,
        mut generation: Box<dyn Generation>,
        turn: impl Future<Output = Result<T, SysError>>,
    ) -> Result<(T, Box<dyn Generation>), SysError> {
        let place = self.enlist(generation.resident_bytes());
        let mut turn = pin!(turn);
        tokio::select! {
            biased;
            turn = &mut turn => return Ok((turn?, generation)),
            () = place.spill.cancelled() => {}
        }
        let Some(stored) = self.store(place.number, &mut generation).await else {
            // It stays where it is: memory over the limit is better than work lost.
            return Ok((turn.await?, generation));
        };
        drop(generation);
        let turn = turn.await?;
        let snapshot = stored.take().await?;
        let generation = Arc::clone(core).restore(request.clone(), snapshot).await?;
        Ok((turn, generation))
    }

    fn enlist(self: &Arc<Self>, bytes: u64) -> Place {
        let spill = Cancel::default();
        let mut ledger = self.lock();
        let number = ledger.next;
        ledger.next += 1;
        ledger.resident_bytes += bytes;
        let resident = Resident {
            bytes,
            spill: spill.clone(),
        };
        ledger.resident.insert(number, resident);
        ledger.relieve();
        drop(ledger);
        Place {
            contexts: Arc::clone(self),
            number,
            spill,
        }
    }

    /// Writes a generation to the snapshots, if they take it.
    async fn store(
        self: &Arc<Self>,
        number: u64,
        generation: &mut Box<dyn Generation>,
    ) -> Option<Stored> {
        let snapshot = match generation.snapshot().await {
            Ok(snapshot) => snapshot,
            Err(error) => {
                tracing::warn!(%error, "a waiting generation stays in memory: it gave no snapshot");
                return None;
            }
        };
        let mut stored = Stored {
            contexts: Arc::clone(self),
            number,
            counted: false,
            gone: Arc::default(),
        };
        let (snapshots, gone) = (Arc::clone(&self.snapshots), Arc::clone(&stored.gone));
        let put = move || {
            let put = snapshots.put(number, snapshot);
            // Its call ended while this was being written.
            if gone.load(Ordering::Acquire) {
                snapshots.remove(number);
            }
            put
        };
        let put = executor::blocking(&self.executor, "the store of snapshots", put).await;
        match put.and_then(|put| put) {
            Ok(()) => {
                let mut ledger = self.lock();
                ledger.stored += 1;
                ledger.spills += 1;
                drop(ledger);
                stored.counted = true;
                Some(stored)
            }
            Err(error) => {
                tracing::warn!(%error, "a waiting generation stays in memory: no room for it");
                None
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A waiting generation's place in the ledger; given up when dropped.
struct Place {
    contexts: Arc<Contexts>,
    number: u64,
    spill: Cancel,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut ledger = self.contexts.lock();
        if let Some(resident) = ledger.resident.remove(&self.number) {
            ledger.resident_bytes -= resident.bytes;
        }
    }
}

/// A generation's state in the snapshots; removed when dropped.
struct Stored {
    contexts: Arc<Contexts>,
    number: u64,
    /// Whether the ledger counts it.
    counted: bool,
    /// Set when nobody will take it.
    gone: Arc<AtomicBool>,
}

impl Stored {
    async fn take(self) -> Result<Vec<u8>, SysError> {
        let (snapshots, number) = (Arc::clone(&self.contexts.snapshots), self.number);
        let take = move || snapshots.take(number);
        executor::blocking(&self.contexts.executor, "the store of snapshots", take).await?
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        if self.counted {
            self.contexts.lock().stored -= 1;
        }
        self.gone.store(true, Ordering::Release);
        self.contexts.snapshots.remove(self.number);
    }
}

/// Keeps snapshots in memory: for programs without a data directory, and for tests.
#[derive(Default)]
pub struct MemorySnapshots(Mutex<HashMap<u64, Vec<u8>>>);

impl MemorySnapshots {
    /// How many it holds.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Snapshots for MemorySnapshots {
    fn put(&self, number: u64, snapshot: Vec<u8>) -> Result<(), SysError> {
        self.lock().insert(number, snapshot);
        Ok(())
    }

    fn take(&self, number: u64) -> Result<Vec<u8>, SysError> {
        self.lock().remove(&number).ok_or_else(|| {
            SysError::new(Code::Internal, format!("there is no snapshot `{number}`"))
        })
    }

    fn remove(&self, number: u64) {
        self.lock().remove(&number);
    }
}
