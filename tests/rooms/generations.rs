//! Generations in slices: the same text whatever interrupts them, and nothing left of those that end
//! early. The core is a stand-in whose every token depends on all before it.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use steward_kernel::provider::Snapshots;
use steward_kernel::scheduler::PolicyChoice;
use steward_kernel::syscall::Module;
use steward_kernel::{Code, Kernel, KernelEvent, MemorySnapshots, Pid, SysError, Urgency};

use crate::bed::{Bed, NOON, Person, approve, codes, results, sleep, spawn, until, wait_for};
use crate::scripted_core::{BYTES, Desk, Scripted, next, text_of};
use crate::stand_ins::StandInClock;

fn said(content: &str, tokens: u32) -> Value {
    let request = json!({
        "messages": [{ "role": "user", "content": content }],
        "max_tokens": tokens,
    });
    json!(["llm.chat", { "request": request, "visible": true }])
}

/// What [`said`] is answered with when nothing comes between.
fn answer(content: &str, tokens: u32) -> String {
    let seed = 0;
    let state = content
        .bytes()
        .fold(seed, |state, byte| next(state ^ u64::from(byte)));
    text_of(state, tokens)
}

fn policy(text: &str) -> PolicyChoice {
    PolicyChoice::by_name(text).unwrap()
}

/// Nothing of any generation is left, wherever it was.
async fn nothing_is_left(kernel: &Kernel, desk: &Desk, snapshots: &MemorySnapshots) {
    until("an empty house", async || {
        let contexts = kernel.contexts();
        desk.alive.load(Ordering::SeqCst) == 0
            && snapshots.count() == 0
            && kernel.load(Module::Llm) == (0, 0)
            && (contexts.resident, contexts.resident_bytes, contexts.stored) == (0, 0, 0)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_text_is_the_same_under_every_policy_and_memory_limit() {
    const AGENTS: u32 = 6;
    let policies = [
        "fifo",
        "round_robin(quantum=1)",
        "round_robin(quantum=4)",
        "round_robin(quantum=16)",
        "priority(quantum=4)",
        "fair_share(quantum=4)",
        "interactive(quantum=4)",
        "deadline(quantum=4)",
    ];
    for text in policies {
        for limit in [u64::MAX, 2 * BYTES, 0] {
            let bed = Bed::with(&[]);
            let (core, desk) = Scripted::paced();
            let snapshots = Arc::<MemorySnapshots>::default();
            let mut opening = bed.opening().core(core);
            opening.providers.snapshots = Arc::clone(&snapshots) as Arc<dyn Snapshots>;
            let kernel = opening.open();
            kernel.set_policy(None, &policy(text)).unwrap();
            kernel.set_context_limit(limit);
            let heard = listen(&kernel);
            let mut pids = Vec::new();
            for agent in 0..AGENTS {
                let calls = [
                    said(&format!("a{agent}"), 20 + agent),
                    said(&format!("b{agent}"), 5),
                ];
                pids.push(bed.start(&kernel, &calls).await);
            }
            until("all on the core", async || {
                kernel.load(Module::Llm) == (AGENTS as usize - 1, 1)
            })
            .await;
            desk.let_through(1_000);
            for (agent, pid) in (0..AGENTS).zip(pids) {
                let want = [
                    answer(&format!("a{agent}"), 20 + agent),
                    answer(&format!("b{agent}"), 5),
                ];
                let got = results(&kernel, pid).await;
                let got = got
                    .iter()
                    .map(|r| r.as_ref().unwrap()["text"].as_str().unwrap());
                assert_eq!(got.collect::<Vec<_>>(), want, "{text}, {limit} bytes");
                until("the whole text", async || {
                    heard.lock().unwrap().get(&pid) == Some(&want.concat())
                })
                .await;
            }
            nothing_is_left(&kernel, &desk, &snapshots).await;
            let contexts = kernel.contexts();
            assert_eq!(
                contexts.switches > 0,
                text != "fifo",
                "{text}: {contexts:?}"
            );
            let restored = desk.restored.load(Ordering::SeqCst) as u64;
            assert_eq!(restored, contexts.spills, "{text}");
            match limit {
                0 => assert_eq!(contexts.spills > 0, text != "fifo", "{text}"),
                u64::MAX => assert_eq!(contexts.spills, 0),
                _ => {}
            }
        }
    }
}

/// Text that each process shows, as it comes.
fn listen(kernel: &Kernel) -> Arc<Mutex<HashMap<Pid, String>>> {
    let heard = Arc::<Mutex<HashMap<Pid, String>>>::default();
    let (mut events, texts) = (kernel.subscribe(), Arc::clone(&heard));
    tokio::spawn(async move {
        while let Ok(event) = events.recv().await {
            if let KernelEvent::Token { pid, text, .. } = event {
                texts
                    .lock()
                    .unwrap()
                    .entry(pid)
                    .or_default()
                    .push_str(&text);
            }
        }
    });
    heard
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_a_generation_that_is_killed() {
    for limit in [u64::MAX, BYTES, 0] {
        let bed = Bed::with(&[]);
        let (core, desk) = Scripted::paced();
        let snapshots = Arc::<MemorySnapshots>::default();
        let mut opening = bed.opening().core(core);
        opening.providers.snapshots = Arc::clone(&snapshots) as Arc<dyn Snapshots>;
        let kernel = opening.open();
        kernel
            .set_policy(None, &policy("round_robin(quantum=2)"))
            .unwrap();
        kernel.set_context_limit(limit);
        let mut pids = Vec::new();
        for agent in 0..5 {
            pids.push(bed.start(&kernel, &[said(&format!("a{agent}"), 50)]).await);
        }
        // Each has had a slice by now, and waits or runs in the middle of its text.
        desk.let_through(11);
        desk.makes(11).await;
        for (count, pid) in pids[..4].iter().enumerate() {
            kernel.kill(*pid, "test").await.unwrap();
            kernel.wait(*pid).await.unwrap();
            desk.let_through(1);
            desk.makes(12 + count).await;
        }
        desk.let_through(1_000);
        let got = results(&kernel, pids[4]).await;
        assert_eq!(got[0].as_ref().unwrap()["text"], answer("a4", 50));
        nothing_is_left(&kernel, &desk, &snapshots).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_taken_while_a_generation_waits_for_its_slice_ends_it() {
    let bed = Bed::with(&[]);
    let (core, desk) = Scripted::paced();
    let kernel = bed.opening().core(core).open();
    kernel
        .set_policy(None, &policy("round_robin(quantum=1)"))
        .unwrap();
    let first = bed.start(&kernel, &[said("a", 8)]).await;
    desk.let_through(1);
    desk.makes(1).await;
    let second = bed.start(&kernel, &[said("b", 8)]).await;
    until("two on the core", async || {
        kernel.load(Module::Llm) == (1, 1)
    })
    .await;
    // The first runs its slice to its end, and waits while the second has one.
    desk.let_through(1);
    until("a switch", async || kernel.contexts().switches >= 1).await;
    let held = kernel.capabilities(first).await.unwrap();
    let cores = held
        .iter()
        .find(|c| c.grant.resource == steward_kernel::capability::Resource::Cores)
        .unwrap();
    assert!(kernel.revoke(cores.id, "test").await.unwrap());
    desk.let_through(1_000);
    assert_eq!(codes(&results(&kernel, first).await), [Err(Code::Denied)]);
    assert_eq!(codes(&results(&kernel, second).await), [Ok(())]);
    until("no generation", async || {
        desk.alive.load(Ordering::SeqCst) == 0
    })
    .await;
}

/// Takes no snapshot, as a full disk.
struct Full;

impl Snapshots for Full {
    fn put(&self, _: u64, _: Vec<u8>) -> Result<(), SysError> {
        Err(SysError::new(Code::Unavailable, "the disk is full"))
    }
    fn take(&self, number: u64) -> Result<Vec<u8>, SysError> {
        panic!("there is no snapshot {number}");
    }
    fn remove(&self, _: u64) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_that_cannot_be_kept_cost_no_text() {
    let bed = Bed::with(&[]);
    let (core, _desk) = Scripted::free();
    let mut opening = bed.opening().core(core);
    opening.providers.snapshots = Arc::new(Full);
    let kernel = opening.open();
    kernel
        .set_policy(None, &policy("round_robin(quantum=1)"))
        .unwrap();
    kernel.set_context_limit(0);
    let pids = [
        bed.start(&kernel, &[said("a", 30)]).await,
        bed.start(&kernel, &[said("b", 30)]).await,
    ];
    for (pid, content) in pids.into_iter().zip(["a", "b"]) {
        let got = results(&kernel, pid).await;
        assert_eq!(got[0].as_ref().unwrap()["text"], answer(content, 30));
    }
    assert_eq!(kernel.contexts().spills, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_answer_need_not_wait_for_a_long_one() {
    for (text, waits) in [
        ("fifo", true),
        ("round_robin(quantum=16)", false),
        ("fair_share(quantum=16)", false),
    ] {
        let bed = Bed::with(&[]);
        let (core, desk) = Scripted::paced();
        let kernel = bed.opening().core(core).open();
        kernel.set_policy(None, &policy(text)).unwrap();
        let long = bed.start(&kernel, &[said("long", 400)]).await;
        desk.let_through(1);
        desk.makes(1).await;
        let short = bed.start(&kernel, &[said("short", 4)]).await;
        until("both on the core", async || {
            kernel.load(Module::Llm) == (1, 1)
        })
        .await;
        desk.let_through(100);
        desk.makes(101).await;
        if waits {
            assert_eq!(kernel.load(Module::Llm), (1, 1), "{text}");
        } else {
            let got = results(&kernel, short).await;
            assert_eq!(codes(&got), [Ok(())], "{text}");
        }
        assert_eq!(kernel.exit(long).await.unwrap(), None, "{text}");
        desk.let_through(1_000);
        for pid in [long, short] {
            kernel.wait(pid).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_taken_up_in_the_middle_of_a_generation_counts_at_once() {
    let bed = Bed::with(&[]);
    let (core, desk) = Scripted::paced();
    let kernel = bed.opening().core(core).open();
    let pids = [
        bed.start(&kernel, &[said("a", 40)]).await,
        bed.start(&kernel, &[said("b", 40)]).await,
        bed.start(&kernel, &[said("c", 40)]).await,
    ];
    until("three on the core", async || {
        kernel.load(Module::Llm) == (2, 1)
    })
    .await;
    for text in [
        "round_robin(quantum=3)",
        "fifo",
        "fair_share(quantum=2)",
        "priority",
        "fifo",
    ] {
        kernel.set_policy(Some(Module::Llm), &policy(text)).unwrap();
        let made = desk.made();
        desk.let_through(15);
        desk.makes(made + 15).await;
    }
    desk.let_through(1_000);
    for (pid, content) in pids.into_iter().zip(["a", "b", "c"]) {
        let got = results(&kernel, pid).await;
        assert_eq!(got[0].as_ref().unwrap()["text"], answer(content, 40));
    }
}

/// The order in which three processes get the core after a first one, where each is as urgent as it
/// is said to be. The first is more urgent than any, so that none of them takes its turn.
async fn order(text: &str, urgencies: [Urgency; 3]) -> Vec<usize> {
    let bed = Bed::with(&[]);
    let (core, desk) = Scripted::paced();
    let clock = StandInClock::at(NOON);
    let kernel = bed.opening().core(core).clock(clock.clone()).open();
    kernel.set_policy(None, &policy(text)).unwrap();
    let most = Urgency {
        priority: 0,
        interactive: true,
        deadline_ms: Some(NOON),
    };
    let mut pids = Vec::new();
    for (at, urgency) in [most].into_iter().chain(urgencies).enumerate() {
        let calls = [
            sleep(1 + at as u64),
            said(&format!("a{at}"), 1),
            approve("done?"),
        ];
        let pid = bed.start(&kernel, &calls).await;
        kernel.set_urgency(pid, urgency, "test").await.unwrap();
        until("it sleeps", async || clock.sleeping() > 0).await;
        clock.advance(1 + at as u64);
        until("it is there", async || kernel.load(Module::Llm) == (at, 1)).await;
        pids.push(pid);
    }
    let mut person = Person::of(&kernel);
    let mut order = Vec::new();
    for _ in &pids {
        desk.let_through(1);
        let pid = person.is_asked().await.pid;
        order.push(pids.iter().position(|p| *p == pid).unwrap());
    }
    assert_eq!(order.remove(0), 0);
    order
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_core_goes_to_the_most_urgent() {
    let usual = Urgency::default();
    let classes = [7, 4, 0].map(|priority| Urgency { priority, ..usual });
    assert_eq!(order("fifo", classes).await, [1, 2, 3]);
    assert_eq!(order("priority", classes).await, [3, 2, 1]);
    let persons = [false, true, true].map(|interactive| Urgency {
        interactive,
        ..usual
    });
    assert_eq!(order("interactive", persons).await, [2, 3, 1]);
    let due = [None, Some(NOON + 9_000), Some(NOON + 1_000)];
    let due = due.map(|deadline_ms| Urgency {
        deadline_ms,
        ..usual
    });
    assert_eq!(order("deadline", due).await, [3, 2, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_is_as_urgent_as_its_parent_and_a_wrong_class_is_refused() {
    let bed = Bed::with(&[]);
    let clock = StandInClock::at(NOON);
    let kernel = bed.opening().clock(clock.clone()).open();
    let calls = [sleep(10), spawn(&[sleep(10)], false), wait_for(1)];
    let pid = bed.start(&kernel, &calls).await;
    assert!(kernel.process(pid).await.unwrap().urgency.interactive);
    let urgency = Urgency {
        priority: 6,
        interactive: false,
        deadline_ms: Some(NOON + 1),
    };
    kernel.set_urgency(pid, urgency, "test").await.unwrap();
    let wrong = Urgency {
        priority: 8,
        ..urgency
    };
    let refused = kernel.set_urgency(pid, wrong, "test").await.unwrap_err();
    assert_eq!(refused.code, Code::Invalid);
    until("it sleeps", async || clock.sleeping() == 1).await;
    clock.advance(10);
    until("a child", async || {
        kernel.processes().await.unwrap().len() == 2
    })
    .await;
    for process in kernel.processes().await.unwrap() {
        assert_eq!(process.urgency, urgency);
    }
    until("it sleeps", async || clock.sleeping() == 1).await;
    clock.advance(10);
    kernel.wait(pid).await.unwrap();
    let ended = kernel.set_urgency(pid, urgency, "test").await.unwrap_err();
    assert_eq!(ended.code, Code::Conflict);
    let none = kernel
        .set_urgency(Pid(99), urgency, "test")
        .await
        .unwrap_err();
    assert_eq!(none.code, Code::NotFound);
}
