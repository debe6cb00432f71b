//! Processes that outlive the program: a kernel ends without notice, and another goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use steward_kernel::syscall::{HumanAsk, HumanTell};
use steward_kernel::{Code, Exit, Kernel, KernelEvent, Pid, ProcessState, Sys};

use crate::bed::{
    Bed, NOON, Person, approve, chat, codes, life, read, results, sleep, spawn, until, wait_for,
    write,
};
use crate::stand_ins::{StandInClock, Table};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A first life with a process that makes `calls`, until it and its children all wait.
fn begin(bed: &Bed, calls: &[Value], processes: usize) -> Pid {
    life(async {
        let kernel = bed.kernel();
        let pid = bed.start(&kernel, calls).await;
        until("all wait", async || {
            let mut all = kernel.processes().await.unwrap();
            all.retain(|p| !p.state.is_final());
            let waits = [ProcessState::WaitingEvent, ProcessState::WaitingHuman];
            all.len() == processes && all.iter().all(|p| waits.contains(&p.state))
        })
        .await;
        pid
    })
}

#[test]
fn sleepers_and_those_that_wait_for_them_go_on() {
    let second = 1000;
    let child = [read("f"), sleep(60 * second)];
    let grandparent = [
        spawn(&[spawn(&child, false), wait_for(0)], false),
        wait_for(0),
    ];
    type Row = (&'static str, u64, u64);
    // What the wall clock says at the second start, and how long it sleeps on from there.
    let rows: [Row; 4] = [
        ("at once", NOON, 60 * second),
        ("half of it has passed", NOON + 30 * second, 30 * second),
        ("all of it has passed", NOON + DAY_MS, 0),
        ("the clock was set back", NOON - DAY_MS, 60 * second),
    ];
    for (name, wall, left) in rows {
        for _ in 0..5 {
            let bed = Bed::with(&[("f", "old")]);
            let pid = begin(&bed, &grandparent, 3);
            life(async {
                let clock = StandInClock::at(wall);
                let kernel = bed.opening().clock(clock.clone()).open();
                let suspended = kernel.processes().await.unwrap();
                let asleep = suspended.iter().all(|p| p.state == ProcessState::Suspended);
                assert!(asleep, "{name}: {suspended:?}");
                assert_eq!(kernel.resume(None).await.unwrap(), 3, "{name}");
                if left > 0 {
                    until("it sleeps", async || clock.sleeping() == 1).await;
                    clock.advance(left - 1);
                    assert!(!kernel.process(pid).await.unwrap().state.is_final());
                    clock.advance(1);
                }
                let results = results(&kernel, pid).await;
                assert_eq!(codes(&results), [Ok(()), Ok(())], "{name}");
                assert_eq!(results[1].as_ref().unwrap()["ok"], true, "{name}");
            });
            assert_eq!(bed.count("SELECT COUNT(*) FROM process"), 3, "{name}");
            assert_eq!(bed.count("SELECT COUNT(*) FROM call"), 6, "{name}");
        }
    }
}

#[test]
fn calls_that_had_a_result_are_not_made_again() {
    let bed = Bed::with(&[("f", "old")]);
    let calls = [read("f"), chat(), write("g", "new"), sleep(1000), read("f")];
    let first = life(async {
        let kernel = bed.kernel();
        Person::of(&kernel).always_says(true);
        let mut person = Person::of(&kernel);
        let pid = bed.start(&kernel, &calls).await;
        person.sees(pid, ProcessState::WaitingEvent).await;
        pid
    });
    bed.fill("f", "changed");
    std::fs::remove_file(bed.root.join("g")).unwrap();
    life(async {
        let clock = StandInClock::at(NOON + 1000);
        let kernel = bed.opening().clock(clock).open();
        kernel.resume(None).await.unwrap();
        let results = results(&kernel, first).await;
        assert_eq!(codes(&results), [Ok(()); 5]);
        let text = |n: usize| results[n].as_ref().unwrap()["text"].clone();
        assert_eq!((text(0), text(4)), ("old".into(), "changed".into()));
        let process = kernel.process(first).await.unwrap();
        assert_eq!((process.tokens, process.steps), (4, 5));
    });
    // Done once, and gone since by other hands.
    assert!(!bed.root.join("g").exists());
    let acted = "SELECT COUNT(*) FROM journal WHERE kind = 'executing'";
    assert_eq!(bed.count(acted), 1);
}

#[test]
fn a_program_that_makes_other_calls_than_before_is_stopped() {
    let other = Arc::new(AtomicBool::new(false));
    let images = || {
        let other = Arc::clone(&other);
        Table::new().with("fickle", move |sys: Sys| {
            let other = other.load(Ordering::Relaxed);
            async move {
                let (text, choices) = ("which?".to_owned(), Vec::new());
                if other {
                    sys.call(HumanTell { text }).await?;
                } else {
                    sys.call(HumanAsk { text, choices }).await?;
                }
                Ok(Exit {
                    ok: true,
                    answer: String::new(),
                    error: None,
                })
            }
        })
    };
    let bed = Bed::with(&[]);
    let pid = life(async {
        let kernel = bed.opening().images(images()).open();
        let mut person = Person::of(&kernel);
        let pid = bed
            .start_image(&kernel, "fickle", "ask", bed.defaults())
            .await;
        person.sees(pid, ProcessState::WaitingHuman).await;
        pid
    });
    other.store(true, Ordering::Relaxed);
    life(async {
        let kernel = bed.opening().images(images()).open();
        kernel.resume(None).await.unwrap();
        let error = kernel.wait(pid).await.unwrap().error.unwrap();
        assert_eq!(error.code, Code::Internal);
        let words = "call 1 was `human.ask` before the restart and is `human.tell` now";
        assert_eq!(error.message, words);
        let state = kernel.process(pid).await.unwrap().state;
        assert_eq!(state, ProcessState::Failed);
        assert_eq!(kernel.questions().await.unwrap(), []);
    });
}

#[test]
fn an_image_that_is_gone_ends_its_process_with_a_word() {
    let bed = Bed::with(&[]);
    let images = Table::new().with("once", |sys: Sys| async move {
        let (text, choices) = ("which?".to_owned(), Vec::new());
        sys.call(HumanAsk { text, choices }).await?;
        unreachable!("nobody answers")
    });
    let pid = life(async {
        let kernel = bed.opening().images(images).open();
        let mut person = Person::of(&kernel);
        let pid = bed
            .start_image(&kernel, "once", "ask", bed.defaults())
            .await;
        person.sees(pid, ProcessState::WaitingHuman).await;
        pid
    });
    life(async {
        let kernel = bed.kernel();
        kernel.resume(None).await.unwrap();
        let error = kernel.wait(pid).await.unwrap().error.unwrap();
        assert!(error.message.contains("`once`"), "{error:?}");
    });
}

#[test]
fn what_does_not_run_can_be_killed_and_its_questions_lapse() {
    let bed = Bed::with(&[]);
    let pid = begin(&bed, &[spawn(&[approve("may I?")], false), wait_for(0)], 2);
    life(async {
        let kernel = bed.kernel();
        let mut person = Person::of(&kernel);
        kernel.kill(pid, "test").await.unwrap();
        let lapsed =
            |event: KernelEvent| matches!(event, KernelEvent::Decided { .. }).then_some(());
        person.hears(lapsed).await;
        let all = kernel.processes().await.unwrap();
        assert!(all.iter().all(|p| p.state == ProcessState::Killed));
        assert_eq!(kernel.approvals().await.unwrap(), []);
        assert_eq!(kernel.resume(None).await.unwrap(), 0);
        assert_eq!(bed.count("SELECT COUNT(*) FROM payload"), 0);
    });
}

async fn ended(kernel: &Kernel) -> bool {
    let all = kernel.processes().await.unwrap();
    all.iter().all(|p| p.state.is_final())
}

#[test]
fn resuming_twice_and_while_processes_end_runs_nothing_twice() {
    let bed = Bed::with(&[]);
    for _ in 0..10 {
        begin(&bed, &[sleep(1000), write("f", "new")], 1);
        life(async {
            let clock = StandInClock::at(NOON + 1000);
            let kernel = bed.opening().clock(clock).open();
            Person::of(&kernel).always_says(true);
            let resuming: Vec<_> = (0..8)
                .map(|_| {
                    let kernel = kernel.clone();
                    tokio::spawn(async move { kernel.resume(None).await.unwrap() })
                })
                .collect();
            for resumed in resuming {
                resumed.await.unwrap();
            }
            until("all have ended", async || ended(&kernel).await).await;
        });
        let database = bed.database();
        let acted = "SELECT COUNT(*) FROM journal WHERE kind = 'executing'";
        let acted: u64 = database.query_row(acted, (), |r| r.get(0)).unwrap();
        let processes = "SELECT COUNT(*) FROM process";
        let processes: u64 = database.query_row(processes, (), |r| r.get(0)).unwrap();
        assert_eq!(acted, processes);
    }
}
