//! Rows about messages: on disk until they are received, once.

use rusqlite::OptionalExtension;

use super::processes::unended;
use super::{CallId, Journal, Tx, failed};
use crate::error::{Code, SysError};
use crate::process::Pid;
use crate::syscall::Received;

/// Messages that may wait for one process.
const WAITING_MOST: u64 = 1_000;

/// A message about to be sent.
pub(crate) struct Message {
    /// Absent: the person.
    pub from: Option<Pid>,
    pub to: Pid,
    pub text: String,
}

impl Journal {
    /// Whether a message waits for a process.
    pub(crate) async fn has_message(&self, pid: Pid) -> Result<bool, SysError> {
        self.read(move |db| {
            let sql =
                "SELECT EXISTS (SELECT 1 FROM message WHERE to_pid = ?1 AND taken_by IS NULL)";
            db.prepare_cached(sql)
                .and_then(|mut found| found.query_row([pid.0], |r| r.get(0)))
                .map_err(failed)
        })
        .await
    }

    /// Sends a message of the person.
    pub(crate) async fn send(&self, message: Message, now_ms: u64) -> Result<u64, SysError> {
        self.write(move |tx| {
            let id = put_message(tx, &message, now_ms)?;
            let process = unended(tx, message.to)?;
            let detail = format!("message {id} of the person, {} bytes", message.text.len());
            super::processes::happened(tx, &process, "message", detail, now_ms)?;
            Ok(id)
        })
        .await
    }
}

/// Sends a message to a process that has not ended.
pub(crate) fn put_message(tx: &Tx<'_>, message: &Message, now_ms: u64) -> Result<u64, SysError> {
    let to = unended(tx, message.to)?;
    let waiting: u64 = tx
        .query_row(
            "SELECT COUNT(*) FROM message WHERE to_pid = ?1 AND taken_by IS NULL",
            [to.pid.0],
            |r| r.get(0),
        )
        .map_err(failed)?;
    if waiting >= WAITING_MOST {
        let message = format!(
            "`{WAITING_MOST}` messages wait for process `{}` already",
            to.pid
        );
        return Err(SysError::new(Code::Limit, message).hint("send again once it has read some"));
    }
    tx.execute(
        "INSERT INTO message (run, from_pid, to_pid, body, at_ms) VALUES (?,?,?,?,?)",
        (
            to.run,
            message.from.map(|pid| pid.0),
            to.pid.0,
            &message.text,
            now_ms,
        ),
    )
    .map_err(failed)?;
    Ok(tx.last_insert_rowid().unsigned_abs())
}

/// Takes the oldest message that waits for a process.
pub(crate) fn take_message(tx: &Tx<'_>, pid: Pid, call: CallId) -> Result<Received, SysError> {
    let found = tx
        .query_row(
            "SELECT id, from_pid, body, at_ms FROM message
             WHERE to_pid = ?1 AND taken_by IS NULL ORDER BY id LIMIT 1",
            [pid.0],
            |r| {
                Ok(Received {
                    id: r.get(0)?,
                    from: r.get::<_, Option<u64>>(1)?.map(Pid),
                    text: r.get::<_, Option<String>>(2)?.unwrap_or_default(),
                    at_ms: r.get(3)?,
                })
            },
        )
        .optional()
        .map_err(failed)?;
    let message =
        found.ok_or_else(|| SysError::new(Code::Conflict, "the message is there no more"))?;
    tx.execute(
        "UPDATE message SET taken_by = ?2 WHERE id = ?1",
        (message.id, call),
    )
    .map_err(failed)?;
    Ok(message)
}
