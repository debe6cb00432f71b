//! The journal: `journal.db`, the truth of the kernel.
//!
//! One writer takes every change in order and commits many at a time. A row is on disk before
//! whatever it is about reaches the world; results of calls that only look are written a little
//! later, but always before anything that came after them. Rows of the `journal` table hold who,
//! what, on what, by which right or decision and how it ended: digests and sizes, never contents.

mod answered;
mod approvals;
mod calls;
mod capabilities;
#[cfg(test)]
mod chained;
mod changes;
mod checkpoints;
mod ends;
pub(crate) mod images;
mod lives;
mod messages;
pub(crate) mod objects;
mod processes;
mod rotate;
mod schema;
mod seal;
mod segments;
mod standing;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::audit::chain::{Columns, Hash};
use crate::audit::{JournalQuery, JournalRow};
use crate::error::{Code, SysError};
use crate::executor::{self, Executor};
use crate::process::{Pid, RunId};
use crate::provider::Witness;

pub use answered::ApprovalRecord;
pub(crate) use approvals::{Answered, ApprovalRow, Decision, Terms};
pub(crate) use calls::{About, At, Authority, CallId, CallRow, CallState, Ended, Uses};
pub(crate) use changes::ChangeRow;
pub(crate) use checkpoints::{Kept, create_checkpoint, standing_result, take_standing};
pub(crate) use lives::{History, Inherited, LastCall, exec, set_words};
pub(crate) use messages::{Message, put_message, take_message};
pub(crate) use processes::NewProcess;
pub use rotate::Retention;
pub use schema::SCHEMA_VERSION;
pub use segments::{export, export_piece, verify};
pub(crate) use writer::Tx;

/// Called after each commit with the number of commits so far: for tests that end the program
/// between two of them.
pub type CommitHook = Arc<dyn Fn(u64) + Send + Sync>;

/// The database: one connection writes, another answers queries.
#[derive(Clone)]
pub(crate) struct Journal {
    inner: Arc<Inner>,
}

struct Inner {
    writer: writer::Writer,
    executor: Arc<dyn Executor>,
    path: PathBuf,
    /// For queries; opened when the first comes.
    reader: Mutex<Option<Connection>>,
    next_call: AtomicU64,
    retention: Mutex<Retention>,
    /// Rows there were when their size was looked at last.
    looked: AtomicU64,
    rotating: AtomicBool,
    opening: u64,
}

/// A row about to be written to the journal table.
pub(crate) struct Row<'a> {
    pub at_ms: u64,
    pub pid: Pid,
    pub run: RunId,
    pub seq: Option<u64>,
    pub kind: &'a str,
    pub name: &'a str,
    pub detail: String,
    pub audit: Audit,
}

/// What a row of the journal says in columns of its own, beside its words.
#[derive(Debug, Clone, Default)]
pub(crate) struct Audit {
    /// On what: a path, a process, an object …
    pub resource: Option<String>,
    /// By which capability.
    pub capability: Option<u64>,
    /// `allow`, `ask`, `deny`, `yes`, `no` or `expired`.
    pub decision: Option<&'static str>,
    /// By whom or what it was decided.
    pub by: Option<String>,
    /// Milliseconds that the call waited for its turn.
    pub wait_ms: Option<u64>,
    /// Milliseconds that it ran.
    pub run_ms: Option<u64>,
    /// Figures as a small JSON object; never contents.
    pub facts: Option<String>,
}

impl Journal {
    pub(crate) fn open(
        path: &Path,
        executor: Arc<dyn Executor>,
        witness: Arc<dyn Witness>,
        now_ms: u64,
        hook: Option<CommitHook>,
    ) -> Result<Self, SysError> {
        let connection = Connection::open(path).map_err(|e| {
            SysError::new(
                Code::Unavailable,
                format!(
                    "cannot open `{}`: {e}",
                    crate::escape::shown(&path.to_string_lossy())
                ),
            )
            .hint("check that the folder is yours to write and the disk is not full")
        })?;
        schema::prepare(&connection, path)?;
        ends::settle(&connection, witness.as_ref(), now_ms)?;
        let last_call: u64 = connection
            .query_row("SELECT COALESCE(MAX(id), 0) FROM call", (), |r| r.get(0))
            .map_err(failed)?;
        let opening = count_opening(&connection)?;
        let inner = Inner {
            writer: writer::Writer::new(connection, witness, hook, executor.has_threads())?,
            executor,
            path: path.to_owned(),
            reader: Mutex::default(),
            next_call: AtomicU64::new(last_call + 1),
            retention: Mutex::default(),
            looked: AtomicU64::new(0),
            rotating: AtomicBool::new(false),
            opening,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// How often this journal has been opened.
    pub(crate) fn opening(&self) -> u64 {
        self.inner.opening
    }

    /// A number for a call about to be made.
    pub(crate) fn next_call(&self) -> CallId {
        self.inner.next_call.fetch_add(1, Ordering::Relaxed)
    }

    /// The first of so many numbers for calls about to be made.
    pub(crate) fn next_calls(&self, count: u64) -> CallId {
        self.inner.next_call.fetch_add(count, Ordering::Relaxed)
    }

    /// Runs one change. On disk when this returns, and all queued before it.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Tx<'_>) -> Result<T, SysError> + Send + 'static,
    ) -> Result<T, SysError> {
        self.keep_bounded();
        self.inner.writer.run(true, work).await
    }

    /// Queues one change that need not be on disk yet: it is there before any that comes later. As
    /// [`Journal::write`] where the last such could not be written.
    pub(crate) async fn write_later(
        &self,
        work: impl FnOnce(&Tx<'_>) -> Result<(), SysError> + Send + 'static,
    ) -> Result<(), SysError> {
        if self.inner.writer.is_failing() {
            return self.write(work).await;
        }
        self.keep_bounded();
        self.inner.writer.later(work);
        Ok(())
    }

    /// Reads what stands after all that was queued before.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, SysError> + Send + 'static,
    ) -> Result<T, SysError> {
        self.inner.writer.run(false, move |tx| work(tx)).await
    }

    /// Reads what was on disk, beside the writer: for searches that take their time.
    pub(crate) async fn query<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, SysError> + Send + 'static,
    ) -> Result<T, SysError> {
        self.settled().await?;
        if !self.inner.executor.has_threads() {
            return self.read(work).await;
        }
        let inner = Arc::clone(&self.inner);
        executor::blocking(&self.inner.executor, "a query of the journal", move || {
            let mut reader = inner.reader.lock().unwrap_or_else(PoisonError::into_inner);
            let connection = match &mut *reader {
                Some(connection) => connection,
                none => none.insert(segments::open_reader(&inner.path)?),
            };
            work(connection)
        })
        .await?
    }

    /// Rows of the journal table, newest first.
    pub(crate) async fn rows(&self, query: JournalQuery) -> Result<Vec<JournalRow>, SysError> {
        let path = self.inner.path.clone();
        self.query(move |db| segments::rows(db, &path, &query))
            .await
    }

    /// Waits until all that was queued is on disk, where others find it.
    pub(crate) async fn settled(&self) -> Result<(), SysError> {
        self.write(|_| Ok(())).await
    }

    /// When older rows go to an archive.
    pub(crate) fn retention(&self) -> Retention {
        *self.lock_retention()
    }

    pub(crate) fn set_retention(&self, retention: Retention) {
        *self.lock_retention() = retention;
    }

    fn lock_retention(&self) -> MutexGuard<'_, Retention> {
        self.inner
            .retention
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The file, for those who read beside the kernel.
    pub(crate) fn path(&self) -> &Path {
        &self.inner.path
    }
}

fn count_opening(db: &Connection) -> Result<u64, SysError> {
    db.query_row(
        "INSERT INTO meta (key, value) VALUES ('openings', '1')
         ON CONFLICT (key) DO UPDATE SET value = value + 1 RETURNING CAST(value AS INTEGER)",
        (),
        |r| r.get(0),
    )
    .map_err(failed)
}

/// Appends a row to the journal table, and to the chain.
pub(crate) fn append(db: &Connection, row: &Row<'_>) -> Result<(), SysError> {
    let (last, before) = ends::last(db)?;
    let audit = &row.audit;
    let columns = Columns {
        id: last + 1,
        at_ms: row.at_ms,
        pid: row.pid.0,
        run: row.run,
        seq: row.seq,
        kind: row.kind,
        name: row.name,
        detail: &row.detail,
        resource: audit.resource.as_deref(),
        capability: audit.capability,
        decision: audit.decision,
        by: audit.by.as_deref(),
        wait_ms: audit.wait_ms,
        run_ms: audit.run_ms,
        facts: audit.facts.as_deref(),
    };
    insert(db, &columns, &columns.after(&before))
}

/// Puts a row with its hash into the journal table.
fn insert(db: &Connection, row: &Columns<'_>, hash: &Hash) -> Result<(), SysError> {
    db.prepare_cached(
        "INSERT INTO journal (id, at_ms, pid, run, seq, kind, name, detail,
           resource, capability, decision, by_, wait_ms, run_ms, facts, hash)
         VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    )
    .and_then(|mut insert| {
        insert.execute(rusqlite::params![
            row.id,
            row.at_ms,
            row.pid,
            row.run,
            row.seq,
            row.kind,
            row.name,
            row.detail,
            row.resource,
            row.capability,
            row.decision,
            row.by,
            row.wait_ms,
            row.run_ms,
            row.facts,
            hash.0,
        ])
    })
    .map(drop)
    .map_err(failed)
}

pub(crate) fn failed(error: rusqlite::Error) -> SysError {
    let full = matches!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DiskFull | rusqlite::ErrorCode::SystemIoFailure)
    );
    let base = SysError::new(
        Code::Unavailable,
        format!("the journal could not be written: {error}"),
    );
    if full {
        base.hint("make room on the disk of the data directory; nothing was done without a record")
    } else {
        base.hint("run `steward doctor`; nothing was done without a record")
    }
}

pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<String, SysError> {
    serde_json::to_string(value).map_err(|e| SysError::new(Code::Internal, e.to_string()))
}

pub(crate) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, SysError> {
    serde_json::from_str(text).map_err(|e| {
        SysError::new(
            Code::Internal,
            format!("a row of the journal does not fit: {e}"),
        )
    })
}

/// The word a type has in JSON, for enum columns.
pub(crate) fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

pub(crate) fn from_word<T: DeserializeOwned>(word: String) -> Result<T, SysError> {
    serde_json::from_value(serde_json::Value::String(word)).map_err(|e| {
        SysError::new(
            Code::Internal,
            format!("a row of the journal does not fit: {e}"),
        )
    })
}
