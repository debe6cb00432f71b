-- As a program of that version made it; never changed.
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
PRAGMA user_version = 1;
