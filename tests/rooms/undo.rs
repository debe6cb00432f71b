//! Undo: a run's changes put back exactly, a person's later edits kept, and an undo undone.

use serde_json::{Value, json};
use steward_kernel::capability::workspace_defaults;
use steward_kernel::human::EffectKind;
use steward_kernel::{Code, Kernel, Pid, Submission};

use crate::bed::{Bed, Person, codes, delete, mkdir, read, rename, results, script, undo, write};
use crate::stand_ins::Results;

fn bed() -> Bed {
    let bed = Bed::with(&[
        ("a", "a"),
        ("b", "b"),
        ("run.sh", "#!/bin/sh"),
        ("secret", "secret"),
        ("d/f", "f"),
        ("d/e/g", "g"),
        ("empty/", ""),
    ]);
    for (path, mode) in [("a", 0o640), ("run.sh", 0o755), ("secret", 0o600)] {
        bed.set_mode(path, mode);
    }
    bed
}

/// Makes the calls with a yes to everything.
async fn with_yes(bed: &Bed, kernel: &Kernel, calls: &[Value]) -> (Pid, Results) {
    let pid = bed.start(kernel, calls).await;
    (pid, results(kernel, pid).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_run_did_is_undone_exactly_and_the_undo_too() {
    let rows: Vec<(&str, Vec<Value>)> = vec![
        ("create", vec![write("new", "text")]),
        ("create in new folders", vec![write("x/y/new", "text")]),
        ("overwrite", vec![write("a", "text")]),
        ("overwrite a program", vec![write("run.sh", "text")]),
        ("overwrite a private file", vec![write("secret", "")]),
        ("overwrite twice", vec![write("a", "1"), write("a", "2")]),
        ("there and back", vec![write("a", "1"), write("a", "a")]),
        ("delete", vec![delete("a")]),
        ("delete a program", vec![delete("run.sh")]),
        ("delete a folder", vec![delete("empty")]),
        (
            "delete a file and its folder",
            vec![delete("d/e/g"), delete("d/e")],
        ),
        ("move", vec![rename("a", "c")]),
        ("move into new folders", vec![rename("a", "x/y/c")]),
        ("move onto a file", vec![rename("a", "run.sh")]),
        ("move a folder", vec![rename("d", "moved")]),
        ("make a folder", vec![mkdir("x/y")]),
        ("create and delete", vec![write("new", "1"), delete("new")]),
        (
            "delete and create",
            vec![delete("secret"), write("secret", "2")],
        ),
        (
            "swap",
            vec![rename("a", "t"), rename("b", "a"), rename("t", "b")],
        ),
        (
            "write, move, write",
            vec![write("a", "1"), rename("a", "c"), write("c", "2")],
        ),
        (
            "write in a folder before and after it moves",
            vec![write("d/f", "1"), rename("d", "m"), write("m/f", "2")],
        ),
        (
            "a folder moves away and another takes its place",
            vec![rename("d", "m"), write("d/f", "1"), delete("m/e/g")],
        ),
        (
            "many",
            vec![
                mkdir("x"),
                rename("b", "x/b"),
                write("x/b", "1"),
                write("x/new", "2"),
                delete("secret"),
                rename("x", "z"),
                write("a", "3"),
            ],
        ),
    ];
    for (name, calls) in rows {
        let bed = bed();
        let kernel = bed.kernel();
        Person::of(&kernel).always_says(true);
        let before = bed.contents();
        let (run, done) = with_yes(&bed, &kernel, &calls).await;
        assert!(done.iter().all(Result::is_ok), "{name}: {done:?}");
        let after = bed.contents();
        let (first, undone) = with_yes(&bed, &kernel, &[undo(Some(run))]).await;
        assert_eq!(codes(&undone), [Ok(())], "{name}: {undone:?}");
        let kept = &undone[0].as_ref().unwrap()["kept"];
        assert_eq!(*kept, json!([]), "{name}");
        assert_eq!(bed.contents(), before, "{name}: undone");
        let (_, redone) = with_yes(&bed, &kernel, &[undo(Some(first))]).await;
        assert_eq!(codes(&redone), [Ok(())], "{name}: {redone:?}");
        assert_eq!(bed.contents(), after, "{name}: the undo undone");
        let (_, again) = with_yes(&bed, &kernel, &[undo(Some(run))]).await;
        assert_eq!(codes(&again), [Err(Code::NotFound)], "{name}: undone twice");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bits_that_lend_rights_come_back_with_the_bytes() {
    let bed = bed();
    bed.set_mode("run.sh", 0o4755);
    let before = bed.contents();
    let kernel = bed.kernel();
    Person::of(&kernel).always_says(true);
    let (run, _) = with_yes(&bed, &kernel, &[write("run.sh", "text")]).await;
    assert_ne!(bed.contents(), before);
    with_yes(&bed, &kernel, &[undo(Some(run))]).await;
    assert_eq!(bed.contents(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_changed_since_is_kept_and_told() {
    type Meddle = fn(&Bed);
    // What the run does, what the person does then, and which paths are kept as they are.
    let rows: Vec<(&str, Vec<Value>, Meddle, &[&str])> = vec![
        (
            "an edit of one of two",
            vec![write("a", "1"), write("new", "2")],
            |bed| bed.fill("a", "mine"),
            &["a"],
        ),
        (
            "an edit of a new file",
            vec![write("x/new", "1")],
            |bed| bed.fill("x/new", "mine"),
            &["x/new"],
        ),
        (
            "a new file where one was deleted",
            vec![delete("a")],
            |bed| bed.fill("a", "mine"),
            &["a"],
        ),
        (
            "a new file where one was moved from",
            vec![rename("a", "c")],
            |bed| bed.fill("a", "mine"),
            &["a"],
        ),
        (
            "a file that was moved, then removed",
            vec![rename("a", "c"), write("b", "1")],
            |bed| std::fs::remove_file(bed.root.join("c")).unwrap(),
            &["a"],
        ),
    ];
    for (name, calls, meddle, kept) in rows {
        let bed = bed();
        let kernel = bed.kernel();
        Person::of(&kernel).always_says(true);
        let (run, done) = with_yes(&bed, &kernel, &calls).await;
        assert!(done.iter().all(Result::is_ok), "{name}: {done:?}");
        meddle(&bed);
        let mine = bed.contents();
        let (_, undone) = with_yes(&bed, &kernel, &[undo(Some(run))]).await;
        let undone = undone[0].as_ref().unwrap();
        let told = undone["kept"].as_array().unwrap();
        assert_eq!(told.len(), kept.len(), "{name}: {undone}");
        for (path, told) in kept.iter().zip(told) {
            let starts = told.as_str().unwrap().starts_with(&format!("{path}: "));
            assert!(starts, "{name}: {undone}");
            let at = bed.root.join(path);
            assert_eq!(bed.contents().get(&at), mine.get(&at), "{name}");
        }
        let restored = undone["restored"].as_array().unwrap().len();
        assert_eq!(restored, calls.len() - 1, "{name}: {undone}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undo_asks_with_each_path_and_a_no_leaves_all_as_it_is() {
    let bed = bed();
    let kernel = bed.kernel();
    let mut person = Person::of(&kernel);
    let run = bed
        .start(&kernel, &[write("x/new", "1"), delete("a")])
        .await;
    for _ in 0..2 {
        let asked = person.is_asked().await;
        person.says(&asked, true).await;
    }
    kernel.wait(run).await.unwrap();
    let after = bed.print();
    let undoing = bed.start(&kernel, &[undo(None)]).await;
    let asked = person.is_asked().await;
    assert_eq!(asked.kind, EffectKind::Undo);
    let items = [
        "put back a",
        "delete x/new, which the run made",
        "delete the folder x if it is empty",
    ];
    assert_eq!(asked.items, items);
    person.says(&asked, false).await;
    let refused = results(&kernel, undoing).await;
    assert_eq!(codes(&refused), [Err(Code::Refused)]);
    assert_eq!(bed.print(), after);

    // What changes after the question is asked anew.
    let undoing = bed.start(&kernel, &[undo(Some(run))]).await;
    let first = person.is_asked().await;
    bed.fill("x/new", "mine");
    person.says(&first, true).await;
    let second = person.is_asked().await;
    assert_ne!((first.id, &first.digest), (second.id, &second.digest));
    assert_eq!(second.items[1], "keep x/new: it was changed since");
    person.says(&second, true).await;
    assert_eq!(codes(&results(&kernel, undoing).await), [Ok(())]);
    assert_eq!(
        (bed.text("a"), bed.text("x/new")),
        ("a".into(), "mine".into())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_undone_is_told_clearly() {
    let bed = bed();
    let kernel = bed.kernel();
    Person::of(&kernel).always_says(true);
    let code = async |calls: &[Value]| {
        let (_, results) = with_yes(&bed, &kernel, calls).await;
        let error = results[0].clone().unwrap_err();
        assert!(error.hint.is_some(), "{error:?}");
        error.code
    };
    assert_eq!(code(&[undo(None)]).await, Code::NotFound, "nothing yet");
    assert_eq!(code(&[undo(Some(Pid(99)))]).await, Code::NotFound, "no run");
    let (reader, _) = with_yes(&bed, &kernel, &[read("a")]).await;
    assert_eq!(
        code(&[undo(Some(reader))]).await,
        Code::NotFound,
        "only read"
    );

    let (run, _) = with_yes(&bed, &kernel, &[write("a", "1")]).await;
    let elsewhere = Submission {
        image: "script".to_owned(),
        goal: script(&[undo(Some(run)), undo(None)]),
        workspace: bed.outside.clone(),
        grants: workspace_defaults(&bed.outside),
        after: None,
        budget: steward_kernel::budget::Budget::default(),
    };
    let pid = kernel.submit(elsewhere).await.unwrap().pid;
    let denied = results(&kernel, pid).await;
    assert_eq!(codes(&denied), [Err(Code::Denied), Err(Code::NotFound)]);
    assert_eq!(bed.text("a"), "1");
}
