//! Processes: what waiting costs, and what an end takes with it.

use std::sync::{Arc, Mutex, mpsc};

use serde_json::{Value, json};
use steward_kernel::syscall::Module;
use steward_kernel::{Code, KernelEvent, ProcessState, Taken};
use tokio::sync::Notify;

use crate::bed::{
    Bed, NOON, Person, approve, chat, codes, outcomes, read, results, sleep, spawn, until,
    wait_for, write,
};
use crate::stand_ins::{Moment, StandInClock, Table, Watched};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_frees_payloads_and_keeps_the_answer() {
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    let mut person = Person::of(&kernel);
    let pid = bed.start(&kernel, &[read("f"), approve("done?")]).await;
    let asked = person.is_asked().await;
    assert_eq!(bed.count("SELECT COUNT(*) FROM payload"), 1);
    person.says(&asked, true).await;
    let exit = kernel.wait(pid).await.unwrap();
    assert_eq!(bed.count("SELECT COUNT(*) FROM payload"), 0);
    let active = "SELECT COUNT(*) FROM capability WHERE status = 'active'";
    assert_eq!(bed.count(active), 0);
    assert_eq!(kernel.exit(pid).await.unwrap(), Some(exit));
    // A yes that was given stays one in the books.
    let used = "SELECT COUNT(*) FROM approval WHERE state = 'used'";
    assert_eq!(bed.count(used), 1);
}

/// Two threads for tasks and three for blocking work: waiting must hold none of them.
#[test]
fn hundreds_that_wait_hold_no_thread_and_no_slot() {
    const EACH: usize = 40;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(3)
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let bed = Bed::with(&[("f", "old")]);
        let clock = StandInClock::at(NOON);
        let kernel = bed.opening().clock(clock.clone()).open();
        let kinds = [
            vec![approve("may I?")],
            vec![write("g", "new")],
            vec![sleep(60_000)],
            vec![spawn(&[sleep(60_000)], false), wait_for(0)],
        ];
        let mut all = Vec::new();
        for calls in &kinds {
            for _ in 0..EACH {
                all.push((bed.start(&kernel, calls).await, calls.len()));
            }
        }
        until("all wait", async || {
            let processes = kernel.processes().await.unwrap();
            let in_state = |state| processes.iter().filter(|p| p.state == state).count();
            in_state(ProcessState::WaitingHuman) == 2 * EACH
                && in_state(ProcessState::WaitingEvent) == 3 * EACH
                && clock.sleeping() == 2 * EACH
        })
        .await;
        let modules = [
            Module::Llm,
            Module::Fs,
            Module::Human,
            Module::Process,
            Module::Clock,
        ];
        for module in modules {
            assert_eq!(kernel.load(module), (0, 0), "{module:?}");
        }
        let other = [read("f"), chat(), spawn(&[read("f")], false), wait_for(2)];
        let pid = bed.start(&kernel, &other).await;
        assert_eq!(codes(&results(&kernel, pid).await), [Ok(()); 4]);

        // They come back by themselves, each from the call it made.
        clock.advance(60_000);
        for approval in kernel.approvals().await.unwrap() {
            let decided = kernel.decide(approval.id, false, &approval.digest.0, "test");
            assert_eq!(decided.await.unwrap(), Taken::Counted);
        }
        for (pid, calls) in all {
            let results = results(&kernel, pid).await;
            assert_eq!(results.len(), calls);
            let made = kernel.process(pid).await.unwrap().steps;
            assert_eq!(made as usize, calls, "no second call");
        }
    });
}

/// Ten thousand that wait, each kind of wait among them, on two threads for tasks and three for
/// blocking work; then another goes through every module as if they were not there.
#[test]
fn ten_thousand_that_wait_are_in_nobodys_way() {
    const EACH: usize = 2_000;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(3)
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let bed = Bed::with(&[("f", "old")]);
        let clock = StandInClock::at(NOON);
        let kernel = bed.opening().clock(clock.clone()).open();
        let receive = json!(["process.receive", {}]);
        let ask = json!(["human.ask", { "text": "which?" }]);
        let kinds = [
            vec![approve("may I?")],
            vec![ask],
            vec![receive],
            vec![spawn(&[sleep(60_000)], false), wait_for(0)],
        ];
        for calls in &kinds {
            for _ in 0..EACH / 100 {
                let some = (0..100).map(|_| bed.start(&kernel, calls));
                futures::future::join_all(some).await;
            }
        }
        let waiting = "SELECT COUNT(*) FROM call WHERE state IN ('intent', 'waiting')
                       AND name IN ('human.approve', 'human.ask', 'process.receive', 'process.wait')";
        until("all wait", async || {
            clock.sleeping() == EACH && bed.count(waiting) == 4 * EACH as u64
        })
        .await;
        let all = "SELECT COUNT(*) FROM process";
        assert_eq!(bed.count(all), 5 * EACH as u64);
        for module in Module::ALL {
            until("no slot is held", async || kernel.load(*module) == (0, 0)).await;
        }
        let other = [read("f"), chat(), spawn(&[read("f")], false), wait_for(2)];
        let pid = bed.start(&kernel, &other).await;
        assert_eq!(codes(&results(&kernel, pid).await), [Ok(()); 4]);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_ends_the_children_and_their_questions_lapse() {
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    let mut person = Person::of(&kernel);
    let grandchild = [write("f", "new")];
    let calls = [
        spawn(&[sleep(60_000)], false),
        spawn(&[spawn(&grandchild, true), wait_for(0)], true),
        wait_for(1),
    ];
    let parent = bed.start(&kernel, &calls).await;
    let asked = person.is_asked().await;
    until("all wait", async || {
        let all = kernel.processes().await.unwrap();
        let waits = [ProcessState::WaitingEvent, ProcessState::WaitingHuman];
        all.len() == 4 && all.iter().all(|p| waits.contains(&p.state))
    })
    .await;
    let bystander = bed.start(&kernel, &[sleep(60_000)]).await;
    kernel.kill(parent, "test").await.unwrap();
    let lapsed = person
        .hears(|event| match event {
            KernelEvent::Decided { id, approved, .. } => Some((id, approved)),
            _ => None,
        })
        .await;
    assert_eq!(lapsed, (asked.id, false));
    for process in kernel.processes().await.unwrap() {
        if process.pid != bystander {
            let exit = kernel.wait(process.pid).await.unwrap();
            assert_eq!(exit.error.unwrap().code, Code::Interrupted);
            let state = kernel.process(process.pid).await.unwrap().state;
            assert_eq!(state, ProcessState::Killed);
        }
    }
    assert_eq!(kernel.approvals().await.unwrap(), []);
    let late = person.says(&asked, true).await;
    let ended = "the process that asked has ended".to_owned();
    assert_eq!(late, Taken::TooLate(ended));
    assert_eq!(bed.text("f"), "old");
    let spared = kernel.process(bystander).await.unwrap().state;
    assert!(!spared.is_final());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_reaches_ones_own_child_only() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    let stranger = bed.start(&kernel, &[sleep(60_000)]).await;
    let kill = |pid: Value| json!(["process.signal", { "pid": pid, "signal": "kill" }]);
    let calls = [
        kill(json!(stranger)),
        kill(json!(999)),
        json!(["process.wait", { "pid": stranger }]),
        spawn(&[sleep(60_000)], false),
        kill(json!("$3")),
        wait_for(3),
    ];
    let pid = bed.start(&kernel, &calls).await;
    let results = results(&kernel, pid).await;
    let denied = Err(Code::Denied);
    let expected = [denied, denied, denied, Ok(()), Ok(()), Ok(())];
    assert_eq!(codes(&results), expected);
    assert_eq!(results[5].as_ref().unwrap()["ok"], false);
    assert!(!kernel.process(stranger).await.unwrap().state.is_final());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_that_has_begun_is_finished_and_written_down_before_a_kill() {
    let bed = Bed::with(&[("f", "old")]);
    let (go, blocked) = mpsc::channel::<()>();
    let blocked = Mutex::new(blocked);
    let begun = Arc::new(Notify::new());
    let begins = Arc::clone(&begun);
    let files = Watched::new(bed.store(), move |moment| {
        if moment == Moment::Applying {
            begins.notify_one();
            blocked.lock().unwrap().recv().unwrap();
        }
    });
    let kernel = bed.opening().files(files).open();
    Person::of(&kernel).always_says(true);
    let pid = bed.start(&kernel, &[write("f", "new"), read("f")]).await;
    begun.notified().await;
    kernel.kill(pid, "test").await.unwrap();
    go.send(()).unwrap();
    let exit = kernel.wait(pid).await.unwrap();
    assert_eq!(exit.error.unwrap().code, Code::Interrupted);
    assert_eq!(bed.text("f"), "new");
    let outcomes = outcomes(&kernel, pid).await;
    assert_eq!(outcomes.len(), 1, "{outcomes:?}");
    assert!(outcomes[0].starts_with("done: "), "{outcomes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_breaks_down_ends_its_process_only() {
    let bed = Bed::with(&[("f", "old")]);
    let images = Table::new().with("broken", |_sys| async { panic!("a stand-in's fault") });
    let kernel = bed.opening().images(images).open();
    let broken = bed
        .start_image(&kernel, "broken", "break", bed.defaults())
        .await;
    let exit = kernel.wait(broken).await.unwrap();
    assert_eq!(exit.error.unwrap().code, Code::Internal);
    let state = kernel.process(broken).await.unwrap().state;
    assert_eq!(state, ProcessState::Failed);
    let pid = bed.start(&kernel, &[read("f")]).await;
    assert_eq!(codes(&results(&kernel, pid).await), [Ok(())]);
}
