//! Rows about system calls and the changes they made.
//!
//! The steps of one irreversible call, each committed before the next is taken:
//! intent → approval → decision → executing → outcome.

use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::approvals::close_approvals;
use super::capabilities::{authorised, spend_all};
use super::changes::insert_change;
use super::{
    Audit, Journal, Row, Tx, append, failed, from_json, from_word, standing, to_json, word,
};
use crate::capability::{CapabilityId, Need, Now};
use crate::error::{Code, SysError};
use crate::human::policy::Act;
use crate::process::{Pid, RunId};
use crate::provider::Plan;

/// Number of a call, over all processes.
pub(crate) type CallId = u64;

/// Where a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallState {
    /// Written down; nothing has happened yet.
    Intent,
    /// Waits for the person.
    Waiting,
    /// About to act, or acting: from here on it must not be acted again.
    Executing,
    /// Ended well.
    Done,
    /// Ended without effect because a right or a yes was missing.
    Denied,
    /// Ended with an error.
    Failed,
    /// It was executing when the program ended; whether it took effect is not known.
    Unknown,
}

/// A call as found in the journal.
#[derive(Debug, Clone)]
pub(crate) struct CallRow {
    pub id: CallId,
    pub seq: u64,
    pub name: String,
    /// SHA-256 of its arguments.
    pub args: String,
    pub state: CallState,
    /// Its result, once it has one.
    pub result: Option<Result<Value, SysError>>,
    /// What it must remember while it waits.
    pub memo: Option<Value>,
}

impl CallRow {
    /// A call that is made for the first time.
    pub(crate) fn new(id: CallId, seq: u64, name: &str) -> Self {
        Self {
            id,
            seq,
            name: name.to_owned(),
            args: String::new(),
            state: CallState::Intent,
            result: None,
            memo: None,
        }
    }

    /// Whether it has a result, so that it is never made again.
    pub(crate) fn has_ended(&self) -> bool {
        let ended = matches!(
            self.state,
            CallState::Done | CallState::Denied | CallState::Failed
        );
        ended || self.result.is_some()
    }
}

/// A call as a step to be shown.
#[derive(Debug, Clone)]
pub(crate) struct StepRow {
    pub seq: u64,
    pub name: String,
    pub title: String,
    pub state: CallState,
    pub detail: String,
    pub created_ms: u64,
    pub ended_ms: Option<u64>,
}

/// How a call ended.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub state: CallState,
    pub result: Result<Value, SysError>,
    /// For the person, in a few words.
    pub detail: String,
    /// For the journal: names, sizes, digests and by which right; never contents.
    pub record: String,
    /// Tokens it used.
    pub tokens: u64,
}

/// What is written down of a call when it begins.
#[derive(Debug, Clone)]
pub(crate) struct About {
    /// SHA-256 of its arguments.
    pub args: String,
    /// What it does, escaped, one line.
    pub title: String,
    /// On what: names and sizes, never contents.
    pub subject: String,
}

/// By what a call takes effect.
#[derive(Debug, Clone)]
pub(crate) struct Authority {
    /// The rights it needs.
    pub needs: Vec<Need>,
    /// The one-shot capability of a yes, where the person was asked.
    pub once: Option<CapabilityId>,
    /// The call, for policies.
    pub act: Act,
    /// When they are checked.
    pub now: Now,
}

/// What a call takes a use of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Uses {
    pub capabilities: Vec<CapabilityId>,
    /// The standing grant that spared the person a question.
    pub standing: Option<u64>,
}

impl Uses {
    pub(crate) fn is_empty(&self) -> bool {
        self.capabilities.is_empty() && self.standing.is_none()
    }

    /// Takes them with what they are for, in one transaction; refuses where one is spent.
    pub(crate) fn take(&self, tx: &Tx<'_>) -> Result<(), SysError> {
        spend_all(tx, &self.capabilities)?;
        match self.standing {
            Some(standing) => standing::count(tx, standing),
            None => Ok(()),
        }
    }
}

/// Which process and call a row is about.
#[derive(Debug, Clone)]
pub(crate) struct At {
    pub pid: Pid,
    pub run: RunId,
    pub seq: u64,
    pub name: &'static str,
    pub now_ms: u64,
    /// What the row says of the call.
    pub audit: Audit,
}

impl At {
    /// The same, later.
    pub(crate) fn later(self, now_ms: u64) -> Self {
        let more = now_ms.saturating_sub(self.now_ms);
        let run_ms = self.audit.run_ms.map(|ms| ms.saturating_add(more));
        Self {
            now_ms,
            audit: Audit {
                run_ms,
                ..self.audit
            },
            ..self
        }
    }

    pub(crate) fn row(&self, kind: &'static str, detail: String) -> Row<'static> {
        Row {
            at_ms: self.now_ms,
            pid: self.pid,
            run: self.run,
            seq: Some(self.seq),
            kind,
            name: self.name,
            detail,
            audit: match kind {
                "outcome" => self.audit.clone(),
                // How long it took and what it used is known at its end.
                _ => Audit {
                    wait_ms: None,
                    run_ms: None,
                    facts: None,
                    ..self.audit.clone()
                },
            },
        }
    }
}

impl Journal {
    /// Writes down a call that is about to be carried out: on disk before it goes on, or `later`,
    /// where it only looks.
    pub(crate) async fn intent(
        &self,
        call: CallId,
        at: At,
        about: About,
        later: bool,
    ) -> Result<(), SysError> {
        let work = move |tx: &Tx<'_>| {
            tx.prepare_cached(
                "INSERT INTO call (id, pid, seq, name, args, title, state, created_ms)
                 VALUES (?,?,?,?,?,?,'intent',?)",
            )
            .and_then(|mut insert| {
                insert.execute((
                    call,
                    at.pid.0,
                    at.seq,
                    at.name,
                    &about.args,
                    &about.title,
                    at.now_ms,
                ))
            })
            .map_err(failed)?;
            append(tx, &at.row("intent", about.subject))
        };
        if later {
            self.write_later(work).await
        } else {
            self.write(work).await
        }
    }

    /// Writes down a call that only looked, as a whole, a little later.
    pub(crate) async fn looked(
        &self,
        call: CallId,
        at: At,
        about: About,
        began_ms: u64,
        ended: Ended,
    ) -> Result<(), SysError> {
        self.write_later(move |tx| {
            tx.prepare_cached(
                "INSERT INTO call (id, pid, seq, name, args, title, state, detail, created_ms, ended_ms)
                 VALUES (?,?,?,?,?,?,?,?,?,?)",
            )
            .and_then(|mut insert| {
                insert.execute((
                    call,
                    at.pid.0,
                    at.seq,
                    at.name,
                    &about.args,
                    &about.title,
                    word(&ended.state),
                    &ended.detail,
                    began_ms,
                    at.now_ms,
                ))
            })
            .map_err(failed)?;
            result(tx, call, &at, &ended)?;
            let between = if about.subject.is_empty() { "" } else { ": " };
            let detail = format!(
                "{}: {}{between}{}",
                word(&ended.state),
                about.subject,
                ended.record
            );
            append(tx, &at.row("outcome", detail))
        })
        .await
    }

    /// Keeps what a call must remember while it waits.
    pub(crate) async fn remember(
        &self,
        call: CallId,
        pid: Pid,
        memo: Value,
    ) -> Result<(), SysError> {
        self.write(move |tx| remember(tx, call, pid, &memo)).await
    }

    /// Ends a call and takes the uses that it is of, or does neither.
    pub(crate) async fn counted(
        &self,
        call: CallId,
        at: At,
        ended: Ended,
        uses: Uses,
    ) -> Result<(), SysError> {
        self.write(move |tx| {
            uses.take(tx)?;
            outcome(tx, call, &at, &ended)
        })
        .await
    }

    /// Ends a call: on disk when this returns, or `later`, where it only looked.
    pub(crate) async fn outcome(
        &self,
        call: CallId,
        at: At,
        ended: Ended,
        later: bool,
    ) -> Result<(), SysError> {
        let work = move |tx: &Tx<'_>| outcome(tx, call, &at, &ended);
        if later {
            self.write_later(work).await
        } else {
            self.write(work).await
        }
    }

    /// Changes the kernel's own state and ends the call, all or nothing.
    pub(crate) async fn settle<T: Send + 'static>(
        &self,
        call: CallId,
        at: At,
        work: impl FnOnce(&Tx<'_>) -> Result<(T, Ended), SysError> + Send + 'static,
    ) -> Result<T, SysError> {
        self.write(move |tx| {
            let (value, ended) = work(tx)?;
            outcome(tx, call, &at, &ended)?;
            Ok(value)
        })
        .await
    }

    /// Takes the step from decided to executing: the rights are checked for the last time, the
    /// one-shot capability of a yes (if one is needed) and every counted use are spent and the
    /// changes are written down, all or nothing. False where the yes was used or taken back already, or is missing: then
    /// nothing may be done.
    pub(crate) async fn executing(
        &self,
        call: CallId,
        at: At,
        by: Authority,
        change: Option<(String, Plan)>,
        detail: String,
    ) -> Result<bool, SysError> {
        self.write(move |tx| {
            if !authorised(tx, call, &at, &by)? {
                return Ok(false);
            }
            set_call(tx, call, CallState::Executing, "")?;
            if let Some((workspace, plan)) = &change {
                insert_change(tx, call, &at, workspace, plan)?;
            }
            append(tx, &at.row("executing", detail))?;
            Ok(true)
        })
        .await
    }

    /// Goes back from executing to intent where the provider says that nothing was done.
    pub(crate) async fn nothing_done(&self, call: CallId, at: At) -> Result<(), SysError> {
        self.write(move |tx| {
            set_call(tx, call, CallState::Intent, "")?;
            tx.execute(
                "DELETE FROM change WHERE call = ?1 AND state = 'executing'",
                [call],
            )
            .map_err(failed)?;
            append(
                tx,
                &at.row(
                    "outcome",
                    "nothing done: the path changed just before".to_owned(),
                ),
            )
        })
        .await
    }

    /// Marks a call whose effect is not known, with what it must remember of that. Its changes stay
    /// among those that an undo looks at.
    pub(crate) async fn unknown(&self, call: CallId, at: At, memo: Value) -> Result<(), SysError> {
        self.write(move |tx| {
            set_call(
                tx,
                call,
                CallState::Unknown,
                "it is not known whether this took effect",
            )?;
            tx.execute(
                "UPDATE change SET state = 'unknown' WHERE call = ?1 AND state = 'executing'",
                [call],
            )
            .map_err(failed)?;
            remember(tx, call, at.pid, &memo)?;
            append(
                tx,
                &at.row(
                    "outcome",
                    "unknown: the program ended while it was executing".into(),
                ),
            )
        })
        .await
    }

    /// Steps of a process, in order.
    pub(crate) async fn steps(&self, pid: Pid) -> Result<Vec<StepRow>, SysError> {
        self.read(move |db| {
            let sql = "SELECT seq, name, title, state, detail, created_ms, ended_ms FROM call
                       WHERE pid = ?1 AND inherited <> 1 ORDER BY seq";
            let mut found = db.prepare_cached(sql).map_err(failed)?;
            let rows: Vec<(StepRow, String)> = found
                .query_map([pid.0], |r| {
                    let step = StepRow {
                        seq: r.get(0)?,
                        name: r.get(1)?,
                        title: r.get(2)?,
                        state: CallState::Intent,
                        detail: r.get(4)?,
                        created_ms: r.get(5)?,
                        ended_ms: r.get(6)?,
                    };
                    Ok((step, r.get(3)?))
                })
                .and_then(Iterator::collect)
                .map_err(failed)?;
            rows.into_iter()
                .map(|(step, state)| {
                    Ok(StepRow {
                        state: from_word(state)?,
                        ..step
                    })
                })
                .collect()
        })
        .await
    }

    /// The answer to a call's question, once there is one.
    pub(crate) async fn answer(&self, call: CallId) -> Result<Option<String>, SysError> {
        self.read(move |db| {
            db.query_row(
                "SELECT answer FROM question WHERE call = ?1 AND state = 'answered'",
                [call],
                |r| r.get(0),
            )
            .optional()
            .map_err(failed)
        })
        .await
    }
}

pub(super) fn set_call(
    tx: &Tx<'_>,
    call: CallId,
    state: CallState,
    detail: &str,
) -> Result<(), SysError> {
    tx.execute(
        "UPDATE call SET state = ?2, detail = ?3 WHERE id = ?1",
        (call, word(&state), detail),
    )
    .map(drop)
    .map_err(failed)
}

fn remember(tx: &Tx<'_>, call: CallId, pid: Pid, memo: &Value) -> Result<(), SysError> {
    tx.execute(
        "INSERT INTO payload (call, pid, memo) VALUES (?,?,?)
         ON CONFLICT (call) DO UPDATE SET memo = excluded.memo",
        (call, pid.0, to_json(memo)?),
    )
    .map(drop)
    .map_err(failed)
}

fn outcome(tx: &Tx<'_>, call: CallId, at: &At, ended: &Ended) -> Result<(), SysError> {
    let Ended {
        state,
        detail,
        record,
        ..
    } = ended;
    tx.execute(
        "UPDATE call SET state = ?2, detail = ?3, ended_ms = ?4 WHERE id = ?1",
        (call, word(state), detail, at.now_ms),
    )
    .map_err(failed)?;
    result(tx, call, at, ended)?;
    close_approvals(tx, call)?;
    let change = match state {
        CallState::Done => "applied",
        CallState::Unknown => "unknown",
        _ => "failed",
    };
    tx.execute(
        "UPDATE change SET state = ?2 WHERE call = ?1 AND state = 'executing'",
        (call, change),
    )
    .map_err(failed)?;
    append(tx, &at.row("outcome", format!("{}: {record}", word(state))))
}

/// Keeps the result of a call that ended, and counts what it used.
fn result(tx: &Tx<'_>, call: CallId, at: &At, ended: &Ended) -> Result<(), SysError> {
    let kept = to_json(&ended.result)?;
    tx.prepare_cached(
        "INSERT INTO payload (call, pid, result) VALUES (?,?,?)
         ON CONFLICT (call) DO UPDATE SET result = excluded.result, memo = NULL",
    )
    .and_then(|mut insert| insert.execute((call, at.pid.0, kept)))
    .map_err(failed)?;
    if ended.tokens > 0 {
        tx.execute(
            "UPDATE process SET tokens = tokens + ?2 WHERE pid = ?1",
            (at.pid.0, ended.tokens),
        )
        .map_err(failed)?;
    }
    Ok(())
}

/// Calls with their results, in order.
pub(super) fn rows_of_calls(
    db: &Connection,
    which: &str,
    pid: u64,
) -> Result<Vec<CallRow>, SysError> {
    let sql = format!(
        "SELECT c.id, c.seq, c.name, c.args, c.state, p.result, p.memo
         FROM call c LEFT JOIN payload p ON p.call = c.id WHERE {which} ORDER BY c.seq"
    );
    let mut found = db.prepare_cached(&sql).map_err(failed)?;
    let rows: Vec<CallColumns> = found
        .query_map([pid], |r| {
            Ok((
                r.get(0)?,
                r.get(1)?,
                r.get(2)?,
                r.get(3)?,
                r.get(4)?,
                r.get(5)?,
                r.get(6)?,
            ))
        })
        .and_then(Iterator::collect)
        .map_err(failed)?;
    rows.into_iter().map(call).collect()
}

type CallColumns = (
    u64,
    u64,
    String,
    String,
    String,
    Option<String>,
    Option<String>,
);

fn call((id, seq, name, args, state, result, memo): CallColumns) -> Result<CallRow, SysError> {
    Ok(CallRow {
        id,
        seq,
        name,
        args,
        state: from_word(state)?,
        result: result.map(|r| from_json(&r)).transpose()?,
        memo: memo.map(|m| from_json(&m)).transpose()?,
    })
}

pub(super) fn place(db: &Connection, call: CallId) -> Result<(Pid, RunId, u64, String), SysError> {
    db.query_row(
        "SELECT c.pid, p.run, c.seq, c.name FROM call c JOIN process p ON p.pid = c.pid WHERE c.id = ?1",
        [call],
        |r| Ok((Pid(r.get(0)?), r.get(1)?, r.get(2)?, r.get(3)?)),
    )
    .optional()
    .map_err(failed)?
    .ok_or_else(|| SysError::new(Code::NotFound, format!("there is no call `{call}`")))
}
