//! kill -9 after each commit of one approved overwrite, and around the act itself: what is found
//! afterwards, and how it ends once the person has answered.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::Arc;

use steward_kernel::human::{Approval, Risk};
use steward_kernel::{Code, Kernel, KernelEvent, Pid};

use crate::bed::{Bed, Person, codes, outcomes, results, rows, write};
use crate::stand_ins::Watched;

const CHILD: &str = "STEWARD_TEST_CRASH";
const WHEN: &str = "STEWARD_TEST_CRASH_WHEN";

fn die() -> ! {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
        .unwrap();
    unreachable!("nobody outlives this signal")
}

/// Overwrites a file with a person's yes, and is killed when `WHEN` says: after the N-th commit, or
/// at a moment of the file provider.
fn overwrite(path: &str) {
    let when = std::env::var(WHEN).unwrap();
    let bed = Bed::at(path.as_ref());
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let moment = when.clone();
        let files = Watched::new(bed.store(), move |now| {
            if format!("{now:?}") == moment {
                die();
            }
        });
        let hook = Arc::new(move |commits: u64| {
            if commits.to_string() == when {
                die();
            }
        });
        let kernel = bed.opening().files(files).hook(hook).open();
        Person::of(&kernel).always_says(true);
        let pid = bed.start(&kernel, &[write("f", "new")]).await;
        kernel.wait(pid).await.unwrap();
    });
}

/// Whether it was killed before it was through.
fn killed(bed: &Bed, when: &str) -> bool {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", TEST])
        .env(CHILD, bed.path())
        .env(WHEN, when)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success() || status.signal() == Some(9), "{status}");
    status.signal() == Some(9)
}

/// What was found after one crash.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    /// The file, right after.
    file: String,
    /// Approvals that wait before anything is resumed.
    waits: Vec<u64>,
    /// What the person is asked once it goes on: the approval, and whether it is about a repeat.
    asked: Option<(u64, bool)>,
    /// The file, and how often it was set out to act, after a yes to that.
    yes: (String, usize),
    /// The same after a no.
    no: (String, usize),
    /// How the call ended after a no, where it was asked about.
    told: Option<Code>,
}

fn found(
    file: &str,
    waits: &[u64],
    asked: Option<(u64, bool)>,
    yes: (&str, usize),
    no: (&str, usize),
    told: Option<Code>,
) -> Found {
    Found {
        file: file.to_owned(),
        waits: waits.to_vec(),
        asked,
        yes: (yes.0.to_owned(), yes.1),
        no: (no.0.to_owned(), no.1),
        told,
    }
}

async fn acts(kernel: &Kernel) -> usize {
    let all = rows(kernel, None).await;
    all.iter().filter(|row| row.kind == "executing").count()
}

/// The first thing that the resumed process asks, or that it has ended.
async fn asks_or_ends(person: &mut Person) -> Option<Approval> {
    person
        .hears(|event| match event {
            KernelEvent::Approval(approval) => Some(Some(*approval)),
            KernelEvent::Ended { .. } => Some(None),
            _ => None,
        })
        .await
}

/// Goes on after a crash and answers what is asked. The state found, and how it ended.
async fn go_on(bed: &Bed, answer: bool) -> (Found, (String, usize), Option<Code>) {
    let kernel = bed.kernel();
    let file = bed.text("f");
    let waiting = kernel.approvals().await.unwrap();
    let before = rows(&kernel, None).await;
    let acts_before = acts(&kernel).await;
    let mut person = Person::of(&kernel);
    let resumed = kernel.resume(None).await.unwrap();
    let asked = match resumed {
        0 => None,
        _ => asks_or_ends(&mut person).await,
    };
    if let Some(asked) = &asked {
        // Nothing happens by itself.
        assert_eq!(bed.text("f"), file);
        assert_eq!(acts(&kernel).await, acts_before);
        let repeat = asked.risks.contains(&Risk::Repeat);
        assert_eq!(repeat, acts_before > 0, "a repeat is told as such");
        let unknown = rows(&kernel, None).await;
        let unknown = unknown
            .iter()
            .any(|row| row.detail.starts_with("unknown: "));
        assert_eq!(unknown, repeat);
        person.says(asked, answer).await;
    }
    let pid = Pid(1);
    let told = match resumed {
        0 => None,
        _ => codes(&results(&kernel, pid).await)[0].err(),
    };
    // Every row that stood before stands as it was; and each call that ended says so once.
    assert!(rows(&kernel, None).await.starts_with(&before));
    let ends = outcomes(&kernel, pid).await;
    let ends = ends.iter().filter(|row| row.starts_with("done: "));
    assert!(ends.count() <= 1);
    assert_eq!(kernel.approvals().await.unwrap(), []);
    let usable = "SELECT COUNT(*) FROM capability WHERE status = 'active'";
    assert_eq!(bed.count(usable), 0);
    let end = (bed.text("f"), acts(&kernel).await);
    let found = Found {
        file,
        waits: waiting.iter().map(|approval| approval.id).collect(),
        asked: asked.map(|a| (a.id, a.risks.contains(&Risk::Repeat))),
        yes: end.clone(),
        no: end.clone(),
        told,
    };
    (found, end, told)
}

const TEST: &str =
    "crash::an_approved_overwrite_is_whole_and_done_at_most_once_whenever_it_is_killed";

#[test]
fn an_approved_overwrite_is_whole_and_done_at_most_once_whenever_it_is_killed() {
    if let Ok(path) = std::env::var(CHILD) {
        return overwrite(&path);
    }
    let refused = Some(Code::Refused);
    let unknown = Some(Code::Unknown);
    let rows = [
        // The process is made.
        (
            "1",
            found(
                "old",
                &[],
                Some((1, false)),
                ("new", 1),
                ("old", 0),
                refused,
            ),
        ),
        // The intent is written down.
        (
            "2",
            found(
                "old",
                &[],
                Some((1, false)),
                ("new", 1),
                ("old", 0),
                refused,
            ),
        ),
        // The question is asked.
        (
            "3",
            found(
                "old",
                &[1],
                Some((1, false)),
                ("new", 1),
                ("old", 0),
                refused,
            ),
        ),
        // The person has said yes: that stands, and is acted on once.
        ("4", found("old", &[], None, ("new", 1), ("new", 1), None)),
        // It is about to act.
        (
            "5",
            found("old", &[], Some((2, true)), ("new", 2), ("old", 1), unknown),
        ),
        (
            "Applying",
            found("old", &[], Some((2, true)), ("new", 2), ("old", 1), unknown),
        ),
        // It has acted, and that is not written down.
        (
            "Applied",
            found("new", &[], Some((2, true)), ("new", 2), ("new", 1), unknown),
        ),
        // The outcome is written down.
        ("6", found("new", &[], None, ("new", 1), ("new", 1), None)),
        // The process has ended.
        ("7", found("new", &[], None, ("new", 1), ("new", 1), None)),
    ];
    let mut all = Vec::new();
    for (when, expected) in rows {
        let mut got = None;
        for answer in [true, false] {
            let bed = Bed::with(&[("f", "old")]);
            assert!(killed(&bed, when), "there is no commit {when}");
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let (found, end, told) = runtime.block_on(go_on(&bed, answer));
            match &mut got {
                None => {
                    assert_eq!(told, None, "{when}: after a yes");
                    got = Some(found);
                }
                Some(got) => {
                    let state = (&got.file, &got.waits, &got.asked);
                    assert_eq!(state, (&found.file, &found.waits, &found.asked), "{when}");
                    (got.no, got.told) = (end, told);
                }
            }
        }
        all.push((when, got.unwrap(), expected));
    }
    let table: Vec<String> = all
        .iter()
        .map(|(when, got, _)| format!("{when}: {got:?}"))
        .collect();
    for (when, got, expected) in &all {
        assert_eq!(got, expected, "{when}; in all:\n{}", table.join("\n"));
    }
    let bed = Bed::with(&[("f", "old")]);
    assert!(!killed(&bed, "8"), "a commit is missing in this test");
}

/// After an effect that was perhaps had, an undo still finds it.
#[test]
fn what_was_perhaps_done_can_be_undone() {
    for answer in [true, false] {
        let bed = Bed::with(&[("f", "old")]);
        assert!(killed(&bed, "Applied"));
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            go_on(&bed, answer).await;
            assert_eq!(bed.text("f"), "new");
            let kernel = bed.kernel();
            Person::of(&kernel).always_says(true);
            let undo = bed.start(&kernel, &[crate::bed::undo(None)]).await;
            assert_eq!(codes(&results(&kernel, undo).await), [Ok(())]);
            assert_eq!(bed.text("f"), "old", "after the answer {answer}");
        });
    }
}
