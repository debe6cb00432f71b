//! Rows about the changes that calls made to files: what an undo goes by.

use rusqlite::OptionalExtension;

use super::calls::{At, CallId};
use super::{Journal, Tx, append, failed, from_json, to_json};
use crate::error::SysError;
use crate::process::RunId;
use crate::provider::Plan;

/// A change to files that was carried out, or may have been.
#[derive(Debug, Clone)]
pub(crate) struct ChangeRow {
    pub id: u64,
    pub plan: Plan,
}

impl Journal {
    /// The latest run in a workspace that changed files and was not undone, other than `except`.
    pub(crate) async fn last_changed_run(
        &self,
        workspace: String,
        except: RunId,
    ) -> Result<Option<RunId>, SysError> {
        self.read(move |db| {
            db.query_row(
                "SELECT run FROM change WHERE workspace = ?1 AND run <> ?2 AND undone_by IS NULL
                   AND state <> 'failed'
                 ORDER BY id DESC LIMIT 1",
                (&workspace, except),
                |r| r.get(0),
            )
            .optional()
            .map_err(failed)
        })
        .await
    }

    /// Changes of a run that stand, newest first.
    pub(crate) async fn changes(&self, run: RunId) -> Result<Vec<ChangeRow>, SysError> {
        self.read(move |db| {
            let sql = "SELECT id, plan FROM change
                       WHERE run = ?1 AND undone_by IS NULL AND state <> 'failed' ORDER BY id DESC";
            let mut found = db.prepare_cached(sql).map_err(failed)?;
            let rows: Vec<(u64, String)> = found
                .query_map([run], |r| Ok((r.get(0)?, r.get(1)?)))
                .and_then(Iterator::collect)
                .map_err(failed)?;
            rows.into_iter()
                .map(|(id, plan)| {
                    Ok(ChangeRow {
                        id,
                        plan: from_json(&plan)?,
                    })
                })
                .collect()
        })
        .await
    }

    /// Runs that changed files and were not undone.
    pub(crate) async fn undoable_runs(&self) -> Result<std::collections::HashSet<RunId>, SysError> {
        self.read(|db| {
            let mut found = db
                .prepare_cached(
                    "SELECT DISTINCT run FROM change WHERE undone_by IS NULL AND state <> 'failed'",
                )
                .map_err(failed)?;
            found
                .query_map([], |r| r.get(0))
                .and_then(Iterator::collect)
                .map_err(failed)
        })
        .await
    }

    /// Writes down one more change of a call that is executing (an undo makes several).
    pub(crate) async fn change(
        &self,
        call: CallId,
        at: At,
        workspace: String,
        plan: Plan,
        detail: String,
    ) -> Result<(), SysError> {
        self.write(move |tx| {
            insert_change(tx, call, &at, &workspace, &plan)?;
            append(tx, &at.row("executing", detail))
        })
        .await
    }

    /// Marks the change that an undo just made as applied, and the one it puts back as undone.
    pub(crate) async fn undone(
        &self,
        call: CallId,
        change: u64,
        by: RunId,
    ) -> Result<(), SysError> {
        self.write(move |tx| {
            tx.execute(
                "UPDATE change SET state = 'applied' WHERE call = ?1 AND state = 'executing'",
                [call],
            )
            .map_err(failed)?;
            tx.execute(
                "UPDATE change SET undone_by = ?2 WHERE id = ?1",
                (change, by),
            )
            .map(drop)
            .map_err(failed)
        })
        .await
    }

    /// Marks the change that a call just tried as not made.
    pub(crate) async fn change_failed(&self, call: CallId) -> Result<(), SysError> {
        self.write(move |tx| {
            tx.execute(
                "UPDATE change SET state = 'failed' WHERE call = ?1 AND state = 'executing'",
                [call],
            )
            .map(drop)
            .map_err(failed)
        })
        .await
    }
}

pub(super) fn insert_change(
    tx: &Tx<'_>,
    call: CallId,
    at: &At,
    workspace: &str,
    plan: &Plan,
) -> Result<(), SysError> {
    tx.execute(
        "INSERT INTO change (call, run, workspace, plan, state, at_ms) VALUES (?,?,?,?,'executing',?)",
        (call, at.run, workspace, to_json(plan)?, at.now_ms),
    )
    .map(drop)
    .map_err(failed)
}
