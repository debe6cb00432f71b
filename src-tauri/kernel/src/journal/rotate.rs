//! A journal that stays bounded: its older rows go to an archive beside it, and the chain goes on
//! over both.
//!
//! The archive is whole and on disk before the first row goes. Rows go a few at a time, so that
//! nobody waits for long; a program that ends in between goes on with it later.
#![allow(
    clippy::disallowed_methods,
    reason = "Steward's own files: the journal's archives, never a person's"
)]

use std::path::Path;
use std::sync::atomic::Ordering;

use rusqlite::Connection;

use super::{Journal, Tx, ends, failed, insert, schema, segments};
use crate::audit::chain::{Columns, Hash, Head};
use crate::audit::query::{self, COLUMNS};
use crate::error::{Code, SysError};
use crate::executor;

/// Rows that go in one commit.
const CHUNK: u64 = 2_000;
/// Rows that are added between two looks at the size.
pub(super) const LOOK: u64 = 10_000;

/// When older rows of the journal go to an archive, and which stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Bytes of the database, above which rows go.
    pub bytes: u64,
    /// The newest rows, which stay.
    pub rows: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            bytes: 512 * 1024 * 1024,
            rows: 100_000,
        }
    }
}

/// Rows that are to go, up to `end`, into the archive before `end.segment`.
struct Move {
    base: Head,
    end: Head,
    archived: bool,
}

impl Journal {
    /// Sees to it that the journal is looked at, if enough was added since the last time.
    pub(super) fn keep_bounded(&self) {
        let inner = &self.inner;
        let rows = inner.writer.rows();
        let looked = inner.looked.load(Ordering::Relaxed);
        if rows < looked + LOOK || inner.rotating.swap(true, Ordering::AcqRel) {
            return;
        }
        inner.looked.store(rows, Ordering::Relaxed);
        let journal = self.clone();
        inner.executor.spawn(Box::pin(async move {
            if let Err(error) = journal.rotate(journal.retention()).await {
                tracing::warn!(%error, "the journal's older rows were not archived");
            }
            journal.inner.rotating.store(false, Ordering::Release);
        }));
    }

    /// Moves older rows to an archive where the journal is larger than it may be; how many went.
    pub(crate) async fn rotate(&self, retention: Retention) -> Result<u64, SysError> {
        let path = self.inner.path.clone();
        let planned = self.query(move |db| plan(db, &path, retention)).await?;
        let Some(Move {
            base,
            end,
            archived,
        }) = planned
        else {
            return Ok(0);
        };
        if !archived {
            let path = self.inner.path.clone();
            let write = move || write_archive(&path, &base, &end);
            executor::blocking(&self.inner.executor, "an archive of the journal", write).await??;
        }
        let mut at = base.sequence;
        while at < end.sequence {
            at = self.write(move |tx| forget(tx, &end)).await?;
        }
        Ok(end.sequence - base.sequence)
    }
}

fn plan(db: &Connection, path: &Path, retention: Retention) -> Result<Option<Move>, SysError> {
    let base = ends::base(db)?;
    // What an earlier program began.
    let before = segments::archive(path, base.segment.saturating_sub(1));
    if base.segment > 1 && before.exists() {
        let (sequence, hash) = ends::last(&segments::open_reader(&before)?)?;
        if sequence > base.sequence {
            let end = end(&base, base.segment, sequence, hash);
            return Ok(Some(Move {
                base,
                end,
                archived: true,
            }));
        }
    }
    let pragma = |name| -> Result<u64, SysError> {
        db.pragma_query_value(None, name, |r| r.get(0))
            .map_err(failed)
    };
    let used = pragma("page_count")?.saturating_sub(pragma("freelist_count")?);
    let (last, _) = ends::last(db)?;
    let cut = last.saturating_sub(retention.rows.max(1));
    let goes = cut.saturating_sub(base.sequence);
    // An archive for a few rows is worth nothing.
    if used * pragma("page_size")? <= retention.bytes || goes <= retention.rows / 10 {
        return Ok(None);
    }
    let hash = hash_at(db, cut)?;
    Ok(Some(Move {
        base,
        end: end(&base, base.segment + 1, cut, hash),
        archived: false,
    }))
}

fn end(base: &Head, segment: u64, sequence: u64, hash: Hash) -> Head {
    Head {
        segment,
        sequence,
        count: base
            .count
            .saturating_add(sequence.saturating_sub(base.sequence)),
        hash,
    }
}

fn hash_at(db: &Connection, id: u64) -> Result<Hash, SysError> {
    db.query_row("SELECT hash FROM journal WHERE id = ?1", [id], |r| {
        r.get(0).map(Hash)
    })
    .map_err(failed)
}

/// Writes the rows after `base` up to `end` into an archive of their own, whole or not at all.
fn write_archive(journal: &Path, base: &Head, end: &Head) -> Result<(), SysError> {
    let file = segments::archive(journal, base.segment);
    let part = file.with_extension("part");
    let unwritten = |e: std::io::Error| {
        SysError::new(
            Code::Unavailable,
            format!("cannot write an archive of the journal: {e}"),
        )
        .hint("make room on the disk of the data directory; the rows stay where they are")
    };
    if part.exists() {
        std::fs::remove_file(&part).map_err(unwritten)?;
    }
    let from = segments::open_reader(journal)?;
    let to = Connection::open(&part).map_err(failed)?;
    to.execute_batch(&format!(
        "PRAGMA synchronous = FULL; BEGIN; {}",
        schema::archive()
    ))
    .map_err(failed)?;
    ends::set_base(&to, base)?;
    let sql = format!("SELECT {COLUMNS} FROM journal WHERE id > ?1 AND id <= ?2 ORDER BY id");
    let mut found = from.prepare(&sql).map_err(failed)?;
    let rows = found
        .query_map([base.sequence, end.sequence], query::row)
        .map_err(failed)?;
    for row in rows {
        let row = row.map_err(failed)?;
        insert(&to, &Columns::from(&row), &row.hash)?;
    }
    to.execute_batch("COMMIT").map_err(failed)?;
    to.close().map_err(|(_, e)| failed(e))?;
    std::fs::rename(&part, &file).map_err(unwritten)?;
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    std::fs::File::open(folder.unwrap_or(Path::new(".")))
        .and_then(|folder| folder.sync_all())
        .map_err(unwritten)
}

/// Takes some more of the rows out that the archive has. Nobody else can take rows out: the rule
/// that forbids it is back when this is committed.
fn forget(tx: &Tx<'_>, end: &Head) -> Result<u64, SysError> {
    let base = ends::base(tx)?;
    let to = end.sequence.min(base.sequence + CHUNK);
    if to <= base.sequence {
        return Ok(end.sequence);
    }
    let base = self::end(&base, end.segment, to, hash_at(tx, to)?);
    tx.execute_batch("DROP TRIGGER journal_is_append_only_delete")
        .and_then(|()| tx.execute("DELETE FROM journal WHERE id <= ?1", [to]))
        .and_then(|_| tx.execute_batch(schema::NO_DELETE))
        .map_err(failed)?;
    ends::set_base(tx, &base)?;
    Ok(to)
}
