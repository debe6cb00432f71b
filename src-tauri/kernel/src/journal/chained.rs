//! Tests of the chain in the database: what somebody with the files, but without the key, can do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test, whose files are its own"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;

use super::segments::{archive, export_piece, verify};
use super::{Audit, Journal, Retention, Row, append, ends};
use crate::audit::pen::Pen;
use crate::audit::verify::{Verification, What};
use crate::audit::{Format, JournalQuery, JournalRow, Span};
use crate::error::{Code, SysError};
use crate::executor::TokioExecutor;
use crate::process::Pid;

const NAMES: [&str; 3] = ["fs.read", "fs.write", "llm.chat"];
const DECISIONS: [&str; 3] = ["allow", "deny", "yes"];

struct Bed {
    folder: tempfile::TempDir,
    pen: Arc<Pen>,
}

impl Bed {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            pen: Arc::new(Pen::new("mine", Ok(None))),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("journal.db")
    }

    fn open(&self) -> Journal {
        let executor = Arc::new(TokioExecutor);
        Journal::open(&self.path(), executor, self.pen.clone(), 7, None).unwrap()
    }

    /// A journal of that many rows, closed.
    async fn of(rows: u64) -> Self {
        let bed = Self::new();
        let journal = bed.open();
        add(&journal, rows).await;
        drop(journal);
        bed
    }

    fn verified(&self) -> Verification {
        verify(&self.path(), self.pen.as_ref()).unwrap()
    }

    /// Does what no rule of the database keeps its owner from.
    fn tamper(&self, sql: &str) {
        tamper(&self.path(), sql);
    }
}

fn tamper(path: &Path, sql: &str) {
    let db = Connection::open(path).unwrap();
    db.execute_batch(
        "DROP TRIGGER journal_is_append_only_update; DROP TRIGGER journal_is_append_only_delete;",
    )
    .unwrap();
    db.execute_batch(sql).unwrap();
}

fn row(n: u64) -> Row<'static> {
    let pick = |of: [&'static str; 3]| of[usize::try_from(n).unwrap() % 3];
    Row {
        at_ms: 1_000 + n,
        pid: Pid(1 + n % 4),
        run: 1 + n % 2,
        seq: Some(n),
        kind: "outcome",
        name: pick(NAMES),
        detail: format!("done: {n} bytes of 100% text_{n}"),
        audit: Audit {
            resource: Some(format!("notes/{}/{n}.md", n % 5)),
            capability: Some(n % 7),
            decision: Some(pick(DECISIONS)),
            by: Some(format!("capability {}", n % 7)),
            wait_ms: Some(1),
            run_ms: Some(2),
            facts: Some(format!("{{\"bytes\":{n}}}")),
        },
    }
}

async fn add(journal: &Journal, rows: u64) {
    journal
        .write(move |tx| (0..rows).try_for_each(|n| append(tx, &row(n))))
        .await
        .unwrap();
}

fn found(verification: &Verification) -> Vec<(What, Option<u64>)> {
    let told = verification.findings.iter();
    told.map(|finding| (finding.what, finding.row)).collect()
}

#[tokio::test]
async fn a_journal_is_whole_and_goes_on_so_after_every_opening() {
    let bed = Bed::of(20).await;
    assert!(bed.verified().whole, "{:?}", bed.verified());
    add(&bed.open(), 5).await;
    let told = bed.verified();
    assert!(told.whole, "{told:?}");
    assert_eq!((told.rows, told.head.count), (25, 25));
    assert_eq!(
        told.signed,
        Some(told.head),
        "closed, but not signed to its end"
    );
}

#[tokio::test]
async fn what_a_job_takes_back_leaves_no_gap_in_the_chain() {
    let bed = Bed::new();
    let journal = bed.open();
    add(&journal, 3).await;
    let failed = journal.write(|tx| -> Result<(), SysError> {
        append(tx, &row(3))?;
        Err(SysError::new(Code::Conflict, "no"))
    });
    let (failed, ()) = tokio::join!(failed, add(&journal, 3));
    assert!(failed.is_err());
    drop(journal);
    let told = bed.verified();
    assert!(told.whole && told.rows == 6, "{told:?}");
}

#[tokio::test]
async fn a_change_of_any_column_in_the_database_is_told() {
    for (column, value) in [
        ("at_ms", "at_ms + 1"),
        ("pid", "pid + 1"),
        ("run", "run + 1"),
        ("seq", "NULL"),
        ("kind", "'intent'"),
        ("name", "'fs.stat'"),
        ("detail", "detail || ' '"),
        ("resource", "NULL"),
        ("capability", "capability + 1"),
        ("decision", "'deny'"),
        ("by_", "'terminal'"),
        ("wait_ms", "NULL"),
        ("run_ms", "3"),
        ("facts", "'{}'"),
        ("hash", "zeroblob(32)"),
    ] {
        let bed = Bed::of(9).await;
        bed.tamper(&format!(
            "UPDATE journal SET {column} = {value} WHERE id = 4"
        ));
        let told = bed.verified();
        assert_eq!(
            found(&told)[0],
            (What::Altered, Some(4)),
            "{column}: {told:?}"
        );
    }
    for (column, value) in [("hash", "x'00'"), ("pid", "-1")] {
        let bed = Bed::of(9).await;
        bed.tamper(&format!(
            "UPDATE journal SET {column} = {value} WHERE id = 4"
        ));
        let told = bed.verified();
        assert_eq!(
            found(&told)[0],
            (What::Unreadable, Some(4)),
            "{column}: {told:?}"
        );
    }
}

#[tokio::test]
async fn a_byte_flipped_on_the_disk_is_told() {
    let bed = Bed::of(9).await;
    let mut bytes = std::fs::read(bed.path()).unwrap();
    let text = b"done: 4 bytes of 100%";
    let at = bytes.windows(text.len()).position(|w| w == text).unwrap();
    bytes[at + 6] ^= 1;
    std::fs::write(bed.path(), bytes).unwrap();
    assert_eq!(found(&bed.verified()), [(What::Altered, Some(5))]);
}

#[tokio::test]
async fn removed_and_swapped_rows_are_told() {
    let bed = Bed::of(9).await;
    bed.tamper("DELETE FROM journal WHERE id IN (4, 5)");
    let told = bed.verified();
    assert_eq!(told.findings[0].words, "rows `4` to `5` were removed");
    let bed = Bed::of(9).await;
    bed.tamper("DELETE FROM journal WHERE id > 7");
    let told = bed.verified();
    assert_eq!(found(&told)[0], (What::TailRemoved, Some(7)));
    let bed = Bed::of(9).await;
    bed.tamper(
        "UPDATE journal SET id = 99 WHERE id = 4; UPDATE journal SET id = 4 WHERE id = 5;
         UPDATE journal SET id = 5 WHERE id = 99;",
    );
    assert_eq!(found(&bed.verified())[0], (What::Altered, Some(4)));
}

#[tokio::test]
async fn heads_of_another_key_or_torn_are_told() {
    let bed = Bed::of(9).await;
    let other = Pen::new("other", Ok(None));
    let told = verify(&bed.path(), &other).unwrap();
    assert_eq!(
        found(&told),
        [(What::NoHead, None), (What::OtherKey, Some(9))]
    );
    bed.tamper("UPDATE meta SET value = substr(value, 1, 40) WHERE key = 'journal.head'");
    assert_eq!(found(&bed.verified()), [(What::TornHead, None)]);
    bed.pen
        .remember(Err(SysError::new(Code::Invalid, "half of it")));
    assert_eq!(found(&bed.verified()), [(What::TornHead, None); 2]);
}

#[tokio::test]
async fn a_tail_removed_while_nothing_ran_is_told_for_ever() {
    let bed = Bed::of(9).await;
    bed.tamper("DELETE FROM journal WHERE id > 7");
    add(&bed.open(), 4).await;
    add(&bed.open(), 1).await;
    let told = bed.verified();
    // What was removed cannot be signed away: the kernel met the break and wrote it down.
    assert_eq!(found(&told), [(What::Told, Some(8))]);
    assert!(
        told.findings[0].words.contains("row `9` was signed"),
        "{told:?}"
    );
    assert_eq!(told.rows, 13);
}

const SMALL: Retention = Retention { bytes: 0, rows: 10 };

#[tokio::test]
async fn older_rows_go_to_archives_and_the_chain_goes_on_over_all() {
    let bed = Bed::new();
    let journal = bed.open();
    add(&journal, 5_000).await;
    assert_eq!(journal.rotate(Retention::default()).await.unwrap(), 0);
    assert_eq!(journal.rotate(SMALL).await.unwrap(), 4_990);
    add(&journal, 100).await;
    assert_eq!(journal.rotate(SMALL).await.unwrap(), 100);
    add(&journal, 7).await;
    let query = JournalQuery {
        limit: 100_000,
        ..JournalQuery::default()
    };
    let rows = journal.rows(query).await.unwrap();
    let ids: Vec<u64> = rows.iter().map(|row| row.id).collect();
    assert_eq!(ids, (1..=5_107).rev().collect::<Vec<_>>());
    let page = JournalQuery {
        pid: Some(Pid(2)),
        before_id: Some(40),
        limit: 3,
        ..JournalQuery::default()
    };
    let page: Vec<u64> = journal
        .rows(page)
        .await
        .unwrap()
        .iter()
        .map(|r| r.id)
        .collect();
    assert_eq!(page, [38, 34, 30]);
    drop(journal);
    let told = bed.verified();
    assert!(told.whole, "{told:?}");
    assert_eq!(
        (told.rows, told.head.segment, told.head.count),
        (5_107, 3, 5_107)
    );
    let mut out = Vec::new();
    let count = super::export(&bed.path(), Format::Jsonl, Span::default(), &mut out).unwrap();
    assert_eq!(
        (count, out.iter().filter(|b| **b == b'\n').count()),
        (5_107, 5_107)
    );
    let (mut pieces, mut after) = (Vec::new(), Some(0));
    while let Some(from) = after {
        let (lines, next) = export_piece(&bed.path(), Format::Jsonl, from).unwrap();
        pieces.extend(lines);
        after = next;
    }
    assert_eq!(pieces.join("\n") + "\n", String::from_utf8(out).unwrap());
    for file in [bed.path(), archive(&bed.path(), 1), archive(&bed.path(), 2)] {
        for sql in ["DELETE FROM journal", "UPDATE journal SET pid = 9"] {
            let refused = Connection::open(&file).unwrap().execute_batch(sql);
            assert!(refused.unwrap_err().to_string().contains("append-only"));
        }
    }
}

#[tokio::test]
async fn archives_that_are_changed_or_gone_are_told() {
    let rotated = || async {
        let bed = Bed::new();
        let journal = bed.open();
        for _ in 0..2 {
            add(&journal, 50).await;
            journal.rotate(SMALL).await.unwrap();
        }
        drop(journal);
        assert!(bed.verified().whole);
        bed
    };
    let bed = rotated().await;
    tamper(
        &archive(&bed.path(), 1),
        "UPDATE journal SET pid = 9 WHERE id = 4",
    );
    assert_eq!(found(&bed.verified()), [(What::Altered, Some(4))]);
    let bed = rotated().await;
    tamper(
        &archive(&bed.path(), 1),
        "DELETE FROM journal WHERE id > 30",
    );
    assert!(!bed.verified().whole);
    let bed = rotated().await;
    std::fs::remove_file(archive(&bed.path(), 1)).unwrap();
    let told = bed.verified();
    assert_eq!(found(&told), [(What::SegmentMissing, Some(1))]);
    assert!(
        told.findings[0].words.contains("`journal.000001.db`"),
        "{told:?}"
    );
    assert_eq!(told.head.count, 100);
}

#[tokio::test]
async fn a_move_to_an_archive_that_was_cut_short_is_finished() {
    let bed = Bed::new();
    let journal = bed.open();
    add(&journal, 5_000).await;
    // As if the program had ended after the first rows went.
    journal.rotate(SMALL).await.unwrap();
    let archived = archive(&bed.path(), 1);
    drop(journal);
    let copy = Connection::open(&archived).unwrap();
    copy.execute("ATTACH ?1 AS live", [bed.path().to_string_lossy()])
        .unwrap();
    copy.execute_batch("INSERT INTO live.journal SELECT * FROM main.journal WHERE id > 2000")
        .unwrap();
    let base = ends::base(&Connection::open(bed.path()).unwrap()).unwrap();
    let hash: [u8; 32] = copy
        .query_row("SELECT hash FROM main.journal WHERE id = 2000", (), |r| {
            r.get(0)
        })
        .unwrap();
    drop(copy);
    let earlier = crate::audit::chain::Head {
        sequence: 2_000,
        count: 2_000,
        hash: crate::audit::chain::Hash(hash),
        ..base
    };
    ends::set_base(&Connection::open(bed.path()).unwrap(), &earlier).unwrap();
    assert!(bed.verified().whole, "{:?}", bed.verified());
    let journal = bed.open();
    let query = JournalQuery {
        limit: 100_000,
        ..JournalQuery::default()
    };
    assert_eq!(journal.rows(query).await.unwrap().len(), 5_000);
    assert_eq!(journal.rotate(SMALL).await.unwrap(), 2_990);
    drop(journal);
    assert!(bed.verified().whole, "{:?}", bed.verified());
}

#[tokio::test]
async fn every_query_tells_what_a_plain_filter_would() {
    let bed = Bed::new();
    let journal = bed.open();
    add(&journal, 400).await;
    let all = JournalQuery {
        limit: 400,
        ..JournalQuery::default()
    };
    let rows = journal.rows(all.clone()).await.unwrap();
    assert_eq!(rows.len(), 400);
    type Keep = fn(&JournalRow) -> bool;
    type Ask = fn(&mut JournalQuery);
    let cases: &[(&str, Ask, Keep)] = &[
        ("pid", |q| q.pid = Some(Pid(2)), |r| r.pid == Pid(2)),
        ("run", |q| q.run = Some(1), |r| r.run == 1),
        ("seq", |q| q.seq = Some(9), |r| r.seq == Some(9)),
        (
            "capability",
            |q| q.capability = Some(3),
            |r| r.capability == Some(3),
        ),
        (
            "name",
            |q| q.name = Some("fs.read".into()),
            |r| r.name == "fs.read",
        ),
        (
            "names",
            |q| q.name = Some("fs.*".into()),
            |r| r.name.starts_with("fs."),
        ),
        (
            "resource",
            |q| q.resource = Some("notes/1/6.md".into()),
            |r| r.resource.as_deref() == Some("notes/1/6.md"),
        ),
        (
            "below",
            |q| q.resource = Some("notes/1".into()),
            |r| r.resource.as_deref().unwrap().starts_with("notes/1/"),
        ),
        (
            "prefix",
            |q| q.resource = Some("notes/2/1*".into()),
            |r| r.resource.as_deref().unwrap().starts_with("notes/2/1"),
        ),
        (
            "decision",
            |q| q.decision = Some("deny".into()),
            |r| r.decision.as_deref() == Some("deny"),
        ),
        (
            "by",
            |q| q.by = Some("capability 4".into()),
            |r| r.by.as_deref() == Some("capability 4"),
        ),
        ("kind", |q| q.kind = Some("intent".into()), |_| false),
        ("since", |q| q.since_ms = Some(1_300), |r| r.at_ms >= 1_300),
        ("until", |q| q.until_ms = Some(1_100), |r| r.at_ms <= 1_100),
        (
            "text",
            |q| q.text = Some("100% TEXT_1".into()),
            |r| r.detail.contains("100% text_1"),
        ),
    ];
    for (i, (first, ask, keep)) in cases.iter().enumerate() {
        for (second, also, kept) in &cases[i..] {
            let mut query = all.clone();
            ask(&mut query);
            also(&mut query);
            let wanted: Vec<u64> = rows
                .iter()
                .filter(|r| keep(r) && kept(r))
                .map(|r| r.id)
                .collect();
            // The second of two conditions on one column stands in the place of the first.
            let same = matches!(
                (*first, *second),
                ("name", "names") | ("resource" | "below", "below" | "prefix")
            );
            let told = journal.rows(query.clone()).await.unwrap();
            let told: Vec<u64> = told.iter().map(|r| r.id).collect();
            assert!(same || told == wanted, "{first} and {second}");
            if let Some(last) = told.get(told.len() / 2) {
                query.before_id = Some(*last);
                let page = journal.rows(query).await.unwrap();
                let page: Vec<u64> = page.iter().map(|r| r.id).collect();
                assert_eq!(
                    page,
                    told[told.len() / 2 + 1..],
                    "{first} and {second}, paged"
                );
            }
        }
    }
    let zero = JournalQuery { limit: 0, ..all };
    assert_eq!(journal.rows(zero).await.unwrap_err().code, Code::Invalid);
}
