//! Capabilities: what a right covers, who may give it, and when it is checked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;

use serde_json::{Value, json};
use steward_kernel::capability::{Grant, Resource, Right, Stance};
use steward_kernel::syscall::{Module, catalogue};
use steward_kernel::{Code, Exit, Kernel, Pid};

use crate::bed::{
    Bed, Person, approve, chat, codes, delete, mkdir, outcomes, read, rename, results, sleep,
    spawn, undo, until, wait_for, write,
};
use crate::stand_ins::{Moment, StandInCore, Watched};

/// Every system call but `process.exit`, which needs no right, and `process.yield`, which is not
/// written down.
fn one_of_each() -> Vec<Value> {
    let message = json!({ "role": "user", "content": "hello" });
    let nothing = json!({ "namespace": "shared", "name": "nothing" });
    vec![
        chat(),
        json!(["llm.score", { "messages": [message], "choices": ["a", "b"] }]),
        read("f"),
        json!(["fs.list", {}]),
        json!(["fs.stat", { "path": "f" }]),
        write("f", "new"),
        mkdir("new"),
        rename("f", "to"),
        delete("f"),
        undo(None),
        json!(["human.ask", { "text": "which?" }]),
        json!(["human.tell", { "text": "this" }]),
        approve("may I?"),
        json!(["capability.list", {}]),
        json!(["capability.inspect", { "id": 1 }]),
        json!(["capability.explain", { "call": "fs.read f" }]),
        json!(["capability.request", { "grant": grant_of_clock(), "why": "for this" }]),
        json!(["capability.delegate", { "to": 1, "grants": [grant_of_clock()] }]),
        json!(["capability.revoke", { "id": 1 }]),
        json!(["access.add_privilege", { "subject": 1, "target": 1 }]),
        json!(["access.check", { "subject": 1, "target": 1 }]),
        spawn(&[], false),
        json!(["process.wait", { "pid": 1 }]),
        json!(["process.list", {}]),
        json!(["process.fork", { "mode": "copy" }]),
        json!(["process.exec", { "image": "script", "goal": "[]" }]),
        json!(["process.wait_any", { "pids": [1] }]),
        json!(["process.chdir", {}]),
        json!(["process.status", { "text": "busy" }]),
        json!(["process.send", { "to": 1, "text": "this" }]),
        json!(["process.receive", {}]),
        json!(["process.signal", { "pid": 1, "signal": "kill" }]),
        json!(["process.merge", { "child": 1 }]),
        json!(["object.create", { "namespace": "shared", "kind": "text", "text": "a" }]),
        json!(["object.read", { "object": nothing }]),
        json!(["object.inspect", { "object": nothing }]),
        json!(["object.update", { "object": nothing, "text": "b" }]),
        json!(["object.delete", { "object": nothing }]),
        json!(["object.list", { "namespace": "shared" }]),
        json!(["object.link", { "from": nothing, "to": 7, "relation": "about" }]),
        json!(["object.diff", { "object": nothing }]),
        json!(["object.keep", { "object": nothing }]),
        json!(["object.import", { "path": "f" }]),
        json!(["object.export", { "object": nothing, "path": "g" }]),
        json!(["object.view", { "namespace": "shared", "name": "v", "objects": [] }]),
        json!(["object.materialize", { "objects": [nothing] }]),
        json!(["image.list", {}]),
        json!(["image.inspect", { "name": "script" }]),
        json!(["image.register", { "yaml": "" }]),
        json!(["image.commit", { "checkpoint": 1, "name": "a" }]),
        json!(["shell.run", { "argv": ["true"] }]),
        json!(["net.fetch", { "method": "GET", "url": "https://example.org" }]),
        json!(["random.bytes", { "count": 8 }]),
        json!(["checkpoint.create", {}]),
        json!(["checkpoint.list", {}]),
        json!(["checkpoint.inspect", { "id": 1 }]),
        json!(["checkpoint.diff", { "from": 1, "to": 2 }]),
        json!(["checkpoint.restore", { "id": 1 }]),
        json!(["checkpoint.fork", { "id": 1, "mode": "copy" }]),
        json!(["checkpoint.replay", { "id": 1 }]),
        json!(["clock.now", {}]),
        sleep(0),
    ]
}

fn grant_of_clock() -> Grant {
    Grant::allow(Resource::Clock, [Right::Use])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_capability_every_call_is_denied_and_journaled() {
    let mut named: Vec<&str> = catalogue().iter().map(|call| call.name).collect();
    named.retain(|name| !matches!(*name, "process.exit" | "process.yield"));
    let calls = one_of_each();
    let made: Vec<&str> = calls.iter().map(|call| call[0].as_str().unwrap()).collect();
    assert_eq!(made, named, "a call is missing in this test");

    let bed = Bed::with(&[("f", "old")]);
    let before = bed.print();
    let kernel = bed.kernel();
    let elsewhere = Resource::Workspace {
        root: bed.outside.clone(),
    };
    let grant = |resource, rights: &[Right], stance| Grant::new(resource, rights, stance);
    let all = [Right::Admin];
    let denies: Vec<Grant> = bed
        .defaults()
        .into_iter()
        .map(|held| grant(held.resource, &all, Stance::Deny))
        .collect();
    let rows: [(&str, Vec<Grant>); 3] = [
        ("nothing", vec![]),
        (
            "another folder",
            vec![grant(elsewhere, &all, Stance::Allow)],
        ),
        ("all, and a deny", [bed.defaults(), denies].concat()),
    ];
    for (name, grants) in rows {
        let pid = bed.start_with(&kernel, &calls, grants).await;
        let results = results(&kernel, pid).await;
        for (call, result) in calls.iter().zip(codes(&results)) {
            assert_eq!(result, Err(Code::Denied), "{name}: {call}");
        }
        let outcomes = outcomes(&kernel, pid).await;
        assert_eq!(outcomes.len(), calls.len());
        assert!(outcomes.iter().all(|row| row.starts_with("denied: ")));
    }
    assert_eq!(bed.print(), before);
    assert_eq!(bed.count("SELECT COUNT(*) FROM approval"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_right_covers_its_own_calls_only() {
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    Person::of(&kernel).always_says(false);
    let calls = [
        read("f"),
        write("g", "new"),
        delete("f"),
        chat(),
        approve("may I?"),
        json!(["process.list", {}]),
        sleep(0),
    ];
    // Without the N-th of the usual grants, these of the calls are denied.
    let rows: [&[usize]; 6] = [&[0], &[1, 2], &[3], &[4], &[5], &[6]];
    for (left_out, denied) in rows.iter().enumerate() {
        let mut grants = bed.defaults();
        grants.remove(left_out);
        let pid = bed.start_with(&kernel, &calls, grants).await;
        for (number, code) in codes(&results(&kernel, pid).await).iter().enumerate() {
            let is_denied = *code == Err(Code::Denied);
            let call = &calls[number];
            assert_eq!(is_denied, denied.contains(&number), "{left_out}: {call}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_says_nothing_starts_no_run() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    let clock = grant_of_clock;
    let digest = steward_kernel::provider::Digest("0".repeat(64));
    let rows = [
        Grant {
            rights: vec![],
            ..clock()
        },
        clock().times(0),
        clock().lasting(0),
        Grant::allow(Resource::Exactly { digest }, [Right::Write]),
        Grant::allow(
            Resource::Objects {
                namespace: "a//b".to_owned(),
            },
            [Right::Read],
        ),
    ];
    for grant in rows {
        let submission = steward_kernel::Submission {
            image: "script".to_owned(),
            goal: "[]".to_owned(),
            workspace: bed.root.clone(),
            grants: vec![grant.clone()],
            after: None,
            budget: steward_kernel::budget::Budget::default(),
        };
        let error = kernel.submit(submission).await.unwrap_err();
        assert!(
            error.code == Code::Invalid && error.hint.is_some(),
            "{grant:?}"
        );
    }
}

/// The results of the child that a parent's call `0` started and its call `1` waited for.
fn of_the_child(results: &crate::stand_ins::Results) -> crate::stand_ins::Results {
    let exit: Exit = serde_json::from_value(results[1].clone().unwrap()).unwrap();
    serde_json::from_str(&exit.answer).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_has_never_more_than_its_parent() {
    let change = || vec![read("f"), write("f", "new"), delete("f")];
    let denied = Err(Code::Denied);
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    Person::of(&kernel).always_says(false);
    let run = async |calls: &[Value], grants| {
        let pid = bed.start_with(&kernel, calls, grants).await;
        results(&kernel, pid).await
    };

    // It starts without the right to change files.
    let calls = [spawn(&change(), false), wait_for(0)];
    let got = run(&calls, bed.defaults()).await;
    assert_eq!(codes(&of_the_child(&got)), [Ok(()), denied, denied]);

    // With it, it asks; also where its parent need not.
    let mut trusted = bed.defaults();
    trusted[1].stance = Stance::Allow;
    let refused = Err(Code::Refused);
    for grants in [bed.defaults(), trusted] {
        let calls = [spawn(&change(), true), wait_for(0)];
        let got = run(&calls, grants).await;
        assert_eq!(codes(&of_the_child(&got)), [Ok(()), refused, refused]);
    }

    // Nobody gives what they have not.
    for left_out in 0..bed.defaults().len() {
        let mut grants = bed.defaults();
        grants.remove(left_out);
        let got = run(&[spawn(&[], true)], grants).await;
        assert_eq!(codes(&got), [denied], "without grant {left_out}");
    }
    let grandchild = [spawn(&change(), true)];
    let calls = [spawn(&grandchild, false), wait_for(0)];
    let got = run(&calls, bed.defaults()).await;
    assert_eq!(codes(&of_the_child(&got)), [denied]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_taken_from_the_parent_is_taken_from_the_child() {
    let bed = Bed::with(&[("f", "old"), ("g", "old")]);
    let kernel = bed.kernel();
    let mut person = Person::of(&kernel);
    let mut grants = bed.defaults();
    // Two capabilities cover what the child gets in one wish.
    let both = grants.remove(1);
    for right in [Right::Write, Right::Delete] {
        grants.push(Grant {
            rights: vec![right],
            ..both.clone()
        });
    }
    let child = [approve("go on?"), write("f", "new"), delete("g")];
    let parent = bed
        .start_with(&kernel, &[spawn(&child, true), wait_for(0)], grants)
        .await;
    let asked = person.is_asked().await;
    let held = kernel.capabilities(parent).await.unwrap();
    let deleting = held
        .iter()
        .find(|c| c.grant.rights.contains(&Right::Delete))
        .unwrap();
    assert!(kernel.revoke(deleting.id, "test").await.unwrap());
    assert!(!kernel.revoke(deleting.id, "test").await.unwrap());
    Person::of(&kernel).always_says(true);
    person.says(&asked, true).await;
    let got = of_the_child(&results(&kernel, parent).await);
    assert_eq!(codes(&got), [Ok(()), Ok(()), Err(Code::Denied)]);
    assert_eq!((bed.text("f"), bed.text("g")), ("new".into(), "old".into()));
}

async fn capability(kernel: &Kernel, pid: Pid, resource: &Resource, right: Right) -> u64 {
    let held = kernel.capabilities(pid).await.unwrap();
    let covers = |c: &&steward_kernel::capability::Capability| {
        c.grant.resource == *resource && c.grant.rights.contains(&right)
    };
    held.iter().find(covers).unwrap().id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_revoked_while_a_generation_waits_in_its_queue_is_gone_when_it_runs() {
    let bed = Bed::with(&[]);
    let core = StandInCore::closed();
    let kernel = bed.opening().core(Arc::clone(&core)).open();
    let first = bed.start(&kernel, &[chat()]).await;
    until("one generates", async || kernel.load(Module::Llm) == (0, 1)).await;
    let second = bed.start(&kernel, &[chat()]).await;
    until("one waits", async || kernel.load(Module::Llm) == (1, 1)).await;
    let cores = capability(&kernel, second, &Resource::Cores, Right::Use).await;
    kernel.revoke(cores, "test").await.unwrap();
    core.let_through(2);
    assert_eq!(codes(&results(&kernel, first).await), [Ok(())]);
    let denied = results(&kernel, second).await;
    assert_eq!(codes(&denied), [Err(Code::Denied)]);
    assert_eq!(kernel.load(Module::Llm), (0, 0));
}

/// Reads that block until told; the kernel has four slots for files.
struct Jam {
    release: mpsc::Sender<()>,
    kernel: Kernel,
    bed: Bed,
}

impl Jam {
    const SLOTS: usize = 4;

    fn new() -> Self {
        let bed = Bed::with(&[("f", "old")]);
        let (release, blocked) = mpsc::channel();
        let blocked = std::sync::Mutex::new(blocked);
        let files = Watched::new(bed.store(), move |moment| {
            if moment == Moment::Reading {
                blocked.lock().unwrap().recv().unwrap();
            }
        });
        let kernel = bed.opening().files(files).open();
        Self {
            release,
            kernel,
            bed,
        }
    }

    /// Takes all slots.
    async fn fill(&self) -> Vec<Pid> {
        let mut all = Vec::new();
        for _ in 0..Self::SLOTS {
            all.push(self.bed.start(&self.kernel, &[read("f")]).await);
        }
        self.queue_of(0).await;
        all
    }

    async fn queue_of(&self, waiting: usize) {
        until("the slots are taken", async || {
            self.kernel.load(Module::Fs) == (waiting, Self::SLOTS)
        })
        .await;
    }

    fn release(&self) {
        for _ in 0..Self::SLOTS {
            self.release.send(()).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_revoked_while_a_change_waits_in_its_queue_is_gone_when_it_runs() {
    let jam = Jam::new();
    let (bed, kernel) = (&jam.bed, &jam.kernel);
    let workspace = Resource::Workspace {
        root: bed.root.clone(),
    };
    // Before the question.
    let readers = jam.fill().await;
    let pid = bed.start(kernel, &[write("f", "new")]).await;
    jam.queue_of(1).await;
    let right = capability(kernel, pid, &workspace, Right::Write).await;
    kernel.revoke(right, "test").await.unwrap();
    jam.release();
    assert_eq!(codes(&results(kernel, pid).await), [Err(Code::Denied)]);
    assert_eq!(bed.count("SELECT COUNT(*) FROM approval"), 0);
    for reader in readers {
        kernel.wait(reader).await.unwrap();
    }
    // After the yes.
    let mut person = Person::of(kernel);
    let pid = bed.start(kernel, &[write("f", "new")]).await;
    let asked = person.is_asked().await;
    jam.fill().await;
    person.says(&asked, true).await;
    jam.queue_of(1).await;
    let right = capability(kernel, pid, &workspace, Right::Write).await;
    kernel.revoke(right, "test").await.unwrap();
    jam.release();
    assert_eq!(codes(&results(kernel, pid).await), [Err(Code::Denied)]);
    assert_eq!(bed.text("f"), "old");
}

/// What is taken back between the kernel's last look at the files and the act.
#[derive(Debug, Clone, Copy)]
enum Back {
    TheRight,
    TheYes,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_or_a_yes_revoked_at_the_last_moment_does_not_act() {
    for taken in [Back::TheRight, Back::TheYes] {
        let bed = Bed::with(&[("f", "old")]);
        let (go, blocked) = mpsc::channel::<()>();
        let blocked = std::sync::Mutex::new(blocked);
        let looks = Arc::new(AtomicU32::new(0));
        let looked = Arc::clone(&looks);
        let files = Watched::new(bed.store(), move |moment| {
            if moment == Moment::Planning && looked.fetch_add(1, Ordering::SeqCst) == 1 {
                blocked.lock().unwrap().recv().unwrap();
            }
        });
        let kernel = bed.opening().files(files).open();
        let mut person = Person::of(&kernel);
        let pid = bed.start(&kernel, &[write("f", "new")]).await;
        let asked = person.is_asked().await;
        person.says(&asked, true).await;
        until("it looks again", async || looks.load(Ordering::SeqCst) == 2).await;
        let resource = match taken {
            Back::TheRight => Resource::Workspace {
                root: bed.root.clone(),
            },
            Back::TheYes => Resource::Exactly {
                digest: asked.digest.clone(),
            },
        };
        let id = capability(&kernel, pid, &resource, Right::Write).await;
        assert!(kernel.revoke(id, "test").await.unwrap());
        go.send(()).unwrap();
        let results = results(&kernel, pid).await;
        assert_eq!(codes(&results), [Err(Code::Denied)], "{taken:?}");
        assert_eq!(bed.text("f"), "old", "{taken:?}");
        let acted = "SELECT COUNT(*) FROM journal WHERE kind = 'executing'";
        assert_eq!(bed.count(acted), 0, "{taken:?}");
    }
}
