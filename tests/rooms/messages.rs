//! Messages, folders and status lines of processes.

use serde_json::{Value, json};
use steward_kernel::capability::{Grant, Resource, Right};
use steward_kernel::{Code, Kernel, Pid, ProcessState};

use crate::bed::{
    Bed, NOON, Person, codes, life, mkdir, read, results, sleep, spawn, until, wait_for, write,
};
use crate::stand_ins::{Results, StandInClock};

fn send(to: Value, text: &str) -> Value {
    json!(["process.send", { "to": to, "text": text }])
}

fn receive(timeout_ms: Option<u64>) -> Value {
    json!(["process.receive", { "timeout_ms": timeout_ms }])
}

fn texts(results: &Results) -> Vec<Option<String>> {
    let text =
        |result: &Result<Value, _>| result.as_ref().unwrap()["text"].as_str().map(str::to_owned);
    results.iter().map(text).collect()
}

async fn waits(kernel: &Kernel, pid: Pid) {
    until("it waits", async || {
        kernel.process(pid).await.unwrap().state == ProcessState::WaitingEvent
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_come_once_in_order_from_parent_and_person() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    let child = [receive(None), receive(None), receive(None)];
    let calls = [
        spawn(&child, false),
        send(json!("$0"), "one"),
        send(json!("$0"), "two"),
        receive(None),
        wait_for(0),
    ];
    let parent = bed.start(&kernel, &calls).await;
    waits(&kernel, parent).await;
    let child = kernel.processes().await.unwrap()[0].pid;
    kernel.send(child, "three").await.unwrap();
    kernel.send(parent, "go on").await.unwrap();
    let got = results(&kernel, parent).await;
    assert_eq!(codes(&got), [Ok(()); 5]);
    assert_eq!(got[3].as_ref().unwrap()["text"], "go on");
    assert_eq!(got[3].as_ref().unwrap()["from"], Value::Null);
    let of_child: Results =
        serde_json::from_str(got[4].as_ref().unwrap()["answer"].as_str().unwrap()).unwrap();
    let heard = texts(&of_child);
    let mut expected = vec!["one", "two", "three"];
    if heard[0].as_deref() == Some("three") {
        expected = vec!["three", "one", "two"];
    }
    assert_eq!(heard.iter().flatten().collect::<Vec<_>>(), expected);
    // Contents go with their process; that they were is written down.
    assert_eq!(
        bed.count("SELECT COUNT(*) FROM message WHERE body IS NOT NULL"),
        0
    );
    assert_eq!(
        bed.count("SELECT COUNT(*) FROM message WHERE taken_by IS NULL"),
        0
    );
    assert_eq!(
        bed.count("SELECT COUNT(*) FROM journal WHERE detail LIKE '%three%'"),
        0
    );
    let late = kernel.send(child, "late").await.unwrap_err();
    assert_eq!(late.code, Code::Conflict);
}

#[test]
fn a_message_outlives_the_program_and_is_received_once() {
    let bed = Bed::with(&[]);
    let calls = [
        receive(None),
        sleep(1000),
        receive(Some(5_000)),
        receive(Some(0)),
    ];
    let pid = life(async {
        let clock = StandInClock::at(NOON);
        let kernel = bed.opening().clock(clock.clone()).open();
        let pid = bed.start(&kernel, &calls).await;
        waits(&kernel, pid).await;
        kernel.send(pid, "one").await.unwrap();
        until("it sleeps", async || clock.sleeping() == 1).await;
        kernel.send(pid, "two").await.unwrap();
        pid
    });
    life(async {
        let clock = StandInClock::at(NOON + 1000);
        let kernel = bed.opening().clock(clock.clone()).open();
        kernel.resume(None).await.unwrap();
        let got = results(&kernel, pid).await;
        let heard = texts(&got);
        let expected = [Some("one"), None, Some("two"), None];
        assert_eq!(
            heard.iter().map(Option::as_deref).collect::<Vec<_>>(),
            expected
        );
    });
}

#[test]
fn a_wait_for_a_message_ends_on_time_also_across_a_restart() {
    let bed = Bed::with(&[]);
    let pid = life(async {
        let clock = StandInClock::at(NOON);
        let kernel = bed.opening().clock(clock.clone()).open();
        let pid = bed.start(&kernel, &[receive(Some(10_000))]).await;
        until("it waits", async || clock.sleeping() == 1).await;
        pid
    });
    life(async {
        let clock = StandInClock::at(NOON + 4_000);
        let kernel = bed.opening().clock(clock.clone()).open();
        kernel.resume(None).await.unwrap();
        until("it waits", async || clock.sleeping() == 1).await;
        clock.advance(5_999);
        assert!(kernel.exit(pid).await.unwrap().is_none());
        clock.advance(1);
        let got = results(&kernel, pid).await;
        assert_eq!(got, [Ok(Value::Null)]);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_writes_to_ones_family_and_to_others_by_right() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    let stranger = bed.start(&kernel, &[receive(None)]).await;
    let to_all = |to: Pid| {
        [
            send(json!(to), "to a stranger"),
            send(json!(999), "to nobody"),
            send(json!("$2x"), "malformed"),
        ]
    };
    let pid = bed.start(&kernel, &to_all(stranger)).await;
    let denied = Err(Code::Denied);
    let got = codes(&results(&kernel, pid).await);
    assert_eq!(got, [denied, denied, Err(Code::Invalid)]);
    // With the right to that one process, it may.
    let one = Resource::Process { pid: stranger };
    let grants = [bed.defaults(), vec![Grant::allow(one, [Right::Write])]].concat();
    let calls = [send(json!(stranger), "by right")];
    let pid = bed.start_with(&kernel, &calls, grants).await;
    assert_eq!(codes(&results(&kernel, pid).await), [Ok(())]);
    let heard = texts(&results(&kernel, stranger).await);
    assert_eq!(heard, [Some("by right".to_owned())]);
    // Brothers need a right to processes of the run; a child writes to its parent.
    let brother = [receive(Some(0)), send(json!(1), "x")];
    let calls = [spawn(&brother, false), wait_for(0)];
    let pid = bed.start(&kernel, &calls).await;
    let got = results(&kernel, pid).await;
    let of_child: Results =
        serde_json::from_str(got[1].as_ref().unwrap()["answer"].as_str().unwrap()).unwrap();
    assert_eq!(codes(&of_child), [Ok(()), denied]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mailbox_is_bounded() {
    let bed = Bed::with(&[]);
    let clock = StandInClock::at(NOON);
    let kernel = bed.opening().clock(clock).open();
    let pid = bed.start(&kernel, &[sleep(60_000)]).await;
    for _ in 0..1_000 {
        kernel.send(pid, "again").await.unwrap();
    }
    let full = kernel.send(pid, "one more").await.unwrap_err();
    assert_eq!(full.code, Code::Limit);
    let long = kernel.send(pid, &"x".repeat(70_000)).await.unwrap_err();
    assert_eq!(long.code, Code::Limit);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paths_are_meant_from_the_folder_and_never_lead_out() {
    let bed = Bed::with(&[("a/b/f", "deep"), ("f", "top")]);
    let kernel = bed.kernel();
    Person::of(&kernel).always_says(true);
    let cd = |path: &str| json!(["process.chdir", { "path": path }]);
    let calls = [
        cd("a/b"),
        read("f"),
        read("../../f"),
        write("../new", "in a"),
        mkdir("sub"),
        read("../../../outside/secret"),
        cd("../../.."),
        cd("/"),
        cd("nowhere"),
        cd("f"),
        cd(".."),
        read("b/f"),
        cd("../"),
        read("f"),
    ];
    let pid = bed.start(&kernel, &calls).await;
    let got = results(&kernel, pid).await;
    let confined = Err(Code::Confined);
    let expected = [
        Ok(()),
        Ok(()),
        Ok(()),
        Ok(()),
        Ok(()),
        confined,
        confined,
        confined,
        Err(Code::NotFound),
        Err(Code::NotFound),
        Ok(()),
        Ok(()),
        Ok(()),
        Ok(()),
    ];
    assert_eq!(codes(&got), expected, "{got:?}");
    let text = |n: usize| got[n].as_ref().unwrap()["text"].clone();
    assert_eq!(
        (text(1), text(2), text(11), text(13)),
        ("deep".into(), "top".into(), "deep".into(), "top".into())
    );
    assert_eq!(bed.text("a/new"), "in a");
    assert!(bed.root.join("a/b/sub").is_dir());
}

#[test]
fn folder_and_status_line_outlive_the_program() {
    let bed = Bed::with(&[("a/f", "in a"), ("f", "top")]);
    let calls = [
        json!(["process.chdir", { "path": "a" }]),
        json!(["process.status", { "text": "halfway\u{1b}[2J" }]),
        sleep(1000),
        read("f"),
    ];
    let pid = life(async {
        let clock = StandInClock::at(NOON);
        let kernel = bed.opening().clock(clock.clone()).open();
        let pid = bed.start(&kernel, &calls).await;
        until("it sleeps", async || clock.sleeping() == 1).await;
        let status = kernel.process(pid).await.unwrap().status;
        assert!(
            status.starts_with("halfway") && !status.contains('\u{1b}'),
            "{status:?}"
        );
        pid
    });
    life(async {
        let kernel = bed.opening().clock(StandInClock::at(NOON + 1000)).open();
        let process = kernel.process(pid).await.unwrap();
        assert!(process.status.starts_with("halfway"));
        assert_eq!(process.cwd, "a");
        kernel.resume(None).await.unwrap();
        let got = results(&kernel, pid).await;
        assert_eq!(got[3].as_ref().unwrap()["text"], "in a");
    });
}
