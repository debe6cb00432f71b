//! The journal: what it never holds, what it refuses, and what it says when it is damaged.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use steward_kernel::audit::{Format, verify::What};
use steward_kernel::syscall::{FsRead, FsWrite, HumanApprove, HumanAsk, HumanTell};
use steward_kernel::{Code, Exit, Kernel, KernelEvent, Pid, SCHEMA_VERSION, Sys, SysError};

use crate::bed::{Bed, Person, read, results, rows, write};
use crate::stand_ins::Table;

fn open(bed: &Bed, journal: &Path) -> Result<Kernel, SysError> {
    let opening = bed.opening();
    Kernel::open(
        journal,
        opening.providers,
        std::sync::Arc::new(opening.images),
    )
}

#[test]
fn a_journal_of_a_newer_program_is_refused_and_left_as_it_is() {
    let bed = Bed::with(&[]);
    for mode in ["DELETE", "WAL"] {
        let path = bed.data.join(format!("{mode}.db"));
        {
            // As a newer program left it that was killed: its log is still beside it.
            let newer = Connection::open(&path).unwrap();
            newer.pragma_update(None, "journal_mode", mode).unwrap();
            newer
                .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
                .unwrap();
            newer.execute_batch("CREATE TABLE later (a, b);").unwrap();
            newer
                .pragma_update(None, "user_version", SCHEMA_VERSION + 1)
                .unwrap();
        }
        let log = bed.data.join(format!("{mode}.db-wal"));
        let bytes = || (std::fs::read(&path).unwrap(), std::fs::read(&log).ok());
        let before = bytes();
        assert_eq!(before.1.is_some(), mode == "WAL");
        let error = open(&bed, &path).err().unwrap();
        assert_eq!(error.code, Code::Invalid);
        let words = format!("of version `{}`", SCHEMA_VERSION + 1);
        assert!(error.message.contains(&words), "{error}");
        assert!(error.hint.is_some());
        assert!(bytes() == before, "{mode}: it was changed");
    }
}

/// A journal with a little of everything, closed.
fn written() -> Bed {
    let bed = Bed::with(&[("f", "old")]);
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let kernel = bed.kernel();
        Person::of(&kernel).always_says(true);
        let pid = bed.start(&kernel, &[read("f"), write("f", "new")]).await;
        results(&kernel, pid).await;
        let mut person = Person::of(&kernel);
        bed.start(&kernel, &[write("f", "newer")]).await;
        person.is_asked().await;
    });
    bed.database()
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))
        .unwrap();
    bed
}

/// Opens a journal and asks it everything; the first error.
async fn ask_everything(bed: &Bed, journal: &Path) -> Result<(), SysError> {
    let kernel = open(bed, journal)?;
    for process in kernel.processes().await? {
        kernel.steps(process.pid).await?;
        kernel.exit(process.pid).await?;
        kernel.capabilities(process.pid).await?;
    }
    kernel.approvals().await?;
    kernel.questions().await?;
    let query = steward_kernel::JournalQuery {
        limit: 1000,
        ..Default::default()
    };
    kernel.journal(query).await.map(drop)
}

#[test]
fn a_damaged_journal_is_a_clear_error_and_never_a_panic() {
    let bed = written();
    let whole = std::fs::read(bed.journal()).unwrap();
    let path = bed.data.join("damaged.db");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let look = |bytes: &[u8]| {
        for suffix in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(bed.data.join(format!("damaged.db{suffix}")));
        }
        std::fs::write(&path, bytes).unwrap();
        let looked = runtime.block_on(ask_everything(&bed, &path));
        if let Err(error) = &looked {
            let clear = matches!(
                error.code,
                Code::Unavailable | Code::Internal | Code::Invalid
            );
            assert!(
                clear && error.message.contains("journal")
                    || error.message.contains("data directory"),
                "{error:?}"
            );
        }
        looked
    };
    assert_eq!(look(&whole), Ok(()));

    // One byte, all over the file: found out, or of no consequence, never a panic.
    const PAGE: usize = 4096;
    let (mut flips, mut noticed) = (0, 0);
    for page in 0..whole.len() / PAGE {
        for within in [0, 3, 5, 8, 9, 40, PAGE / 2, PAGE - 60, PAGE - 9, PAGE - 1] {
            let mut bytes = whole.clone();
            bytes[page * PAGE + within] ^= 0xff;
            flips += 1;
            noticed += usize::from(look(&bytes).is_err());
        }
    }
    assert!(
        noticed * 4 > flips,
        "of {flips} flips {noticed} were noticed"
    );

    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 5] = [
        ("another kind of file", |b| b[..16].fill(b'x')),
        ("a page of zeros", |b| b[PAGE..2 * PAGE].fill(0)),
        ("cut short", |b| b.truncate(b.len() / 2)),
        ("cut within a page", |b| b.truncate(b.len() - 100)),
        ("an older version than any", |b| b[60..64].fill(0)),
    ];
    for (name, damage) in damages {
        let mut bytes = whole.clone();
        damage(&mut bytes);
        let error = look(&bytes)
            .err()
            .unwrap_or_else(|| panic!("{name}: not noticed"));
        assert_eq!(error.code, Code::Unavailable, "{name}: {error:?}");
        assert!(
            error.message.starts_with("the journal is damaged"),
            "{name}: {error}"
        );
        assert!(error.hint.is_some(), "{name}");
    }
}

/// The tables of version 1, as the program that wrote it made them.
const VERSION_1: &str = include_str!("version_1.sql");

#[test]
fn a_journal_of_version_1_is_taken_over_and_a_copy_kept() {
    let bed = Bed::with(&[("f", "old")]);
    let old = Connection::open(bed.journal()).unwrap();
    old.execute_batch(VERSION_1).unwrap();
    let workspace = bed.root.to_string_lossy();
    let write = serde_json::json!([["fs.write", { "path": "f", "text": "new" }]]).to_string();
    for (pid, state, exit) in [
        (3, "exited", Some(r#"{"ok":true,"answer":"done"}"#)),
        (7, "created", None),
    ] {
        old.execute(
            "INSERT INTO process (pid, run, image, goal, workspace, state, created_ms, exit)
             VALUES (?1, ?1, 'script', ?2, ?3, ?4, 1, ?5)",
            (pid, &write, &workspace, state, exit),
        )
        .unwrap();
    }
    let grants = bed.defaults();
    for grant in &grants {
        let grant = serde_json::to_string(grant).unwrap();
        old.execute(
            "INSERT INTO capability (subject, grant_, issuer, issued_ms, status)
             VALUES (7, ?1, 'person', 1, 'active')",
            [grant],
        )
        .unwrap();
    }
    old.execute(
        "INSERT INTO journal (at_ms, pid, run, kind, name, detail) VALUES (1, 3, 3, 'process', 'created', 'x')",
        (),
    )
    .unwrap();
    drop(old);

    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let kernel = bed.kernel();
        assert_eq!(kernel.exit(Pid(3)).await.unwrap().unwrap().answer, "done");
        assert_eq!(rows(&kernel, None).await.len(), 1);
        // Its row is in the chain.
        let told = kernel.verify().await.unwrap();
        let found: Vec<_> = told.findings.iter().map(|finding| finding.what).collect();
        assert_eq!((told.rows, found), (1, vec![What::NoHead]));
        // What had not ended goes on, with the rights it had.
        Person::of(&kernel).always_says(true);
        assert_eq!(kernel.resume(None).await.unwrap(), 1);
        assert!(kernel.wait(Pid(7)).await.unwrap().ok);
        assert_eq!(bed.text("f"), "new");
        // Numbers go on where they stood.
        assert_eq!(bed.start(&kernel, &[]).await, Pid(8));
    });
    let kept = Connection::open(bed.data.join("journal.db.v1")).unwrap();
    let version: i64 = kept
        .pragma_query_value(None, "user_version", |r| r.get(0))
        .unwrap();
    let processes: i64 = kept
        .query_row("SELECT COUNT(*) FROM process", (), |r| r.get(0))
        .unwrap();
    assert_eq!((version, processes), (1, 2));
}

#[test]
fn rows_of_the_journal_can_be_added_only() {
    let bed = written();
    for sql in [
        "UPDATE journal SET detail = ''",
        "DELETE FROM journal WHERE id = 1",
    ] {
        let error = bed.database().execute(sql, ()).unwrap_err().to_string();
        assert!(error.contains("append-only"), "{error}");
    }
}

const SECRETS: [&str; 7] = [
    "MARK-read",
    "MARK-old",
    "MARK-written",
    "MARK-asked",
    "MARK-told",
    "MARK-title",
    "MARK-answer",
];

/// Lets secrets through every call that takes content, and keeps none in its own answer.
fn careless() -> Table {
    Table::new().with("careless", |sys: Sys| async move {
        let (path, limit) = ("read".to_owned(), None);
        let file = sys.call(FsRead { path, limit }).await?;
        assert!(file.text.contains(SECRETS[0]));
        let (path, text) = ("old".to_owned(), SECRETS[2].to_owned());
        let base = None;
        sys.call(FsWrite { path, text, base }).await?;
        let (text, choices) = (SECRETS[3].to_owned(), Vec::new());
        let answer = sys.call(HumanAsk { text, choices }).await?;
        assert_eq!(answer, SECRETS[6]);
        let text = SECRETS[4].to_owned();
        sys.call(HumanTell { text }).await?;
        let (title, text) = (SECRETS[5].to_owned(), SECRETS[5].to_owned());
        sys.call(HumanApprove {
            title,
            text,
            expires_ms: None,
        })
        .await?;
        Ok(Exit {
            ok: true,
            answer: String::new(),
            error: None,
        })
    })
}

#[test]
fn contents_are_never_in_the_journal_and_not_in_its_file_after_the_end() {
    let bed = Bed::with(&[("read", SECRETS[0]), ("old", SECRETS[1])]);
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let kernel = bed.opening().images(careless()).open();
        let mut person = Person::of(&kernel);
        let pid = bed
            .start_image(&kernel, "careless", "a goal", bed.defaults())
            .await;
        let asked = person.is_asked().await;
        person.says(&asked, true).await;
        let question = person
            .hears(|event| match event {
                KernelEvent::Question(question) => Some(question),
                _ => None,
            })
            .await;
        kernel
            .answer(question.id, SECRETS[6], "test")
            .await
            .unwrap();
        let asked = person.is_asked().await;
        person.says(&asked, true).await;
        assert!(kernel.wait(pid).await.unwrap().ok);
        let all = rows(&kernel, None).await;
        assert!(all.len() > 15, "{all:?}");
        for row in all {
            assert!(!format!("{row:?}").contains("MARK"), "{row:?}");
        }
        for format in [Format::Jsonl, Format::Otel] {
            let (lines, _) = kernel.export_piece(format, 0).await.unwrap();
            assert!(!lines.is_empty() && !lines.concat().contains("MARK"));
        }
    });
    assert_eq!(bed.text("old"), SECRETS[2]);
    bed.database()
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))
        .unwrap();
    // What the person was asked and told stands in the steps' titles; the rest is gone.
    let gone = [SECRETS[0], SECRETS[1], SECRETS[2], SECRETS[6]];
    for name in ["journal.db", "journal.db-wal"] {
        let bytes = std::fs::read(bed.data.join(name)).unwrap_or_default();
        for secret in gone {
            let found = bytes.windows(secret.len()).any(|w| w == secret.as_bytes());
            assert!(!found, "{secret} is in {name}");
        }
    }
}
