//! Rows about processes and their capabilities.

use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension};
use serde::Deserialize;

use super::capabilities::{Issue, held, issue, issue_to};
use super::lives::{self, Inherited};
use super::{
    At, Audit, CallId, Journal, Row, Tx, append, failed, from_json, from_word, images, objects,
    to_json, word,
};
use crate::budget::{Budget, Used};
use crate::capability::{Capability, CapabilityId, Grant, Now, Steady};
use crate::error::{Code, SysError};
use crate::process::{ForkMode, Pid, ProcessInfo, ProcessState, RunId, Urgency};
use crate::sys::Turn;
use crate::syscall::Exit;

/// A process about to be made.
#[derive(Debug, Clone)]
pub(crate) struct NewProcess {
    pub parent: Option<ProcessInfo>,
    pub after: Option<RunId>,
    /// The call that makes it, so that it is made once however often the call is run again.
    pub call: Option<CallId>,
    pub image: String,
    pub goal: String,
    pub workspace: PathBuf,
    pub cwd: String,
    pub mode: Option<ForkMode>,
    pub budget: Budget,
    /// The calls that it begins with.
    pub history: Option<Inherited>,
    pub grants: Vec<(Grant, Option<CapabilityId>)>,
    pub issuer: String,
    pub now_ms: u64,
    /// What the leases of its grants are measured by.
    pub steady: Steady,
}

const COLUMNS: &str =
    "pid, parent, run, after_run, image, goal, workspace, state, tokens, created_ms, ended_ms,
    (SELECT COUNT(*) FROM call WHERE call.pid = process.pid AND inherited <> 1), paused, cwd, status,
    mode, budget, used, priority, interactive, deadline_ms";

impl Journal {
    /// Makes a process, or finds the one its call made before; whether it was made.
    pub(crate) async fn create_process(
        &self,
        new: NewProcess,
    ) -> Result<(ProcessInfo, bool), SysError> {
        let copied = new.history.as_ref().map_or(0, Inherited::most);
        let first = self.next_calls(copied);
        self.write(move |tx| create(tx, &new, first)).await
    }

    /// Ends a process, once: its waiting approvals and questions lapse, its payloads and what it was
    /// answered go. Gives the approvals that lapsed.
    pub(crate) async fn end_process(
        &self,
        process: ProcessInfo,
        exit: Exit,
    ) -> Result<Vec<u64>, SysError> {
        self.write(move |tx| end(tx, &process, &exit)).await
    }

    pub(crate) async fn processes(&self) -> Result<Vec<ProcessInfo>, SysError> {
        self.read(|db| select(db, "ORDER BY pid DESC LIMIT 1000", None))
            .await
    }

    /// Processes that had not ended, oldest first.
    pub(crate) async fn unfinished(&self) -> Result<Vec<ProcessInfo>, SysError> {
        self.read(|db| {
            select(
                db,
                "WHERE state NOT IN ('exited','failed','killed') ORDER BY pid",
                None,
            )
        })
        .await
    }

    pub(crate) async fn process(&self, pid: Pid) -> Result<Option<ProcessInfo>, SysError> {
        self.read(move |db| Ok(select(db, "WHERE pid = ?1", Some(pid.0))?.pop()))
            .await
    }

    /// A process, and the capabilities that it holds.
    pub(crate) async fn process_and_rights(
        &self,
        pid: Pid,
    ) -> Result<Option<(ProcessInfo, Vec<Capability>)>, SysError> {
        self.read(move |db| {
            let process = select(db, "WHERE pid = ?1", Some(pid.0))?.pop();
            process
                .map(|process| Ok((process, held(db, pid)?)))
                .transpose()
        })
        .await
    }

    pub(crate) async fn processes_of_run(&self, run: RunId) -> Result<Vec<ProcessInfo>, SysError> {
        self.read(move |db| select(db, "WHERE run = ?1 ORDER BY pid", Some(run)))
            .await
    }

    pub(crate) async fn exit_of(&self, pid: Pid) -> Result<Option<Exit>, SysError> {
        self.read(move |db| exit_of(db, pid)).await
    }

    /// The conversation that ends with `run`, oldest first, at most `limit` turns.
    pub(crate) async fn turns(
        &self,
        run: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Turn>, SysError> {
        self.read(move |db| {
            let mut turns = Vec::new();
            let mut next = run;
            while let Some(run) = next.take().filter(|_| turns.len() < limit) {
                let Some(first) = select(db, "WHERE pid = ?1", Some(run))?.pop() else {
                    break;
                };
                let answer = exit_of(db, first.pid)?
                    .map(|e| e.answer)
                    .unwrap_or_default();
                next = first.after;
                turns.push(Turn {
                    run,
                    request: first.goal,
                    answer,
                });
            }
            turns.reverse();
            Ok(turns)
        })
        .await
    }

    /// Sets whether a process is to stand still; whether that is new.
    pub(crate) async fn pause(
        &self,
        pid: Pid,
        paused: bool,
        by: String,
        now_ms: u64,
    ) -> Result<bool, SysError> {
        self.write(move |tx| {
            let process = unended(tx, pid)?;
            if process.paused == paused {
                return Ok(false);
            }
            tx.execute(
                "UPDATE process SET paused = ?2 WHERE pid = ?1",
                (pid.0, paused),
            )
            .map_err(failed)?;
            let name = if paused { "paused" } else { "resumed" };
            happened(tx, &process, name, format!("by {by}"), now_ms)?;
            Ok(true)
        })
        .await
    }

    /// Sets how urgent a process is.
    pub(crate) async fn set_urgency(
        &self,
        pid: Pid,
        urgency: Urgency,
        by: String,
        now_ms: u64,
    ) -> Result<(), SysError> {
        self.write(move |tx| {
            let process = unended(tx, pid)?;
            tx.execute(
                "UPDATE process SET priority = ?2, interactive = ?3, deadline_ms = ?4 WHERE pid = ?1",
                (pid.0, urgency.priority, urgency.interactive, urgency.deadline_ms),
            )
            .map_err(failed)?;
            let due = urgency.deadline_ms.map_or("none".to_owned(), |ms| ms.to_string());
            let waits = if urgency.interactive { "interactive" } else { "background" };
            let detail = format!("by {by}: class {}, {waits}, due {due}", urgency.priority);
            happened(tx, &process, "urgency", detail, now_ms)
        })
        .await
    }

    /// Writes down that a process is interrupted.
    pub(crate) async fn interrupt(
        &self,
        pid: Pid,
        by: String,
        now_ms: u64,
    ) -> Result<(), SysError> {
        self.write(move |tx| {
            let process = unended(tx, pid)?;
            happened(tx, &process, "interrupted", format!("by {by}"), now_ms)
        })
        .await
    }
}

/// A process that has not ended.
pub(super) fn unended(db: &Connection, pid: Pid) -> Result<ProcessInfo, SysError> {
    let process = select(db, "WHERE pid = ?1", Some(pid.0))?.pop();
    let process = process.ok_or_else(|| {
        SysError::new(Code::NotFound, format!("there is no process `{pid}`"))
            .hint("list processes with `steward ps`")
    })?;
    if process.state.is_final() {
        let message = format!("process `{pid}` has ended");
        return Err(SysError::new(Code::Conflict, message).hint("list processes with `steward ps`"));
    }
    Ok(process)
}

/// Writes down what happened to a process.
pub(super) fn happened(
    tx: &Tx<'_>,
    process: &ProcessInfo,
    name: &str,
    detail: String,
    now_ms: u64,
) -> Result<(), SysError> {
    let row = Row {
        at_ms: now_ms,
        pid: process.pid,
        run: process.run,
        seq: None,
        kind: "process",
        name,
        detail,
        audit: about(process.pid),
    };
    append(tx, &row)
}

pub(super) fn set_process(tx: &Tx<'_>, pid: Pid, state: ProcessState) -> Result<(), SysError> {
    tx.execute(
        "UPDATE process SET state = ?2 WHERE pid = ?1",
        (pid.0, word(&state)),
    )
    .map(drop)
    .map_err(failed)
}

fn create(
    tx: &Tx<'_>,
    new: &NewProcess,
    first_call: CallId,
) -> Result<(ProcessInfo, bool), SysError> {
    if let Some(call) = new.call {
        let found: Option<u64> = tx
            .query_row(
                "SELECT pid FROM process WHERE spawned_by = ?1",
                [call],
                |r| r.get(0),
            )
            .optional()
            .map_err(failed)?;
        if let Some(process) = found
            .map(|pid| select(tx, "WHERE pid = ?1", Some(pid)))
            .transpose()?
            .and_then(|mut v| v.pop())
        {
            return Ok((process, false));
        }
    }
    // A person waits for what they asked for; a child is as urgent as its parent.
    let mut urgency = Urgency {
        interactive: true,
        ..Urgency::default()
    };
    if let Some(parent) = &new.parent {
        let parent = select(tx, "WHERE pid = ?1", Some(parent.pid.0))?.pop();
        let parent = parent.filter(|parent| !parent.state.is_final());
        urgency = parent
            .ok_or_else(|| SysError::new(Code::Interrupted, "the parent has ended"))?
            .urgency;
    }
    let workspace = new.workspace.to_string_lossy();
    tx.execute(
        "INSERT INTO process (parent, run, after_run, spawned_by, image, goal, workspace, cwd, mode,
           budget, state, created_ms, priority, interactive, deadline_ms)
         VALUES (?,?,?,?,?,?,?,?,?,?,'created',?,?,?,?)",
        rusqlite::params![
            new.parent.as_ref().map(|p| p.pid.0),
            new.parent.as_ref().map_or(0, |p| p.run),
            new.after,
            new.call,
            &new.image,
            &new.goal,
            &workspace,
            &new.cwd,
            new.mode.map(ForkMode::as_str),
            to_json(&new.budget)?,
            new.now_ms,
            urgency.priority,
            urgency.interactive,
            urgency.deadline_ms,
        ],
    )
    .map_err(failed)?;
    let pid = Pid(tx.last_insert_rowid().unsigned_abs());
    if new.parent.is_none() {
        tx.execute("UPDATE process SET run = pid WHERE pid = ?1", [pid.0])
            .map_err(failed)?;
    }
    let now = Now {
        wall_ms: new.now_ms,
        steady: new.steady.clone(),
    };
    for (grant, parent) in &new.grants {
        let issue = Issue {
            subject: pid,
            parent: *parent,
            issuer: &new.issuer,
            call: None,
            now: &now,
        };
        issue_to(tx, &issue, grant)?;
    }
    for grant in objects::own_grants(pid, new.parent.is_none()) {
        issue(tx, pid, &grant, None, "kernel", new.now_ms)?;
    }
    let run = new.parent.as_ref().map_or(pid.0, |p| p.run);
    let process = At {
        pid,
        run,
        seq: 0,
        name: "created",
        now_ms: new.now_ms,
        audit: Audit::default(),
    };
    images::remember(tx, &new.image, &process)?;
    if let Some(history) = &new.history {
        lives::inherit(tx, pid, history, first_call, new.now_ms)?;
    }
    let forked = match (new.mode, &new.history) {
        (Some(mode), Some(history)) => {
            format!(", forked ({}) {}", mode.as_str(), history.words())
        }
        (Some(mode), None) => format!(", {}", mode.as_str()),
        (None, Some(history)) => format!(", {}", history.words()),
        (None, None) => String::new(),
    };
    let detail = format!(
        "image {}, parent {}, workspace {}{forked}",
        new.image,
        new.parent
            .as_ref()
            .map_or("none".to_owned(), |p| p.pid.to_string()),
        crate::escape::shown(&workspace),
    );
    let name = "created";
    append(
        tx,
        &Row {
            at_ms: new.now_ms,
            pid,
            run,
            seq: None,
            kind: "process",
            name,
            detail,
            audit: about(pid),
        },
    )?;
    let made = select(tx, "WHERE pid = ?1", Some(pid.0))?.pop();
    made.map(|process| (process, true))
        .ok_or_else(|| SysError::new(Code::Internal, "a process just made is not there"))
}

fn end(tx: &Tx<'_>, process: &ProcessInfo, exit: &Exit) -> Result<Vec<u64>, SysError> {
    let now = process.ended_ms.unwrap_or_default();
    let ended = tx
        .execute(
            "UPDATE process SET state = ?2, ended_ms = ?3, exit = ?4, tokens = ?5, paused = 0,
               used = json_set(used, '$.total', json(?6))
             WHERE pid = ?1 AND state NOT IN ('exited','failed','killed')",
            (
                process.pid.0,
                word(&process.state),
                now,
                to_json(exit)?,
                process.tokens,
                to_json(&process.used)?,
            ),
        )
        .map_err(failed)?;
    if ended == 0 {
        return Ok(Vec::new());
    }
    let mut waiting = tx
        .prepare("SELECT id FROM approval WHERE pid = ?1 AND state IN ('pending','approved')")
        .map_err(failed)?;
    let lapsed: Vec<u64> = waiting
        .query_map([process.pid.0], |r| r.get(0))
        .and_then(Iterator::collect)
        .map_err(failed)?;
    let pid = process.pid.0;
    for sql in [
        "UPDATE approval SET state = 'lapsed', view = NULL WHERE pid = ?1 AND state IN ('pending','approved')",
        "UPDATE question SET state = 'lapsed', view = NULL WHERE pid = ?1 AND state = 'pending'",
        "UPDATE question SET answer = NULL WHERE pid = ?1",
        "UPDATE call SET state = 'failed', detail = 'ended with its process' WHERE pid = ?1 AND state IN ('intent','waiting')",
        "UPDATE capability SET status = 'ended' WHERE subject = ?1 AND status = 'active'",
        // What a call changed stands, and a process that goes on from a checkpoint is told so.
        "DELETE FROM payload WHERE pid = ?1 AND NOT
           (EXISTS (SELECT 1 FROM checkpoint WHERE pid = ?1)
            AND EXISTS (SELECT 1 FROM change WHERE change.call = payload.call))",
        "UPDATE message SET body = NULL WHERE to_pid = ?1",
    ] {
        tx.execute(sql, [pid]).map_err(failed)?;
    }
    objects::free(tx, process.pid, process.run, now)?;
    let detail = match &exit.error {
        Some(error) => format!(
            "{}: {}",
            error.code.as_str(),
            crate::escape::shown(&error.message)
        ),
        None => format!("ok {}, answer of {} bytes", exit.ok, exit.answer.len()),
    };
    append(
        tx,
        &Row {
            at_ms: now,
            pid: process.pid,
            run: process.run,
            seq: None,
            kind: "process",
            name: process.state.as_str(),
            detail,
            audit: about(process.pid),
        },
    )?;
    Ok(lapsed)
}

pub(super) fn select(
    db: &Connection,
    rest: &str,
    key: Option<u64>,
) -> Result<Vec<ProcessInfo>, SysError> {
    let mut found = db
        .prepare_cached(&format!("SELECT {COLUMNS} FROM process {rest}"))
        .map_err(failed)?;
    let read = |r: &rusqlite::Row<'_>| {
        let words = Words {
            state: r.get(7)?,
            mode: r.get(15)?,
            budget: r.get(16)?,
            used: r.get(17)?,
        };
        let info = ProcessInfo {
            pid: Pid(r.get(0)?),
            parent: r.get::<_, Option<u64>>(1)?.map(Pid),
            run: r.get(2)?,
            after: r.get(3)?,
            image: r.get(4)?,
            goal: r.get(5)?,
            workspace: PathBuf::from(r.get::<_, String>(6)?),
            state: ProcessState::Created,
            tokens: r.get(8)?,
            created_ms: r.get(9)?,
            ended_ms: r.get(10)?,
            steps: r.get(11)?,
            paused: r.get(12)?,
            cwd: r.get(13)?,
            status: r.get(14)?,
            mode: None,
            budget: Budget::default(),
            used: Used::default(),
            urgency: Urgency {
                priority: r.get(18)?,
                interactive: r.get(19)?,
                deadline_ms: r.get(20)?,
            },
        };
        Ok((info, words))
    };
    let rows: Vec<_> = match key {
        Some(key) => found.query_map([key], read).and_then(Iterator::collect),
        None => found.query_map([], read).and_then(Iterator::collect),
    }
    .map_err(failed)?;
    rows.into_iter()
        .map(|(info, words)| words.into(info))
        .collect()
}

/// Columns of a process that are words or JSON.
struct Words {
    state: String,
    mode: Option<String>,
    budget: String,
    used: String,
}

/// What is kept of a process's use: its own, and with all below it once it has ended.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Kept {
    ms: u64,
    money_micros: u64,
    total: Option<Used>,
}

impl Words {
    fn into(self, info: ProcessInfo) -> Result<ProcessInfo, SysError> {
        let state: ProcessState = from_word(self.state)?;
        let kept: Kept = from_json(&self.used)?;
        let used = kept.total.unwrap_or(Used {
            tokens: info.tokens,
            calls: u64::from(info.steps),
            seconds: kept.ms / 1000,
            money_micros: kept.money_micros,
            children: 0,
        });
        let status = match state.is_final() {
            true => String::new(),
            false => info.status,
        };
        Ok(ProcessInfo {
            state,
            status,
            used,
            mode: self.mode.map(from_word).transpose()?,
            budget: from_json(&self.budget)?,
            ..info
        })
    }
}

fn exit_of(db: &Connection, pid: Pid) -> Result<Option<Exit>, SysError> {
    let text: Option<Option<String>> = db
        .query_row("SELECT exit FROM process WHERE pid = ?1", [pid.0], |r| {
            r.get(0)
        })
        .optional()
        .map_err(failed)?;
    text.flatten().map(|t| from_json(&t)).transpose()
}

/// A row about a process as a whole.
fn about(pid: Pid) -> Audit {
    Audit {
        resource: Some(format!("process {pid}")),
        ..Audit::default()
    }
}
