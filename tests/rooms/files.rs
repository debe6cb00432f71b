//! Files: what a process may reach, what is asked first, and what happens when the files change
//! before the yes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, Mode};
use serde_json::{Value, json};
use steward_kernel::human::{EffectKind, Risk};
use steward_kernel::syscall::{FsRead, FsWrite};
use steward_kernel::{Code, Exit, ProcessState};

use crate::bed::{
    Bed, Person, codes, delete, mkdir, outcomes, read, rename, results, sha256, until, write,
    write_on,
};
use crate::stand_ins::Table;

const ENTRIES: &[(&str, &str)] = &[("inside", "inside"), ("d/f", "f"), ("empty/", "")];

fn bed() -> Bed {
    let bed = Bed::with(ENTRIES);
    bed.set_mode("inside", 0o640);
    bed
}

/// Every call that takes a path, with it in each place that takes one.
fn every_call(path: &str) -> Vec<Value> {
    vec![
        read(path),
        json!(["fs.list", { "path": path }]),
        json!(["fs.stat", { "path": path }]),
        write(path, "new"),
        mkdir(path),
        delete(path),
        rename(path, "free"),
        rename("inside", path),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_leads_out_or_is_no_file_is_denied_unasked_and_journaled() {
    type Setup = fn(&Bed);
    let rows: &[(&str, &str, Setup)] = &[
        ("upwards", "../outside/secret", |_| {}),
        ("upwards by a folder", "d/../../outside/secret", |_| {}),
        ("absolute", "/etc/hostname", |_| {}),
        ("a link as the file", "link", |b| {
            symlink(b.outside.join("secret"), b.root.join("link")).unwrap();
        }),
        ("a link as a parent", "link/secret", |b| {
            symlink(&b.outside, b.root.join("link")).unwrap();
        }),
        ("a dangling link", "link", |b| {
            symlink(b.outside.join("none"), b.root.join("link")).unwrap();
        }),
        ("a FIFO", "odd", |b| {
            let mode = Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(CWD, b.root.join("odd"), FileType::Fifo, mode, 0).unwrap();
        }),
        ("a socket", "odd", |b| {
            drop(UnixListener::bind(b.root.join("odd")).unwrap());
        }),
    ];
    for (name, path, setup) in rows {
        let bed = bed();
        setup(&bed);
        let before = bed.print();
        let kernel = bed.kernel();
        let pid = bed.start(&kernel, &every_call(path)).await;
        let results = results(&kernel, pid).await;
        for (call, result) in every_call(path).iter().zip(codes(&results)) {
            // To be listed, it must be a folder: the system says first that it is none.
            let code = match (call[0].as_str(), *path) {
                (Some("fs.list"), "odd") => Code::NotFound,
                _ => Code::Confined,
            };
            assert_eq!(result, Err(code), "{name}: {call}");
        }
        let outcomes = outcomes(&kernel, pid).await;
        assert_eq!(outcomes.len(), results.len(), "{name}");
        let denied = outcomes.iter().filter(|row| row.starts_with("denied: "));
        let expected = results.len() - usize::from(*path == "odd");
        assert_eq!(denied.count(), expected, "{name}: {outcomes:?}");
        assert_eq!(bed.print(), before, "{name}");
        assert_eq!(bed.count("SELECT COUNT(*) FROM approval"), 0, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_names_are_a_clear_error_or_an_exact_round_trip() {
    let bed = bed();
    let broken = OsStr::from_bytes(b"a\xffb");
    std::fs::write(bed.root.join(broken), "bytes").unwrap();
    let long = "n".repeat(300);
    let lossy = broken.to_string_lossy();
    let rows: &[(&str, Result<(), Code>)] = &[
        ("a\0b", Err(Code::Invalid)),
        (&long, Err(Code::Invalid)),
        ("", Err(Code::Invalid)),
        (".", Err(Code::Invalid)),
        ("line\nbreak", Ok(())),
        (" 笔记 \u{202e}.md ", Ok(())),
        ("-rf", Ok(())),
        ("'\"$(x)`", Ok(())),
    ];
    let kernel = bed.kernel();
    Person::of(&kernel).always_says(true);
    for (name, outcome) in rows {
        let pid = bed.start(&kernel, &[write(name, "text"), read(name)]).await;
        let results = results(&kernel, pid).await;
        assert_eq!(codes(&results), [*outcome, *outcome], "{name:?}");
        match &results[1] {
            Ok(text) => {
                assert_eq!(text["text"], "text", "{name:?}");
                assert_eq!(bed.text(name), "text", "{name:?}");
            }
            Err(error) => assert!(error.hint.is_some(), "{error:?}"),
        }
    }
    let pid = bed
        .start(&kernel, &[json!(["fs.list", {}]), read(&lossy)])
        .await;
    let results = results(&kernel, pid).await;
    let entries = results[0].as_ref().unwrap()["entries"].as_array().unwrap();
    assert!(entries.iter().any(|entry| entry["name"] == *lossy));
    assert_eq!(codes(&results)[1], Err(Code::NotFound));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_change_asks_first_and_a_no_leaves_all_as_it_was() {
    use EffectKind::{Create, Delete, MakeFolder, Move, Overwrite, Replace};
    let rows: Vec<(Value, EffectKind, Option<u64>, Option<u64>)> = vec![
        (write("new", "text"), Create, None, Some(4)),
        (write("inside", "text"), Overwrite, Some(6), Some(4)),
        (delete("inside"), Delete, Some(6), None),
        (delete("empty"), Delete, None, None),
        (rename("inside", "to"), Move, Some(6), None),
        (rename("inside", "d/f"), Replace, Some(6), None),
        (mkdir("new/folder"), MakeFolder, None, None),
    ];
    for (call, kind, before, after) in rows {
        let bed = bed();
        let print = bed.print();
        let kernel = bed.kernel();
        let mut person = Person::of(&kernel);
        let pid = bed.start(&kernel, &[call.clone(), read("d/f")]).await;
        let asked = person.is_asked().await;
        assert_eq!(
            (asked.kind, asked.bytes_before, asked.bytes_after),
            (kind, before, after),
            "{call}"
        );
        let path = call[1]["path"].as_str().or(call[1]["from"].as_str());
        let absolute = bed.root.join(path.unwrap());
        assert_eq!(asked.path, absolute.to_str().unwrap());
        person.says(&asked, false).await;
        let results = results(&kernel, pid).await;
        // The process is told, and goes on.
        assert_eq!(codes(&results), [Err(Code::Refused), Ok(())], "{call}");
        assert!(outcomes(&kernel, pid).await[0].starts_with("denied: "));
        assert_eq!(bed.print(), print, "{call}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_yes_does_exactly_what_was_shown() {
    let bed = bed();
    let kernel = bed.kernel();
    let mut person = Person::of(&kernel);
    // A byte order mark, CRLF and no last line end: the bytes are the caller's.
    let text = "\u{feff}one\r\ntwo\r\n三";
    let pid = bed.start(&kernel, &[write("inside", text)]).await;
    let asked = person.is_asked().await;
    assert_eq!(asked.sha256.as_ref().unwrap().0, sha256(text.as_bytes()));
    assert_eq!(asked.bytes_after, Some(text.len() as u64));
    person.says(&asked, true).await;
    let results = results(&kernel, pid).await;
    assert_eq!(results[0].as_ref().unwrap()["overwritten"], true);
    assert_eq!(bed.text("inside"), text);
    let mode = std::fs::metadata(bed.root.join("inside"))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o7777, 0o640);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hard_link_to_a_file_outside_is_broken_not_written_through() {
    for call in [
        write("hard", "new"),
        delete("hard"),
        rename("inside", "hard"),
    ] {
        let bed = bed();
        let secret = bed.outside.join("secret");
        std::fs::hard_link(&secret, bed.root.join("hard")).unwrap();
        let kernel = bed.kernel();
        Person::of(&kernel).always_says(true);
        let pid = bed.start(&kernel, std::slice::from_ref(&call)).await;
        assert_eq!(codes(&results(&kernel, pid).await), [Ok(())], "{call}");
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "outside");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changed_after_the_question_is_asked_anew_and_the_yes_is_void() {
    type Meddle = fn(&Bed);
    let rows: &[(&str, Value, Meddle)] = &[
        ("other bytes", write("inside", "new"), |b| {
            b.fill("inside", "other");
        }),
        ("bytes of the same length", write("inside", "new"), |b| {
            b.fill("inside", "INSIDE");
        }),
        ("another mode", write("inside", "new"), |b| {
            b.set_mode("inside", 0o600);
        }),
        ("gone", write("inside", "new"), |b| {
            std::fs::remove_file(b.root.join("inside")).unwrap();
        }),
        ("there now", write("new", "new"), |b| b.fill("new", "other")),
        ("other bytes", delete("inside"), |b| {
            b.fill("inside", "other");
        }),
        ("the target there now", rename("inside", "to"), |b| {
            b.fill("to", "other");
        }),
        ("the target's bytes", rename("inside", "d/f"), |b| {
            b.fill("d/f", "other");
        }),
        ("a parent gone", write("d/new", "new"), |b| {
            std::fs::remove_dir_all(b.root.join("d")).unwrap();
        }),
    ];
    for (name, call, meddle) in rows {
        let bed = bed();
        let kernel = bed.kernel();
        let mut person = Person::of(&kernel);
        let pid = bed.start(&kernel, std::slice::from_ref(call)).await;
        let first = person.is_asked().await;
        meddle(&bed);
        let meddled = bed.print();
        person.says(&first, true).await;
        let second = person.is_asked().await;
        assert_ne!(first.id, second.id, "{name}: {call}");
        assert_ne!(first.digest, second.digest, "{name}: {call}");
        assert_eq!(bed.print(), meddled, "{name}: {call}");
        let state = kernel.process(pid).await.unwrap().state;
        assert!(!state.is_final(), "{name}: {call}");
        // The first yes is spent: neither it nor a later one to it counts for the second.
        let usable = "SELECT COUNT(*) FROM capability WHERE issuer = 'person'
                      AND uses_left = 1 AND status = 'active'";
        assert_eq!(bed.count(usable), 0, "{name}: {call}");
        person.says(&first, true).await;
        assert_eq!(bed.print(), meddled, "{name}: {call}");
        person.says(&second, true).await;
        assert_eq!(codes(&results(&kernel, pid).await), [Ok(())], "{name}");
        assert_ne!(bed.print(), meddled, "{name}: {call}");
        let acted = "SELECT COUNT(*) FROM journal WHERE kind = 'executing'";
        assert_eq!(bed.count(acted), 1, "{name}: {call}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_swapped_in_after_the_question_is_denied() {
    for call in [write("d/secret", "new"), delete("d/f"), mkdir("d/new")] {
        let bed = bed();
        let kernel = bed.kernel();
        let mut person = Person::of(&kernel);
        let pid = bed.start(&kernel, std::slice::from_ref(&call)).await;
        let asked = person.is_asked().await;
        std::fs::rename(bed.root.join("d"), bed.root.join("was-d")).unwrap();
        symlink(&bed.outside, bed.root.join("d")).unwrap();
        let swapped = bed.print();
        person.says(&asked, true).await;
        let results = results(&kernel, pid).await;
        assert_eq!(codes(&results), [Err(Code::Confined)], "{call}");
        assert!(outcomes(&kernel, pid).await[0].starts_with("denied: "));
        assert_eq!(bed.print(), swapped, "{call}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_edits_from_one_version_the_second_is_a_conflict() {
    let bed = bed();
    let kernel = bed.kernel();
    let mut person = Person::of(&kernel);
    let first = bed
        .start(&kernel, &[write_on("inside", "first", "inside")])
        .await;
    let first_asked = person.is_asked().await;
    let second = bed
        .start(&kernel, &[write_on("inside", "second", "inside")])
        .await;
    let second_asked = person.is_asked().await;
    person.says(&first_asked, true).await;
    assert_eq!(codes(&results(&kernel, first).await), [Ok(())]);
    person.says(&second_asked, true).await;
    let told = results(&kernel, second).await;
    assert_eq!(codes(&told), [Err(Code::Conflict)]);
    assert!(told[0].as_ref().unwrap_err().hint.is_some());
    assert_eq!(bed.text("inside"), "first");
    // And one made from a version that was gone before it asked does not ask at all.
    let late = bed
        .start(&kernel, &[write_on("inside", "late", "inside")])
        .await;
    assert_eq!(codes(&results(&kernel, late).await), [Err(Code::Conflict)]);
    assert_eq!(bed.count("SELECT COUNT(*) FROM approval"), 2);
}

/// Reads, adds its goal as a line, and writes on that version, anew after a conflict.
fn adding() -> Table {
    Table::new().with("add", |sys| async move {
        loop {
            let (path, limit) = ("inside".to_owned(), None);
            let file = sys.call(FsRead { path, limit }).await?;
            let edit = FsWrite {
                path: "inside".to_owned(),
                text: format!("{}{}\n", file.text, sys.goal()),
                base: file.sha256,
            };
            match sys.call(edit).await {
                Err(error) if error.code == Code::Conflict => {}
                written => {
                    written?;
                    break;
                }
            }
        }
        Ok(Exit {
            ok: true,
            answer: String::new(),
            error: None,
        })
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn six_parallel_edits_of_one_file_are_all_there() {
    let bed = Bed::with(&[("inside", "")]);
    let kernel = bed.opening().images(adding()).open();
    let mut person = Person::of(&kernel);
    let mut all = Vec::new();
    for line in ["1", "2", "3", "4", "5", "6"] {
        all.push(bed.start_image(&kernel, "add", line, bed.defaults()).await);
    }
    // All six have asked about the same version before the first yes.
    let mut asked = Vec::new();
    for _ in 0..6 {
        asked.push(person.is_asked().await);
    }
    Person::of(&kernel).always_says(true);
    for approval in asked {
        person.says(&approval, true).await;
    }
    for pid in all {
        assert!(kernel.wait(pid).await.unwrap().ok);
    }
    let mut lines: Vec<String> = bed.text("inside").lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["1", "2", "3", "4", "5", "6"]);
    let conflicts =
        "SELECT COUNT(*) FROM journal WHERE kind = 'outcome' AND detail LIKE 'failed:%'";
    assert!(bed.count(conflicts) >= 5, "the losers were told");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn risks_of_a_change_are_told() {
    let bed = Bed::with(&[("run.sh", "#!/bin/sh"), ("plain", "")]);
    bed.set_mode("run.sh", 0o755);
    let rows: &[(Value, &[Risk])] = &[
        (write("plain", "text"), &[]),
        (write("run.sh", "text"), &[Risk::Executable]),
        (rename("plain", "run.sh"), &[Risk::Executable]),
        (write(".bashrc", "text"), &[Risk::Hidden]),
        (write("d/.git/hooks/x", "text"), &[Risk::Hidden]),
        (write("plain", "a\u{200b}b"), &[Risk::Invisible]),
        (write("a\u{202e}b", "text"), &[Risk::Invisible]),
    ];
    let kernel = bed.kernel();
    for (call, risks) in rows {
        let mut person = Person::of(&kernel);
        let pid = bed.start(&kernel, std::slice::from_ref(call)).await;
        let asked = person.is_asked().await;
        assert_eq!(asked.risks, *risks, "{call}");
        person.says(&asked, false).await;
        kernel.wait(pid).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_is_what_its_path_led_to_when_the_run_began() {
    let bed = Bed::with(&[("f", "mine")]);
    let link = bed.data.join("link");
    symlink(&bed.root, &link).unwrap();
    let kernel = bed.kernel();
    let submission = |workspace: &std::path::Path| steward_kernel::Submission {
        image: "script".to_owned(),
        goal: crate::bed::script(&[crate::bed::approve("go on?"), read("f")]),
        workspace: workspace.to_owned(),
        grants: steward_kernel::capability::workspace_defaults(workspace),
        after: None,
        budget: steward_kernel::budget::Budget::default(),
    };
    let mut person = Person::of(&kernel);
    let pid = kernel.submit(submission(&link)).await.unwrap().pid;
    let asked = person.is_asked().await;
    std::fs::remove_file(&link).unwrap();
    symlink(&bed.outside, &link).unwrap();
    std::fs::write(bed.outside.join("f"), "not mine").unwrap();
    person.says(&asked, true).await;
    let results = results(&kernel, pid).await;
    assert_eq!(results[1].as_ref().unwrap()["text"], "mine");

    for (workspace, code) in [("none", Code::NotFound), ("workspace/f", Code::Invalid)] {
        let refused = kernel.submit(submission(&bed.path().join(workspace))).await;
        let error = refused.unwrap_err();
        assert_eq!(error.code, code, "{workspace}");
        assert!(error.hint.is_some(), "{error:?}");
    }
    until("no process is left", async || {
        let all = kernel.processes().await.unwrap();
        all.iter().all(|p| p.state == ProcessState::Exited)
    })
    .await;
}
