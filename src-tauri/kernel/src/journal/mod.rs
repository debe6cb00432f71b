//! The journal: `journal.db`, the truth of the kernel.
//!
//! Every method is one transaction, committed and on disk when it returns. Rows of the `journal`
//! table hold who, what, on what, by which right or decision and how it ended: digests and sizes,
//! never contents.

mod approvals;
mod calls;
mod processes;
mod schema;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Code, SysError};
use crate::process::{Pid, RunId};

pub(crate) use approvals::Decision;
pub(crate) use calls::{At, Authority, CallId, CallRow, CallState, ChangeRow, Ended};
pub(crate) use processes::NewProcess;
pub use schema::SCHEMA_VERSION;

/// Called after each commit with the number of commits so far: for tests that end the program
/// between two of them.
pub type CommitHook = Arc<dyn Fn(u64) + Send + Sync>;

/// The database and its one connection.
#[derive(Clone)]
pub(crate) struct Journal {
    db: Arc<Mutex<Database>>,
}

struct Database {
    connection: Connection,
    commits: u64,
    hook: Option<CommitHook>,
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
    pub(crate) fn open(path: &Path, hook: Option<CommitHook>) -> Result<Self, SysError> {
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
        schema::prepare(&connection)?;
        let db = Database {
            connection,
            commits: 0,
            hook,
        };
        Ok(Self {
            db: Arc::new(Mutex::new(db)),
        })
    }

    /// Runs one transaction off the async threads.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, SysError> + Send + 'static,
    ) -> Result<T, SysError> {
        let db = Arc::clone(&self.db);
        let done = tokio::task::spawn_blocking(move || {
            let mut db = db.lock().unwrap_or_else(PoisonError::into_inner);
            db.write(work)
        });
        done.await
            .map_err(|e| SysError::new(Code::Internal, format!("the journal stopped: {e}")))?
    }

    /// Reads off the async threads.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, SysError> + Send + 'static,
    ) -> Result<T, SysError> {
        let db = Arc::clone(&self.db);
        let done = tokio::task::spawn_blocking(move || {
            let db = db.lock().unwrap_or_else(PoisonError::into_inner);
            work(&db.connection)
        });
        done.await
            .map_err(|e| SysError::new(Code::Internal, format!("the journal stopped: {e}")))?
    }

    /// Rows of the journal table, newest first.
    pub(crate) async fn rows(&self, query: JournalQuery) -> Result<Vec<JournalRow>, SysError> {
        self.read(move |db| {
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

impl Database {
    fn write<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, SysError>,
    ) -> Result<T, SysError> {
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        let value = work(&transaction)?;
        transaction.commit().map_err(failed)?;
        self.commits += 1;
        if let Some(hook) = &self.hook {
            hook(self.commits);
        }
        Ok(value)
    }
}

/// Appends a row to the journal table.
pub(crate) fn append(tx: &Transaction<'_>, row: &Row<'_>) -> Result<(), SysError> {
    tx.prepare_cached(
        "INSERT INTO journal (at_ms, pid, run, seq, kind, name, detail) VALUES (?,?,?,?,?,?,?)",
    )
    .and_then(|mut insert| {
        insert.execute((
            row.at_ms,
            row.pid.0,
            row.run,
            row.seq,
            row.kind,
            row.name,
            &row.detail,
        ))
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
