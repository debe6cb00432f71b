//! kill -9 of a real program after each commit and around each act, for every call that changes
//! something: whatever is found afterwards is whole, and nothing is done twice by itself.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};
use steward_kernel::capability::{Grant, Resource, Right};
use steward_kernel::human::Risk;
use steward_kernel::outside::{self as program, Ran, Shell};
use steward_kernel::provider::Cancel;
use steward_kernel::{Code, KernelEvent, Pid, SysError};

use crate::bed::{
    Bed, Opening, Person, codes, delete, life, mkdir, rename, results, rows, undo, write,
};
use crate::stand_ins::{Moment, Watched};

const TEST: &str = "crash_all::every_change_is_whole_and_done_at_most_once_whenever_it_is_killed";
const CHILD: &str = "STEWARD_TEST_CRASH_ALL";
const CALL: &str = "STEWARD_TEST_CRASH_ALL_CALL";
const POINT: &str = "STEWARD_TEST_CRASH_ALL_POINT";
/// Points of one call at most: what never ends is a fault of its own.
const POINTS_MOST: usize = 100;

/// A call, in a workspace that earlier calls have made what it is.
struct Row {
    name: &'static str,
    before: Vec<Value>,
    calls: Vec<Value>,
}

fn table() -> Vec<Row> {
    let row = |name, before: &[Value], call| Row {
        name,
        before: before.to_vec(),
        calls: vec![call],
    };
    let made = json!({ "kind": "text", "name": "made", "text": "new" });
    let export = json!({ "object": { "name": "made" }, "path": "d/f" });
    let f = write("f", "old");
    vec![
        row("create", &[], write("d/f", "new")),
        row("overwrite", from_ref(&f), write("f", "new")),
        row("mkdir", &[], mkdir("d/e")),
        row("delete", from_ref(&f), delete("f")),
        row("move", from_ref(&f), rename("f", "d/g")),
        row(
            "replace",
            &[f.clone(), write("g", "other")],
            rename("f", "g"),
        ),
        row(
            "undo",
            &[f, write("g", "made"), write("f", "newer")],
            undo(None),
        ),
        Row {
            name: "export",
            before: Vec::new(),
            calls: vec![
                json!(["object.create", made]),
                json!(["object.export", export]),
            ],
        },
        row("run", &[], json!(["shell.run", { "argv": ["make"] }])),
    ]
}

type Watch = Arc<dyn Fn(Moment) + Send + Sync>;

/// Runs any program as one that writes a file, watched as acts on files are.
struct Make(Watch);

#[async_trait]
impl Shell for Make {
    async fn run(&self, root: &Path, _: program::Command, _: Cancel) -> Result<Ran, SysError> {
        (self.0)(Moment::Applying);
        std::fs::write(root.join("made"), "by the program").unwrap();
        (self.0)(Moment::Applied);
        Ok(Ran {
            status: Some(0),
            output: String::new(),
            errors: String::new(),
            cut: false,
            timed_out: false,
        })
    }
}

/// What a kernel is opened with that can carry out the whole table.
fn opening(bed: &Bed, watch: Watch) -> Opening {
    let of_files = Arc::clone(&watch);
    let files = Watched::new(bed.store(), move |moment| of_files(moment));
    let mut opening = bed.opening().files(files);
    opening.providers.shell = Some(Arc::new(Make(watch)));
    opening
}

fn unwatched(bed: &Bed) -> Opening {
    opening(bed, Arc::new(|_| {}))
}

/// The rights under which every call of the table waits for a yes.
fn rights(bed: &Bed) -> Vec<Grant> {
    let mut rights = bed.defaults();
    rights.push(Grant::ask(Resource::Shell, [Right::Execute]));
    rights
}

/// Makes the call with a person who says yes, and is killed at the given point: the N-th commit, or
/// the N-th moment before or after an act.
fn child(path: &str) {
    let var = |name| std::env::var(name).unwrap();
    let (call, point) = (var(CALL), var(POINT));
    let row = table().into_iter().find(|row| row.name == call).unwrap();
    let bed = Bed::at(path.as_ref());
    let die_at = move |what: &str, number: usize| {
        if point == format!("{what} {number}") {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
            unreachable!("nobody outlives this signal")
        }
    };
    life(async {
        let (acts, at) = (AtomicUsize::new(0), die_at.clone());
        let watch: Watch = Arc::new(move |moment| match moment {
            Moment::Applying => at("before act", acts.fetch_add(1, Ordering::SeqCst)),
            Moment::Applied => at("after act", acts.load(Ordering::SeqCst) - 1),
            _ => {}
        });
        let hook =
            Arc::new(move |commits: u64| die_at("commit", usize::try_from(commits).unwrap()));
        let kernel = opening(&bed, watch).hook(hook).open();
        Person::of(&kernel).always_says(true);
        let pid = bed.start_with(&kernel, &row.calls, rights(&bed)).await;
        kernel.wait(pid).await.unwrap();
    });
}

/// Whether the child was killed before it was through.
fn killed(bed: &Bed, call: &str, point: &str) -> bool {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", TEST])
        .env(CHILD, bed.path())
        .env(CALL, call)
        .env(POINT, point)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(
        status.success() || status.signal() == Some(9),
        "{call}, {point}: {status}"
    );
    status.signal() == Some(9)
}

type Contents = BTreeMap<PathBuf, (Option<Vec<u8>>, u32)>;

/// A workspace as it is before the call.
fn prepared(row: &Row) -> Bed {
    let bed = Bed::with(&[]);
    if !row.before.is_empty() {
        life(async {
            let kernel = bed.kernel();
            Person::of(&kernel).always_says(true);
            let pid = bed.start(&kernel, &row.before).await;
            results(&kernel, pid).await;
        });
    }
    bed
}

/// The workspace, by names within it.
fn contents(bed: &Bed) -> Contents {
    let all = bed.contents().into_iter();
    all.map(|(path, state)| (path.strip_prefix(bed.path()).unwrap().to_owned(), state))
        .collect()
}

/// Goes on after a crash with a person who gives that answer to all that is asked; how often they
/// were asked whether to do again what was perhaps done.
async fn go_on(bed: &Bed, yes: bool) -> usize {
    let kernel = unwatched(bed).open();
    let mut person = Person::of(&kernel);
    let mut repeats = 0;
    let unfinished = kernel.resume(None).await.unwrap();
    for _ in 0..unfinished {
        while let Some(asked) = person
            .hears(|event| match event {
                KernelEvent::Approval(approval) => Some(Some(*approval)),
                KernelEvent::Ended { .. } => Some(None),
                _ => None,
            })
            .await
        {
            repeats += usize::from(asked.risks.contains(&Risk::Repeat));
            person.says(&asked, yes).await;
        }
    }
    let all = rows(&kernel, None).await;
    for pid in kernel.processes().await.unwrap().iter().map(|p| p.pid) {
        let done = |row: &&steward_kernel::JournalRow| {
            row.pid == pid && row.kind == "outcome" && row.detail.starts_with("done: ")
        };
        let mut seqs: Vec<_> = all.iter().filter(done).map(|row| row.seq).collect();
        let count = seqs.len();
        seqs.dedup();
        assert_eq!(seqs.len(), count, "a call of process {pid} ended twice");
    }
    repeats
}

/// What is left in the journal of something that is over.
fn nothing_is_left(bed: &Bed, at: &str) {
    for left in [
        "approval WHERE state = 'pending'",
        "capability WHERE status = 'active'",
        "change WHERE state = 'executing'",
        "process WHERE state NOT IN ('exited','failed','killed')",
    ] {
        assert_eq!(
            bed.count(&format!("SELECT COUNT(*) FROM {left}")),
            0,
            "{at}: {left}"
        );
    }
}

/// One call killed at one point, and gone on with after each answer. False where there is no such
/// point.
fn killed_at(row: &Row, point: &str, before: &Contents, after: &Contents) -> bool {
    for yes in [true, false] {
        let at = format!(
            "{}, {point}, then {}",
            row.name,
            if yes { "yes" } else { "no" }
        );
        let bed = prepared(row);
        if !killed(&bed, row.name, point) {
            return false;
        }
        let found = contents(&bed);
        // An undo of several files is whole file by file.
        let several = row.name == "undo";
        assert!(
            several || found == *before || found == *after,
            "{at}: {found:?}"
        );
        let repeats = life(go_on(&bed, yes));
        let end = contents(&bed);
        match (yes, repeats) {
            // With a yes it is done, in the end, whatever was asked.
            (true, _) if found == *before => assert_eq!(end, *after, "{at}"),
            (true, _) => assert!(several || end == *after, "{at}: {end:?}"),
            // Without, what was found stays; or a yes from before the crash stood.
            (false, 0) => assert!(end == *before || end == *after, "{at}: {end:?}"),
            (false, _) => assert_eq!(end, found, "{at}: done again without a yes"),
        }
        if !several {
            nothing_is_left(&bed, &at);
        }
    }
    true
}

#[test]
fn every_change_is_whole_and_done_at_most_once_whenever_it_is_killed() {
    if let Ok(path) = std::env::var(CHILD) {
        return child(&path);
    }
    for row in table() {
        let bed = prepared(&row);
        let before = contents(&bed);
        life(async {
            let kernel = unwatched(&bed).open();
            Person::of(&kernel).always_says(true);
            let pid = bed.start_with(&kernel, &row.calls, rights(&bed)).await;
            results(&kernel, pid).await;
        });
        let after = contents(&bed);
        assert_ne!(before, after, "{}: it does nothing", row.name);
        let mut points = 0;
        for (what, first) in [("commit", 1), ("before act", 0), ("after act", 0)] {
            let mut number = first;
            while killed_at(&row, &format!("{what} {number}"), &before, &after) {
                number += 1;
                assert!(number < POINTS_MOST, "{}: it does not end", row.name);
            }
            assert!(number > first, "{}: no point `{what}`", row.name);
            points += number - first;
        }
        // Made, intended, asked, decided, executing, outcome, ended; before and after the act.
        assert!(points >= 9, "{}: {points} points only", row.name);
    }
}

/// Where it cannot be done again, that is not told as if it had not been done.
#[test]
fn a_program_that_was_perhaps_run_stays_unknown_where_none_can_be_run() {
    for point in ["before act 0", "after act 0"] {
        let bed = Bed::with(&[]);
        assert!(killed(&bed, "run", point));
        life(async {
            let kernel = bed.kernel();
            kernel.resume(None).await.unwrap();
            let told = codes(&results(&kernel, Pid(1)).await);
            assert_eq!(told, [Err(Code::Unknown)], "{point}");
        });
    }
}
