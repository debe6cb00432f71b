//! Where the chain of rows begins and ends in a database: the rows that went to an archive, the last
//! row, and the head that was signed last.

use rusqlite::{Connection, OptionalExtension};

use super::{Audit, Row, append, failed, from_json, to_json};
use crate::audit::chain::{Hash, Head, Sealed};
use crate::audit::verify::BREAK;
use crate::error::SysError;
use crate::process::Pid;
use crate::provider::{Judgement, Witness};

/// Where the rows of this database go on from.
const BASE: &str = "journal.base";
/// The head that was signed last.
const HEAD: &str = "journal.head";
/// By what name the journal tells of itself.
const ITSELF: &str = "journal";

fn meta(db: &Connection, key: &str) -> Result<Option<String>, SysError> {
    db.prepare_cached("SELECT value FROM meta WHERE key = ?1")
        .and_then(|mut found| found.query_row([key], |r| r.get(0)).optional())
        .map_err(failed)
}

fn set_meta(db: &Connection, key: &str, value: &str) -> Result<(), SysError> {
    db.prepare_cached(
        "INSERT INTO meta (key, value) VALUES (?,?)
         ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    )
    .and_then(|mut set| set.execute((key, value)))
    .map(drop)
    .map_err(failed)
}

/// Where the rows of a database go on from: the end of those that are in archives.
pub(crate) fn base(db: &Connection) -> Result<Head, SysError> {
    let text = meta(db, BASE)?;
    text.map_or(Ok(Head::EMPTY), |text| from_json(&text))
}

pub(super) fn set_base(db: &Connection, base: &Head) -> Result<(), SysError> {
    set_meta(db, BASE, &to_json(base)?)
}

/// The signed head that a database carries.
pub(crate) fn carried(db: &Connection) -> Result<Option<Sealed>, SysError> {
    meta(db, HEAD)?.map(|text| from_json(&text)).transpose()
}

pub(super) fn carry(db: &Connection, sealed: &Sealed) -> Result<(), SysError> {
    set_meta(db, HEAD, &to_json(sealed)?)
}

/// The last row's number and hash.
pub(super) fn last(db: &Connection) -> Result<(u64, Hash), SysError> {
    let found = db
        .prepare_cached("SELECT id, hash FROM journal ORDER BY id DESC LIMIT 1")
        .and_then(|mut last| {
            last.query_row((), |r| Ok((r.get(0)?, Hash(r.get(1)?))))
                .optional()
        })
        .map_err(failed)?;
    match found {
        Some(last) => Ok(last),
        None => base(db).map(|base| (base.sequence, base.hash)),
    }
}

/// Where the chain ends.
pub(super) fn head(db: &Connection) -> Result<Head, SysError> {
    let base = base(db)?;
    let (sequence, hash) = last(db)?;
    Ok(Head {
        segment: base.segment,
        sequence,
        count: base
            .count
            .saturating_add(sequence.saturating_sub(base.sequence)),
        hash,
    })
}

/// Compares the journal with what was signed of it, before anything is added to it. What does not
/// fit becomes a row of its own: it cannot be undone by signing what is there now.
pub(super) fn settle(db: &Connection, witness: &dyn Witness, now_ms: u64) -> Result<(), SysError> {
    let told = match broken(db, witness)? {
        Some(words) => !is_told(db, &words)? && tell(db, words, now_ms).map(|()| true)?,
        None => false,
    };
    let carried_before = carried(db).ok().flatten();
    let head = head(db)?;
    if !told
        && carried_before
            .as_ref()
            .is_some_and(|sealed| sealed.head == head)
    {
        return Ok(());
    }
    match witness.seal(&head) {
        Ok(Some(sealed)) => carry(db, &sealed),
        Ok(None) => Ok(()),
        Err(error) => {
            tracing::warn!(%error, "the journal's head was not signed");
            Ok(())
        }
    }
}

fn broken(db: &Connection, witness: &dyn Witness) -> Result<Option<String>, SysError> {
    let sealed = match witness.last() {
        Ok(Some(sealed)) => sealed,
        Ok(None) => match carried(db) {
            Ok(Some(sealed)) => sealed,
            Ok(None) => return Ok(None),
            Err(error) => {
                let words = format!(
                    "the signed head that it carries cannot be read: {}",
                    error.message
                );
                return Ok(Some(words));
            }
        },
        Err(error) => {
            let words = format!(
                "the signed head that is remembered cannot be read: {}",
                error.message
            );
            return Ok(Some(words));
        }
    };
    let signed = sealed.head.sequence;
    Ok(match witness.judge(&sealed) {
        Judgement::Genuine => differs(db, &sealed.head)?,
        Judgement::OtherKey => Some(format!(
            "its head at row `{signed}` was signed by another key"
        )),
        Judgement::Forged => Some(format!(
            "the signature of its head at row `{signed}` does not fit"
        )),
    })
}

/// In what way the rows that are there are not those that were signed.
fn differs(db: &Connection, signed: &Head) -> Result<Option<String>, SysError> {
    let Head { sequence, hash, .. } = *signed;
    let (ends, _) = last(db)?;
    if ends < sequence {
        return Ok(Some(format!(
            "it ended at row `{ends}`, row `{sequence}` was signed: rows were removed"
        )));
    }
    if sequence <= base(db)?.sequence {
        return Ok(None);
    }
    let found: Option<[u8; 32]> = db
        .query_row("SELECT hash FROM journal WHERE id = ?1", [sequence], |r| {
            r.get(0)
        })
        .optional()
        .map_err(failed)?;
    Ok((found != Some(hash.0))
        .then(|| format!("row `{sequence}` or one before it is not the one that was signed")))
}

fn is_told(db: &Connection, words: &str) -> Result<bool, SysError> {
    let last: Option<String> = db
        .query_row(
            "SELECT detail FROM journal WHERE name = ?1 AND kind = ?2 ORDER BY id DESC LIMIT 1",
            [ITSELF, BREAK],
            |r| r.get(0),
        )
        .optional()
        .map_err(failed)?;
    Ok(last.as_deref() == Some(words))
}

fn tell(db: &Connection, words: String, now_ms: u64) -> Result<(), SysError> {
    tracing::error!(%words, "the journal was changed from outside");
    let row = Row {
        at_ms: now_ms,
        pid: Pid(0),
        run: 0,
        seq: None,
        kind: BREAK,
        name: ITSELF,
        detail: words,
        audit: Audit::default(),
    };
    append(db, &row)
}
