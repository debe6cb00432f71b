//! Checkpoints: what they keep, and what going back to one gives and never gives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use steward_kernel::budget::Budget;
use steward_kernel::capability::{Grant, Resource, Right};
use steward_kernel::checkpoint::{CheckpointCreate, Verdict, Way};
use steward_kernel::syscall::{ClockSleep, FsRead, FsWrite};
use steward_kernel::{Code, Exit, Kernel, Pid, ProcessState, Sys};

use crate::bed::{
    Bed, NOON, Person, approve, codes, life, read, results, sleep, spawn, until, write,
};
use crate::stand_ins::{Results, StandInClock, Table};

fn checkpoint() -> Value {
    json!(["checkpoint.create", { "label": "before" }])
}

/// Waits until a process sleeps, and so many sleep in all.
async fn sleeps(kernel: &Kernel, pid: Pid, clock: &StandInClock, all: usize) {
    until("it sleeps", async || {
        let state = kernel.process(pid).await.unwrap().state;
        state == ProcessState::WaitingEvent && clock.sleeping() == all
    })
    .await;
}

fn way(result: &Result<Value, steward_kernel::SysError>) -> String {
    result.as_ref().unwrap()["way"].as_str().unwrap().to_owned()
}

/// How a process stands when it is taken back.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stands {
    Runs,
    Paused,
    Suspended,
    Ended,
}

#[test]
fn an_effect_after_a_checkpoint_is_listed_and_not_repeated() {
    for stands in [
        Stands::Runs,
        Stands::Paused,
        Stands::Suspended,
        Stands::Ended,
    ] {
        let bed = Bed::with(&[("f", "old")]);
        let calls = [
            read("f"),
            checkpoint(),
            write("g", "new"),
            sleep(60_000),
            read("f"),
        ];
        let pid = life(async {
            let clock = StandInClock::at(NOON);
            let kernel = bed.opening().clock(clock.clone()).open();
            Person::of(&kernel).always_says(true);
            let pid = bed.start(&kernel, &calls).await;
            sleeps(&kernel, pid, &clock, 1).await;
            pid
        });
        // By other hands; what was written is not written again.
        std::fs::remove_file(bed.root.join("g")).unwrap();
        bed.fill("f", "changed");
        life(async {
            let clock = StandInClock::at(NOON);
            let kernel = bed.opening().clock(clock.clone()).open();
            let mut person = Person::of(&kernel);
            if stands != Stands::Suspended {
                kernel.resume(None).await.unwrap();
                sleeps(&kernel, pid, &clock, 1).await;
            }
            if stands == Stands::Paused {
                let pause = steward_kernel::Signal::Pause;
                kernel.signal(pid, pause, "test").await.unwrap();
            }
            if stands == Stands::Ended {
                clock.advance(60_000);
                kernel.wait(pid).await.unwrap();
            }
            let detail = kernel.inspect_checkpoint(1).await.unwrap();
            assert_eq!(detail.calls.len(), 2, "{stands:?}");
            let restored = kernel.restore(1, "test").await.unwrap();
            assert_eq!(restored.outside, detail.outside, "{stands:?}");
            let words: Vec<_> = restored
                .outside
                .iter()
                .map(|effect| (effect.title.as_str(), effect.state.as_str()))
                .collect();
            assert_eq!(words, [("write g", "done")], "{stands:?}");
            assert_eq!(restored.pid == pid, stands != Stands::Ended, "{stands:?}");
            match stands {
                Stands::Suspended => drop(kernel.resume(None).await.unwrap()),
                Stands::Paused => {
                    let resume = steward_kernel::Signal::Resume;
                    kernel.signal(restored.pid, resume, "test").await.unwrap();
                }
                _ => {}
            }
            sleeps(&kernel, restored.pid, &clock, 1).await;
            clock.advance(60_000);
            let got = results(&kernel, restored.pid).await;
            assert_eq!(codes(&got), [Ok(()); 5], "{stands:?}");
            assert_eq!(way(&got[1]), "restored", "{stands:?}");
            let text = |n: usize| got[n].as_ref().unwrap()["text"].clone();
            assert_eq!((text(0), text(4)), ("old".into(), "changed".into()));
            // Nobody was asked.
            let asked = person.hears(|event| match event {
                steward_kernel::KernelEvent::Approval(_) => Some(true),
                steward_kernel::KernelEvent::Ended { process, .. } => {
                    (process.pid == restored.pid).then_some(false)
                }
                _ => None,
            });
            assert!(!asked.await, "{stands:?}");
        });
        assert!(!bed.root.join("g").exists(), "{stands:?}");
        let acted = "SELECT COUNT(*) FROM journal WHERE kind = 'executing'";
        assert_eq!(bed.count(acted), 1, "{stands:?}");
    }
}

#[test]
fn what_stands_stands_once_and_through_restarts() {
    let bed = Bed::with(&[]);
    let calls = [
        checkpoint(),
        write("g", "new"),
        sleep(1_000),
        write("g", "new"),
    ];
    let pid = life(async {
        let clock = StandInClock::at(NOON);
        let kernel = bed.opening().clock(clock.clone()).open();
        Person::of(&kernel).always_says(true);
        let pid = bed.start(&kernel, &calls).await;
        sleeps(&kernel, pid, &clock, 1).await;
        let restored = kernel.restore(1, "test").await.unwrap();
        assert_eq!(restored.outside.len(), 1);
        until("it sleeps again", async || {
            let steps = kernel.steps(pid).await.unwrap();
            steps.len() == 4
                && kernel.process(pid).await.unwrap().state == ProcessState::WaitingEvent
        })
        .await;
        pid
    });
    life(async {
        let kernel = bed.opening().clock(StandInClock::at(NOON + 1_000)).open();
        let mut person = Person::of(&kernel);
        kernel.resume(None).await.unwrap();
        // The second of the two is another effect: it is asked about.
        let asked = person.is_asked().await;
        person.says(&asked, true).await;
        assert_eq!(codes(&results(&kernel, pid).await), [Ok(()); 4]);
    });
    let acted = "SELECT COUNT(*) FROM journal WHERE kind = 'executing'";
    assert_eq!(bed.count(acted), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_that_was_undone_is_not_listed_and_may_be_had_again() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    Person::of(&kernel).always_says(true);
    let calls = [checkpoint(), write("g", "new"), approve("done?")];
    let pid = bed.start(&kernel, &calls).await;
    kernel.wait(pid).await.unwrap();
    let undo = crate::bed::undo(Some(pid));
    let undoing = bed.start(&kernel, &[undo]).await;
    assert_eq!(codes(&results(&kernel, undoing).await), [Ok(())]);
    assert!(!bed.root.join("g").exists());
    let restored = kernel.restore(1, "test").await.unwrap();
    assert_eq!(restored.outside, []);
    let got = codes(&results(&kernel, restored.pid).await);
    assert_eq!(got, [Ok(()); 3]);
    assert_eq!(bed.text("g"), "new");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn going_back_never_widens_rights() {
    let bed = Bed::with(&[("f", "old")]);
    for ends in [false, true] {
        let clock = StandInClock::at(NOON);
        let kernel = bed.opening().clock(clock.clone()).open();
        let calls = [checkpoint(), sleep(1_000), read("f"), read("f")];
        let pid = bed.start(&kernel, &calls).await;
        sleeps(&kernel, pid, &clock, 1).await;
        let id = kernel.checkpoints(Some(pid)).await.unwrap()[0].id;
        let held = kernel.capabilities(pid).await.unwrap();
        let workspace = Resource::Workspace {
            root: bed.root.clone(),
        };
        let reading = held
            .iter()
            .find(|c| c.grant.resource == workspace && c.grant.rights.contains(&Right::Read))
            .unwrap();
        assert!(kernel.revoke(reading.id, "test").await.unwrap());
        if ends {
            clock.advance(1_000);
            kernel.wait(pid).await.unwrap();
        }
        let restored = kernel.restore(id, "test").await.unwrap();
        sleeps(&kernel, restored.pid, &clock, 1).await;
        clock.advance(1_000);
        let got = codes(&results(&kernel, restored.pid).await);
        let denied = Err(Code::Denied);
        assert_eq!(got, [Ok(()), Ok(()), denied, denied], "{ends}");
        drop(kernel);
        let bare = bed.count("SELECT COUNT(*) FROM capability WHERE status = 'active'");
        assert_eq!(bare, 0, "{ends}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_made_since_end_with_what_was_taken_back() {
    let bed = Bed::with(&[]);
    let clock = StandInClock::at(NOON);
    let kernel = bed.opening().clock(clock.clone()).open();
    let child = spawn(&[sleep(60_000)], false);
    let calls = [child.clone(), checkpoint(), child, sleep(1_000)];
    let pid = bed.start(&kernel, &calls).await;
    until("all sleep", async || clock.sleeping() == 3).await;
    let restored = kernel.restore(1, "test").await.unwrap();
    assert_eq!(restored.ended.len(), 1);
    let state = kernel.wait(restored.ended[0]).await.unwrap();
    assert!(state.error.is_some());
    sleeps(&kernel, pid, &clock, 3).await;
    assert_eq!(kernel.processes().await.unwrap().len(), 4);
    clock.advance(1_000);
    let got = results(&kernel, pid).await;
    assert_eq!(codes(&got), [Ok(()); 4]);
    assert_ne!(got[2], Ok(json!(restored.ended[0])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_goes_back_by_itself_and_takes_its_child_back() {
    let bed = Bed::with(&[("f", "old")]);
    let images = Table::new().with("again", |sys: Sys| async move {
        let made = sys.call(CheckpointCreate::default()).await?;
        let path = "f".to_owned();
        let text = sys.call(FsRead { path, limit: None }).await?.text;
        if made.way == Way::Made {
            let id = made.id;
            let back = steward_kernel::checkpoint::CheckpointRestore { id };
            sys.call(back).await?;
        }
        Ok(Exit {
            ok: made.way == Way::Restored,
            answer: text,
            error: None,
        })
    });
    let clock = StandInClock::at(NOON);
    let kernel = bed.opening().clock(clock.clone()).images(images).open();
    let pid = bed
        .start_image(&kernel, "again", "go", bed.defaults())
        .await;
    let exit = kernel.wait(pid).await.unwrap();
    assert_eq!((exit.ok, exit.answer.as_str()), (true, "old"));

    let child = [checkpoint(), sleep(60_000)];
    let calls = [
        spawn(&child, false),
        sleep(1_000),
        json!(["checkpoint.list", { "pid": "$0" }]),
        json!(["checkpoint.restore", { "id": 2 }]),
        json!(["checkpoint.inspect", { "id": 1 }]),
        json!(["checkpoint.restore", { "id": 1 }]),
    ];
    let pid = bed.start(&kernel, &calls).await;
    until("both sleep", async || clock.sleeping() == 2).await;
    clock.advance(1_000);
    let got = results(&kernel, pid).await;
    let denied = Err(Code::Denied);
    // Another run's checkpoint is not for it.
    assert_eq!(
        codes(&got),
        [Ok(()), Ok(()), Ok(()), Ok(()), denied, denied]
    );
    assert_eq!(got[3].as_ref().unwrap()["pid"], got[0].clone().unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forks_from_a_checkpoint_go_on_from_there_with_their_task() {
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    let images = Table::new().with("maker", |sys: Sys| async move {
        let path = "f".to_owned();
        let limit = None;
        let text = sys.call(FsRead { path, limit }).await?.text;
        let made = sys.call(CheckpointCreate::default()).await?;
        let wrote = FsWrite {
            path: "g".to_owned(),
            text: "new".to_owned(),
            base: None,
        };
        let answer = match made.way {
            Way::Forked => format!(
                "{text} {} {:?}",
                made.task,
                sys.call(wrote).await.map_err(|e| e.code).err()
            ),
            _ => text,
        };
        Ok(Exit {
            ok: true,
            answer,
            error: None,
        })
    });
    drop(kernel);
    let kernel = bed.opening().images(images).open();
    let pid = bed
        .start_image(&kernel, "maker", "go", bed.defaults())
        .await;
    kernel.wait(pid).await.unwrap();
    bed.fill("f", "changed");
    let grants = vec![Grant::allow(Resource::Processes, [Right::Use])];
    let forked = kernel
        .fork_checkpoint(1, "look", grants, Budget::default())
        .await
        .unwrap();
    let exit = kernel.wait(forked.pid).await.unwrap();
    assert_eq!(exit.answer, "old look Some(Denied)");

    // A process forks from its own.
    let calls = [
        read("f"),
        checkpoint(),
        json!(["checkpoint.fork", { "id": "$1.id", "mode": "restricted", "task": "x" }]),
        json!(["checkpoint.fork", { "id": "$1.id", "mode": "worker" }]),
        json!(["process.wait", { "pid": "$2" }]),
    ];
    let pid = bed.start(&kernel, &calls).await;
    let got = results(&kernel, pid).await;
    let expected = [Ok(()), Ok(()), Ok(()), Err(Code::Invalid), Ok(())];
    assert_eq!(codes(&got), expected);
    let answer = got[4].as_ref().unwrap()["answer"].as_str().unwrap();
    let theirs: Results = serde_json::from_str(answer).unwrap();
    assert_eq!(
        (theirs[0].clone(), way(&theirs[1])),
        (got[0].clone(), "forked".to_owned())
    );
    // Restricted, it has no processes to fork.
    assert_eq!(codes(&theirs)[2], Err(Code::Denied));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_has_no_effect_and_tells_where_a_program_strays() {
    let bed = Bed::with(&[("f", "old")]);
    let strays = Arc::new(AtomicBool::new(false));
    let does = Arc::clone(&strays);
    let images = Table::new().with("maker", move |sys: Sys| {
        let strays = does.load(Ordering::Relaxed);
        async move {
            let path = if strays { "h" } else { "f" }.to_owned();
            sys.call(FsRead { path, limit: None }).await.ok();
            let wrote = FsWrite {
                path: "g".to_owned(),
                text: "new".to_owned(),
                base: None,
            };
            sys.call(wrote).await?;
            sys.call(CheckpointCreate::default()).await?;
            sys.call(ClockSleep { ms: 1 }).await?;
            Ok(Exit {
                ok: true,
                answer: String::new(),
                error: None,
            })
        }
    });
    let kernel = bed.opening().images(images).open();
    Person::of(&kernel).always_says(true);
    let pid = bed
        .start_image(&kernel, "maker", "go", bed.defaults())
        .await;
    until("it sleeps", async || {
        !kernel.checkpoints(Some(pid)).await.unwrap().is_empty()
    })
    .await;
    std::fs::remove_file(bed.root.join("g")).unwrap();
    let before = bed.contents();
    let replayed = kernel.replay(1).await.unwrap();
    assert_eq!((replayed.calls, replayed.verdict), (3, Verdict::Same));
    strays.store(true, Ordering::Relaxed);
    let replayed = kernel.replay(1).await.unwrap();
    let diverged = Verdict::Diverged {
        seq: 1,
        recorded: "fs.read".to_owned(),
        made: "fs.read".to_owned(),
    };
    assert_eq!((replayed.calls, replayed.verdict), (0, diverged));
    assert_eq!(bed.contents(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_checkpoints_are_compared_by_calls_objects_and_rights() {
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    let object = json!(["object.create", { "kind": "text", "text": "a", "name": "notes" }]);
    let calls = [
        checkpoint(),
        read("f"),
        object,
        checkpoint(),
        json!(["checkpoint.diff", { "from": "$0.id", "to": "$3.id" }]),
    ];
    let pid = bed.start(&kernel, &calls).await;
    let got = results(&kernel, pid).await;
    assert_eq!(codes(&got), [Ok(()); 5]);
    let diff = kernel.diff_checkpoints(1, 2).await.unwrap();
    assert_eq!(
        serde_json::to_value(&diff).unwrap(),
        got[4].clone().unwrap()
    );
    assert_eq!(diff.shared, 1);
    let names: Vec<&str> = diff.calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["fs.read", "object.create", "checkpoint.create"]);
    let object = &diff.objects[0];
    assert_eq!(
        (object.name.as_str(), object.from, object.to),
        ("notes", None, Some(1))
    );
    let same = kernel.diff_checkpoints(2, 2).await.unwrap();
    assert_eq!(same.lines(), Vec::<String>::new());
}

#[test]
fn a_damaged_checkpoint_is_refused_and_changes_nothing() {
    let damages = [
        ("UPDATE checkpoint SET info = '{'", "broken"),
        (
            "UPDATE checkpoint SET info = replace(info, 'script', 'scrypt')",
            "digest",
        ),
        (
            "UPDATE checkpoint_call SET name = 'fs.list' WHERE seq = 1",
            "digest",
        ),
        (
            "UPDATE checkpoint_call SET result = '{\"Ok\":1}' WHERE seq = 1",
            "digest",
        ),
        ("DELETE FROM checkpoint_call WHERE seq = 1", "digest"),
    ];
    for (damage, words) in damages {
        let bed = Bed::with(&[("f", "old")]);
        life(async {
            let clock = StandInClock::at(NOON);
            let kernel = bed.opening().clock(clock.clone()).open();
            let pid = bed
                .start(&kernel, &[read("f"), checkpoint(), sleep(1_000)])
                .await;
            sleeps(&kernel, pid, &clock, 1).await;
            bed.database().execute_batch(damage).unwrap();
            for error in [
                kernel.restore(1, "test").await.unwrap_err(),
                kernel.inspect_checkpoint(1).await.unwrap_err(),
                kernel.replay(1).await.unwrap_err(),
            ] {
                assert_eq!(error.code, Code::Invalid, "{damage}");
                assert!(error.message.contains(words), "{damage}: {error}");
            }
            clock.advance(1_000);
            assert_eq!(codes(&results(&kernel, pid).await), [Ok(()); 3]);
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checkpoints_of_a_run_are_bounded_and_named() {
    let bed = Bed::with(&[]);
    let clock = StandInClock::at(NOON);
    let kernel = bed.opening().clock(clock.clone()).open();
    let pid = bed.start(&kernel, &[sleep(1_000)]).await;
    sleeps(&kernel, pid, &clock, 1).await;
    for n in 0..64 {
        let label = format!("number {n}\u{1b}");
        let made = kernel.checkpoint(pid, &label, "test").await.unwrap();
        assert!(!made.label.contains('\u{1b}') && made.label.starts_with("number"));
    }
    let more = kernel.checkpoint(pid, "", "test").await.unwrap_err();
    assert_eq!(more.code, Code::Limit);
    let long = kernel.checkpoint(pid, &"x".repeat(201), "test").await;
    assert_eq!(long.unwrap_err().code, Code::Limit);
    assert_eq!(kernel.checkpoints(Some(pid)).await.unwrap().len(), 64);
    let nowhere = kernel.restore(999, "test").await.unwrap_err();
    assert_eq!(nowhere.code, Code::NotFound);
}
