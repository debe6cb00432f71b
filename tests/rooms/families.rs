//! Processes of one family: what spawn, fork and exec give and keep, and waiting for several.

use serde_json::{Value, json};
use steward_kernel::{Code, Pid, ProcessState};

use crate::bed::{
    Bed, NOON, Person, approve, chat, codes, life, read, results, script, sleep, spawn, until,
    wait_for, write,
};
use crate::stand_ins::{Results, StandInClock};

fn fork(mode: &str, task: &[Value]) -> Value {
    json!(["process.fork", { "mode": mode, "task": script(task) }])
}

fn wait_for_forked(call: usize) -> Value {
    json!(["process.wait", { "pid": format!("${call}.child") }])
}

/// The results of a child whose exit a wait gave.
fn of_child(exit: &Result<Value, steward_kernel::SysError>) -> Results {
    let answer = exit.as_ref().unwrap()["answer"]
        .as_str()
        .unwrap()
        .to_owned();
    serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{e}: {answer}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_goes_on_from_its_parents_history_with_what_its_mode_gives() {
    let (ok, denied) = (Ok(()), Err(Code::Denied));
    let task = [
        read("f"),
        chat(),
        approve("may I?"),
        write("g", "new"),
        spawn(&[], false),
        json!(["process.send", { "to": 1, "text": "here" }]),
    ];
    let rows = [
        ("copy", [ok, ok, ok, denied, ok, ok]),
        ("restricted", [ok, ok, denied, denied, denied, denied]),
        ("speculative", [ok, ok, denied, denied, ok, denied]),
    ];
    for (mode, expected) in rows {
        let bed = Bed::with(&[("f", "old")]);
        let kernel = bed.kernel();
        Person::of(&kernel).always_says(true);
        let calls = [read("f"), fork(mode, &task), wait_for_forked(1), read("f")];
        let pid = bed.start(&kernel, &calls).await;
        let got = results(&kernel, pid).await;
        assert_eq!(codes(&got), [ok; 4], "{mode}");
        let child = Pid(got[1].as_ref().unwrap()["child"].as_u64().unwrap());
        let theirs = of_child(&got[2]);
        // What the parent did before is what the child did; then it was told that it is the child.
        assert_eq!(theirs[0], got[0], "{mode}");
        let told = theirs[1].as_ref().unwrap();
        assert_eq!(
            (told["as"].as_str(), told["parent"].as_u64()),
            (Some("child"), Some(pid.0))
        );
        assert_eq!(codes(&theirs)[2..], expected, "{mode}");
        // The history is not shown as the child's own steps, and costs it nothing.
        let steps = kernel.steps(child).await.unwrap();
        assert_eq!(steps[0].seq, 3, "{mode}");
        let process = kernel.process(child).await.unwrap();
        assert_eq!(process.steps as usize, task.len(), "{mode}");
        assert_eq!(process.used.calls, u64::from(process.steps), "{mode}");
        assert_eq!(process.mode.unwrap().as_str(), mode);
        assert!(!bed.root.join("g").exists(), "{mode}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_starts_from_its_task_alone() {
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    let task = [read("f"), write("g", "new")];
    let calls = [read("f"), fork("worker", &task), wait_for_forked(1)];
    let pid = bed.start(&kernel, &calls).await;
    let got = results(&kernel, pid).await;
    let theirs = of_child(&got[2]);
    assert_eq!(codes(&theirs), [Ok(()), Err(Code::Denied)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_changes_files_only_where_that_is_granted_anew() {
    let workspace = |bed: &Bed| json!({ "kind": "workspace", "root": bed.root });
    let ok = Ok(());
    for (mode, expected) in [
        ("copy", ok),
        ("restricted", ok),
        ("speculative", Err(Code::Denied)),
    ] {
        let bed = Bed::with(&[("f", "old")]);
        let kernel = bed.kernel();
        Person::of(&kernel).always_says(true);
        let grant = json!({ "resource": workspace(&bed), "rights": ["write"], "stance": "allow" });
        let task = script(&[write("g", "new")]);
        let calls = [
            json!(["process.fork", { "mode": mode, "task": task, "grants": [grant] }]),
            wait_for_forked(0),
        ];
        let pid = bed.start(&kernel, &calls).await;
        let got = results(&kernel, pid).await;
        assert_eq!(codes(&of_child(&got[1]))[1], expected, "{mode}");
        assert_eq!(bed.root.join("g").exists(), expected.is_ok(), "{mode}");
    }
    // Nobody passes on what they have not.
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    let grant =
        json!({ "resource": { "kind": "shell" }, "rights": ["execute"], "stance": "allow" });
    let calls = [json!(["process.fork", { "mode": "copy", "grants": [grant] }])];
    let pid = bed.start(&kernel, &calls).await;
    assert_eq!(codes(&results(&kernel, pid).await), [Err(Code::Denied)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_speculative_process_makes_is_as_speculative() {
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    Person::of(&kernel).always_says(true);
    let grandchild = [
        read("f"),
        approve("may I?"),
        fork("copy", &[approve("and I?")]),
        wait_for_forked(2),
    ];
    let task = [
        spawn(&grandchild, true),
        json!(["process.wait", { "pid": "$1" }]),
    ];
    let calls = [fork("speculative", &task), wait_for_forked(0)];
    let pid = bed.start(&kernel, &calls).await;
    let got = results(&kernel, pid).await;
    let theirs = of_child(&got[1]);
    // It may not give its child the right to change files, having none.
    assert_eq!(codes(&theirs)[1], Err(Code::Denied));
    let task = [
        spawn(&grandchild, false),
        json!(["process.wait", { "pid": "$1" }]),
    ];
    let calls = [fork("speculative", &task), wait_for_forked(0)];
    let pid = bed.start(&kernel, &calls).await;
    let got = results(&kernel, pid).await;
    let grandchild = of_child(&of_child(&got[1])[2]);
    let denied = Err(Code::Denied);
    assert_eq!(codes(&grandchild), [Ok(()), denied, Ok(()), Ok(())]);
    assert_eq!(codes(&of_child(&grandchild[3]))[3], denied);
}

#[test]
fn a_fork_outlives_the_program_and_happens_once() {
    let bed = Bed::with(&[("f", "old")]);
    let task = [sleep(1000), read("f")];
    let calls = [read("f"), fork("copy", &task), wait_for_forked(1)];
    let pid = life(async {
        let clock = StandInClock::at(NOON);
        let kernel = bed.opening().clock(clock.clone()).open();
        let pid = bed.start(&kernel, &calls).await;
        until("the child sleeps", async || clock.sleeping() == 1).await;
        pid
    });
    bed.fill("f", "changed");
    life(async {
        let kernel = bed.opening().clock(StandInClock::at(NOON + 1000)).open();
        assert_eq!(kernel.resume(None).await.unwrap(), 2);
        let got = results(&kernel, pid).await;
        let theirs = of_child(&got[2]);
        let text = |n: usize| theirs[n].as_ref().unwrap()["text"].clone();
        assert_eq!((text(0), text(3)), ("old".into(), "changed".into()));
    });
    assert_eq!(bed.count("SELECT COUNT(*) FROM process"), 2);
}

#[test]
fn exec_keeps_the_pid_and_gains_nothing() {
    let bed = Bed::with(&[("f", "old")]);
    let after = [read("f"), write("g", "new"), sleep(1000), read("f")];
    let exec = json!(["process.exec", { "image": "script", "goal": script(&after) }]);
    let calls = [read("f"), read("f"), exec, read("f")];
    let mut grants = bed.defaults();
    // It may not change files, and its new program may not either.
    grants.remove(1);
    let pid = life(async {
        let clock = StandInClock::at(NOON);
        let kernel = bed.opening().clock(clock.clone()).open();
        let pid = bed.start_with(&kernel, &calls, grants).await;
        until("it sleeps", async || clock.sleeping() == 1).await;
        assert_eq!(kernel.process(pid).await.unwrap().goal, script(&after));
        pid
    });
    life(async {
        let kernel = bed.opening().clock(StandInClock::at(NOON + 1000)).open();
        kernel.resume(None).await.unwrap();
        let got = results(&kernel, pid).await;
        let expected = [Ok(()), Err(Code::Denied), Ok(()), Ok(())];
        assert_eq!(codes(&got), expected);
    });
    assert_eq!(bed.count("SELECT COUNT(*) FROM process"), 1);
    assert_eq!(bed.count("SELECT COUNT(*) FROM call"), 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exec_of_an_image_that_is_none_changes_nothing() {
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    let exec = json!(["process.exec", { "image": "nowhere", "goal": "x" }]);
    let pid = bed.start(&kernel, &[exec, read("f")]).await;
    let got = codes(&results(&kernel, pid).await);
    assert_eq!(got, [Err(Code::NotFound), Ok(())]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_child_to_end_is_the_one_that_is_told() {
    let bed = Bed::with(&[]);
    let clock = StandInClock::at(NOON);
    let kernel = bed.opening().clock(clock.clone()).open();
    let calls = [
        spawn(&[sleep(60_000)], false),
        spawn(&[sleep(1_000)], false),
        json!(["process.wait_any", { "pids": ["$0", "$1"] }]),
        json!(["process.wait_any", { "pids": ["$0"] }]),
        json!(["process.wait_any", { "pids": [] }]),
        json!(["process.wait_any", { "pids": [1] }]),
        wait_for(0),
    ];
    let pid = bed.start(&kernel, &calls).await;
    until("both sleep", async || clock.sleeping() == 2).await;
    clock.advance(1_000);
    until("the second has ended", async || {
        let all = kernel.processes().await.unwrap();
        all.iter()
            .filter(|p| p.state == ProcessState::Exited)
            .count()
            == 1
    })
    .await;
    clock.advance(59_000);
    let got = results(&kernel, pid).await;
    let expected = [
        Ok(()),
        Ok(()),
        Ok(()),
        Ok(()),
        Err(Code::Invalid),
        Err(Code::Denied),
        Ok(()),
    ];
    assert_eq!(codes(&got), expected);
    let which = |n: usize| got[n].as_ref().unwrap()["pid"].clone();
    let child = |n: usize| got[n].as_ref().unwrap().clone();
    assert_eq!((which(2), which(3)), (child(1), child(0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_starts_in_the_folder_and_with_the_grants_it_is_given() {
    let bed = Bed::with(&[("a/f", "in a"), ("f", "top")]);
    let kernel = bed.kernel();
    Person::of(&kernel).always_says(true);
    let child = |folder: &str| {
        let goal = script(&[read("f"), write("g", "new")]);
        let workspace = json!({ "kind": "workspace", "root": bed.root });
        let grant = json!({ "resource": workspace, "rights": ["write"], "stance": "ask" });
        json!(["process.spawn", { "image": "script", "goal": goal, "folder": folder, "grants": [grant] }])
    };
    let calls = [
        child("a"),
        wait_for(0),
        child("nowhere"),
        child("../outside"),
    ];
    let pid = bed.start(&kernel, &calls).await;
    let got = results(&kernel, pid).await;
    let expected = [Ok(()), Ok(()), Err(Code::NotFound), Err(Code::Confined)];
    assert_eq!(codes(&got), expected);
    let theirs = of_child(&got[1]);
    assert_eq!(theirs[0].as_ref().unwrap()["text"], "in a");
    assert_eq!(codes(&theirs), [Ok(()), Ok(())]);
    assert_eq!(bed.text("a/g"), "new");
}
