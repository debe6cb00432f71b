//! Tables of `journal.db`, and what happens when an older or newer program opens it.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::audit::chain::{Columns, Hash};
use crate::error::{Code, SysError};

/// Version of the tables that this program reads and writes (`PRAGMA user_version`).
pub const SCHEMA_VERSION: i64 = 2;

/// Processes and what is theirs.
const PROCESSES: &str = "
CREATE TABLE process (
  pid         INTEGER PRIMARY KEY AUTOINCREMENT,
  parent      INTEGER REFERENCES process(pid),
  run         INTEGER NOT NULL,
  after_run   INTEGER,
  spawned_by  INTEGER UNIQUE REFERENCES call(id),
  image       TEXT NOT NULL,
  goal        TEXT NOT NULL,
  workspace   TEXT NOT NULL,
  cwd         TEXT NOT NULL DEFAULT '',
  status      TEXT NOT NULL DEFAULT '',
  state       TEXT NOT NULL,
  paused      INTEGER NOT NULL DEFAULT 0,
  -- Calls up to this one belong to an earlier program (exec).
  base_seq    INTEGER NOT NULL DEFAULT 0,
  -- copy, restricted, speculative or worker, where it was forked.
  mode        TEXT,
  budget      TEXT NOT NULL DEFAULT '{}',
  -- What it used, children not counted in, as far as no column of its own has it.
  used        TEXT NOT NULL DEFAULT '{}',
  -- Urgency: 0 is first, 7 last.
  priority    INTEGER NOT NULL DEFAULT 4,
  interactive INTEGER NOT NULL DEFAULT 0,
  deadline_ms INTEGER,
  tokens      INTEGER NOT NULL DEFAULT 0,
  created_ms  INTEGER NOT NULL,
  ended_ms    INTEGER,
  exit        TEXT
) STRICT;
CREATE INDEX process_run ON process(run);
CREATE INDEX process_parent ON process(parent);
CREATE INDEX process_unfinished ON process(pid) WHERE state NOT IN ('exited','failed','killed');

CREATE TABLE capability (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  subject   INTEGER NOT NULL REFERENCES process(pid),
  grant_    TEXT NOT NULL,
  parent    INTEGER REFERENCES capability(id),
  issuer    TEXT NOT NULL,
  -- The call that issued it.
  call      INTEGER REFERENCES call(id),
  issued_ms INTEGER NOT NULL,
  -- Steady milliseconds when it ends by itself, and what they count from.
  expires   INTEGER,
  boot      TEXT,
  uses_left INTEGER,
  status    TEXT NOT NULL
) STRICT;
CREATE INDEX capability_subject ON capability(subject);
CREATE INDEX capability_parent ON capability(parent);
CREATE INDEX capability_call ON capability(call) WHERE call IS NOT NULL;

CREATE TABLE call (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  pid        INTEGER NOT NULL REFERENCES process(pid),
  seq        INTEGER NOT NULL,
  name       TEXT NOT NULL,
  args       TEXT NOT NULL,
  title      TEXT NOT NULL,
  state      TEXT NOT NULL,
  detail     TEXT NOT NULL DEFAULT '',
  -- Made by the process that this one was forked or restored from.
  inherited  INTEGER NOT NULL DEFAULT 0,
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

CREATE TABLE message (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  run      INTEGER NOT NULL,
  -- Absent: from the person.
  from_pid INTEGER,
  to_pid   INTEGER NOT NULL REFERENCES process(pid),
  body     TEXT,
  at_ms    INTEGER NOT NULL,
  taken_by INTEGER REFERENCES call(id)
) STRICT;
CREATE INDEX message_to ON message(to_pid) WHERE taken_by IS NULL;

CREATE TABLE checkpoint (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  pid    INTEGER NOT NULL REFERENCES process(pid),
  run    INTEGER NOT NULL,
  seq    INTEGER NOT NULL,
  label  TEXT NOT NULL,
  digest TEXT NOT NULL,
  info   TEXT NOT NULL,
  at_ms  INTEGER NOT NULL
) STRICT;
CREATE INDEX checkpoint_pid ON checkpoint(pid);

-- The history that a checkpoint stands on, which outlives its process.
CREATE TABLE checkpoint_call (
  checkpoint INTEGER NOT NULL REFERENCES checkpoint(id),
  seq        INTEGER NOT NULL,
  call       INTEGER NOT NULL,
  name       TEXT NOT NULL,
  args       TEXT NOT NULL,
  title      TEXT NOT NULL,
  state      TEXT NOT NULL,
  detail     TEXT NOT NULL,
  result     TEXT,
  memo       TEXT,
  PRIMARY KEY (checkpoint, seq)
) STRICT, WITHOUT ROWID;
";

/// What a person is asked, and what they said once for many times.
const PERSON: &str = "
CREATE TABLE approval (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  call       INTEGER NOT NULL REFERENCES call(id),
  pid        INTEGER NOT NULL,
  state      TEXT NOT NULL,
  digest     TEXT NOT NULL,
  view       TEXT,
  capability INTEGER REFERENCES capability(id),
  -- The run, and the first of those that wait together.
  run        INTEGER NOT NULL DEFAULT 0,
  group_     INTEGER,
  -- How long it waits, until when by the steady clock, and what that counts from.
  lifetime   INTEGER,
  expires    INTEGER,
  boot       TEXT,
  -- The standing grant that was given with the answer.
  standing   INTEGER REFERENCES standing(id),
  asked_ms   INTEGER NOT NULL,
  decided_ms INTEGER,
  decided_by TEXT
) STRICT;
CREATE INDEX approval_state ON approval(state);
CREATE INDEX approval_call ON approval(call);
CREATE INDEX approval_pid ON approval(pid);

CREATE TABLE question (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  call     INTEGER NOT NULL UNIQUE REFERENCES call(id),
  pid      INTEGER NOT NULL,
  state    TEXT NOT NULL,
  view     TEXT,
  answer   TEXT,
  asked_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX question_pid ON question(pid);

-- Policies and lasting yeses: an action, where it holds, and what is said to it.
CREATE TABLE standing (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  action     TEXT NOT NULL,
  scope      TEXT NOT NULL,
  policy     TEXT NOT NULL,
  words      TEXT NOT NULL,
  by_        TEXT NOT NULL,
  issued_ms  INTEGER NOT NULL,
  uses_left  INTEGER,
  used       INTEGER NOT NULL DEFAULT 0,
  revoked_ms INTEGER,
  revoked_by TEXT
) STRICT;
CREATE INDEX standing_action ON standing(action) WHERE revoked_ms IS NULL;

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
CREATE INDEX change_call ON change(call);
CREATE INDEX change_workspace ON change(workspace) WHERE undone_by IS NULL;
";

/// Object memory, and images.
const OBJECTS: &str = "
CREATE TABLE object (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  namespace TEXT NOT NULL,
  -- Absent: reached by its handle only.
  name      TEXT,
  kind      TEXT NOT NULL,
  pid       INTEGER NOT NULL,
  run       INTEGER NOT NULL,
  version   INTEGER NOT NULL,
  bytes     INTEGER NOT NULL,
  immutable INTEGER NOT NULL DEFAULT 0,
  kept      INTEGER NOT NULL DEFAULT 0,
  at_ms     INTEGER NOT NULL,
  gone_ms   INTEGER
) STRICT;
CREATE UNIQUE INDEX object_name ON object(namespace, name) WHERE gone_ms IS NULL AND name IS NOT NULL;
CREATE INDEX object_namespace ON object(namespace) WHERE gone_ms IS NULL;
CREATE INDEX object_pid ON object(pid) WHERE gone_ms IS NULL;

CREATE TABLE object_version (
  object  INTEGER NOT NULL REFERENCES object(id),
  version INTEGER NOT NULL,
  sha256  TEXT NOT NULL,
  bytes   INTEGER NOT NULL,
  tokens  INTEGER,
  pid     INTEGER NOT NULL,
  -- Absent: it came with its process's image.
  call    INTEGER REFERENCES call(id),
  origin  TEXT NOT NULL,
  at_ms   INTEGER NOT NULL,
  PRIMARY KEY (object, version)
) STRICT, WITHOUT ROWID;

-- Wiped when an object is freed; the rows above stay as provenance.
CREATE TABLE object_payload (
  object  INTEGER NOT NULL,
  version INTEGER NOT NULL,
  body    BLOB NOT NULL,
  PRIMARY KEY (object, version)
) STRICT;

CREATE TABLE object_link (
  from_    INTEGER NOT NULL REFERENCES object(id),
  to_      INTEGER NOT NULL REFERENCES object(id),
  relation TEXT NOT NULL,
  call     INTEGER NOT NULL,
  at_ms    INTEGER NOT NULL,
  PRIMARY KEY (from_, to_, relation)
) STRICT, WITHOUT ROWID;
CREATE INDEX object_link_to ON object_link(to_);

CREATE TABLE view (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  namespace TEXT NOT NULL,
  name      TEXT NOT NULL,
  spec      TEXT NOT NULL,
  pid       INTEGER NOT NULL,
  at_ms     INTEGER NOT NULL,
  gone_ms   INTEGER
) STRICT;
CREATE UNIQUE INDEX view_name ON view(namespace, name) WHERE gone_ms IS NULL;

CREATE TABLE image (
  name    TEXT NOT NULL,
  version INTEGER NOT NULL,
  digest  TEXT NOT NULL,
  yaml    TEXT NOT NULL,
  at_ms   INTEGER NOT NULL,
  by_     TEXT NOT NULL,
  PRIMARY KEY (name, version)
) STRICT;
";

const META: &str = "
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

/// The audit, which can only grow.
const JOURNAL: &str = "
CREATE TABLE journal (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  at_ms      INTEGER NOT NULL,
  pid        INTEGER NOT NULL,
  run        INTEGER NOT NULL,
  seq        INTEGER,
  kind       TEXT NOT NULL,
  name       TEXT NOT NULL,
  detail     TEXT NOT NULL,
  resource   TEXT,
  capability INTEGER,
  decision   TEXT,
  by_        TEXT,
  wait_ms    INTEGER,
  run_ms     INTEGER,
  facts      TEXT,
  -- Of the row before it and its own columns.
  hash       BLOB NOT NULL
) STRICT;
CREATE INDEX journal_pid ON journal(pid);
CREATE INDEX journal_run ON journal(run);
CREATE INDEX journal_name ON journal(name);
CREATE INDEX journal_at ON journal(at_ms);
CREATE INDEX journal_capability ON journal(capability) WHERE capability IS NOT NULL;
CREATE INDEX journal_resource ON journal(resource) WHERE resource IS NOT NULL;
CREATE INDEX journal_decision ON journal(decision) WHERE decision IS NOT NULL;
";

/// Rows are not changed …
const NO_UPDATE: &str = "
CREATE TRIGGER journal_is_append_only_update BEFORE UPDATE ON journal
  BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
";

/// … and not taken out.
pub(super) const NO_DELETE: &str = "
CREATE TRIGGER journal_is_append_only_delete BEFORE DELETE ON journal
  BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
";

/// Every table of this version, empty.
fn tables() -> String {
    [
        PROCESSES, PERSON, OBJECTS, META, JOURNAL, NO_UPDATE, NO_DELETE,
    ]
    .concat()
}

/// Tables of an archive, which has rows of the journal only.
pub(super) fn archive() -> String {
    [META, JOURNAL, NO_UPDATE, NO_DELETE].concat()
        + &format!("PRAGMA user_version = {SCHEMA_VERSION};")
}

/// Indices of version 1, whose names are used again.
const OLD_INDICES: [&str; 7] = [
    "process_run",
    "capability_subject",
    "payload_pid",
    "approval_state",
    "change_run",
    "journal_pid",
    "journal_run",
];

/// What version 1 had beside its journal: each table with the columns that go over as they are.
const KEPT_OF_1: [(&str, &str); 7] = [
    (
        "process",
        "pid, parent, run, after_run, spawned_by, image, goal, workspace, state, tokens, created_ms, ended_ms, exit",
    ),
    (
        "capability",
        "id, subject, grant_, parent, issuer, issued_ms, uses_left, status",
    ),
    (
        "call",
        "id, pid, seq, name, args, title, state, detail, created_ms, started_ms, ended_ms",
    ),
    ("payload", "call, pid, result, memo"),
    (
        "approval",
        "id, call, pid, state, digest, view, capability, asked_ms, decided_ms, decided_by",
    ),
    ("question", "id, call, pid, state, view, answer, asked_ms"),
    (
        "change",
        "id, call, run, workspace, plan, state, undone_by, at_ms",
    ),
];

/// Makes the tables where there are none, and refuses what is newer or damaged: that is left as it
/// is, unopened pages of its log included.
pub(super) fn prepare(db: &Connection, path: &Path) -> Result<(), SysError> {
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
        1 | SCHEMA_VERSION => check(db, path)?,
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
    match version {
        SCHEMA_VERSION => Ok(()),
        1 => migrate(db, path),
        _ => db
            .execute_batch(&format!(
                "BEGIN; {} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;",
                tables()
            ))
            .map_err(super::failed),
    }
}

/// Takes a journal of version 1 over, all or nothing. What it was stays beside it, as
/// `journal.db.v1`.
fn migrate(db: &Connection, path: &Path) -> Result<(), SysError> {
    let kept = path.with_extension("db.v1");
    if kept.exists() {
        let shown = crate::escape::shown(&kept.to_string_lossy());
        let message = format!("a copy of the older journal is there already: `{shown}`");
        return Err(
            SysError::new(Code::Exists, message).hint("move that file away and start again")
        );
    }
    db.execute("VACUUM INTO ?1", [kept.to_string_lossy()])
        .map_err(super::failed)?;
    db.pragma_update(None, "foreign_keys", "OFF")
        .map_err(super::failed)?;
    let mut steps = String::from("BEGIN IMMEDIATE;");
    for name in ["update", "delete"] {
        steps += &format!("DROP TRIGGER journal_is_append_only_{name};");
    }
    for index in OLD_INDICES {
        steps += &format!("DROP INDEX {index};");
    }
    for table in KEPT_OF_1
        .map(|(table, _)| table)
        .into_iter()
        .chain(["journal"])
    {
        steps += &format!("ALTER TABLE {table} RENAME TO old_{table};");
    }
    steps += &tables();
    for (table, columns) in KEPT_OF_1 {
        steps += &format!("INSERT INTO {table} ({columns}) SELECT {columns} FROM old_{table};");
    }
    // What ended with its holder was called spent.
    steps += "UPDATE capability SET status = 'ended' WHERE status = 'spent' AND uses_left IS NULL;";
    let done = db
        .execute_batch(&steps)
        .map_err(super::failed)
        .and_then(|()| chain_old_rows(db))
        .and_then(|()| db.execute_batch(&end_of_migration()).map_err(super::failed));
    if done.is_err() {
        let _nothing_stays_open = db.execute_batch("ROLLBACK");
    }
    db.pragma_update(None, "foreign_keys", "ON")
        .map_err(super::failed)?;
    done
}

/// What follows once every row has been taken over.
fn end_of_migration() -> String {
    // Numbers are never used twice, those of rows that are gone included.
    let mut steps = "UPDATE sqlite_sequence SET seq = (SELECT seq FROM sqlite_sequence AS old
                WHERE old.name = 'old_' || sqlite_sequence.name)
              WHERE EXISTS (SELECT 1 FROM sqlite_sequence AS old
                WHERE old.name = 'old_' || sqlite_sequence.name);"
        .to_owned();
    let tables = KEPT_OF_1.iter().map(|(table, _)| *table);
    for table in ["journal"].into_iter().chain(tables.rev()) {
        steps += &format!("DROP TABLE old_{table};");
    }
    steps += &format!("PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;");
    steps
}

/// Takes the rows of an older journal over into the chain.
fn chain_old_rows(db: &Connection) -> Result<(), SysError> {
    let sql = "SELECT id, at_ms, pid, run, seq, kind, name, detail FROM old_journal ORDER BY id";
    let mut found = db.prepare(sql).map_err(super::failed)?;
    let mut rows = found.query(()).map_err(super::failed)?;
    let mut hash = Hash::GENESIS;
    while let Some(r) = rows.next().map_err(super::failed)? {
        let read = |i| r.get(i).map_err(super::failed);
        let (kind, name, detail): (String, String, String) = (
            r.get(5).map_err(super::failed)?,
            r.get(6).map_err(super::failed)?,
            r.get(7).map_err(super::failed)?,
        );
        let columns = Columns {
            id: read(0)?,
            at_ms: read(1)?,
            pid: read(2)?,
            run: read(3)?,
            seq: r.get(4).map_err(super::failed)?,
            kind: &kind,
            name: &name,
            detail: &detail,
            resource: None,
            capability: None,
            decision: None,
            by: None,
            wait_ms: None,
            run_ms: None,
            facts: None,
        };
        hash = columns.after(&hash);
        super::insert(db, &columns, &hash)?;
    }
    Ok(())
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

fn check(db: &Connection, path: &Path) -> Result<(), SysError> {
    let found: String = db
        .pragma_query_value(None, "quick_check", |r| r.get(0))
        .unwrap_or_else(|e| e.to_string());
    if found != "ok" {
        return Err(damaged(&found));
    }
    // SQLite takes what is missing of a last page for zeros. With a log beside the file the page may
    // be whole there.
    let page: u64 = db
        .pragma_query_value(None, "page_size", |r| r.get(0))
        .map_err(super::failed)?;
    let bytes = |path: &Path| path.metadata().map_or(0, |file| file.len());
    let logged = bytes(&path.with_extension("db-wal")) > 0;
    if !logged && bytes(path) % page.max(1) != 0 {
        return Err(damaged("it ends within a page"));
    }
    Ok(())
}

fn damaged(how: &str) -> SysError {
    SysError::new(
        Code::Unavailable,
        format!("the journal is damaged: `{how}`"),
    )
    .hint("put a copy of journal.db back, or move it away to start anew; files are untouched")
}
