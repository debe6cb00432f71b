//! The journal: `journal.db`, the truth of the kernel.
//!
//! One writer takes every change in order and commits many at a time. A row is on disk before
//! whatever it is about reaches the world; results of calls that only look are written a little
//! later, but always before anything that came after them. Rows of the `journal` table hold who,
//! what, on what, by which right or decision and how it ended: digests and sizes, never contents.

mod approvals;
mod calls;
pub(crate) mod images;
pub(crate) mod objects;
mod processes;
mod schema;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Code, SysError};
use crate::executor::{self, Executor};
use crate::process::{Pid, RunId};

pub(crate) use approvals::Decision;
pub(crate) use calls::{About, At, Authority, CallId, CallRow, CallState, ChangeRow, Ended};
pub(crate) use processes::NewProcess;
pub use schema::SCHEMA_VERSION;
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
    /// `allowed`, `denied`, `asked`, `approved`, `refused` or `expired`.
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

/// A row of the journal, as told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JournalRow {
    /// Number, ascending in time.
    pub id: u64,
    /// Unix milliseconds.
    pub at_ms: u64,
    /// The process.
    pub pid: Pid,
    /// Its run.
    pub run: RunId,
    /// The call's number within its process.
    pub seq: Option<u64>,
    /// `process`, `intent`, `approval`, `decision`, `executing` or `outcome`.
    pub kind: String,
    /// The system call or process event.
    pub name: String,
    /// On what, by which right or whose decision, how it ended.
    pub detail: String,
}

/// Which journal rows to tell.
#[derive(Debug, Clone, Copy, Default)]
pub struct JournalQuery {
    /// Only this process.
    pub pid: Option<Pid>,
    /// Only this run.
    pub run: Option<RunId>,
    /// Rows at most.
    pub limit: u32,
}

impl Journal {
    pub(crate) fn open(
        path: &Path,
        executor: Arc<dyn Executor>,
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
        let last_call: u64 = connection
            .query_row("SELECT COALESCE(MAX(id), 0) FROM call", (), |r| r.get(0))
            .map_err(failed)?;
        let opening = count_opening(&connection)?;
        let inner = Inner {
            writer: writer::Writer::new(connection, hook, executor.has_threads())?,
            executor,
            path: path.to_owned(),
            reader: Mutex::default(),
            next_call: AtomicU64::new(last_call + 1),
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

    /// Runs one change. On disk when this returns, and all queued before it.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Tx<'_>) -> Result<T, SysError> + Send + 'static,
    ) -> Result<T, SysError> {
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
        // All that was queued is to be found.
        self.write(|_| Ok(())).await?;
        if !self.inner.executor.has_threads() {
            return self.read(work).await;
        }
        let inner = Arc::clone(&self.inner);
        executor::blocking(&self.inner.executor, "a query of the journal", move || {
            let mut reader = inner.reader.lock().unwrap_or_else(PoisonError::into_inner);
            let connection = match &mut *reader {
                Some(connection) => connection,
                none => none.insert(open_reader(&inner.path)?),
            };
            work(connection)
        })
        .await?
    }

    /// Rows of the journal table, newest first.
    pub(crate) async fn rows(&self, query: JournalQuery) -> Result<Vec<JournalRow>, SysError> {
        self.query(move |db| {
            let sql = "SELECT id, at_ms, pid, run, seq, kind, name, detail FROM journal
                       WHERE (?1 IS NULL OR pid = ?1) AND (?2 IS NULL OR run = ?2)
                       ORDER BY id DESC LIMIT ?3";
            let mut found = db.prepare_cached(sql).map_err(failed)?;
            let rows = found
                .query_map((query.pid.map(|p| p.0), query.run, query.limit), |r| {
                    Ok(JournalRow {
                        id: r.get(0)?,
                        at_ms: r.get(1)?,
                        pid: Pid(r.get(2)?),
                        run: r.get(3)?,
                        seq: r.get(4)?,
                        kind: r.get(5)?,
                        name: r.get(6)?,
                        detail: r.get(7)?,
                    })
                })
                .map_err(failed)?;
            rows.collect::<Result<_, _>>().map_err(failed)
        })
        .await
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

fn open_reader(path: &Path) -> Result<Connection, SysError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags).map_err(failed)
}

/// Appends a row to the journal table.
pub(crate) fn append(tx: &Tx<'_>, row: &Row<'_>) -> Result<(), SysError> {
    let audit = &row.audit;
    tx.prepare_cached(
        "INSERT INTO journal (at_ms, pid, run, seq, kind, name, detail,
           resource, capability, decision, by_, wait_ms, run_ms, facts)
         VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    )
    .and_then(|mut insert| {
        insert.execute(rusqlite::params![
            row.at_ms,
            row.pid.0,
            row.run,
            row.seq,
            row.kind,
            row.name,
            &row.detail,
            &audit.resource,
            audit.capability,
            audit.decision,
            &audit.by,
            audit.wait_ms,
            audit.run_ms,
            &audit.facts,
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
