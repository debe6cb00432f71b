//! Tables of `journal.db`, and what happens when an older or newer program opens it.

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::error::{Code, SysError};

/// Version of the tables that this program reads and writes (`PRAGMA user_version`).
pub const SCHEMA_VERSION: i64 = 1;

const TABLES: &str = "
CREATE TABLE process (
  pid        INTEGER PRIMARY KEY AUTOINCREMENT,
  parent     INTEGER REFERENCES process(pid),
  run        INTEGER NOT NULL,
  after_run  INTEGER,
  spawned_by INTEGER UNIQUE REFERENCES call(id),
  image      TEXT NOT NULL,
  goal       TEXT NOT NULL,
  workspace  TEXT NOT NULL,
  state      TEXT NOT NULL,
  tokens     INTEGER NOT NULL DEFAULT 0,
  created_ms INTEGER NOT NULL,
  ended_ms   INTEGER,
  exit       TEXT
) STRICT;
CREATE INDEX process_run ON process(run);

CREATE TABLE capability (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  subject   INTEGER NOT NULL REFERENCES process(pid),
  grant_    TEXT NOT NULL,
  parent    INTEGER REFERENCES capability(id),
  issuer    TEXT NOT NULL,
  issued_ms INTEGER NOT NULL,
  uses_left INTEGER,
  status    TEXT NOT NULL
) STRICT;
CREATE INDEX capability_subject ON capability(subject);

CREATE TABLE call (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  pid        INTEGER NOT NULL REFERENCES process(pid),
  seq        INTEGER NOT NULL,
  name       TEXT NOT NULL,
  args       TEXT NOT NULL,
  title      TEXT NOT NULL,
  state      TEXT NOT NULL,
  detail     TEXT NOT NULL DEFAULT '',
  created_ms INTEGER NOT NULL,
  started_ms INTEGER,
  ended_ms   INTEGER,
  UNIQUE (pid, seq)
) STRICT;

-- Results of calls and what a waiting call must remember: kept while the process lives, so that it
-- can be run again up to where it stood, and removed with it.
CREATE TABLE payload (
  call   INTEGER PRIMARY KEY REFERENCES call(id),
  pid    INTEGER NOT NULL,
  result TEXT,
  memo   TEXT
) STRICT;
CREATE INDEX payload_pid ON payload(pid);

CREATE TABLE approval (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  call       INTEGER NOT NULL REFERENCES call(id),
  pid        INTEGER NOT NULL,
  state      TEXT NOT NULL,
  digest     TEXT NOT NULL,
  view       TEXT,
  capability INTEGER REFERENCES capability(id),
  asked_ms   INTEGER NOT NULL,
  decided_ms INTEGER,
  decided_by TEXT
) STRICT;
CREATE INDEX approval_state ON approval(state);

CREATE TABLE question (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  call     INTEGER NOT NULL UNIQUE REFERENCES call(id),
  pid      INTEGER NOT NULL,
  state    TEXT NOT NULL,
  view     TEXT,
  answer   TEXT,
  asked_ms INTEGER NOT NULL
) STRICT;

-- What was done to files: the truth from which a run is undone.
CREATE TABLE change (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  call      INTEGER NOT NULL REFERENCES call(id),
  run       INTEGER NOT NULL,
  workspace TEXT NOT NULL,
  plan      TEXT NOT NULL,
  state     TEXT NOT NULL,
  undone_by INTEGER,
  at_ms     INTEGER NOT NULL
) STRICT;
CREATE INDEX change_run ON change(run);

CREATE TABLE journal (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  at_ms  INTEGER NOT NULL,
  pid    INTEGER NOT NULL,
  run    INTEGER NOT NULL,
  seq    INTEGER,
  kind   TEXT NOT NULL,
  name   TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;
CREATE INDEX journal_pid ON journal(pid);
CREATE INDEX journal_run ON journal(run);
CREATE TRIGGER journal_is_append_only_update BEFORE UPDATE ON journal
  BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER journal_is_append_only_delete BEFORE DELETE ON journal
  BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
";

/// Makes the tables where there are none, and refuses what is newer or damaged: that is left as it
/// is, unopened pages of its log included.
pub(super) fn prepare(db: &Connection) -> Result<(), SysError> {
    db.busy_timeout(std::time::Duration::from_secs(5))
        .map_err(super::failed)?;
    let version: i64 = db
        .pragma_query_value(None, "user_version", |r| r.get(0))
        .map_err(unreadable)?;
    if version > SCHEMA_VERSION {
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .map_err(super::failed)?;
        return Err(SysError::new(
            Code::Invalid,
            format!(
                "the data directory is of version `{version}`, this program knows `{SCHEMA_VERSION}`"
            ),
        )
        .hint("use the newer Steward that made it, or another data directory (XDG_DATA_HOME)"));
    }
    let empty: bool = db
        .query_row("SELECT COUNT(*) = 0 FROM sqlite_schema", (), |r| r.get(0))
        .map_err(unreadable)?;
    match version {
        0 if empty => {}
        SCHEMA_VERSION => check(db)?,
        other => return Err(damaged(&format!("its version is `{other}`"))),
    }
    for (pragma, value) in [
        ("journal_mode", "WAL"),
        ("synchronous", "FULL"),
        ("foreign_keys", "ON"),
        ("secure_delete", "ON"),
    ] {
        db.pragma_update(None, pragma, value)
            .map_err(super::failed)?;
    }
    if version == SCHEMA_VERSION {
        return Ok(());
    }
    db.execute_batch(&format!(
        "BEGIN; {TABLES} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
    ))
    .map_err(super::failed)
}

/// What SQLite says where it cannot make out the file at all.
fn unreadable(error: rusqlite::Error) -> SysError {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
            damaged(&error.to_string())
        }
        _ => super::failed(error),
    }
}

fn check(db: &Connection) -> Result<(), SysError> {
    let found: String = db
        .pragma_query_value(None, "quick_check", |r| r.get(0))
        .unwrap_or_else(|e| e.to_string());
    if found == "ok" {
        return Ok(());
    }
    Err(damaged(&found))
}

fn damaged(how: &str) -> SysError {
    SysError::new(
        Code::Unavailable,
        format!("the journal is damaged: `{how}`"),
    )
    .hint("put a copy of journal.db back, or move it away to start anew; files are untouched")
}
