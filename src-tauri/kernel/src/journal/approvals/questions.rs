//! Rows about questions in an agent's own words.

use rusqlite::OptionalExtension;

use super::super::calls::{At, CallId, place};
use super::super::processes::set_process;
use super::super::{Audit, Journal, Row, append, failed, from_json, to_json};
use super::{count_asked, views, wait_for_person};
use crate::error::{Code, SysError};
use crate::human::Question;
use crate::process::ProcessState;

impl Journal {
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
                    audit: Audit {
                        resource: Some("the person".to_owned()),
                        by: Some(by),
                        ..Audit::default()
                    },
                },
            )?;
            Ok(Some(call))
        })
        .await
    }
}
