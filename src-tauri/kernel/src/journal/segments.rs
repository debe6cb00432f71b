//! The journal over all its files: older rows are in archives beside the database.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::{ends, failed};
use crate::audit::chain::{Hash, Head};
use crate::audit::export::{Exporter, Format, Span};
use crate::audit::query::{self, COLUMNS, Place};
use crate::audit::verify::{Verification, Verifier};
use crate::audit::{Agent, JournalQuery, JournalRow};
use crate::error::{Code, SysError};
use crate::process::Pid;
use crate::provider::Witness;

/// The archive with a number, beside the database.
pub(super) fn archive(journal: &Path, number: u64) -> PathBuf {
    journal.with_extension(format!("{number:06}.db"))
}

pub(super) fn open_reader(path: &Path) -> Result<Connection, SysError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags).map_err(|e| {
        let shown = crate::escape::shown(&path.to_string_lossy());
        SysError::new(Code::Unavailable, format!("cannot read `{shown}`: {e}"))
            .hint("check that the file is there and yours to read")
    })?;
    // Rows of a large journal are looked at where the system has them already.
    db.pragma_update(None, "mmap_size", 1_u64 << 30)
        .and_then(|()| db.busy_timeout(std::time::Duration::from_secs(5)))
        .map_err(failed)?;
    Ok(db)
}

/// Rows of the journal, newest first, those of archives after those of the database.
pub(super) fn rows(
    db: &Connection,
    journal: &Path,
    wanted: &JournalQuery,
) -> Result<Vec<JournalRow>, SysError> {
    wanted.check()?;
    // While rows are moved, they are seen in one file or the other.
    db.execute_batch("SAVEPOINT rows").map_err(failed)?;
    let rows = rows_of_all(db, journal, wanted);
    db.execute_batch("RELEASE rows").map_err(failed)?;
    rows
}

fn rows_of_all(
    db: &Connection,
    journal: &Path,
    wanted: &JournalQuery,
) -> Result<Vec<JournalRow>, SysError> {
    let base = ends::base(db)?;
    let mut before = None;
    if let Some(id) = wanted.before_id {
        let place = find(db, journal, &base, id)?;
        before = Some(place.ok_or_else(|| {
            SysError::new(Code::NotFound, format!("there is no row `{id}`"))
                .hint("give the number of a row that was told")
        })?);
    }
    let mut rows = query::rows(db, wanted, before)?;
    for number in (1..base.segment).rev() {
        let left = wanted
            .limit
            .saturating_sub(u32::try_from(rows.len()).unwrap_or(u32::MAX));
        if left == 0 {
            break;
        }
        let file = archive(journal, number);
        if !file.exists() {
            continue;
        }
        let wanted = JournalQuery {
            limit: left,
            ..wanted.clone()
        };
        rows.extend(query::rows(&open_reader(&file)?, &wanted, before)?);
    }
    // Rows that are to go from the database are in the archive already.
    let mut seen = std::collections::HashSet::new();
    rows.retain(|row| seen.insert(row.id));
    Ok(rows)
}

fn find(db: &Connection, journal: &Path, base: &Head, id: u64) -> Result<Option<Place>, SysError> {
    if let Some(place) = query::place(db, id)? {
        return Ok(Some(place));
    }
    for number in (1..base.segment).rev() {
        let file = archive(journal, number);
        if file.exists()
            && let Some(place) = query::place(&open_reader(&file)?, id)?
        {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

/// Checks every row of a journal, and its end against what the witness signed. The journal may be in
/// use.
///
/// # Errors
/// There is no journal, or it is of a version that has no chain. What is wrong with its rows is no
/// error but what is told.
pub fn verify(journal: &Path, witness: &dyn Witness) -> Result<Verification, SysError> {
    // What is signed stands in the journal already: asked first, it is not newer than the rows.
    let mut verifier = Verifier::new(Head::EMPTY);
    verifier.expect_remembered(witness);
    let db = snapshot(journal)?;
    match ends::carried(&db) {
        Ok(Some(sealed)) => verifier.expect(sealed, witness),
        Ok(None) => {}
        Err(error) => verifier.torn("that it carries", &error),
    }
    let base = match ends::base(&db) {
        Ok(base) => base,
        Err(error) => {
            verifier.damaged(&error.message);
            Head::EMPTY
        }
    };
    for number in 1..base.segment {
        let file = archive(journal, number);
        let end = if number + 1 == base.segment {
            base
        } else {
            base_of(&archive(journal, number + 1)).unwrap_or(base)
        };
        verifier.segment(number);
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        match file.exists().then(|| open_reader(&file)) {
            None => verifier.segment_missing(&name, end),
            Some(Err(error)) => verifier.damaged(&error.message),
            Some(Ok(archive)) => {
                walk(&archive, &mut verifier);
                verifier.joint(&name, end, hash_at(&archive, end.sequence));
            }
        }
    }
    verifier.segment(base.segment);
    walk(&db, &mut verifier);
    Ok(verifier.finish())
}

fn base_of(file: &Path) -> Option<Head> {
    ends::base(&open_reader(file).ok()?).ok()
}

fn hash_at(db: &Connection, id: u64) -> Option<Hash> {
    let sql = "SELECT hash FROM journal WHERE id = ?1";
    db.query_row(sql, [id], |r| r.get(0).map(Hash)).ok()
}

/// The database as it stands, held still while it is read.
fn snapshot(journal: &Path) -> Result<Connection, SysError> {
    let db = open_reader(journal)?;
    let version: i64 = db
        .pragma_query_value(None, "user_version", |r| r.get(0))
        .map_err(failed)?;
    if version != super::SCHEMA_VERSION {
        let message = format!("the journal is of version `{version}`");
        return Err(SysError::new(Code::Invalid, message)
            .hint("start Steward once, so that it takes the journal over"));
    }
    db.execute_batch("BEGIN").map_err(failed)?;
    Ok(db)
}

/// Gives every row that comes after those looked at so far to the verifier, the broken ones too.
fn walk(db: &Connection, verifier: &mut Verifier) {
    if let Err(error) = try_walk(db, verifier) {
        verifier.damaged(&error.to_string());
    }
}

fn try_walk(db: &Connection, verifier: &mut Verifier) -> rusqlite::Result<()> {
    let sql = format!("SELECT {COLUMNS} FROM journal WHERE id > ?1 ORDER BY id");
    let mut found = db.prepare(&sql)?;
    let mut rows = found.query([verifier.sequence()])?;
    while let Some(r) = rows.next()? {
        match query::row(r) {
            Ok(row) => verifier.row(&row),
            Err(error) => {
                let hash = r.get("hash").ok().map(Hash);
                verifier.unreadable(r.get(0)?, hash, &error.to_string());
            }
        }
    }
    Ok(())
}

/// Writes the rows of a journal out, oldest first, those of archives before; how many there were.
/// The journal may be in use.
///
/// # Errors
/// The journal cannot be read, or what is written cannot be.
pub fn export(
    journal: &Path,
    format: Format,
    span: Span,
    out: &mut dyn Write,
) -> Result<u64, SysError> {
    let db = snapshot(journal)?;
    let base = ends::base(&db)?;
    let mut exporter = Exporter::new(format, agents(&db)?, out);
    let (mut count, mut last) = (0, 0);
    let mut copy = |db: &Connection| -> Result<(), SysError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM journal WHERE id > ?1 AND at_ms >= ?2 AND at_ms <= ?3 ORDER BY id"
        );
        let since = span.since_ms.unwrap_or(0);
        let until = span
            .until_ms
            .map_or(i64::MAX, |ms| i64::try_from(ms).unwrap_or(i64::MAX));
        let mut found = db.prepare(&sql).map_err(failed)?;
        let rows = found
            .query_map((last, since, until), query::row)
            .map_err(failed)?;
        for row in rows {
            let row = row.map_err(failed)?;
            (last, count) = (row.id, count + 1);
            exporter.row(row).map_err(|e| unwritten(&e))?;
        }
        Ok(())
    };
    for number in 1..base.segment {
        let file = archive(journal, number);
        if file.exists() {
            copy(&open_reader(&file)?)?;
        }
    }
    copy(&db)?;
    exporter.finish().map_err(|e| unwritten(&e))?;
    Ok(count)
}

/// Lines of a piece at most, and rows of one run.
const PIECE: usize = 500;
const RUN_ROWS: usize = 100_000;

/// A piece of an export, for whoever takes it bit by bit: its lines, and where the next goes on.
/// Rows go by their number, traces by their run.
///
/// # Errors
/// The journal cannot be read.
pub fn export_piece(
    journal: &Path,
    format: Format,
    after: u64,
) -> Result<(Vec<String>, Option<u64>), SysError> {
    let db = snapshot(journal)?;
    match format {
        Format::Jsonl => {
            let rows = oldest(&db, journal, "id", (after, u64::MAX), PIECE)?;
            let next = rows.last().filter(|_| rows.len() == PIECE).map(|r| r.id);
            let lines = lines(Format::Jsonl, HashMap::new(), rows)?;
            Ok((lines, next))
        }
        Format::Otel => {
            let sql = "SELECT pid FROM process WHERE pid = run AND pid > ?1 ORDER BY pid LIMIT 1";
            let run: Option<u64> = db
                .query_row(sql, [after], |r| r.get(0))
                .optional()
                .map_err(failed)?;
            let Some(run) = run else {
                return Ok((Vec::new(), None));
            };
            let rows = oldest(&db, journal, "run", (run - 1, run), RUN_ROWS)?;
            Ok((lines(Format::Otel, agents(&db)?, rows)?, Some(run)))
        }
    }
}

/// Rows with `column` above the one and not above the other, oldest first.
fn oldest(
    db: &Connection,
    journal: &Path,
    column: &str,
    (above, most): (u64, u64),
    limit: usize,
) -> Result<Vec<JournalRow>, SysError> {
    let base = ends::base(db)?;
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let mut rows: Vec<JournalRow> = Vec::new();
    let mut take = |db: &Connection| -> Result<(), SysError> {
        let last = rows.last().map_or(0, |row| row.id);
        let left = limit - rows.len();
        let sql = format!(
            "SELECT {COLUMNS} FROM journal WHERE {column} > ?1 AND {column} <= ?2 AND id > ?3
             ORDER BY id LIMIT {left}"
        );
        let mut found = db.prepare_cached(&sql).map_err(failed)?;
        let found = found
            .query_map((number(above), number(most), number(last)), query::row)
            .map_err(failed)?;
        for row in found {
            rows.push(row.map_err(failed)?);
        }
        Ok(())
    };
    for number in 1..base.segment {
        let file = archive(journal, number);
        if file.exists() {
            take(&open_reader(&file)?)?;
        }
    }
    take(db)?;
    Ok(rows)
}

fn lines(
    format: Format,
    agents: HashMap<Pid, Agent>,
    rows: Vec<JournalRow>,
) -> Result<Vec<String>, SysError> {
    let mut out = Vec::new();
    let mut exporter = Exporter::new(format, agents, &mut out);
    for row in rows {
        exporter.row(row).map_err(|e| unwritten(&e))?;
    }
    exporter.finish().map_err(|e| unwritten(&e))?;
    let text = String::from_utf8_lossy(&out);
    Ok(text.lines().map(str::to_owned).collect())
}

fn unwritten(error: &std::io::Error) -> SysError {
    SysError::new(
        Code::Unavailable,
        format!("the export was not written: {error}"),
    )
    .hint("check the disk and the program that reads it")
}

fn agents(db: &Connection) -> Result<HashMap<Pid, Agent>, SysError> {
    let mut found = db
        .prepare("SELECT pid, image, parent FROM process")
        .map_err(failed)?;
    let rows = found.query_map((), |r| {
        let agent = Agent {
            image: r.get(1)?,
            parent: r.get::<_, Option<u64>>(2)?.map(Pid),
        };
        Ok((Pid(r.get(0)?), agent))
    });
    rows.and_then(Iterator::collect).map_err(failed)
}
