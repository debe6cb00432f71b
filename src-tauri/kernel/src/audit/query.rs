//! Which rows are told, and how they are found among a million.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params_from_iter};

use super::JournalRow;
use super::chain::Hash;
use crate::error::{Code, SysError};
use crate::journal::failed;
use crate::process::{Pid, RunId};

/// Rows told at once at most.
pub const ROWS_MOST: u32 = 100_000;
/// Bytes of a text that is looked for, at most.
const TEXT_MOST: usize = 4096;
/// Rows that are fetched and sorted rather than walked past, at most.
const FEW: u64 = 20_000;

/// Which journal rows to tell: those that meet every condition that is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalQuery {
    /// Only this process.
    pub pid: Option<Pid>,
    /// Only this run.
    pub run: Option<RunId>,
    /// Only this call of each process.
    pub seq: Option<u64>,
    /// Only what this capability covered.
    pub capability: Option<u64>,
    /// Only this system call or process event; `fs.*` for all that begin so.
    pub name: Option<String>,
    /// Only what was done to this and to what is below it; `notes/a*` for all that begin so.
    pub resource: Option<String>,
    /// Only rows that were decided so: `allow`, `ask`, `deny`, `yes`, `no`, `expired`.
    pub decision: Option<String>,
    /// Only what this one decided: `terminal`, `capability 12` …
    pub by: Option<String>,
    /// Only rows of this kind: `process`, `intent`, `outcome` …
    pub kind: Option<String>,
    /// Only from this time on, Unix milliseconds.
    pub since_ms: Option<u64>,
    /// Only up to this time, Unix milliseconds.
    pub until_ms: Option<u64>,
    /// Only rows that come after this one where they are told, for the next page.
    pub before_id: Option<u64>,
    /// Only rows in which this text stands, small and capital letters alike.
    pub text: Option<String>,
    /// Rows at most (1 to [`ROWS_MOST`]).
    pub limit: u32,
}

impl Default for JournalQuery {
    fn default() -> Self {
        Self {
            pid: None,
            run: None,
            seq: None,
            capability: None,
            name: None,
            resource: None,
            decision: None,
            by: None,
            kind: None,
            since_ms: None,
            until_ms: None,
            before_id: None,
            text: None,
            limit: 100,
        }
    }
}

impl JournalQuery {
    /// Refuses what is out of bounds.
    pub(crate) fn check(&self) -> Result<(), SysError> {
        if !(1..=ROWS_MOST).contains(&self.limit) {
            let message = format!("`limit` is `{}`", self.limit);
            return Err(SysError::new(Code::Invalid, message)
                .hint(format!("use a number from 1 to {ROWS_MOST}")));
        }
        let texts = [
            &self.name,
            &self.resource,
            &self.decision,
            &self.by,
            &self.kind,
            &self.text,
        ];
        let is_long = |text: &String| text.len() > TEXT_MOST;
        if texts.into_iter().flatten().any(is_long) {
            return Err(SysError::new(
                Code::Limit,
                "a text to look for in the journal is too long",
            )
            .hint(format!("give at most {TEXT_MOST} bytes")));
        }
        Ok(())
    }

    /// Whether rows are told by their time rather than by their number. The two differ where the
    /// clock was set back.
    fn by_time(&self) -> bool {
        self.since_ms.is_some() || self.until_ms.is_some()
    }
}

/// Columns of a row, in the order that [`row`] reads.
pub(crate) const COLUMNS: &str = "id, at_ms, pid, run, seq, kind, name, detail, resource, \
     capability, decision, by_, wait_ms, run_ms, facts, hash";

/// Reads a row that was selected by [`COLUMNS`].
pub(crate) fn row(r: &rusqlite::Row<'_>) -> rusqlite::Result<JournalRow> {
    let hash: [u8; 32] = r.get(15)?;
    Ok(JournalRow {
        id: r.get(0)?,
        at_ms: r.get(1)?,
        pid: Pid(r.get(2)?),
        run: r.get(3)?,
        seq: r.get(4)?,
        kind: r.get(5)?,
        name: r.get(6)?,
        detail: r.get(7)?,
        resource: r.get(8)?,
        capability: r.get(9)?,
        decision: r.get(10)?,
        by: r.get(11)?,
        wait_ms: r.get(12)?,
        run_ms: r.get(13)?,
        facts: r.get(14)?,
        hash: Hash(hash),
    })
}

/// Where a page of rows ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    at_ms: u64,
    id: u64,
}

/// Where the row with a number stands, if it is in this database.
pub(crate) fn place(db: &Connection, id: u64) -> Result<Option<Place>, SysError> {
    let sql = "SELECT at_ms FROM journal WHERE id = ?1";
    db.query_row(sql, [id], |r| {
        Ok(Place {
            at_ms: r.get(0)?,
            id,
        })
    })
    .optional()
    .map_err(failed)
}

/// Rows of one database, newest first: by number, or by time where a time is asked for.
pub(crate) fn rows(
    db: &Connection,
    query: &JournalQuery,
    before: Option<Place>,
) -> Result<Vec<JournalRow>, SysError> {
    let conditions = Condition::all(query, before);
    let index = best_index(db, query, &conditions)?;
    let mut sql = format!("SELECT {COLUMNS} FROM journal");
    // Without an index the rows are walked in order, and the walk ends with the last one wanted.
    sql.push_str(&index.map_or(" NOT INDEXED".to_owned(), |index| {
        format!(" INDEXED BY {index}")
    }));
    let mut values = Vec::new();
    let mut joint = " WHERE ";
    for condition in conditions {
        sql.push_str(joint);
        sql.push_str(&condition.sql);
        values.extend(condition.values);
        joint = " AND ";
    }
    let order = if query.by_time() {
        "at_ms DESC, id DESC"
    } else {
        "id DESC"
    };
    sql.push_str(&format!(" ORDER BY {order} LIMIT {}", query.limit));
    let mut found = db.prepare_cached(&sql).map_err(failed)?;
    found
        .query_map(params_from_iter(values), row)
        .and_then(Iterator::collect)
        .map_err(failed)
}

/// A part of the `WHERE` clause.
struct Condition {
    sql: String,
    values: Vec<Value>,
    /// The index that finds its rows.
    index: Option<&'static str>,
    /// Whether that index gives them in the order in which they are told.
    ordered: bool,
}

impl Condition {
    fn all(query: &JournalQuery, before: Option<Place>) -> Vec<Self> {
        let mut all = Vec::new();
        let in_order = !query.by_time();
        let mut equal = |column: &str, index, value: Option<Value>| {
            all.extend(value.map(|value| Self {
                sql: format!("{column} = ?"),
                values: vec![value],
                index,
                ordered: in_order,
            }));
        };
        let number = |n: u64| Value::Integer(i64::try_from(n).unwrap_or(i64::MAX));
        let word = |text: &Option<String>| text.clone().map(Value::Text);
        equal("pid", Some("journal_pid"), query.pid.map(|p| number(p.0)));
        equal("run", Some("journal_run"), query.run.map(number));
        equal("seq", None, query.seq.map(number));
        let capability = query.capability.map(number);
        equal("capability", Some("journal_capability"), capability);
        equal("decision", Some("journal_decision"), word(&query.decision));
        equal("by_", None, word(&query.by));
        equal("kind", None, word(&query.kind));
        all.extend(
            query
                .name
                .as_ref()
                .map(|name| match name.strip_suffix('*') {
                    Some(prefix) => Self::prefix("name", "journal_name", prefix),
                    None => Self {
                        sql: "name = ?".to_owned(),
                        values: vec![Value::Text(name.clone())],
                        index: Some("journal_name"),
                        ordered: in_order,
                    },
                }),
        );
        all.extend(
            query
                .resource
                .as_ref()
                .map(|at| match at.strip_suffix('*') {
                    Some(prefix) => Self::prefix("resource", "journal_resource", prefix),
                    None => Self::at_or_below(at),
                }),
        );
        all.extend(Self::time(query, number));
        if let Some(Place { at_ms, id }) = before {
            let (sql, values) = if query.by_time() {
                ("(at_ms, id) < (?, ?)", vec![number(at_ms), number(id)])
            } else {
                ("id < ?", vec![number(id)])
            };
            all.push(Self::filter(sql, values));
        }
        if let Some(text) = &query.text {
            let sql = "(detail LIKE ? ESCAPE '\\' OR resource LIKE ? ESCAPE '\\' \
                       OR name LIKE ? ESCAPE '\\' OR by_ LIKE ? ESCAPE '\\')";
            all.push(Self::filter(sql, vec![like(text); 4]));
        }
        all
    }

    /// All that begins so.
    fn prefix(column: &str, index: &'static str, prefix: &str) -> Self {
        // No text that begins so stands behind the prefix and the greatest character there is.
        let end = format!("{prefix}\u{10FFFF}");
        Self {
            sql: format!("{column} >= ? AND {column} <= ?"),
            values: vec![Value::Text(prefix.to_owned()), Value::Text(end)],
            index: Some(index),
            ordered: false,
        }
    }

    /// A path, and all below it: those are between `path/` and `path0`.
    fn at_or_below(path: &str) -> Self {
        let path = path.trim_end_matches('/');
        let text = |end: &str| Value::Text(format!("{path}{end}"));
        Self {
            sql: "resource >= ? AND resource < ? AND (resource = ? OR resource >= ?)".to_owned(),
            values: vec![text(""), text("0"), text(""), text("/")],
            index: Some("journal_resource"),
            ordered: false,
        }
    }

    fn time(query: &JournalQuery, number: impl Fn(u64) -> Value) -> Option<Self> {
        query.by_time().then(|| Self {
            sql: "at_ms >= ? AND at_ms <= ?".to_owned(),
            values: vec![
                number(query.since_ms.unwrap_or(0)),
                number(query.until_ms.unwrap_or(u64::MAX)),
            ],
            index: Some("journal_at"),
            ordered: true,
        })
    }

    /// One that no index serves.
    fn filter(sql: &str, values: Vec<Value>) -> Self {
        Self {
            sql: sql.to_owned(),
            values,
            index: None,
            ordered: false,
        }
    }

    /// How many rows meet it, counted up to a bound.
    fn count(&self, db: &Connection, index: &str, most: u64) -> Result<u64, SysError> {
        let sql = format!(
            "SELECT COUNT(*) FROM (SELECT 1 FROM journal INDEXED BY {index} WHERE {} LIMIT {most})",
            self.sql
        );
        db.prepare_cached(&sql)
            .and_then(|mut count| count.query_row(params_from_iter(&self.values), |r| r.get(0)))
            .map_err(failed)
    }
}

/// The index to go by: the one with the fewest rows. Where every condition has many, one that gives
/// the rows in order, so that the walk ends as soon as there are enough.
fn best_index(
    db: &Connection,
    query: &JournalQuery,
    conditions: &[Condition],
) -> Result<Option<&'static str>, SysError> {
    let least = |most: u64, ordered_only: bool| {
        let mut least: Option<(u64, &'static str)> = None;
        for condition in conditions {
            let Some(index) = condition.index else {
                continue;
            };
            if ordered_only && !condition.ordered {
                continue;
            }
            let count = condition.count(db, index, most)?;
            if least.is_none_or(|(least, _)| count < least) {
                least = Some((count, index));
            }
        }
        Ok(least)
    };
    match least(FEW, false)? {
        Some((count, index)) if count < FEW => Ok(Some(index)),
        _ if query.by_time() => Ok(Some("journal_at")),
        _ => Ok(least(10 * FEW, true)?.map(|(_, index)| index)),
    }
}

fn like(text: &str) -> Value {
    let mut pattern = String::with_capacity(text.len() + 2);
    pattern.push('%');
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    Value::Text(pattern)
}
