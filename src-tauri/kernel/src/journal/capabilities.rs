//! Rows about capabilities: issued, held, used, taken back.

use rusqlite::{Connection, OptionalExtension};

use super::calls::{At, Authority};
use super::{
    Audit, CallId, Journal, Row, Tx, append, failed, from_json, from_word, standing, to_json,
};
use crate::capability::{
    Capability, CapabilityId, Grant, Lease, Now, Stance, Status, Steady, narrow,
};
use crate::error::{Code, SysError};
use crate::human::policy;
use crate::process::Pid;

/// Capabilities that a process holds at most.
const HELD_MOST: u64 = 1024;

/// Who gets a capability, from whom.
pub(crate) struct Issue<'a> {
    pub subject: Pid,
    /// What it is derived from.
    pub parent: Option<CapabilityId>,
    pub issuer: &'a str,
    /// The call that issues it, so that it is issued once however often the call is run again.
    pub call: Option<CallId>,
    pub now: &'a Now,
}

impl Journal {
    /// Active capabilities a process holds: those whose whole chain is active.
    pub(crate) async fn held(&self, pid: Pid) -> Result<Vec<Capability>, SysError> {
        self.read(move |db| held(db, pid)).await
    }

    /// Every capability a process has been given, each as it stands; the latest thousand.
    pub(crate) async fn given(&self, pid: Pid) -> Result<Vec<Capability>, SysError> {
        self.read(move |db| given(db, pid)).await
    }

    /// One capability as it stands.
    pub(crate) async fn capability(
        &self,
        id: CapabilityId,
    ) -> Result<Option<Capability>, SysError> {
        self.read(move |db| one(db, id)).await
    }

    /// Those who held what a capability was derived from, nearest first, its own holder before them.
    pub(crate) async fn line(&self, id: CapabilityId) -> Result<Vec<Pid>, SysError> {
        self.read(move |db| {
            let sql = "WITH RECURSIVE chain(parent, subject, depth) AS (
                   SELECT parent, subject, 0 FROM capability WHERE id = ?1
                   UNION ALL
                   SELECT c.parent, c.subject, depth + 1
                   FROM capability c JOIN chain ON c.id = chain.parent)
                 SELECT subject FROM chain ORDER BY depth";
            let mut found = db.prepare_cached(sql).map_err(failed)?;
            let pids = found.query_map([id], |r| r.get(0).map(Pid));
            pids.and_then(Iterator::collect).map_err(failed)
        })
        .await
    }

    /// Takes a capability back, and with it all that were derived from it. False where there is
    /// no such one that counts.
    pub(crate) async fn revoke(
        &self,
        id: CapabilityId,
        by: String,
        now_ms: u64,
    ) -> Result<bool, SysError> {
        self.write(move |tx| revoke(tx, id, &by, now_ms)).await
    }

    /// Issues what the person said yes to (or allows without asking), once for this call. Nothing
    /// where the yes was used or taken back already, or is missing.
    pub(crate) async fn issue_requested(
        &self,
        call: CallId,
        at: At,
        by: Authority,
        grant: Grant,
    ) -> Result<Option<CapabilityId>, SysError> {
        self.write(move |tx| {
            if let Some(id) = issued_by(tx, call)?.first() {
                return Ok(Some(*id));
            }
            if !authorised(tx, call, &at, &by)? {
                return Ok(None);
            }
            let issue = Issue {
                subject: at.pid,
                parent: None,
                issuer: "person",
                call: Some(call),
                now: &by.now,
            };
            let id = issue_to(tx, &issue, &grant)?;
            append(
                tx,
                &at.row("executing", format!("capability {id}: {grant}")),
            )?;
            Ok(Some(id))
        })
        .await
    }

    /// Passes grants on to another process, once for this call; `open` is false where the receiver
    /// may be given nothing that takes away from it.
    pub(crate) async fn delegate(
        &self,
        call: CallId,
        at: At,
        to: Pid,
        wanted: Vec<Grant>,
        below: bool,
        now: Now,
    ) -> Result<Vec<CapabilityId>, SysError> {
        self.write(move |tx| {
            let before = issued_by(tx, call)?;
            if !before.is_empty() {
                return Ok(before);
            }
            let given = narrow(&held(tx, at.pid)?, &wanted, &now)?;
            if !below && given.iter().any(|(grant, _)| grant.stance == Stance::Deny) {
                let message = format!(
                    "a deny lies over what would be passed on, and process `{to}` is no descendant"
                );
                return Err(SysError::new(Code::Denied, message)
                    .hint("pass on what no deny lies over, or pass it to a child"));
            }
            let issuer = format!("pid {}", at.pid);
            let mut ids = Vec::new();
            for (grant, from) in &given {
                let issue = Issue {
                    subject: to,
                    parent: Some(*from),
                    issuer: &issuer,
                    call: Some(call),
                    now: &now,
                };
                let id = issue_to(tx, &issue, grant)?;
                append(
                    tx,
                    &at.row(
                        "executing",
                        format!("capability {id} to process {to}: {grant}"),
                    ),
                )?;
                ids.push(id);
            }
            Ok(ids)
        })
        .await
    }

    /// Issues grants of the kernel's own making to a process, once for this call where there is one.
    pub(crate) async fn grant(
        &self,
        to: Pid,
        grants: Vec<Grant>,
        from: Option<(CallId, At, CapabilityId)>,
        issuer: String,
        now: Now,
    ) -> Result<Vec<CapabilityId>, SysError> {
        self.write(move |tx| {
            if let Some((call, ..)) = &from {
                let before = issued_by(tx, *call)?;
                if !before.is_empty() {
                    return Ok(before);
                }
            }
            let mut ids = Vec::new();
            for grant in &grants {
                let issue = Issue {
                    subject: to,
                    parent: from.as_ref().map(|(.., parent)| *parent),
                    issuer: &issuer,
                    call: from.as_ref().map(|(call, ..)| *call),
                    now: &now,
                };
                let id = issue_to(tx, &issue, grant)?;
                let detail = format!("capability {id} to process {to}: {grant}");
                match &from {
                    Some((_, at, _)) => append(tx, &at.row("executing", detail))?,
                    None => told(tx, to, "capability.grant", detail, &issuer, now.wall_ms)?,
                }
                ids.push(id);
            }
            Ok(ids)
        })
        .await
    }
}

/// Whether a call may act now: its rights are checked, and what it uses up is spent, in this
/// transaction. False where the person's yes is missing, was used or was taken back.
pub(super) fn authorised(
    tx: &Tx<'_>,
    call: CallId,
    at: &At,
    by: &Authority,
) -> Result<bool, SysError> {
    let held = held(tx, at.pid)?;
    let standing = standing::active(tx)?;
    let ruling = policy::rule(&held, &standing, &by.needs, &by.act, &by.now)?;
    let asks = ruling.verdict.stance == Stance::Ask;
    let stands = |once| held.iter().any(|capability| capability.id == once);
    if by.once.map_or(asks, |once| !stands(once)) {
        return Ok(false);
    }
    if let Some(once) = by.once {
        if !spend(tx, once)? {
            return Ok(false);
        }
        tx.execute(
            "UPDATE approval SET state = 'used' WHERE call = ?1 AND state = 'approved'",
            [call],
        )
        .map_err(failed)?;
    }
    spend_all(tx, &ruling.counted)?;
    if let (None, Some(standing)) = (by.once, ruling.verdict.standing) {
        standing::count(tx, standing)?;
    }
    Ok(true)
}

/// Takes a use of each, or refuses.
pub(super) fn spend_all(tx: &Tx<'_>, counted: &[CapabilityId]) -> Result<(), SysError> {
    for id in counted {
        if !spend(tx, *id)? {
            let message = format!("the uses of capability {id} are spent");
            return Err(SysError::new(Code::Denied, message).hint("ask the person to grant more"));
        }
    }
    Ok(())
}

/// Takes one use of a capability and of all that it was derived from, as far as they are counted.
/// False where none is left.
fn spend(tx: &Tx<'_>, id: CapabilityId) -> Result<bool, SysError> {
    const CHAIN: &str = "WITH RECURSIVE chain(id, parent) AS (
           SELECT id, parent FROM capability WHERE id = ?1
           UNION ALL
           SELECT c.id, c.parent FROM capability c JOIN chain ON c.id = chain.parent)";
    let left: bool = tx
        .query_row(
            &format!(
                "{CHAIN} SELECT (SELECT status = 'active' FROM capability WHERE id = ?1)
                   AND NOT EXISTS (SELECT 1 FROM capability
                     WHERE id IN (SELECT id FROM chain) AND uses_left = 0)"
            ),
            [id],
            |r| r.get(0),
        )
        .map_err(failed)?;
    if left {
        tx.execute(
            &format!(
                "{CHAIN} UPDATE capability SET uses_left = uses_left - 1,
                   status = CASE WHEN uses_left = 1 AND status = 'active' THEN 'spent' ELSE status END
                 WHERE id IN (SELECT id FROM chain) AND uses_left IS NOT NULL"
            ),
            [id],
        )
        .map_err(failed)?;
    }
    Ok(left)
}

fn revoke(tx: &Tx<'_>, id: CapabilityId, by: &str, now_ms: u64) -> Result<bool, SysError> {
    // One whose holder has ended may still have children that count.
    let changed = tx
        .execute(
            "UPDATE capability SET status = 'revoked' WHERE id = ?1 AND status IN ('active','ended')",
            [id],
        )
        .map_err(failed)?;
    if changed == 1 {
        let subject = tx
            .query_row("SELECT subject FROM capability WHERE id = ?1", [id], |r| {
                r.get(0)
            })
            .map_err(failed)?;
        let detail = format!("capability {id} revoked by {by}");
        told(tx, Pid(subject), "capability.revoke", detail, by, now_ms)?;
    }
    Ok(changed == 1)
}

/// Writes down what concerns a process and is no call of it.
fn told(
    tx: &Tx<'_>,
    pid: Pid,
    name: &str,
    detail: String,
    by: &str,
    at_ms: u64,
) -> Result<(), SysError> {
    let run = tx
        .query_row("SELECT run FROM process WHERE pid = ?1", [pid.0], |r| {
            r.get(0)
        })
        .map_err(failed)?;
    let audit = Audit {
        by: Some(by.to_owned()),
        ..Audit::default()
    };
    let row = Row {
        at_ms,
        pid,
        run,
        seq: None,
        kind: "process",
        name,
        detail,
        audit,
    };
    append(tx, &row)
}

pub(super) fn held(db: &Connection, pid: Pid) -> Result<Vec<Capability>, SysError> {
    let sql = format!("{CAPABILITY} WHERE subject = ?1 AND status = 'active' ORDER BY id");
    let mut held = select(db, &sql, pid.0)?;
    held.retain(|capability| capability.status == Status::Active);
    Ok(held)
}

fn given(db: &Connection, pid: Pid) -> Result<Vec<Capability>, SysError> {
    let sql = format!("{CAPABILITY} WHERE subject = ?1 ORDER BY id DESC LIMIT {HELD_MOST}");
    let mut all = select(db, &sql, pid.0)?;
    all.reverse();
    Ok(all)
}

fn one(db: &Connection, id: CapabilityId) -> Result<Option<Capability>, SysError> {
    Ok(select(db, &format!("{CAPABILITY} WHERE id = ?1"), id)?.pop())
}

/// The capabilities that a call has issued.
fn issued_by(db: &Connection, call: CallId) -> Result<Vec<CapabilityId>, SysError> {
    let mut found = db
        .prepare_cached("SELECT id FROM capability WHERE call = ?1 ORDER BY id")
        .map_err(failed)?;
    let ids = found.query_map([call], |r| r.get(0));
    ids.and_then(Iterator::collect).map_err(failed)
}

/// Issues a grant that has no lease of its own; it has that of what it is derived from.
pub(super) fn issue(
    tx: &Tx<'_>,
    subject: Pid,
    grant: &Grant,
    parent: Option<CapabilityId>,
    issuer: &str,
    now_ms: u64,
) -> Result<CapabilityId, SysError> {
    let lease = parent.map(|parent| lease_of(tx, parent)).transpose()?;
    insert(
        tx,
        subject,
        grant,
        parent,
        issuer,
        now_ms,
        None,
        lease.flatten(),
    )
}

/// Issues a grant.
pub(super) fn issue_to(
    tx: &Tx<'_>,
    issue: &Issue<'_>,
    grant: &Grant,
) -> Result<CapabilityId, SysError> {
    let Issue {
        subject,
        parent,
        issuer,
        call,
        now,
    } = *issue;
    let count: u64 = tx
        .query_row(
            "SELECT COUNT(*) FROM capability WHERE subject = ?1 AND status = 'active'",
            [subject.0],
            |r| r.get(0),
        )
        .map_err(failed)?;
    if count >= HELD_MOST {
        let message =
            format!("process `{subject}` holds `{HELD_MOST}` capabilities, the most there may be");
        return Err(SysError::new(Code::Limit, message).hint("take back what is not needed"));
    }
    let from = parent.map(|parent| lease_of(tx, parent)).transpose()?;
    let lease = Lease::granted(grant, from.flatten().as_ref(), &now.steady);
    insert(tx, subject, grant, parent, issuer, now.wall_ms, call, lease)
}

#[allow(clippy::too_many_arguments, reason = "the columns of one row")]
fn insert(
    tx: &Tx<'_>,
    subject: Pid,
    grant: &Grant,
    parent: Option<CapabilityId>,
    issuer: &str,
    now_ms: u64,
    call: Option<CallId>,
    lease: Option<Lease>,
) -> Result<CapabilityId, SysError> {
    let ends = lease.map(|lease| lease.ends);
    tx.execute(
        "INSERT INTO capability (subject, grant_, parent, issuer, call, issued_ms, expires, boot,
           uses_left, status)
         VALUES (?,?,?,?,?,?,?,?,?,'active')",
        (
            subject.0,
            to_json(grant)?,
            parent,
            issuer,
            call,
            now_ms,
            ends.as_ref().map(|ends| ends.ms),
            ends.as_ref().map(|ends| &ends.boot),
            grant.uses,
        ),
    )
    .map_err(failed)?;
    Ok(tx.last_insert_rowid().unsigned_abs())
}

fn lease_of(db: &Connection, id: CapabilityId) -> Result<Option<Lease>, SysError> {
    db.query_row(
        "SELECT expires, boot FROM capability WHERE id = ?1",
        [id],
        |r| Ok(lease(r.get(0)?, r.get(1)?)),
    )
    .optional()
    .map(Option::flatten)
    .map_err(failed)
}

fn lease(expires: Option<u64>, boot: Option<String>) -> Option<Lease> {
    let (ms, boot) = expires.zip(boot)?;
    let ends = Steady { boot, ms };
    Some(Lease { ends })
}

/// With how the chain above stands: a revocation or a spent use there reaches down, the end of a
/// holder does not.
const CAPABILITY: &str =
    "SELECT id, subject, grant_, parent, issuer, issued_ms, uses_left, status, expires, boot,
       CASE WHEN parent IS NULL THEN NULL ELSE (
         WITH RECURSIVE chain(id, parent, status, uses_left) AS (
           SELECT a.id, a.parent, a.status, a.uses_left FROM capability a
           WHERE a.id = capability.parent
           UNION ALL
           SELECT c.id, c.parent, c.status, c.uses_left
           FROM capability c JOIN chain ON c.id = chain.parent)
         SELECT CASE WHEN status = 'revoked' THEN 'revoked' ELSE 'spent' END FROM chain
         WHERE status IN ('revoked','spent') OR uses_left = 0 LIMIT 1) END
     FROM capability";

fn select(db: &Connection, sql: &str, key: u64) -> Result<Vec<Capability>, SysError> {
    let mut found = db.prepare_cached(sql).map_err(failed)?;
    type Columns = (Capability, String, Option<u32>, String, Option<String>);
    let rows: Vec<Columns> = found
        .query_map([key], |r| {
            let capability = Capability {
                id: r.get(0)?,
                subject: Pid(r.get(1)?),
                grant: Grant::allow(crate::capability::Resource::Human, []),
                parent: r.get(3)?,
                issuer: r.get(4)?,
                issued_ms: r.get(5)?,
                lease: lease(r.get(8)?, r.get(9)?),
                status: Status::Active,
            };
            Ok((capability, r.get(2)?, r.get(6)?, r.get(7)?, r.get(10)?))
        })
        .and_then(Iterator::collect)
        .map_err(failed)?;
    rows.into_iter()
        .map(|(capability, grant, uses, status, above)| {
            let status: Status = from_word(status)?;
            let status = match (status, above) {
                (Status::Active, Some(above)) => from_word(above)?,
                (status, _) => status,
            };
            let grant = Grant {
                uses,
                ..from_json(&grant)?
            };
            Ok(Capability {
                grant,
                status,
                ..capability
            })
        })
        .collect()
}
