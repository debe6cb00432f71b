//! Rows about what a person said once for many calls.

use rusqlite::{Connection, OptionalExtension};

use super::{Audit, Journal, Row, Tx, append, failed, from_json, from_word, to_json, word};
use crate::error::{Code, SysError};
use crate::human::{NewPolicy, Policy, Standing};
use crate::process::Pid;

/// Policies that stand at once at most.
const STANDING_MOST: u64 = 1024;

const COLUMNS: &str = "id, action, scope, policy, words, by_, issued_ms, uses_left, used,
    revoked_ms, revoked_by";

impl Journal {
    /// All policies, those taken back included, newest first.
    pub(crate) async fn standing(&self) -> Result<Vec<Standing>, SysError> {
        self.read(|db| select(db, "ORDER BY id DESC")).await
    }

    /// Policies that stand.
    pub(crate) async fn standing_now(&self) -> Result<Vec<Standing>, SysError> {
        self.read(active).await
    }

    /// Sets a policy; its number.
    pub(crate) async fn stand(
        &self,
        new: NewPolicy,
        by: String,
        now_ms: u64,
    ) -> Result<u64, SysError> {
        self.write(move |tx| {
            let words = new.scope.words(&new.action, new.policy);
            let id = stand(tx, &new, &words, &by, now_ms)?;
            told(
                tx,
                "grant.set",
                now_ms,
                format!("standing grant {id} by {by}: {words}"),
                &by,
            )?;
            Ok(id)
        })
        .await
    }

    /// Takes a policy back. False where it does not stand (any more).
    pub(crate) async fn unstand(&self, id: u64, by: String, now_ms: u64) -> Result<bool, SysError> {
        self.write(move |tx| {
            let known: Option<u64> = tx
                .query_row("SELECT id FROM standing WHERE id = ?1", [id], |r| r.get(0))
                .optional()
                .map_err(failed)?;
            if known.is_none() {
                let message = format!("there is no standing grant `{id}`");
                return Err(
                    SysError::new(Code::NotFound, message).hint("list them with `steward grants`")
                );
            }
            let changed = tx
                .execute(
                    "UPDATE standing SET revoked_ms = ?2, revoked_by = ?3
                     WHERE id = ?1 AND revoked_ms IS NULL",
                    (id, now_ms, &by),
                )
                .map_err(failed)?;
            if changed == 1 {
                let detail = format!("standing grant {id} taken back by {by}");
                told(tx, "grant.revoke", now_ms, detail, &by)?;
            }
            Ok(changed == 1)
        })
        .await
    }
}

/// Writes down what concerns no process.
fn told(tx: &Tx<'_>, name: &str, at_ms: u64, detail: String, by: &str) -> Result<(), SysError> {
    let audit = Audit {
        by: Some(by.to_owned()),
        ..Audit::default()
    };
    let row = Row {
        at_ms,
        pid: Pid(0),
        run: 0,
        seq: None,
        kind: "policy",
        name,
        detail,
        audit,
    };
    append(tx, &row)
}

/// Adds a policy, in words as a person saw them.
pub(super) fn stand(
    tx: &Tx<'_>,
    new: &NewPolicy,
    words: &str,
    by: &str,
    now_ms: u64,
) -> Result<u64, SysError> {
    let count: u64 = tx
        .query_row(
            "SELECT COUNT(*) FROM standing WHERE revoked_ms IS NULL",
            (),
            |r| r.get(0),
        )
        .map_err(failed)?;
    if count >= STANDING_MOST {
        let message = format!("`{STANDING_MOST}` standing grants are the most");
        return Err(
            SysError::new(Code::Limit, message).hint("take some back with `steward grants`")
        );
    }
    let uses = (new.policy == Policy::AllowOnce).then_some(1);
    tx.execute(
        "INSERT INTO standing (action, scope, policy, words, by_, issued_ms, uses_left)
         VALUES (?,?,?,?,?,?,?)",
        (
            &new.action,
            to_json(&new.scope)?,
            word(&new.policy),
            words,
            by,
            now_ms,
            uses,
        ),
    )
    .map_err(failed)?;
    Ok(tx.last_insert_rowid().unsigned_abs())
}

/// Policies that stand, oldest first.
pub(super) fn active(db: &Connection) -> Result<Vec<Standing>, SysError> {
    select(
        db,
        "WHERE revoked_ms IS NULL AND (uses_left IS NULL OR uses_left > 0) ORDER BY id",
    )
}

/// Counts that a policy decided something.
pub(super) fn count(tx: &Tx<'_>, id: u64) -> Result<(), SysError> {
    tx.execute(
        "UPDATE standing SET used = used + 1, uses_left = uses_left - 1 WHERE id = ?1",
        [id],
    )
    .map(drop)
    .map_err(failed)
}

fn select(db: &Connection, rest: &str) -> Result<Vec<Standing>, SysError> {
    let mut found = db
        .prepare_cached(&format!("SELECT {COLUMNS} FROM standing {rest}"))
        .map_err(failed)?;
    let rows: Vec<(String, String, Standing)> = found
        .query_map((), |r| {
            let standing = Standing {
                id: r.get(0)?,
                action: r.get(1)?,
                scope: Default::default(),
                policy: Policy::AskEachTime,
                words: r.get(4)?,
                by: r.get(5)?,
                issued_ms: r.get(6)?,
                uses_left: r.get(7)?,
                used: r.get(8)?,
                revoked_ms: r.get(9)?,
                revoked_by: r.get(10)?,
            };
            Ok((r.get(2)?, r.get(3)?, standing))
        })
        .and_then(Iterator::collect)
        .map_err(failed)?;
    rows.into_iter()
        .map(|(scope, policy, standing)| {
            Ok(Standing {
                scope: from_json(&scope)?,
                policy: from_word(policy)?,
                ..standing
            })
        })
        .collect()
}
