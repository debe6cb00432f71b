//! Rows about what the person is asked: approvals and questions.

mod deciding;
mod questions;

use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};

use deciding::{decide, expire};

use super::calls::{At, CallId, CallState, set_call};
use super::processes::set_process;
use super::{Journal, Tx, append, failed, from_json, from_word, to_json};
use crate::capability::{CapabilityId, Lease, Now, Steady};
use crate::error::{Code, SysError};
use crate::human::{self, Answer, Approval};
use crate::process::{Pid, ProcessState};

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
    /// Nobody answered in time.
    Expired,
}

/// The answer to an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Yes, by this one-shot capability.
    Approved(CapabilityId),
    /// No.
    Denied,
    /// Nobody answered in time.
    Expired,
}

/// How an answer was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answered {
    /// It counts, for this call.
    Counted(CallId, Decision),
    /// It came too late; what was decided, in words.
    TooLate(String),
    /// It came after the time to answer, which ended with this.
    Expired(CallId),
}

/// How long an approval waits.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub lifetime_ms: Option<u64>,
    pub now: Now,
}

/// An approval as found in the journal.
#[derive(Debug, Clone)]
pub(crate) struct ApprovalRow {
    pub id: u64,
    pub state: ApprovalState,
    pub digest: String,
    pub capability: Option<CapabilityId>,
    lifetime_ms: Option<u64>,
    ends: Option<Lease>,
}

impl ApprovalRow {
    /// The answer, once there is one that still counts.
    pub(crate) fn decision(&self) -> Option<Decision> {
        match (self.state, self.capability) {
            (ApprovalState::Approved, Some(capability)) => Some(Decision::Approved(capability)),
            (ApprovalState::Denied, _) => Some(Decision::Denied),
            (ApprovalState::Expired, _) => Some(Decision::Expired),
            _ => None,
        }
    }

    /// Milliseconds that it still waits; for ever where absent.
    pub(crate) fn left_ms(&self, now: &Steady) -> Option<u64> {
        let lifetime = self.lifetime_ms?;
        Some(match &self.ends {
            // The machine was started anew: nothing tells how long it has waited.
            Some(lease) if lease.ends.boot == now.boot => lease.left_ms(now),
            _ => lifetime,
        })
    }
}

impl Journal {
    /// The approval of a call that stands, if any.
    pub(crate) async fn approval_of(&self, call: CallId) -> Result<Option<ApprovalRow>, SysError> {
        self.read(move |db| {
            approval(
                db,
                "WHERE call = ?1 AND state IN ('pending','approved','denied','expired') ORDER BY id DESC LIMIT 1",
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
        terms: Terms,
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
            count_waiting(tx, &at)?;
            tx.execute(
                "INSERT INTO approval (call, pid, run, state, digest, capability, asked_ms)
                 VALUES (?,?,?,'pending',?,?,?)",
                (call, at.pid.0, at.run, &asked.digest.0, ask, at.now_ms),
            )
            .map_err(failed)?;
            asked.id = tx.last_insert_rowid().unsigned_abs();
            asked.asked_ms = at.now_ms;
            asked.group = group_of(tx, &at, asked.id)?;
            asked.expires_ms = terms.lifetime_ms.map(|ms| at.now_ms.saturating_add(ms));
            let ends = terms
                .lifetime_ms
                .map(|ms| Lease::of(ms, &terms.now.steady).ends);
            tx.execute(
                "UPDATE approval SET view = ?2, group_ = ?3, lifetime = ?4, expires = ?5, boot = ?6
                 WHERE id = ?1",
                (
                    asked.id,
                    to_json(&asked)?,
                    asked.group,
                    terms.lifetime_ms,
                    ends.as_ref().map(|ends| ends.ms),
                    ends.as_ref().map(|ends| &ends.boot),
                ),
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
    /// capability for exactly that, once; an "always" sets a policy beside it.
    pub(crate) async fn decide(
        &self,
        id: u64,
        answer: Answer,
        digest: String,
        by: String,
        now: Now,
    ) -> Result<Answered, SysError> {
        self.write(move |tx| decide(tx, id, &answer, digest, &by, &now))
            .await
    }

    /// Ends the wait for an answer where its time is over. The call, where this ended it.
    pub(crate) async fn expire(&self, id: u64, now: Now) -> Result<Option<CallId>, SysError> {
        self.write(move |tx| expire(tx, id, &now)).await
    }

    /// Ends every wait for an answer whose time is over: the approvals with their calls.
    pub(crate) async fn expire_all(&self, now: Now) -> Result<Vec<(u64, CallId)>, SysError> {
        let due = self
            .read({
                let steady = now.steady.clone();
                move |db| {
                    let sql = "SELECT id FROM approval
                               WHERE state = 'pending' AND boot = ?1 AND expires <= ?2";
                    let mut found = db.prepare_cached(sql).map_err(failed)?;
                    let ids = found.query_map((&steady.boot, steady.ms), |r| r.get(0));
                    ids.and_then(Iterator::collect::<Result<Vec<u64>, _>>)
                        .map_err(failed)
                }
            })
            .await?;
        let mut ended = Vec::new();
        for id in due {
            if let Some(call) = self.expire(id, now.clone()).await? {
                ended.push((id, call));
            }
        }
        Ok(ended)
    }

    /// What an approval that waits shows.
    pub(crate) async fn shown(&self, id: u64) -> Result<Option<Approval>, SysError> {
        self.read(move |db| {
            let view: Option<Option<String>> = db
                .query_row(
                    "SELECT view FROM approval WHERE id = ?1 AND state = 'pending'",
                    [id],
                    |r| r.get(0),
                )
                .optional()
                .map_err(failed)?;
            view.flatten().map(|view| from_json(&view)).transpose()
        })
        .await
    }

    /// Starts the time to answer anew where the machine was started since it was set.
    pub(crate) async fn renew(&self, id: u64, now: Now) -> Result<(), SysError> {
        self.write(move |tx| {
            tx.execute(
                "UPDATE approval SET expires = ?2 + lifetime, boot = ?3
                 WHERE id = ?1 AND state = 'pending' AND lifetime IS NOT NULL AND boot <> ?3",
                (id, now.steady.ms, &now.steady.boot),
            )
            .map(drop)
            .map_err(failed)
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
}

/// The first of those of one run and one action that wait together with this one.
fn group_of(tx: &Tx<'_>, at: &At, id: u64) -> Result<u64, SysError> {
    let waits: Option<u64> = tx
        .query_row(
            "SELECT COALESCE(a.group_, a.id) FROM approval a JOIN call c ON c.id = a.call
             WHERE a.state = 'pending' AND a.run = ?1 AND c.name = ?2 AND a.id <> ?3
             ORDER BY a.id LIMIT 1",
            (at.run, at.name, id),
            |r| r.get(0),
        )
        .optional()
        .map_err(failed)?;
    Ok(waits.unwrap_or(id))
}

/// Refuses where a run has as many approvals waiting as it may.
fn count_waiting(tx: &Tx<'_>, at: &At) -> Result<(), SysError> {
    let waiting: u32 = tx
        .query_row(
            "SELECT COUNT(*) FROM approval WHERE state = 'pending' AND run = ?1",
            [at.run],
            |r| r.get(0),
        )
        .map_err(failed)?;
    if waiting < human::WAITING_MOST {
        return Ok(());
    }
    let most = human::WAITING_MOST;
    Err(SysError::new(
        Code::Limit,
        format!("`{most}` approvals of this run wait already"),
    )
    .hint("wait for answers before asking more"))
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
        ApprovalState::Expired => "the time to answer was over".to_owned(),
        ApprovalState::Lapsed | ApprovalState::Pending => {
            "the process that asked has ended".to_owned()
        }
    })
}

fn approval(db: &Connection, rest: &str, key: u64) -> Result<Option<ApprovalRow>, SysError> {
    let sql = format!(
        "SELECT id, state, digest, capability, lifetime, expires, boot FROM approval {rest}"
    );
    let row: Option<(String, ApprovalRow)> = db
        .query_row(&sql, [key], |r| {
            let ends: Option<u64> = r.get(5)?;
            let boot: Option<String> = r.get(6)?;
            let row = ApprovalRow {
                id: r.get(0)?,
                state: ApprovalState::Pending,
                digest: r.get(2)?,
                capability: r.get(3)?,
                lifetime_ms: r.get(4)?,
                ends: ends.zip(boot).map(|(ms, boot)| Lease {
                    ends: Steady { boot, ms },
                }),
            };
            Ok((r.get(1)?, row))
        })
        .optional()
        .map_err(failed)?;
    row.map(|(state, row)| {
        Ok(ApprovalRow {
            state: from_word(state)?,
            ..row
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
