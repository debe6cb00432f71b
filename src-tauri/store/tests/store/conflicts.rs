//! What happens between the question and the yes.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU32, Ordering};

use steward_kernel::Code;
use steward_kernel::provider::{Change, Files};

use crate::bed::{Bed, delete, mkdir, rename, restore, write};

const ENTRIES: &[(&str, &str)] = &[("a", "a"), ("b", "b"), ("d/f", "f"), ("empty/", "")];

#[test]
fn a_change_in_between_makes_the_plan_void() {
    type Meddle = fn(&Bed);
    let rows: &[(&str, Change, Meddle)] = &[
        ("other bytes", write("a", "new"), |b| b.fill("a", "other")),
        ("other bytes of the same length", write("a", "new"), |b| {
            b.fill("a", "A");
        }),
        ("another mode", write("a", "new"), |b| {
            let mode = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(b.root.join("a"), mode).unwrap();
        }),
        ("gone", write("a", "new"), |b| {
            std::fs::remove_file(b.root.join("a")).unwrap();
        }),
        ("a folder now", write("a", "new"), |b| {
            std::fs::remove_file(b.root.join("a")).unwrap();
            b.fill("a/", "");
        }),
        ("there now", write("new", "new"), |b| b.fill("new", "other")),
        ("there now, as a folder", mkdir("new"), |b| {
            b.fill("new/", "");
        }),
        ("a parent gone", write("d/new", "new"), |b| {
            std::fs::remove_dir_all(b.root.join("d")).unwrap();
        }),
        ("other bytes", delete("a"), |b| b.fill("a", "other")),
        ("gone", delete("a"), |b| {
            std::fs::remove_file(b.root.join("a")).unwrap();
        }),
        ("not empty any more", delete("empty"), |b| {
            b.fill("empty/x", "x");
        }),
        ("other bytes", rename("a", "c"), |b| b.fill("a", "other")),
        ("the target there now", rename("a", "c"), |b| {
            b.fill("c", "other");
        }),
        ("the target's bytes", rename("a", "b"), |b| {
            b.fill("b", "other");
        }),
        ("the target gone", rename("a", "b"), |b| {
            std::fs::remove_file(b.root.join("b")).unwrap();
        }),
        ("other bytes", restore("a", b"kept", 0o644), |b| {
            b.fill("a", "other");
        }),
    ];
    for (name, change, meddle) in rows {
        let bed = Bed::with(ENTRIES);
        bed.fill("once", "kept");
        bed.change(&write("once", "over")).unwrap();
        let plan = bed.files.plan(&bed.root, change).unwrap();
        meddle(&bed);
        let meddled = bed.workspace_now();
        let error = bed.files.apply(&bed.root, change, &plan).unwrap_err();
        assert_eq!(error.code, Code::Conflict, "{name}, {change:?}: {error}");
        assert_eq!(bed.workspace_now(), meddled, "{name}, {change:?}");
    }
}

#[test]
fn a_plan_is_good_for_exactly_its_change() {
    let rows: &[(Change, Change)] = &[
        (write("a", "shown"), write("a", "other")),
        (write("a", "shown"), write("b", "shown")),
        (write("a", "shown"), delete("a")),
        (rename("a", "x"), rename("a", "y")),
        (rename("a", "x"), delete("a")),
        (restore("a", b"kept", 0o644), restore("a", b"kept", 0o755)),
    ];
    for (shown, other) in rows {
        let bed = Bed::with(ENTRIES);
        bed.fill("once", "kept");
        bed.change(&write("once", "over")).unwrap();
        let plan = bed.files.plan(&bed.root, shown).unwrap();
        let untouched = bed.workspace_now();
        let outcome = bed.files.apply(&bed.root, other, &plan).map_err(|e| e.code);
        assert!(
            matches!(outcome, Err(Code::Conflict | Code::Invalid)),
            "{other:?}: {outcome:?}"
        );
        assert_eq!(bed.workspace_now(), untouched, "{other:?}");
    }
}

#[test]
fn two_plans_may_make_the_same_folder() {
    let bed = Bed::new();
    let changes = [write("out/a", "a"), write("out/b", "b")];
    let plans = changes
        .each_ref()
        .map(|change| bed.files.plan(&bed.root, change).unwrap());
    for (change, plan) in changes.iter().zip(&plans) {
        bed.files.apply(&bed.root, change, plan).unwrap();
    }
    assert_eq!(
        (bed.text("out/a"), bed.text("out/b")),
        ("a".to_owned(), "b".to_owned())
    );
}

/// Each of six adds its line to the version that it read; who is told of a conflict reads anew.
#[test]
fn six_parallel_edits_are_all_there_and_the_losers_were_told() {
    let bed = Bed::with(&[("f", "")]);
    let conflicts = AtomicU32::new(0);
    let barrier = std::sync::Barrier::new(6);
    std::thread::scope(|scope| {
        for line in ["1\n", "2\n", "3\n", "4\n", "5\n", "6\n"] {
            let (bed, conflicts, barrier) = (&bed, &conflicts, &barrier);
            scope.spawn(move || {
                let mut first = true;
                loop {
                    let (change, plan) = loop {
                        let read = bed.files.read(&bed.root, "f", 0, 100).unwrap();
                        let text = String::from_utf8(read.bytes).unwrap() + line;
                        let change = write("f", &text);
                        let plan = bed.files.plan(&bed.root, &change).unwrap();
                        // As the kernel does it: the plan must be of the version that was read.
                        if matches!(&plan.before, steward_kernel::provider::PathState::File { sha256, .. } if Some(sha256) == read.sha256.as_ref()) {
                            break (change, plan);
                        }
                    };
                    if std::mem::take(&mut first) {
                        barrier.wait();
                    }
                    match bed.files.apply(&bed.root, &change, &plan) {
                        Ok(()) => return,
                        Err(error) => assert_eq!(error.code, Code::Conflict, "{error}"),
                    }
                    conflicts.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let mut lines: Vec<String> = bed.text("f").lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["1", "2", "3", "4", "5", "6"]);
    assert!(
        conflicts.load(Ordering::Relaxed) >= 5,
        "all six began from one version"
    );
}
