//! How an approval ends: by an answer, or because its time is over.

use super::super::calls::{CallId, place};
use super::super::capabilities::issue;
use super::super::processes::set_process;
use super::super::{Audit, Row, Tx, append, failed, from_json};
use super::{Answered, ApprovalRow, ApprovalState, Decision, already, approval};
use crate::capability::{Grant, Now, Resource, Right};
use crate::error::{Code, SysError};
use crate::human::{self, Answer, Approval, NewPolicy, Policy};
use crate::process::ProcessState;
use crate::provider::Digest;

pub(super) fn decide(
    tx: &Tx<'_>,
    id: u64,
    answer: &Answer,
    digest: String,
    by: &str,
    now: &Now,
) -> Result<Answered, SysError> {
    let Some(row) = approval(tx, "WHERE id = ?1", id)? else {
        return Err(
            SysError::new(Code::NotFound, format!("there is no approval `{id}`"))
                .hint("list those that wait with `steward approvals`"),
        );
    };
    if row.state != ApprovalState::Pending {
        return Ok(Answered::TooLate(already(tx, id, row.state)?));
    }
    if row.left_ms(&now.steady) == Some(0)
        && let Some(call) = expire(tx, id, now)?
    {
        return Ok(Answered::Expired(call));
    }
    if row.digest != digest {
        return Err(SysError::new(
            Code::Conflict,
            format!("approval `{id}` is about something else than what was shown"),
        )
        .hint("look at it again and answer what it asks now"));
    }
    let (call, view): (u64, Option<String>) = tx
        .query_row("SELECT call, view FROM approval WHERE id = ?1", [id], |r| {
            Ok((r.get(0)?, r.get(1)?))
        })
        .map_err(failed)?;
    let (pid, run, seq, name) = place(tx, call)?;
    let standing = match answer {
        Answer::Always { scope } => Some(always(tx, id, view.as_deref(), scope, by, now)?),
        Answer::Yes | Answer::No => None,
    };
    let (state, capability, decision) = match answer {
        Answer::No => ("denied", None, Decision::Denied),
        Answer::Yes | Answer::Always { .. } => {
            let exactly = Resource::Exactly {
                digest: Digest(digest),
            };
            let grant = Grant::allow(exactly, [Right::Write, Right::Delete]).times(1);
            let once = issue(tx, pid, &grant, row.capability, "person", now.wall_ms)?;
            ("approved", Some(once), Decision::Approved(once))
        }
    };
    set_process(tx, pid, ProcessState::Runnable)?;
    tx.execute(
        "UPDATE approval SET state = ?2, capability = ?3, decided_ms = ?4, decided_by = ?5,
         standing = ?6, view = NULL WHERE id = ?1",
        (id, state, capability, now.wall_ms, by, standing),
    )
    .map_err(failed)?;
    let once = capability.map_or(String::new(), |c| format!(", capability {c} for one use"));
    let always = standing.map_or(String::new(), |s| format!(", standing grant {s}"));
    let shown = view.and_then(|view| from_json::<Approval>(&view).ok());
    let audit = Audit {
        // What a process asks in its own words is content, and so are titles.
        resource: shown
            .filter(|shown| shown.kind != human::EffectKind::Other)
            .map(|shown| shown.path)
            .filter(|path| path.starts_with('/')),
        capability,
        decision: Some(if capability.is_some() { "yes" } else { "no" }),
        by: Some(by.to_owned()),
        ..Audit::default()
    };
    let row = Row {
        at_ms: now.wall_ms,
        pid,
        run,
        seq: Some(seq),
        kind: "decision",
        name: &name,
        detail: format!("approval {id}: {state} by {by}{once}{always}"),
        audit,
    };
    append(tx, &row)?;
    Ok(Answered::Counted(call, decision))
}

/// Sets the policy that an "always" stands for: one of the scopes that were shown.
fn always(
    tx: &Tx<'_>,
    id: u64,
    view: Option<&str>,
    scope: &str,
    by: &str,
    now: &Now,
) -> Result<u64, SysError> {
    let shown: Approval = from_json(view.unwrap_or_default())?;
    let offered = shown.scopes.into_iter().find(|offer| offer.id == scope);
    let Some(offer) = offered else {
        let scope = crate::escape::shown(scope);
        let message = format!("approval `{id}` offers no scope `{scope}`");
        return Err(SysError::new(Code::Invalid, message).hint("choose one that it shows"));
    };
    let new = NewPolicy {
        action: shown.action,
        scope: offer.scope,
        policy: Policy::AlwaysAllow,
    };
    super::super::standing::stand(tx, &new, &offer.words, by, now.wall_ms)
}

/// Ends the wait for an answer, as a refusal that says so.
pub(super) fn expire(tx: &Tx<'_>, id: u64, now: &Now) -> Result<Option<CallId>, SysError> {
    let row = approval(tx, "WHERE id = ?1", id)?;
    let is_due = |row: &ApprovalRow| {
        row.state == ApprovalState::Pending && row.left_ms(&now.steady) == Some(0)
    };
    if !row.as_ref().is_some_and(is_due) {
        return Ok(None);
    }
    tx.execute(
        "UPDATE approval SET state = 'expired', decided_ms = ?2, decided_by = 'nobody', view = NULL
         WHERE id = ?1",
        (id, now.wall_ms),
    )
    .map_err(failed)?;
    let call = tx
        .query_row("SELECT call FROM approval WHERE id = ?1", [id], |r| {
            r.get(0)
        })
        .map_err(failed)?;
    let (pid, run, seq, name) = place(tx, call)?;
    set_process(tx, pid, ProcessState::Runnable)?;
    let row = Row {
        at_ms: now.wall_ms,
        pid,
        run,
        seq: Some(seq),
        kind: "decision",
        name: &name,
        detail: format!("approval {id}: expired without an answer"),
        audit: Audit {
            decision: Some("expired"),
            ..Audit::default()
        },
    };
    append(tx, &row)?;
    Ok(Some(call))
}
