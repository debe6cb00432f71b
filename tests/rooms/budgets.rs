//! Budgets: what runs out is refused, told, and ends the process with what it has.

use std::sync::Arc;

use serde_json::{Value, json};
use steward_kernel::budget::Budget;
use steward_kernel::syscall::{ClockSleep, HumanTell, ProcessExit, ProcessSpawn};
use steward_kernel::{Code, Exit, Kernel, Pid, ProcessState, Submission, Sys};

use crate::bed::{
    Bed, NOON, chat, codes, life, read, results, script, sleep, spawn, until, wait_for,
};
use crate::stand_ins::{StandInClock, StandInCore, Table};

fn budget(value: Value) -> Budget {
    serde_json::from_value(value).unwrap()
}

async fn start(bed: &Bed, kernel: &Kernel, calls: &[Value], budget: Budget) -> Pid {
    let submission = Submission {
        image: "script".to_owned(),
        goal: script(calls),
        workspace: bed.root.clone(),
        grants: bed.defaults(),
        after: None,
        budget,
    };
    kernel.submit(submission).await.unwrap().pid
}

/// A child of a budget of its own.
fn spawn_with(calls: &[Value], budget: Value) -> Value {
    json!(["process.spawn", { "image": "script", "goal": script(calls), "budget": budget }])
}

fn tell() -> Value {
    json!(["human.tell", { "text": "this far" }])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_call_that_would_exceed_is_refused_and_names_the_budget() {
    // The stand-in reads 3 tokens of a prompt of 5 and writes 1.
    type Row = (&'static str, Value, Vec<Value>, usize, &'static str);
    let rows: [Row; 4] = [
        (
            "calls",
            json!({ "calls": 2 }),
            vec![read("f"), read("f"), read("f"), tell()],
            2,
            "`2` system calls",
        ),
        (
            "tokens",
            json!({ "tokens": 9 }),
            vec![chat(), chat(), tell()],
            1,
            "`9` tokens",
        ),
        (
            "money",
            json!({ "money_micros": 8 }),
            vec![chat(), chat(), tell()],
            1,
            "`8` millionths of money",
        ),
        (
            "children",
            json!({ "children": 1 }),
            vec![spawn(&[], false), wait_for(0), spawn(&[], false), tell()],
            2,
            "`1` children",
        ),
    ];
    for (name, limits, calls, refused, words) in rows {
        let bed = Bed::with(&[("f", "old")]);
        let core = StandInCore::open_at(1_000_000);
        let kernel = bed.opening().core(core).open();
        let pid = start(&bed, &kernel, &calls, budget(limits)).await;
        let got = results(&kernel, pid).await;
        let mut expected = vec![Ok(()); calls.len()];
        expected[refused] = Err(Code::Limit);
        assert_eq!(codes(&got), expected, "{name}");
        let error = got[refused].clone().unwrap_err();
        let whole = format!("the budget of process `{pid}` is used up: it has {words}");
        assert_eq!(error.message, whole, "{name}");
        assert!(error.hint.is_some(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_children_use_counts_for_their_parents() {
    let bed = Bed::with(&[("f", "old")]);
    let clock = StandInClock::at(NOON);
    let kernel = bed.opening().clock(clock.clone()).open();
    // Two calls of the parent, and of the child's three the last is one too many.
    let child = [sleep(1000), read("f"), read("f")];
    let calls = [spawn(&child, false), wait_for(0)];
    let pid = start(&bed, &kernel, &calls, budget(json!({ "calls": 4 }))).await;
    until("both wait", async || {
        let parent = kernel.process(pid).await.unwrap().state;
        clock.sleeping() == 1 && parent == ProcessState::WaitingEvent
    })
    .await;
    clock.advance(1000);
    let got = results(&kernel, pid).await;
    let exit: Exit = serde_json::from_value(got[1].clone().unwrap()).unwrap();
    let of_child: crate::stand_ins::Results = serde_json::from_str(&exit.answer).unwrap();
    assert_eq!(codes(&of_child), [Ok(()), Ok(()), Err(Code::Limit)]);
    let error = of_child[2].clone().unwrap_err();
    assert!(
        error.message.contains(&format!("process `{pid}`")),
        "{error}"
    );
    let process = kernel.process(pid).await.unwrap();
    assert_eq!((process.used.calls, process.used.children), (5, 1));

    // A child's own, tighter limit binds it; its parent goes on.
    let calls = [
        spawn_with(&[chat(), chat()], json!({ "tokens": 9 })),
        wait_for(0),
        chat(),
    ];
    let pid = start(&bed, &kernel, &calls, budget(json!({ "tokens": 100 }))).await;
    let got = results(&kernel, pid).await;
    assert_eq!(codes(&got), [Ok(()); 3]);
    assert_eq!(got[1].as_ref().unwrap()["ok"], false);
    assert_eq!(kernel.process(pid).await.unwrap().used.tokens, 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_generation_is_cut_to_the_tokens_that_are_left() {
    let bed = Bed::with(&[]);
    let core = StandInCore::open();
    let kernel = bed.opening().core(Arc::clone(&core)).open();
    let limits = budget(json!({ "tokens": 7 }));
    let pid = start(&bed, &kernel, &[chat()], limits).await;
    assert_eq!(codes(&results(&kernel, pid).await), [Ok(())]);
    // Five for the prompt; of the five asked for, two are left.
    assert_eq!(core.asked_for(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_goes_on_after_the_end_of_a_budget_is_ended_with_the_reason() {
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    let calls = [read("f"), read("f"), tell(), read("f"), read("f")];
    let pid = start(&bed, &kernel, &calls, budget(json!({ "calls": 1 }))).await;
    let exit = kernel.wait(pid).await.unwrap();
    let error = exit.error.unwrap();
    assert_eq!(error.code, Code::Limit);
    assert!(error.message.contains("`1` system calls"), "{error}");
    let process = kernel.process(pid).await.unwrap();
    assert_eq!(process.state, ProcessState::Failed);
    let steps = kernel.steps(pid).await.unwrap();
    assert_eq!(steps.len(), 3, "told, then ended at the next: {steps:?}");
}

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fn timed() -> Table {
    Table::new().with("timed", |sys: Sys| async move {
        let slept = sys.call(ClockSleep { ms: 300 * DAY_MS }).await;
        let text = format!("{:?}", slept.as_ref().map_err(|e| e.code));
        sys.call(HumanTell { text: text.clone() }).await?;
        let exit = Exit {
            ok: false,
            answer: text,
            error: None,
        };
        sys.call(ProcessExit { exit }).await?;
        unreachable!("it has ended")
    })
}

async fn start_timed(bed: &Bed, kernel: &Kernel, seconds: u64) -> Pid {
    let submission = Submission {
        image: "timed".to_owned(),
        goal: "sleep".to_owned(),
        workspace: bed.root.clone(),
        grants: bed.defaults(),
        after: None,
        budget: budget(json!({ "seconds": seconds })),
    };
    kernel.submit(submission).await.unwrap().pid
}

#[test]
fn seconds_run_out_across_restarts_and_whatever_the_wall_clock_says() {
    for wall in [NOON, NOON + DAY_MS, NOON - DAY_MS] {
        let bed = Bed::with(&[]);
        let pid = life(async {
            let clock = StandInClock::at(NOON);
            let opening = bed.opening().clock(clock.clone());
            let kernel = opening.images(timed()).open();
            let pid = start_timed(&bed, &kernel, 60).await;
            until("it sleeps", async || clock.sleeping() == 2).await;
            clock.advance(40_000);
            until("that is written down", async || {
                bed.count("SELECT COALESCE(MAX(json_extract(used, '$.ms')), 0) FROM process")
                    == 40_000
            })
            .await;
            pid
        });
        life(async {
            let clock = StandInClock::at(wall);
            let opening = bed.opening().clock(clock.clone());
            let kernel = opening.images(timed()).open();
            kernel.resume(None).await.unwrap();
            until("it sleeps", async || clock.sleeping() == 2).await;
            clock.advance(19_999);
            until("that is written down", async || {
                bed.count("SELECT COALESCE(MAX(json_extract(used, '$.ms')), 0) FROM process")
                    == 59_999
            })
            .await;
            assert!(kernel.exit(pid).await.unwrap().is_none());
            clock.advance(1);
            let exit = kernel.wait(pid).await.unwrap();
            assert_eq!(exit.answer, "Err(Limit)", "{wall}");
            let process = kernel.process(pid).await.unwrap();
            assert_eq!(process.state, ProcessState::Exited);
            assert_eq!(process.used.seconds, 60);
        });
    }
}

#[test]
fn what_was_used_before_a_restart_counts_after_it() {
    let bed = Bed::with(&[("f", "old")]);
    let calls = [
        read("f"),
        spawn(&[read("f"), sleep(1000), read("f")], false),
        wait_for(1),
        read("f"),
    ];
    let pid = life(async {
        let clock = StandInClock::at(NOON);
        let kernel = bed.opening().clock(clock.clone()).open();
        let pid = start(&bed, &kernel, &calls, budget(json!({ "calls": 6 }))).await;
        until("the child sleeps", async || clock.sleeping() == 1).await;
        pid
    });
    life(async {
        let kernel = bed.opening().clock(StandInClock::at(NOON + 1000)).open();
        kernel.resume(None).await.unwrap();
        // Three calls of the parent and three of the child; the next is one too many.
        let got = results(&kernel, pid).await;
        assert_eq!(codes(&got), [Ok(()), Ok(()), Ok(()), Err(Code::Limit)]);
        assert_eq!(got[2].as_ref().unwrap()["ok"], true);
        assert_eq!(kernel.process(pid).await.unwrap().used.calls, 7);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_childs_time_ends_with_its_parents_and_a_pause_does_not_count() {
    let bed = Bed::with(&[]);
    let clock = StandInClock::at(NOON);
    let images = timed().with("parent", |sys: Sys| async move {
        let child = ProcessSpawn {
            image: "timed".to_owned(),
            goal: "sleep".to_owned(),
            budget: Budget {
                seconds: Some(500),
                ..Budget::default()
            },
            ..ProcessSpawn::default()
        };
        let pid = sys.call(child).await?;
        let exit = sys.call(steward_kernel::syscall::ProcessWait { pid }).await;
        let text = "waited".to_owned();
        let told = sys.call(HumanTell { text }).await;
        let exit = told.and(exit);
        Ok(exit.unwrap_or_else(|error| Exit {
            ok: false,
            answer: format!("{:?}", error.code),
            error: None,
        }))
    });
    let kernel = bed.opening().clock(clock.clone()).images(images).open();
    let submission = Submission {
        image: "parent".to_owned(),
        goal: "wait".to_owned(),
        workspace: bed.root.clone(),
        grants: bed.defaults(),
        after: None,
        budget: budget(json!({ "seconds": 10 })),
    };
    let pid = kernel.submit(submission).await.unwrap().pid;
    until("all sleep", async || clock.sleeping() == 3).await;
    let child = kernel.processes().await.unwrap()[0].clone();
    assert_eq!(child.budget.seconds, Some(10));
    // Paused, the parent's time stands still; its child's goes on.
    let signal = steward_kernel::Signal::Pause;
    kernel.signal(pid, signal, "test").await.unwrap();
    clock.advance(10_000);
    let exit = kernel.wait(child.pid).await.unwrap();
    assert_eq!(exit.answer, "Err(Limit)");
    assert_eq!(kernel.process(pid).await.unwrap().used.seconds, 0);
    let signal = steward_kernel::Signal::Resume;
    kernel.signal(pid, signal, "test").await.unwrap();
    assert_eq!(kernel.wait(pid).await.unwrap().answer, "Err(Limit)");
}
