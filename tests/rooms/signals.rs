//! Signals: pause, resume, interrupt and kill, in the middle of everything a process waits for.

use std::sync::Arc;

use serde_json::{Value, json};
use steward_kernel::syscall::Module;
use steward_kernel::{Code, Kernel, KernelEvent, Pid, ProcessState, Signal};

use crate::bed::{
    Bed, NOON, Person, approve, chat, codes, life, read, results, sleep, spawn, until, wait_for,
    write,
};
use crate::stand_ins::{StandInClock, StandInCore};

fn ask() -> Value {
    json!(["human.ask", { "text": "which?" }])
}

/// What a process can wait for: a name, the calls that lead there, the state it then has.
fn waits() -> Vec<(&'static str, Vec<Value>, ProcessState)> {
    let child = || spawn(&[sleep(60_000)], false);
    vec![
        ("time", vec![sleep(60_000)], ProcessState::WaitingEvent),
        (
            "a child",
            vec![child(), wait_for(0)],
            ProcessState::WaitingEvent,
        ),
        ("an answer", vec![ask()], ProcessState::WaitingHuman),
        ("a yes", vec![approve("may I?")], ProcessState::WaitingHuman),
        (
            "a yes to a change",
            vec![write("g", "new")],
            ProcessState::WaitingHuman,
        ),
        ("a core", vec![chat()], ProcessState::WaitingTool),
    ]
}

async fn stands(kernel: &Kernel, pid: Pid, state: ProcessState) {
    until(state.as_str(), async || {
        kernel.process(pid).await.unwrap().state == state
    })
    .await;
}

/// What ends each of the waits: time, the person, a core.
async fn end_waits(kernel: &Kernel, clock: &StandInClock, core: &StandInCore) {
    clock.advance(60_000);
    core.let_through(1);
    for approval in kernel.approvals().await.unwrap() {
        let digest = approval.digest.0;
        kernel
            .decide(approval.id, true, &digest, "test")
            .await
            .unwrap();
    }
    for question in kernel.questions().await.unwrap() {
        kernel.answer(question.id, "this", "test").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_ends_what_is_waited_for_and_the_program_goes_on() {
    for (name, mut calls, state) in waits() {
        let bed = Bed::with(&[("f", "old")]);
        let core = StandInCore::closed();
        let kernel = bed.opening().core(core).open();
        let mut person = Person::of(&kernel);
        let last = calls.len() - 1;
        calls.push(read("f"));
        let pid = bed.start(&kernel, &calls).await;
        stands(&kernel, pid, state).await;
        if name == "a core" {
            until("it generates", async || kernel.load(Module::Llm) == (0, 1)).await;
        }
        kernel.signal(pid, Signal::Interrupt, "test").await.unwrap();
        let got = results(&kernel, pid).await;
        let error = got[last].clone().unwrap_err();
        assert_eq!(error.code, Code::Interrupted, "{name}");
        assert_eq!(error.message, "interrupted by test", "{name}");
        assert_eq!(codes(&got)[last + 1], Ok(()), "{name}");
        assert_eq!(kernel.load(Module::Llm), (0, 0), "{name}");
        // What was asked lapses, and is told.
        assert_eq!(kernel.approvals().await.unwrap(), [], "{name}");
        assert_eq!(kernel.questions().await.unwrap(), [], "{name}");
        if name.starts_with("a yes") {
            let lapsed = |event| match event {
                KernelEvent::Decided { approved, by, .. } => Some((approved, by)),
                _ => None,
            };
            assert_eq!(
                person.hears(lapsed).await,
                (false, "interrupted".to_owned())
            );
        }
        assert!(!bed.root.join("g").exists(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_takes_a_call_out_of_its_queue() {
    let bed = Bed::with(&[]);
    let core = StandInCore::closed();
    let kernel = bed.opening().core(Arc::clone(&core)).open();
    let first = bed.start(&kernel, &[chat()]).await;
    until("one generates", async || kernel.load(Module::Llm) == (0, 1)).await;
    let second = bed.start(&kernel, &[chat()]).await;
    stands(&kernel, second, ProcessState::Runnable).await;
    kernel
        .signal(second, Signal::Interrupt, "test")
        .await
        .unwrap();
    let got = codes(&results(&kernel, second).await);
    assert_eq!(got, [Err(Code::Interrupted)]);
    assert_eq!(kernel.load(Module::Llm), (0, 1));
    core.let_through(1);
    assert_eq!(codes(&results(&kernel, first).await), [Ok(())]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_process_stands_still_whatever_it_waits_for_comes_or_not() {
    for (name, mut calls, state) in waits() {
        let bed = Bed::with(&[("f", "old")]);
        let (clock, core) = (StandInClock::at(NOON), StandInCore::closed());
        let opening = bed.opening().clock(clock.clone());
        let kernel = opening.core(Arc::clone(&core)).open();
        calls.push(read("f"));
        let pid = bed.start(&kernel, &calls).await;
        stands(&kernel, pid, state).await;
        kernel.signal(pid, Signal::Pause, "test").await.unwrap();
        // Twice is once.
        kernel.signal(pid, Signal::Pause, "test").await.unwrap();
        end_waits(&kernel, &clock, &core).await;
        stands(&kernel, pid, ProcessState::Paused).await;
        let made = kernel.process(pid).await.unwrap();
        assert!(
            made.paused && kernel.exit(pid).await.unwrap().is_none(),
            "{name}"
        );
        kernel.signal(pid, Signal::Resume, "test").await.unwrap();
        let got = codes(&results(&kernel, pid).await);
        assert!(got.iter().all(Result::is_ok), "{name}: {got:?}");
        assert!(!kernel.process(pid).await.unwrap().paused, "{name}");
    }
}

#[test]
fn a_pause_outlives_the_program() {
    for (name, mut calls, state) in waits() {
        let bed = Bed::with(&[("f", "old")]);
        calls.push(read("f"));
        let pid = life(async {
            let kernel = bed.opening().core(StandInCore::closed()).open();
            let pid = bed.start(&kernel, &calls).await;
            stands(&kernel, pid, state).await;
            kernel.signal(pid, Signal::Pause, "test").await.unwrap();
            pid
        });
        life(async {
            let (clock, core) = (StandInClock::at(NOON), StandInCore::closed());
            let opening = bed.opening().clock(clock.clone());
            let kernel = opening.core(Arc::clone(&core)).open();
            assert_eq!(
                kernel.process(pid).await.unwrap().state,
                ProcessState::Paused,
                "{name}"
            );
            kernel.resume(None).await.unwrap();
            end_waits(&kernel, &clock, &core).await;
            stands(&kernel, pid, ProcessState::Paused).await;
            kernel.signal(pid, Signal::Resume, "test").await.unwrap();
            let done = results(&kernel, pid);
            let mut done = std::pin::pin!(done);
            let got = loop {
                // What it waits for comes once it goes on.
                tokio::select! {
                    got = &mut done => break codes(&got),
                    () = tokio::task::yield_now() => end_waits(&kernel, &clock, &core).await,
                }
            };
            assert!(got.iter().all(Result::is_ok), "{name}: {got:?}");
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parent_steers_its_child_and_the_person_anyone() {
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    let signal = |name: &str| json!(["process.signal", { "pid": "$0", "signal": name }]);
    let calls = [
        spawn(&[sleep(60_000), read("f")], false),
        signal("pause"),
        signal("resume"),
        signal("interrupt"),
        wait_for(0),
    ];
    let pid = bed.start(&kernel, &calls).await;
    let got = results(&kernel, pid).await;
    assert_eq!(codes(&got), [Ok(()); 5]);
    let child = kernel.processes().await.unwrap()[0].pid;
    assert!(child != pid);
    let rows = crate::bed::rows(&kernel, Some(child)).await;
    let told: Vec<&str> = rows
        .iter()
        .filter(|row| row.kind == "process")
        .map(|row| row.name.as_str())
        .collect();
    let expected = ["created", "paused", "resumed", "interrupted", "exited"];
    assert_eq!(told, expected);
    // What has ended hears nothing.
    for signal in [Signal::Pause, Signal::Resume, Signal::Interrupt] {
        let error = kernel.signal(child, signal, "test").await.unwrap_err();
        assert_eq!(error.code, Code::Conflict, "{signal:?}");
    }
    let nobody = kernel.signal(Pid(999), Signal::Pause, "test").await;
    assert_eq!(nobody.unwrap_err().code, Code::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_reaches_a_paused_process() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    let pid = bed.start(&kernel, &[sleep(60_000)]).await;
    kernel.signal(pid, Signal::Pause, "test").await.unwrap();
    kernel.signal(pid, Signal::Kill, "test").await.unwrap();
    kernel.wait(pid).await.unwrap();
    let state = kernel.process(pid).await.unwrap().state;
    assert_eq!(state, ProcessState::Killed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_state_is_entered_and_told() {
    use std::collections::HashSet;
    let bed = Bed::with(&[("f", "old")]);
    let (clock, core) = (StandInClock::at(NOON), StandInCore::closed());
    let broken = crate::stand_ins::Table::new().with("broken", |_sys| async { panic!("broken") });
    let opening = bed.opening().clock(clock.clone()).images(broken);
    let kernel = opening.core(Arc::clone(&core)).open();
    let mut events = kernel.subscribe();
    let first = bed
        .start(&kernel, &[chat(), sleep(1_000), ask(), read("f")])
        .await;
    until("it generates", async || kernel.load(Module::Llm) == (0, 1)).await;
    let second = bed.start(&kernel, &[chat()]).await;
    stands(&kernel, second, ProcessState::Runnable).await;
    kernel.signal(second, Signal::Kill, "test").await.unwrap();
    kernel.wait(second).await.unwrap();
    core.let_through(1);
    stands(&kernel, first, ProcessState::WaitingEvent).await;
    kernel.signal(first, Signal::Pause, "test").await.unwrap();
    kernel.signal(first, Signal::Resume, "test").await.unwrap();
    clock.advance(1_000);
    stands(&kernel, first, ProcessState::WaitingHuman).await;
    let id = kernel.questions().await.unwrap()[0].id;
    kernel.answer(id, "this", "test").await.unwrap();
    kernel.wait(first).await.unwrap();
    let third = bed
        .start_image(&kernel, "broken", "x", bed.defaults())
        .await;
    let mut seen = HashSet::new();
    loop {
        match events.recv().await.unwrap() {
            KernelEvent::Process(info) => drop(seen.insert(info.state)),
            KernelEvent::Ended { process, .. } if process.pid == third => break,
            _ => {}
        }
    }
    use ProcessState::{
        Created, Exited, Failed, Killed, Paused, Runnable, Running, WaitingEvent, WaitingHuman,
        WaitingTool,
    };
    let all = [
        Created,
        Exited,
        Failed,
        Killed,
        Paused,
        Runnable,
        Running,
        WaitingEvent,
        WaitingHuman,
        WaitingTool,
    ];
    for state in all {
        assert!(seen.contains(&state), "{state:?} was not told");
    }
}

/// What waits for long keeps no more than this in its future: it is there for every process that
/// waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_waits_keeps_little() {
    use steward_kernel::syscall as call;
    let bed = Bed::with(&[]);
    let sizes = Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = Arc::clone(&sizes);
    let images = crate::stand_ins::Table::new().with("sizes", move |sys: steward_kernel::Sys| {
        let told = Arc::clone(&told);
        async move {
            let (text, choices) = (String::new(), Vec::new());
            let all = [
                (
                    "human.ask",
                    size_of_val(&sys.call(call::HumanAsk { text, choices })),
                ),
                (
                    "clock.sleep",
                    size_of_val(&sys.call(call::ClockSleep { ms: 1 })),
                ),
                (
                    "process.wait",
                    size_of_val(&sys.call(call::ProcessWait { pid: Pid(1) })),
                ),
                (
                    "process.receive",
                    size_of_val(&sys.call(call::ProcessReceive::default())),
                ),
                (
                    "fs.delete",
                    size_of_val(&sys.call(call::FsDelete {
                        path: String::new(),
                    })),
                ),
                (
                    "by name",
                    size_of_val(&sys.call_by_name("clock.now", json!({}))),
                ),
            ];
            told.lock().unwrap().extend(all);
            Ok(steward_kernel::Exit {
                ok: true,
                answer: String::new(),
                error: None,
            })
        }
    });
    let kernel = bed.opening().images(images).open();
    let pid = bed.start_image(&kernel, "sizes", "x", bed.defaults()).await;
    kernel.wait(pid).await.unwrap();
    let sizes = sizes.lock().unwrap().clone();
    assert_eq!(sizes.len(), 6);
    for (name, bytes) in &sizes {
        assert!(
            *bytes <= 5 * 1024 + 512,
            "`{name}` takes {bytes} bytes: {sizes:?}"
        );
    }
}
