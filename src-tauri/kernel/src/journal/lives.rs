//! Rows that a process's life is run again from: its calls, what it inherited, what it used.

use rusqlite::{Connection, OptionalExtension};
use serde_json::Value;

use super::calls::{CallRow, rows_of_calls};
use super::{At, CallId, Journal, Tx, failed, from_json, from_word, to_json};
use crate::budget::{Budget, Opening, Used};
use crate::error::{Code, SysError};
use crate::process::{Pid, ProcessState};

/// What a process's program is run again on.
#[derive(Default)]
pub(crate) struct History {
    /// Calls up to this one belong to an earlier program.
    pub base_seq: u64,
    /// Those after it, in order.
    pub calls: Vec<CallRow>,
    /// Effects that a restore left as they stand: not to be had again.
    pub stands: Vec<CallRow>,
    /// Milliseconds that it ran.
    pub ran_ms: u64,
}

/// The calls that a new process begins with.
#[derive(Debug, Clone)]
pub(crate) enum Inherited {
    /// Those of a process that forks.
    Forked {
        from: Pid,
        /// The call by which it does; those before it are inherited.
        before: u64,
        /// That call, with the result that it has in the new process.
        last: LastCall,
    },
    /// Those of a checkpoint.
    Kept {
        calls: Vec<KeptRow>,
        /// Effects since then, which stand.
        stands: Vec<KeptRow>,
    },
}

impl Inherited {
    /// Numbers of calls that it takes at most.
    pub(super) fn most(&self) -> u64 {
        match self {
            Inherited::Forked { before, .. } => *before,
            Inherited::Kept { calls, stands } => (calls.len() + stands.len()) as u64,
        }
    }

    /// In a few words, for the journal.
    pub(super) fn words(&self) -> String {
        match self {
            Inherited::Forked { before, .. } => format!("from call {before}"),
            Inherited::Kept { calls, .. } => format!("from a checkpoint of {} calls", calls.len()),
        }
    }
}

/// A call as a checkpoint keeps it.
#[derive(Debug, Clone)]
pub(crate) struct KeptRow {
    pub name: String,
    pub args: String,
    pub title: String,
    pub state: String,
    pub detail: String,
    /// JSON; absent for the call that made the checkpoint.
    pub result: Option<String>,
}

/// The last call of an inherited history.
#[derive(Debug, Clone)]
pub(crate) struct LastCall {
    pub name: &'static str,
    pub args: String,
    pub title: String,
    pub result: Value,
}

/// Mark of a call's row (`inherited`): taken back by a restore, its effect stands. Others are 0, the
/// process's own, and 1, inherited.
pub(crate) const STANDS: u8 = 2;

impl Journal {
    pub(crate) async fn history(&self, pid: Pid) -> Result<History, SysError> {
        self.read(move |db| history(db, pid)).await
    }

    /// Accounts of a process and of all above it, those above first.
    pub(crate) async fn accounts(&self, pid: Pid) -> Result<Vec<Opening>, SysError> {
        self.read(move |db| {
            let mut all = Vec::new();
            let mut next = Some(pid.0);
            while let Some(pid) = next.take() {
                let opening = account(db, pid)?;
                next = opening.parent.map(|pid| pid.0);
                all.push(opening);
            }
            all.reverse();
            Ok(all)
        })
        .await
    }

    /// Keeps how long a process ran.
    pub(crate) async fn ran(&self, pid: Pid, ms: u64) -> Result<(), SysError> {
        self.write_later(move |tx| {
            tx.execute(
                "UPDATE process SET used = json_set(used, '$.ms', ?2) WHERE pid = ?1",
                (pid.0, ms),
            )
            .map(drop)
            .map_err(failed)
        })
        .await
    }

    /// Counts tokens that a process used without a result.
    pub(crate) async fn lost(&self, pid: Pid, tokens: u64) -> Result<(), SysError> {
        self.write_later(move |tx| {
            tx.execute(
                "UPDATE process SET tokens = tokens + ?2 WHERE pid = ?1",
                (pid.0, tokens),
            )
            .map(drop)
            .map_err(failed)
        })
        .await
    }

    /// Counts money that a process used.
    pub(crate) async fn paid(&self, pid: Pid, micros: u64) -> Result<(), SysError> {
        self.write_later(move |tx| {
            tx.execute(
                "UPDATE process SET used = json_set(used, '$.money_micros',
                   COALESCE(json_extract(used, '$.money_micros'), 0) + ?2) WHERE pid = ?1",
                (pid.0, micros),
            )
            .map(drop)
            .map_err(failed)
        })
        .await
    }
}

pub(super) fn history(db: &Connection, pid: Pid) -> Result<History, SysError> {
    let (base_seq, ran_ms) = db
        .query_row(
            "SELECT base_seq, COALESCE(json_extract(used, '$.ms'), 0) FROM process WHERE pid = ?1",
            [pid.0],
            |r| Ok((r.get(0)?, r.get(1)?)),
        )
        .map_err(failed)?;
    let calls = rows_of_calls(
        db,
        "c.pid = ?1 AND c.seq > (SELECT base_seq FROM process WHERE pid = ?1)",
        pid.0,
    )?;
    let stands = rows_of_calls(db, &format!("c.pid = ?1 AND c.inherited = {STANDS}"), pid.0)?;
    Ok(History {
        base_seq,
        calls,
        stands,
        ran_ms,
    })
}

fn account(db: &Connection, pid: u64) -> Result<Opening, SysError> {
    let (parent, budget, state, own): (Option<u64>, String, String, String) = db
        .query_row(
            "SELECT parent, budget, state, used FROM process WHERE pid = ?1",
            [pid],
            |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?)),
        )
        .optional()
        .map_err(failed)?
        .ok_or_else(|| SysError::new(Code::NotFound, format!("there is no process `{pid}`")))?;
    let sql = "WITH RECURSIVE tree(pid) AS (
           SELECT ?1 UNION ALL SELECT p.pid FROM process p JOIN tree ON p.parent = tree.pid)
         SELECT COALESCE(SUM(p.tokens), 0), COUNT(*) - 1,
           COALESCE(SUM(json_extract(p.used, '$.money_micros')), 0),
           (SELECT COUNT(*) FROM call WHERE inherited <> 1 AND pid IN (SELECT pid FROM tree))
         FROM process p WHERE p.pid IN (SELECT pid FROM tree)";
    let used = db
        .query_row(sql, [pid], |r| {
            Ok(Used {
                tokens: r.get(0)?,
                children: r.get(1)?,
                money_micros: r.get(2)?,
                calls: r.get(3)?,
                seconds: 0,
            })
        })
        .map_err(failed)?;
    let own: Value = from_json(&own)?;
    let state: ProcessState = from_word(state)?;
    Ok(Opening {
        pid: Pid(pid),
        parent: parent.map(Pid),
        limits: from_json::<Budget>(&budget)?,
        used: Used {
            seconds: own["ms"].as_u64().unwrap_or_default() / 1000,
            ..used
        },
        lives: !state.is_final(),
    })
}

/// Gives a new process the history that it begins with. `first` is the first of as many call
/// numbers as it takes.
pub(super) fn inherit(
    tx: &Tx<'_>,
    child: Pid,
    history: &Inherited,
    first: CallId,
    now_ms: u64,
) -> Result<(), SysError> {
    let (from, before, last) = match history {
        Inherited::Forked { from, before, last } => (*from, *before, last),
        Inherited::Kept { calls, stands } => {
            let base = stands.len() as u64;
            insert_calls(tx, child, stands, first, 0, STANDS, now_ms)?;
            insert_calls(tx, child, calls, first + base, base, 1, now_ms)?;
            return set_base(tx, child, base);
        }
    };
    let base = tx
        .query_row(
            "SELECT base_seq FROM process WHERE pid = ?1",
            [from.0],
            |r| r.get(0),
        )
        .map_err(failed)?;
    set_base(tx, child, base)?;
    let copied = tx
        .execute(
            "INSERT INTO call (id, pid, seq, name, args, title, state, detail, inherited,
               created_ms, started_ms, ended_ms)
             SELECT ?1 + ROW_NUMBER() OVER (ORDER BY seq) - 1, ?2, seq, name, args, title, state,
               detail, 1, created_ms, started_ms, ended_ms
             FROM call WHERE pid = ?3 AND seq < ?4 AND seq > ?5",
            (first, child.0, from.0, before, base),
        )
        .map_err(failed)?;
    tx.execute(
        "INSERT INTO payload (call, pid, result)
         SELECT mine.id, mine.pid, p.result FROM call mine
         JOIN call theirs ON theirs.pid = ?2 AND theirs.seq = mine.seq
         JOIN payload p ON p.call = theirs.id
         WHERE mine.pid = ?1",
        (child.0, from.0),
    )
    .map_err(failed)?;
    let result: Result<&Value, SysError> = Ok(&last.result);
    let last = KeptRow {
        name: last.name.to_owned(),
        args: last.args.clone(),
        title: last.title.clone(),
        state: "done".to_owned(),
        detail: String::new(),
        result: Some(to_json(&result)?),
    };
    let id = first + copied as u64;
    insert_calls(tx, child, &[last], id, before - 1, 1, now_ms)
}

/// Gives a process calls with their results, numbered from after `base` on.
pub(super) fn insert_calls(
    tx: &Tx<'_>,
    pid: Pid,
    rows: &[KeptRow],
    first: CallId,
    base: u64,
    mark: u8,
    now_ms: u64,
) -> Result<(), SysError> {
    for (number, row) in (1..).zip(rows) {
        let id = first + number - 1;
        tx.prepare_cached(
            "INSERT INTO call (id, pid, seq, name, args, title, state, detail, inherited,
               created_ms, ended_ms)
             VALUES (?,?,?,?,?,?,?,?,?,?,?)",
        )
        .and_then(|mut insert| {
            insert.execute(rusqlite::params![
                id,
                pid.0,
                base + number,
                &row.name,
                &row.args,
                &row.title,
                &row.state,
                &row.detail,
                mark,
                now_ms,
                now_ms,
            ])
        })
        .map_err(failed)?;
        tx.prepare_cached("INSERT INTO payload (call, pid, result) VALUES (?,?,?)")
            .and_then(|mut insert| insert.execute((id, pid.0, &row.result)))
            .map_err(failed)?;
    }
    Ok(())
}

fn set_base(tx: &Tx<'_>, pid: Pid, base: u64) -> Result<(), SysError> {
    tx.execute(
        "UPDATE process SET base_seq = ?2 WHERE pid = ?1",
        (pid.0, base),
    )
    .map(drop)
    .map_err(failed)
}

/// Makes another program of a process: calls so far are not run again.
pub(crate) fn exec(tx: &Tx<'_>, at: &At, image: &str, goal: &str) -> Result<(), SysError> {
    tx.execute(
        "UPDATE process SET image = ?2, goal = ?3, base_seq = ?4 WHERE pid = ?1",
        (at.pid.0, image, goal, at.seq),
    )
    .map_err(failed)?;
    tx.execute(
        "DELETE FROM payload WHERE pid = ?1 AND call IN
           (SELECT id FROM call WHERE pid = ?1 AND seq < ?2 AND inherited <> ?3)
           AND call NOT IN (SELECT call FROM change)",
        (at.pid.0, at.seq, STANDS),
    )
    .map(drop)
    .map_err(failed)
}

/// Sets a text column of a process: `cwd` or `status`.
pub(crate) fn set_words(
    tx: &Tx<'_>,
    pid: Pid,
    column: &'static str,
    text: &str,
) -> Result<(), SysError> {
    tx.execute(
        &format!("UPDATE process SET {column} = ?2 WHERE pid = ?1"),
        (pid.0, text),
    )
    .map(drop)
    .map_err(failed)
}
