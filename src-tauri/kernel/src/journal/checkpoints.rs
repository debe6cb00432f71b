//! Rows about checkpoints: what they keep, and taking a process back to one.

use rusqlite::{Connection, OptionalExtension, Row as Found};
use serde_json::Value;

use super::capabilities::held;
use super::lives::{Inherited, KeptRow, STANDS, insert_calls};
use super::processes::{happened, select, unended};
use super::{
    At, CallId, CallRow, CallState, Journal, LastCall, Tx, failed, from_json, to_json, word,
};
use crate::capability::{CapabilityId, Grant};
use crate::checkpoint::{
    CheckpointDetail, CheckpointId, CheckpointInfo, Checkpointed, HeldThen, KeptCall, ObjectThen,
    OutsideEffect, RUN_CHECKPOINTS_MOST, Restored, Scene, Way, digest_of,
};
use crate::error::{Code, SysError};
use crate::human::sha256;
use crate::process::{Pid, ProcessInfo, RunId};
use crate::provider::Digest;
use crate::syscall::{Effect, effect_of};

/// A checkpoint with all that it keeps.
pub(crate) struct Kept {
    pub info: CheckpointInfo,
    pub scene: Scene,
    rows: Vec<KeptRow>,
    calls: Vec<KeptCall>,
}

/// What a process begins with in the place of one that has ended.
pub(crate) struct Restorable {
    pub kept: Kept,
    pub history: Inherited,
    /// What stands.
    pub outside: Vec<OutsideEffect>,
    /// What it had at the checkpoint and was not taken back since.
    pub grants: Vec<(Grant, CapabilityId)>,
}

impl Kept {
    /// The calls of a process that comes to the checkpoint in this way.
    fn history(&self, way: Way, task: &str) -> Result<Vec<KeptRow>, SysError> {
        let mut rows = self.rows.clone();
        if let Some(last) = rows.last_mut().filter(|row| row.result.is_none()) {
            let result: Result<Checkpointed, SysError> = Ok(Checkpointed {
                id: self.info.id,
                way,
                task: task.to_owned(),
            });
            last.result = Some(to_json(&result)?);
        }
        Ok(rows)
    }

    /// What a process begins with that is forked from it.
    pub(crate) fn forked(&self, task: &str) -> Result<Inherited, SysError> {
        Ok(Inherited::Kept {
            calls: self.history(Way::Forked, task)?,
            stands: Vec::new(),
        })
    }
}

impl Journal {
    /// Makes a checkpoint of a process for the person: of the calls that have ended.
    pub(crate) async fn checkpoint(
        &self,
        pid: Pid,
        label: String,
        by: String,
        now_ms: u64,
    ) -> Result<CheckpointInfo, SysError> {
        self.write(move |tx| {
            let made = create_checkpoint(tx, pid, &label, None, now_ms)?;
            let process = unended(tx, pid)?;
            let detail = format!("checkpoint {} by {by}", made.id);
            happened(tx, &process, "checkpoint", detail, now_ms)?;
            Ok(made)
        })
        .await
    }

    /// Checkpoints of a process or of a run, oldest first; the latest thousand of all.
    pub(crate) async fn checkpoints(
        &self,
        pid: Option<Pid>,
        run: Option<RunId>,
    ) -> Result<Vec<CheckpointInfo>, SysError> {
        self.read(move |db| {
            let sql = format!(
                "{INFO} WHERE (?1 IS NULL OR pid = ?1) AND (?2 IS NULL OR run = ?2)
                 ORDER BY id DESC LIMIT 1000"
            );
            let mut found = db.prepare_cached(&sql).map_err(failed)?;
            let mut all: Vec<CheckpointInfo> = found
                .query_map((pid.map(|pid| pid.0), run), info)
                .and_then(Iterator::collect)
                .map_err(failed)?;
            all.reverse();
            Ok(all)
        })
        .await
    }

    /// A checkpoint, whole and undamaged.
    pub(crate) async fn kept(&self, id: CheckpointId) -> Result<Kept, SysError> {
        self.read(move |db| load(db, id)).await
    }

    pub(crate) async fn checkpoint_detail(
        &self,
        id: CheckpointId,
    ) -> Result<CheckpointDetail, SysError> {
        self.read(move |db| {
            let kept = load(db, id)?;
            let outside = outside(db, &kept.info)?;
            Ok(CheckpointDetail {
                checkpoint: kept.info,
                scene: kept.scene,
                calls: kept.calls,
                outside: outside.into_iter().map(|(effect, _)| effect).collect(),
            })
        })
        .await
    }

    /// The process of a checkpoint as it stood there, and the answers to its calls.
    pub(crate) async fn replayable(
        &self,
        id: CheckpointId,
    ) -> Result<(ProcessInfo, Vec<CallRow>), SysError> {
        self.read(move |db| {
            let kept = load(db, id)?;
            let process = select(db, "WHERE pid = ?1", Some(kept.info.pid.0))?.pop();
            let process = process
                .ok_or_else(|| SysError::new(Code::Internal, "a checkpoint has no process"))?;
            let mut calls = Vec::new();
            for (row, call) in kept.history(Way::Made, "")?.iter().zip(&kept.calls) {
                calls.push(CallRow {
                    args: row.args.clone(),
                    state: CallState::Done,
                    result: row.result.as_deref().map(from_json).transpose()?,
                    ..CallRow::new(0, call.seq, &row.name)
                });
            }
            let Scene {
                image,
                goal,
                workspace,
                cwd,
                after,
                ..
            } = kept.scene;
            let process = ProcessInfo {
                image,
                goal,
                workspace,
                cwd,
                after,
                ..process
            };
            Ok((process, calls))
        })
        .await
    }

    /// Takes a process that has not ended back to a checkpoint of it.
    pub(crate) async fn take_back(
        &self,
        id: CheckpointId,
        by: String,
        now_ms: u64,
    ) -> Result<Restored, SysError> {
        let rows = self.kept(id).await?.rows.len() as u64;
        let first = self.next_calls(rows + 1);
        self.write(move |tx| take_back(tx, id, first, &by, now_ms))
            .await
    }

    /// What a process begins with in the place of a checkpoint's, which has ended.
    pub(crate) async fn restorable(&self, id: CheckpointId) -> Result<Restorable, SysError> {
        self.read(move |db| {
            let kept = load(db, id)?;
            let outside = outside(db, &kept.info)?;
            let mut stands = Vec::new();
            for (effect, call) in &outside {
                if effect.pid == kept.info.pid {
                    stands.extend(row_of(db, *call)?);
                }
            }
            let history = Inherited::Kept {
                calls: kept.history(Way::Restored, "")?,
                stands,
            };
            let mut grants = Vec::new();
            for held in &kept.scene.capabilities {
                grants.extend(grant_since(db, held.id)?);
            }
            Ok(Restorable {
                kept,
                history,
                outside: outside.into_iter().map(|(effect, _)| effect).collect(),
                grants,
            })
        })
        .await
    }
}

/// Makes a checkpoint: of the calls that have ended, and of the one that makes it.
pub(crate) fn create_checkpoint(
    tx: &Tx<'_>,
    pid: Pid,
    label: &str,
    made_by: Option<(&At, &LastCall)>,
    now_ms: u64,
) -> Result<CheckpointInfo, SysError> {
    let process = unended(tx, pid)?;
    let there: u64 = tx
        .query_row(
            "SELECT COUNT(*) FROM checkpoint WHERE run = ?1",
            [process.run],
            |r| r.get(0),
        )
        .map_err(failed)?;
    if there >= RUN_CHECKPOINTS_MOST {
        let message = format!("a run has `{RUN_CHECKPOINTS_MOST}` checkpoints at most");
        return Err(SysError::new(Code::Limit, message).hint("go on without another"));
    }
    let mut rows = ended_calls(tx, pid)?;
    if let Some((at, last)) = made_by {
        rows.push((
            at.seq,
            KeptRow {
                name: last.name.to_owned(),
                args: last.args.clone(),
                title: last.title.clone(),
                state: word(&CallState::Done),
                detail: String::new(),
                result: None,
            },
        ));
    }
    let scene = to_json(&scene_of(tx, &process)?)?;
    Scene::read(&scene)?;
    let calls: Vec<KeptCall> = rows.iter().map(|(seq, row)| kept_call(*seq, row)).collect();
    let digest = digest_of(&scene, &calls);
    let seq = match rows.last() {
        Some((seq, _)) => *seq,
        None => base_seq(tx, pid)?,
    };
    tx.execute(
        "INSERT INTO checkpoint (pid, run, seq, label, digest, info, at_ms) VALUES (?,?,?,?,?,?,?)",
        (pid.0, process.run, seq, label, &digest.0, &scene, now_ms),
    )
    .map_err(failed)?;
    let id = tx.last_insert_rowid().unsigned_abs();
    for (seq, row) in &rows {
        tx.prepare_cached(
            "INSERT INTO checkpoint_call (checkpoint, seq, call, name, args, title, state, detail,
               result)
             VALUES (?,?,0,?,?,?,?,?,?)",
        )
        .and_then(|mut insert| {
            insert.execute((
                id,
                seq,
                &row.name,
                &row.args,
                &row.title,
                &row.state,
                &row.detail,
                &row.result,
            ))
        })
        .map_err(failed)?;
    }
    Ok(CheckpointInfo {
        id,
        pid,
        run: process.run,
        seq,
        label: label.to_owned(),
        digest,
        at_ms: now_ms,
    })
}

fn scene_of(db: &Connection, process: &ProcessInfo) -> Result<Scene, SysError> {
    let mut capabilities = Vec::new();
    for capability in held(db, process.pid)? {
        capabilities.push(HeldThen {
            id: capability.id,
            digest: sha256(to_json(&capability.grant)?.as_bytes()),
        });
    }
    let mut found = db
        .prepare_cached(
            "SELECT o.id, o.namespace, o.name, o.version, v.sha256 FROM object o
             JOIN object_version v ON v.object = o.id AND v.version = o.version
             WHERE o.pid = ?1 AND o.gone_ms IS NULL ORDER BY o.id",
        )
        .map_err(failed)?;
    let objects = found
        .query_map([process.pid.0], |r| {
            Ok(ObjectThen {
                id: r.get(0)?,
                namespace: r.get(1)?,
                name: r.get(2)?,
                version: r.get(3)?,
                sha256: r.get(4)?,
            })
        })
        .and_then(Iterator::collect)
        .map_err(failed)?;
    Ok(Scene {
        image: process.image.clone(),
        goal: process.goal.clone(),
        workspace: process.workspace.clone(),
        cwd: process.cwd.clone(),
        status: process.status.clone(),
        after: process.after,
        mode: process.mode,
        budget: process.budget,
        tokens: process.tokens,
        capabilities,
        objects,
        ..Scene::default()
    })
}

/// Calls of a process's program up to the first that has not ended.
fn ended_calls(db: &Connection, pid: Pid) -> Result<Vec<(u64, KeptRow)>, SysError> {
    let sql = "SELECT c.name, c.args, c.title, c.state, c.detail, p.result, c.seq
               FROM call c LEFT JOIN payload p ON p.call = c.id
               WHERE c.pid = ?1 AND c.seq > ?2 ORDER BY c.seq";
    let mut found = db.prepare_cached(sql).map_err(failed)?;
    let rows: Vec<(u64, KeptRow)> = found
        .query_map((pid.0, base_seq(db, pid)?), |r| {
            Ok((r.get(6)?, kept_row(r)?))
        })
        .and_then(Iterator::collect)
        .map_err(failed)?;
    Ok(rows
        .into_iter()
        .take_while(|(_, row)| row.result.is_some())
        .collect())
}

fn base_seq(db: &Connection, pid: Pid) -> Result<u64, SysError> {
    db.query_row(
        "SELECT base_seq FROM process WHERE pid = ?1",
        [pid.0],
        |r| r.get(0),
    )
    .map_err(failed)
}

fn kept_row(r: &Found<'_>) -> rusqlite::Result<KeptRow> {
    Ok(KeptRow {
        name: r.get(0)?,
        args: r.get(1)?,
        title: r.get(2)?,
        state: r.get(3)?,
        detail: r.get(4)?,
        result: r.get(5)?,
    })
}

fn row_of(db: &Connection, call: CallId) -> Result<Option<KeptRow>, SysError> {
    db.query_row(
        "SELECT c.name, c.args, c.title, c.state, c.detail, p.result
         FROM call c LEFT JOIN payload p ON p.call = c.id WHERE c.id = ?1",
        [call],
        kept_row,
    )
    .optional()
    .map_err(failed)
}

fn kept_call(seq: u64, row: &KeptRow) -> KeptCall {
    KeptCall {
        seq,
        name: row.name.clone(),
        args: row.args.clone(),
        title: row.title.clone(),
        state: row.state.clone(),
        result: sha256(row.result.as_deref().unwrap_or_default().as_bytes()),
    }
}

const INFO: &str = "SELECT id, pid, run, seq, label, digest, at_ms FROM checkpoint";

fn info(r: &Found<'_>) -> rusqlite::Result<CheckpointInfo> {
    Ok(CheckpointInfo {
        id: r.get(0)?,
        pid: Pid(r.get(1)?),
        run: r.get(2)?,
        seq: r.get(3)?,
        label: r.get(4)?,
        digest: Digest(r.get(5)?),
        at_ms: r.get(6)?,
    })
}

fn load(db: &Connection, id: CheckpointId) -> Result<Kept, SysError> {
    let found = db
        .query_row(&format!("{INFO} WHERE id = ?1"), [id], info)
        .optional()
        .map_err(failed)?;
    let info = found.ok_or_else(|| {
        SysError::new(Code::NotFound, format!("there is no checkpoint `{id}`"))
            .hint("list them with `steward checkpoints`")
    })?;
    let text: String = db
        .query_row("SELECT info FROM checkpoint WHERE id = ?1", [id], |r| {
            r.get(0)
        })
        .map_err(failed)?;
    let scene = Scene::read(&text)?;
    let sql = "SELECT name, args, title, state, detail, result, seq FROM checkpoint_call
               WHERE checkpoint = ?1 ORDER BY seq";
    let mut found = db.prepare_cached(sql).map_err(failed)?;
    let all: Vec<(u64, KeptRow)> = found
        .query_map([id], |r| Ok((r.get(6)?, kept_row(r)?)))
        .and_then(Iterator::collect)
        .map_err(failed)?;
    let calls: Vec<KeptCall> = all.iter().map(|(seq, row)| kept_call(*seq, row)).collect();
    let digest = digest_of(&text, &calls);
    if digest != info.digest {
        let message = format!("checkpoint `{id}` is damaged: its digest does not fit");
        return Err(SysError::new(Code::Invalid, message).hint("use another; nothing was changed"));
    }
    Ok(Kept {
        info,
        scene,
        rows: all.into_iter().map(|(_, row)| row).collect(),
        calls,
    })
}

/// What was done outside after a checkpoint and was not undone, each with its call.
fn outside(
    db: &Connection,
    checkpoint: &CheckpointInfo,
) -> Result<Vec<(OutsideEffect, CallId)>, SysError> {
    let sql = "WITH RECURSIVE made(pid) AS (
           SELECT p.pid FROM process p JOIN call c ON c.id = p.spawned_by
           WHERE c.pid = ?1 AND c.seq > ?2
           UNION ALL SELECT p.pid FROM process p JOIN made ON p.parent = made.pid)
         SELECT c.pid, c.seq, c.name, c.title, c.state, c.id FROM call c
         WHERE c.inherited <> 1 AND c.state IN ('done', 'unknown', 'executing')
           AND ((c.pid = ?1 AND c.seq > ?2) OR c.pid IN (SELECT pid FROM made))
           AND NOT (EXISTS (SELECT 1 FROM change WHERE call = c.id) AND NOT EXISTS
             (SELECT 1 FROM change WHERE call = c.id AND undone_by IS NULL AND state <> 'failed'))
         ORDER BY c.id";
    let mut found = db.prepare_cached(sql).map_err(failed)?;
    let all: Vec<(OutsideEffect, CallId)> = found
        .query_map((checkpoint.pid.0, checkpoint.seq), |r| {
            let state: String = r.get(4)?;
            let effect = OutsideEffect {
                pid: Pid(r.get(0)?),
                seq: r.get(1)?,
                name: r.get(2)?,
                title: r.get(3)?,
                state: match state.as_str() {
                    "done" => state,
                    _ => "unknown".to_owned(),
                },
            };
            Ok((effect, r.get(5)?))
        })
        .and_then(Iterator::collect)
        .map_err(failed)?;
    let reaches = |name: &str| effect_of(name) == Some(Effect::Irreversible);
    Ok(all
        .into_iter()
        .filter(|(effect, _)| reaches(&effect.name))
        .collect())
}

fn take_back(
    tx: &Tx<'_>,
    id: CheckpointId,
    first: CallId,
    by: &str,
    now_ms: u64,
) -> Result<Restored, SysError> {
    let kept = load(tx, id)?;
    let process = unended(tx, kept.info.pid)?;
    let (pid, after) = (process.pid.0, kept.info.seq);
    let outside = outside(tx, &kept.info)?;
    for (effect, call) in &outside {
        if effect.pid.0 == pid {
            tx.execute(
                "UPDATE call SET inherited = ?2 WHERE id = ?1",
                (call, STANDS),
            )
            .map_err(failed)?;
        }
    }
    for sql in [
        "UPDATE approval SET state = 'lapsed', view = NULL WHERE pid = ?1 AND state = 'pending'",
        "UPDATE question SET state = 'lapsed', view = NULL WHERE pid = ?1 AND state = 'pending'",
        "UPDATE call SET state = 'failed', detail = 'taken back by a restore'
         WHERE pid = ?1 AND state IN ('intent', 'waiting')",
        "UPDATE call SET state = 'unknown' WHERE pid = ?1 AND state = 'executing'",
    ] {
        tx.execute(sql, [pid]).map_err(failed)?;
    }
    // What it had read since is there to be read again.
    tx.execute(
        "UPDATE message SET taken_by = NULL WHERE to_pid = ?1 AND taken_by IN
           (SELECT id FROM call WHERE pid = ?1 AND seq > ?2 AND inherited <> 1)",
        (pid, after),
    )
    .map_err(failed)?;
    let base: u64 = tx
        .query_row(
            "SELECT COALESCE(MAX(seq), 0) FROM call WHERE pid = ?1",
            [pid],
            |r| r.get(0),
        )
        .map_err(failed)?;
    tx.execute(
        "DELETE FROM payload WHERE pid = ?1 AND call IN
           (SELECT id FROM call WHERE pid = ?1 AND inherited <> ?2)",
        (pid, STANDS),
    )
    .map_err(failed)?;
    let rows = kept.history(Way::Restored, "")?;
    insert_calls(tx, process.pid, &rows, first, base, 1, now_ms)?;
    let scene = &kept.scene;
    tx.execute(
        "UPDATE process SET image = ?2, goal = ?3, cwd = ?4, status = ?5, base_seq = ?6,
           state = 'runnable' WHERE pid = ?1",
        (
            pid,
            &scene.image,
            &scene.goal,
            &scene.cwd,
            &scene.status,
            base,
        ),
    )
    .map_err(failed)?;
    let then = |id: &CapabilityId| scene.capabilities.iter().any(|held| held.id == *id);
    let mut dropped: Vec<CapabilityId> = held(tx, process.pid)?.iter().map(|c| c.id).collect();
    dropped.retain(|id| !then(id));
    for capability in &dropped {
        tx.execute(
            "UPDATE capability SET status = 'revoked' WHERE id = ?1",
            [capability],
        )
        .map_err(failed)?;
    }
    let mut found = tx
        .prepare_cached(
            "SELECT p.pid FROM process p JOIN call c ON c.id = p.spawned_by
             WHERE c.pid = ?1 AND c.seq > ?2 AND p.state NOT IN ('exited', 'failed', 'killed')",
        )
        .map_err(failed)?;
    let ended = found
        .query_map((pid, after), |r| r.get(0).map(Pid))
        .and_then(Iterator::collect)
        .map_err(failed)?;
    let detail = format!(
        "to checkpoint {id} by {by}; {} outside effects stand",
        outside.len()
    );
    happened(tx, &process, "restored", detail, now_ms)?;
    Ok(Restored {
        pid: process.pid,
        outside: outside.into_iter().map(|(effect, _)| effect).collect(),
        dropped,
        ended,
    })
}

/// A grant that a process had and that was not taken back, nor any it came from; none that was for
/// a time or a number of uses.
fn grant_since(
    db: &Connection,
    id: CapabilityId,
) -> Result<Option<(Grant, CapabilityId)>, SysError> {
    let found: Option<String> = db
        .query_row(
            "WITH RECURSIVE chain(id, parent, status) AS (
               SELECT id, parent, status FROM capability WHERE id = ?1
               UNION ALL
               SELECT c.id, c.parent, c.status FROM capability c JOIN chain ON c.id = chain.parent)
             SELECT grant_ FROM capability WHERE id = ?1 AND uses_left IS NULL
               AND NOT EXISTS (SELECT 1 FROM chain WHERE status IN ('revoked', 'expired'))",
            [id],
            |r| r.get(0),
        )
        .optional()
        .map_err(failed)?;
    let grant: Option<Grant> = found.map(|text| from_json(&text)).transpose()?;
    let lasts = |grant: &Grant| grant.lease_ms.is_none() && grant.uses.is_none();
    Ok(grant.filter(lasts).map(|grant| (grant, id)))
}

/// Ends a call by the effect that stands from before a restore.
pub(crate) fn take_standing(tx: &Tx<'_>, call: CallId) -> Result<(), SysError> {
    tx.execute("UPDATE call SET inherited = 1 WHERE id = ?1", [call])
        .map(drop)
        .map_err(failed)
}

/// The result of an effect that stands, where it is known.
pub(crate) fn standing_result(row: &CallRow) -> Result<Value, SysError> {
    match &row.result {
        Some(Ok(value)) => Ok(value.clone()),
        _ => Err(SysError::new(
            Code::Unknown,
            "it is not known whether this was done before the restore",
        )
        .hint("look at what is there; it was not done again")),
    }
}
