//! Rows about what the person is asked: approvals and questions.

use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};

use super::calls::{At, CallId, CallState, place, set_call};
use super::processes::{issue, set_process};
use super::{Audit, Journal, Row, Tx, append, failed, from_json, from_word, to_json};
use crate::capability::{CapabilityId, Grant, Resource, Right};
use crate::error::{Code, SysError};
use crate::human::{self, Approval, Question};
use crate::process::{Pid, ProcessState};
use crate::provider::Digest;

/// Where an approval stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApprovalState {
    /// Waits for an answer.
    Pending,
    /// Yes; its one-shot capability is not used yet.
    Approved,
    /// No.
    Denied,
    /// Yes, and used.
    Used,
    /// What was asked about changed; asked anew under another number.
    Superseded,
    /// Its process ended first.
    Lapsed,
}

/// The answer to an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Yes, by this one-shot capability.
    Approved(CapabilityId),
    /// No.
    Denied,
}

/// An approval as found in the journal.
#[derive(Debug, Clone)]
pub(crate) struct ApprovalRow {
    pub id: u64,
    pub state: ApprovalState,
    pub digest: String,
    pub capability: Option<CapabilityId>,
}

impl ApprovalRow {
    /// The answer, once there is one that still counts.
    pub(crate) fn decision(&self) -> Option<Decision> {
        match (self.state, self.capability) {
            (ApprovalState::Approved, Some(capability)) => Some(Decision::Approved(capability)),
            (ApprovalState::Denied, _) => Some(Decision::Denied),
            _ => None,
        }
    }
}

impl Journal {
    /// The approval of a call that stands, if any.
    pub(crate) async fn approval_of(&self, call: CallId) -> Result<Option<ApprovalRow>, SysError> {
        self.read(move |db| {
            approval(
                db,
                "WHERE call = ?1 AND state IN ('pending','approved','denied') ORDER BY id DESC LIMIT 1",
                call,
            )
        })
        .await
    }

    /// Files an approval; earlier ones of the same call no longer count. Gives it its number, or
    /// [`Code::Limit`] where the process has asked too often.
    pub(crate) async fn file(
        &self,
        call: CallId,
        at: At,
        ask: CapabilityId,
        mut asked: Approval,
        detail: String,
    ) -> Result<Approval, SysError> {
        self.write(move |tx| {
            count_asked(tx, at.pid)?;
            tx.execute(
                "UPDATE approval SET state = 'superseded', view = NULL
                 WHERE call = ?1 AND state IN ('pending','approved')",
                [call],
            )
            .map_err(failed)?;
            tx.execute(
                "UPDATE capability SET status = 'spent' WHERE status = 'active' AND id IN
                 (SELECT capability FROM approval
                  WHERE call = ?1 AND state = 'superseded' AND decided_ms IS NOT NULL)",
                [call],
            )
            .map_err(failed)?;
            tx.execute(
                "INSERT INTO approval (call, pid, state, digest, capability, asked_ms)
                 VALUES (?,?,'pending',?,?,?)",
                (call, at.pid.0, &asked.digest.0, ask, at.now_ms),
            )
            .map_err(failed)?;
            asked.id = tx.last_insert_rowid().unsigned_abs();
            asked.asked_ms = at.now_ms;
            tx.execute(
                "UPDATE approval SET view = ?2 WHERE id = ?1",
                (asked.id, to_json(&asked)?),
            )
            .map_err(failed)?;
            wait_for_person(tx, call, at.pid)?;
            append(
                tx,
                &at.row("approval", format!("approval {}: {detail}", asked.id)),
            )?;
            Ok(asked)
        })
        .await
    }

    /// Approvals that wait, oldest first.
    pub(crate) async fn pending(&self) -> Result<Vec<Approval>, SysError> {
        self.read(|db| {
            views(
                db,
                "SELECT view FROM approval WHERE state = 'pending' ORDER BY id",
            )
        })
        .await
    }

    /// Takes an answer to an approval, if it is the first and to what was shown. A yes issues a
    /// capability for exactly that, once.
    pub(crate) async fn decide(
        &self,
        id: u64,
        approve: bool,
        digest: String,
        by: String,
        now_ms: u64,
    ) -> Result<Result<(CallId, Decision), String>, SysError> {
        self.write(move |tx| {
            let Some(row) = approval(tx, "WHERE id = ?1", id)? else {
                return Err(
                    SysError::new(Code::NotFound, format!("there is no approval `{id}`"))
                        .hint("list those that wait with `steward approvals`"),
                );
            };
            if row.state != ApprovalState::Pending {
                return Ok(Err(already(tx, id, row.state)?));
            }
            if row.digest != digest {
                return Err(SysError::new(
                    Code::Conflict,
                    format!("approval `{id}` is about something else than what was shown"),
                )
                .hint("look at it again and answer what it asks now"));
            }
            let (call, ask): (u64, Option<CapabilityId>) = tx
                .query_row(
                    "SELECT call, capability FROM approval WHERE id = ?1",
                    [id],
                    |r| Ok((r.get(0)?, r.get(1)?)),
                )
                .map_err(failed)?;
            let (pid, run, seq, name) = place(tx, call)?;
            let decision = if approve {
                let exactly = Resource::Exactly {
                    digest: Digest(digest),
                };
                let grant = Grant::allow(exactly, [Right::Write, Right::Delete]).times(1);
                Decision::Approved(issue(tx, pid, &grant, ask, "person", now_ms)?)
            } else {
                Decision::Denied
            };
            set_process(tx, pid, ProcessState::Runnable)?;
            let (state, capability) = match decision {
                Decision::Approved(capability) => ("approved", Some(capability)),
                Decision::Denied => ("denied", None),
            };
            tx.execute(
                "UPDATE approval SET state = ?2, capability = ?3, decided_ms = ?4, decided_by = ?5,
                 view = NULL WHERE id = ?1",
                (id, state, capability, now_ms, &by),
            )
            .map_err(failed)?;
            let once =
                capability.map_or(String::new(), |c| format!(", capability {c} for one use"));
            let detail = format!("approval {id}: {state} by {by}{once}");
            append(
                tx,
                &Row {
                    at_ms: now_ms,
                    pid,
                    run,
                    seq: Some(seq),
                    kind: "decision",
                    name: &name,
                    detail,
                    audit: Audit::default(),
                },
            )?;
            Ok(Ok((call, decision)))
        })
        .await
    }

    /// Takes back what an interrupted call asks the person. Gives the approvals that lapsed.
    pub(crate) async fn withdraw(&self, call: CallId, at: At) -> Result<Vec<u64>, SysError> {
        self.write(move |tx| {
            let lapsed: Vec<u64> = tx
                .prepare_cached("SELECT id FROM approval WHERE call = ?1 AND state = 'pending'")
                .and_then(|mut found| {
                    found
                        .query_map([call], |r| r.get(0))
                        .and_then(Iterator::collect)
                })
                .map_err(failed)?;
            for table in ["approval", "question"] {
                let sql = format!(
                    "UPDATE {table} SET state = 'lapsed', view = NULL
                     WHERE call = ?1 AND state = 'pending'"
                );
                tx.execute(&sql, [call]).map_err(failed)?;
            }
            for id in &lapsed {
                let detail = format!("approval {id}: lapsed, the call was interrupted");
                append(tx, &at.row("decision", detail))?;
            }
            set_process(tx, at.pid, ProcessState::Running)?;
            Ok(lapsed)
        })
        .await
    }

    /// Files a question of a call, or finds the one filed before.
    pub(crate) async fn ask(
        &self,
        call: CallId,
        at: At,
        mut question: Question,
    ) -> Result<Question, SysError> {
        self.write(move |tx| {
            let before: Option<Option<String>> = tx
                .query_row("SELECT view FROM question WHERE call = ?1", [call], |r| {
                    r.get(0)
                })
                .optional()
                .map_err(failed)?;
            if let Some(view) = before.flatten() {
                return from_json(&view);
            }
            count_asked(tx, at.pid)?;
            tx.execute(
                "INSERT INTO question (call, pid, state, asked_ms) VALUES (?,?,'pending',?)",
                (call, at.pid.0, at.now_ms),
            )
            .map_err(failed)?;
            question.id = tx.last_insert_rowid().unsigned_abs();
            question.asked_ms = at.now_ms;
            tx.execute(
                "UPDATE question SET view = ?2 WHERE id = ?1",
                (question.id, to_json(&question)?),
            )
            .map_err(failed)?;
            wait_for_person(tx, call, at.pid)?;
            append(tx, &at.row("approval", format!("question {}", question.id)))?;
            Ok(question)
        })
        .await
    }

    /// Questions that wait, oldest first.
    pub(crate) async fn questions(&self) -> Result<Vec<Question>, SysError> {
        self.read(|db| {
            views(
                db,
                "SELECT view FROM question WHERE state = 'pending' ORDER BY id",
            )
        })
        .await
    }

    /// Takes the answer to a question, if it is the first; the call it belongs to.
    pub(crate) async fn reply(
        &self,
        id: u64,
        text: String,
        by: String,
        now_ms: u64,
    ) -> Result<Option<CallId>, SysError> {
        self.write(move |tx| {
            let found: Option<(u64, String)> = tx
                .query_row(
                    "SELECT call, state FROM question WHERE id = ?1",
                    [id],
                    |r| Ok((r.get(0)?, r.get(1)?)),
                )
                .optional()
                .map_err(failed)?;
            let Some((call, state)) = found else {
                return Err(
                    SysError::new(Code::NotFound, format!("there is no question `{id}`"))
                        .hint("list those that wait with `steward approvals`"),
                );
            };
            if state != "pending" {
                return Ok(None);
            }
            tx.execute(
                "UPDATE question SET state = 'answered', answer = ?2, view = NULL WHERE id = ?1",
                (id, &text),
            )
            .map_err(failed)?;
            let (pid, run, seq, name) = place(tx, call)?;
            set_process(tx, pid, ProcessState::Runnable)?;
            let detail = format!("question {id}: answered by {by}, {} bytes", text.len());
            append(
                tx,
                &Row {
                    at_ms: now_ms,
                    pid,
                    run,
                    seq: Some(seq),
                    kind: "decision",
                    name: &name,
                    detail,
                    audit: Audit::default(),
                },
            )?;
            Ok(Some(call))
        })
        .await
    }
}

/// Ends what was asked for a call that has ended: a yes is used up, a question is open no more.
pub(super) fn close_approvals(tx: &Tx<'_>, call: CallId) -> Result<(), SysError> {
    for sql in [
        "UPDATE capability SET uses_left = 0, status = 'spent' WHERE status = 'active' AND id IN
         (SELECT capability FROM approval WHERE call = ?1 AND state = 'approved')",
        "UPDATE approval SET state = 'used' WHERE call = ?1 AND state = 'approved'",
        "UPDATE approval SET state = 'superseded', view = NULL
         WHERE call = ?1 AND state = 'pending'",
    ] {
        tx.execute(sql, [call]).map_err(failed)?;
    }
    Ok(())
}

/// Refuses where a process has asked the person as often as it may, restarts included.
fn count_asked(tx: &Tx<'_>, pid: Pid) -> Result<(), SysError> {
    let asked: u32 = tx
        .query_row(
            "SELECT (SELECT COUNT(*) FROM approval WHERE pid = ?1)
                  + (SELECT COUNT(*) FROM question WHERE pid = ?1)",
            [pid.0],
            |r| r.get(0),
        )
        .map_err(failed)?;
    if asked < human::ASKED_MOST {
        return Ok(());
    }
    Err(SysError::new(
        Code::Limit,
        format!(
            "a process asks the person at most `{}` times",
            human::ASKED_MOST
        ),
    )
    .hint("end with what was done, and tell what is left"))
}

fn wait_for_person(tx: &Tx<'_>, call: CallId, pid: Pid) -> Result<(), SysError> {
    set_call(tx, call, CallState::Waiting, "waiting for your answer")?;
    set_process(tx, pid, ProcessState::WaitingHuman)
}

fn already(db: &Connection, id: u64, state: ApprovalState) -> Result<String, SysError> {
    let by: Option<String> = db
        .query_row("SELECT decided_by FROM approval WHERE id = ?1", [id], |r| {
            r.get(0)
        })
        .map_err(failed)?;
    let by = by.unwrap_or_else(|| "nobody".to_owned());
    Ok(match state {
        ApprovalState::Approved | ApprovalState::Used => {
            format!("it was approved already, by {by}")
        }
        ApprovalState::Denied => format!("it was denied already, by {by}"),
        ApprovalState::Superseded => "what it asked about changed; it is asked anew".to_owned(),
        ApprovalState::Lapsed | ApprovalState::Pending => {
            "the process that asked has ended".to_owned()
        }
    })
}

fn approval(db: &Connection, rest: &str, key: u64) -> Result<Option<ApprovalRow>, SysError> {
    let row: Option<(u64, String, String, Option<u64>)> = db
        .query_row(
            &format!("SELECT id, state, digest, capability FROM approval {rest}"),
            [key],
            |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?)),
        )
        .optional()
        .map_err(failed)?;
    row.map(|(id, state, digest, capability)| {
        Ok(ApprovalRow {
            id,
            state: from_word(state)?,
            digest,
            capability,
        })
    })
    .transpose()
}

fn views<T: serde::de::DeserializeOwned>(db: &Connection, sql: &str) -> Result<Vec<T>, SysError> {
    let mut found = db.prepare_cached(sql).map_err(failed)?;
    let rows: Vec<Option<String>> = found
        .query_map([], |r| r.get(0))
        .and_then(Iterator::collect)
        .map_err(failed)?;
    rows.into_iter()
        .flatten()
        .map(|view| from_json(&view))
        .collect()
}
