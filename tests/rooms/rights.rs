//! Rights in full, through the real primitives: constraints, uses, leases, and the reasons that are
//! given.

use serde_json::{Value, json};
use steward_kernel::capability::{Constraints, Grant, Resource, Right, Stance, Status};
use steward_kernel::human::EffectKind;
use steward_kernel::{Code, Kernel, Pid, Taken};

use crate::bed::{
    Bed, NOON, Person, approve, codes, delete, mkdir, outcomes, read, rename, results, spawn, undo,
    wait_for, write,
};
use crate::stand_ins::{Results, StandInClock};

pub(crate) fn constraints(json: &str) -> Constraints {
    Constraints::parse(json).unwrap()
}

pub(crate) fn files(bed: &Bed, rights: &[Right], stance: Stance, json: &str) -> Grant {
    let root = bed.root.clone();
    Grant::new(Resource::Workspace { root }, rights, stance).under(constraints(json))
}

/// The usual rights but those on the workspace.
pub(crate) fn beside_files(bed: &Bed) -> Vec<Grant> {
    let mut grants = bed.defaults();
    grants.retain(|grant| !matches!(grant.resource, Resource::Workspace { .. }));
    grants
}

pub(crate) const CHANGE: [Right; 2] = [Right::Write, Right::Delete];
pub(crate) const ALL: [Right; 3] = [Right::Read, Right::Write, Right::Delete];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn constraints_hold_at_every_primitive() {
    let (yes, denied, refused) = (Ok(()), Err(Code::Denied), Err(Code::Refused));
    let limited = |path: &str, limit: u64| json!(["fs.read", { "path": path, "limit": limit }]);
    let list = |path: &str, limit: u64| json!(["fs.list", { "path": path, "limit": limit }]);
    let docs = r#"{"paths":["docs/**"]}"#;
    let on = |rights: &[Right], stance, json: &str| {
        let anywhere = Resource::Workspace { root: "/".into() };
        Grant::new(anywhere, rights, stance).under(constraints(json))
    };
    // What is granted on the workspace, a call, how it ends where the person says no to everything.
    let rows: Vec<(Vec<Grant>, Value, Result<(), Code>)> = vec![
        (vec![on(&ALL, Stance::Allow, docs)], read("docs/a"), yes),
        (vec![on(&ALL, Stance::Allow, docs)], read("./docs//a"), yes),
        (vec![on(&ALL, Stance::Allow, docs)], read("src/a"), denied),
        (
            vec![on(&ALL, Stance::Allow, docs)],
            read("docs/../src/a"),
            denied,
        ),
        (
            vec![on(&ALL, Stance::Allow, docs)],
            write("docs/new", "x"),
            yes,
        ),
        (
            vec![on(&ALL, Stance::Allow, docs)],
            write("src/new", "x"),
            denied,
        ),
        (vec![on(&ALL, Stance::Allow, docs)], mkdir("docs/d"), yes),
        (vec![on(&ALL, Stance::Allow, docs)], mkdir("d"), denied),
        (vec![on(&ALL, Stance::Allow, docs)], delete("src/a"), denied),
        (
            vec![on(&ALL, Stance::Allow, docs)],
            rename("docs/b", "docs/c"),
            yes,
        ),
        (
            vec![on(&ALL, Stance::Allow, docs)],
            rename("docs/b", "src/b"),
            denied,
        ),
        (
            vec![on(&ALL, Stance::Allow, docs)],
            rename("src/a", "docs/z"),
            denied,
        ),
        (
            vec![on(&ALL, Stance::Ask, docs)],
            write("docs/a", "x"),
            refused,
        ),
        (
            vec![on(&ALL, Stance::Ask, docs)],
            write("src/a", "x"),
            denied,
        ),
        // Asks in general, allows in one folder; and the other way round.
        (
            vec![on(&ALL, Stance::Ask, "{}"), on(&ALL, Stance::Allow, docs)],
            write("docs/a", "x"),
            yes,
        ),
        (
            vec![on(&ALL, Stance::Ask, "{}"), on(&ALL, Stance::Allow, docs)],
            rename("docs/b", "b"),
            refused,
        ),
        (
            vec![on(&ALL, Stance::Allow, "{}"), on(&ALL, Stance::Ask, docs)],
            write("docs/a", "x"),
            refused,
        ),
        (
            vec![
                on(&ALL, Stance::Allow, "{}"),
                on(&CHANGE, Stance::Deny, docs),
            ],
            write("docs/a", "x"),
            denied,
        ),
        (
            vec![
                on(&ALL, Stance::Allow, "{}"),
                on(&CHANGE, Stance::Deny, docs),
            ],
            read("docs/a"),
            yes,
        ),
        (
            vec![on(&ALL, Stance::Allow, r#"{"max_bytes":4}"#)],
            write("n", "1234"),
            yes,
        ),
        (
            vec![on(&ALL, Stance::Allow, r#"{"max_bytes":4}"#)],
            write("n", "12345"),
            denied,
        ),
        (
            vec![on(&ALL, Stance::Allow, r#"{"max_bytes":4}"#)],
            limited("docs/a", 4),
            yes,
        ),
        (
            vec![on(&ALL, Stance::Allow, r#"{"max_bytes":4}"#)],
            limited("docs/a", 5),
            denied,
        ),
        (
            vec![on(&ALL, Stance::Allow, r#"{"max_count":3}"#)],
            list("docs", 3),
            yes,
        ),
        (
            vec![on(&ALL, Stance::Allow, r#"{"max_count":3}"#)],
            list("docs", 4),
            denied,
        ),
        (
            vec![on(
                &ALL,
                Stance::Allow,
                &format!(r#"{{"not_after_ms":{NOON}}}"#),
            )],
            read("docs/a"),
            denied,
        ),
        (
            vec![on(
                &ALL,
                Stance::Allow,
                &format!(r#"{{"not_before_ms":{NOON}}}"#),
            )],
            read("docs/a"),
            yes,
        ),
        // What is not known covers nothing.
        (
            vec![on(&ALL, Stance::Allow, r#"{"hosts":["a.org"]}"#)],
            read("docs/a"),
            denied,
        ),
        // A yes to a question that a read asks.
        (vec![on(&ALL, Stance::Ask, "{}")], read("docs/a"), refused),
    ];
    for (grants, call, expected) in rows {
        let bed = Bed::with(&[("docs/a", "a"), ("docs/b", "b"), ("src/a", "a")]);
        let kernel = bed.kernel();
        Person::of(&kernel).always_says(false);
        let here = |grant: &Grant| Grant {
            resource: Resource::Workspace {
                root: bed.root.clone(),
            },
            ..grant.clone()
        };
        let all = grants.iter().map(here).chain(beside_files(&bed)).collect();
        let before = bed.print();
        let pid = bed
            .start_with(&kernel, std::slice::from_ref(&call), all)
            .await;
        let got = codes(&results(&kernel, pid).await);
        assert_eq!(got, [expected], "{grants:?} {call}");
        if expected.is_err() {
            assert_eq!(bed.print(), before, "{grants:?} {call}");
            assert!(outcomes(&kernel, pid).await[0].starts_with("denied: "));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_is_asked_about_waits_without_a_slot_and_goes_on_with_a_yes() {
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    let mut person = Person::of(&kernel);
    let ask = files(&bed, &[Right::Read], Stance::Ask, "{}");
    let grants = [vec![ask], beside_files(&bed)].concat();
    let pid = bed
        .start_with(&kernel, &[read("f"), read("f")], grants)
        .await;
    for answer in [true, false] {
        let asked = person.is_asked().await;
        assert_eq!(
            (asked.kind, asked.relative.as_str()),
            (EffectKind::Use, "f")
        );
        assert_eq!(kernel.load(steward_kernel::syscall::Module::Fs), (0, 0));
        assert_eq!(person.says(&asked, answer).await, Taken::Counted);
    }
    let results = results(&kernel, pid).await;
    assert_eq!(codes(&results), [Ok(()), Err(Code::Refused)]);
    assert_eq!(results[0].as_ref().unwrap()["text"], "old");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uses_are_counted_down_the_chain_and_no_more_than_granted() {
    let (yes, denied) = (Ok(()), Err(Code::Denied));
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    let root = Resource::Workspace {
        root: bed.root.clone(),
    };
    let twice = |right| Grant::allow(root.clone(), [right]).times(2);
    // Looking.
    let grants = [vec![twice(Right::Read)], beside_files(&bed)].concat();
    let pid = bed
        .start_with(&kernel, &[read("f"), read("g"), read("f")], grants)
        .await;
    let not_found = Err(Code::NotFound);
    assert_eq!(
        codes(&results(&kernel, pid).await),
        [yes, not_found, denied]
    );
    // Changing.
    let grants = [vec![twice(Right::Write)], beside_files(&bed)].concat();
    let calls = [write("a", "1"), write("b", "2"), write("c", "3")];
    let pid = bed.start_with(&kernel, &calls, grants).await;
    assert_eq!(codes(&results(&kernel, pid).await), [yes, yes, denied]);
    assert!(!bed.root.join("c").exists());
    let all = kernel.all_capabilities(pid).await.unwrap();
    assert_eq!((all[0].grant.uses, all[0].status), (Some(0), Status::Spent));
    // What a child uses is used up for its parent, and the other way round.
    let grants = [vec![twice(Right::Read)], beside_files(&bed)].concat();
    let child = [read("f")];
    let calls = [
        spawn(&child, false),
        wait_for(0),
        read("f"),
        read("f"),
        spawn(&child, false),
    ];
    let pid = bed.start_with(&kernel, &calls, grants).await;
    let got = results(&kernel, pid).await;
    assert_eq!(codes(&got), [yes, yes, yes, denied, denied]);
    assert_eq!(codes(&of_the_child(&got, 1)), [yes]);
}

/// The results of a child that a parent's call waited for.
pub(crate) fn of_the_child(results: &Results, call: usize) -> Results {
    let exit = results[call].clone().unwrap();
    serde_json::from_str(exit["answer"].as_str().unwrap()).unwrap()
}

#[test]
fn a_lease_is_never_longer_than_granted_whatever_the_clocks_do() {
    const LEASE: u64 = 10_000;
    const DAY: u64 = 24 * 60 * 60 * 1000;
    type Clock = (Option<&'static str>, u64, u64);
    type Row = (Clock, u64, Option<u64>, Option<Clock>, Result<(), Code>);
    let (yes, denied) = (Ok(()), Err(Code::Denied));
    // The clock before, what passes, what the wall clock is set to then; the clock after a restart
    // (where there is one); what a read says then.
    let rows: [Row; 9] = [
        ((None, NOON, 0), LEASE - 1, None, None, yes),
        ((None, NOON, 0), LEASE, None, None, denied),
        // The wall clock jumps.
        ((None, NOON, 0), LEASE - 1, Some(NOON + DAY), None, yes),
        ((None, NOON, 0), LEASE, Some(NOON - DAY), None, denied),
        // The program is started anew on a machine that went on, and on one that was off.
        (
            (Some("a"), NOON, 500),
            1,
            None,
            Some((Some("a"), NOON - DAY, 500 + LEASE - 1)),
            yes,
        ),
        (
            (Some("a"), NOON, 500),
            1,
            None,
            Some((Some("a"), NOON - DAY, 500 + LEASE)),
            denied,
        ),
        (
            (Some("a"), NOON, 500),
            1,
            None,
            Some((Some("b"), NOON + 2, 3)),
            denied,
        ),
        (
            (Some("a"), NOON, 500),
            1,
            None,
            Some((Some("b"), NOON - DAY, 501)),
            denied,
        ),
        // Nothing tells how long it was off.
        ((None, NOON, 0), 1, None, Some((None, NOON + 1, 1)), denied),
    ];
    for (before, passes, wall, after, expected) in rows {
        let bed = Bed::with(&[("f", "old")]);
        let life = || tokio::runtime::Runtime::new().unwrap();
        let clock = |(boot, wall, steady): Clock| StandInClock::of(boot, wall, steady);
        let calls = [approve("go on?"), read("f")];
        let pid = life().block_on(async {
            let clock = clock(before);
            let kernel = bed.opening().clock(clock.clone()).open();
            let mut person = Person::of(&kernel);
            let lent = files(&bed, &[Right::Read], Stance::Allow, "{}").lasting(LEASE);
            let grants = [vec![lent], beside_files(&bed)].concat();
            let pid = bed.start_with(&kernel, &calls, grants).await;
            let asked = person.is_asked().await;
            clock.advance(passes);
            wall.into_iter().for_each(|ms| clock.set_wall(ms));
            if after.is_none() {
                person.says(&asked, true).await;
                let results = results(&kernel, pid).await;
                assert_eq!(
                    codes(&results),
                    [Ok(()), expected],
                    "{before:?} {passes} {wall:?}"
                );
            }
            pid
        });
        let Some(after) = after else { continue };
        life().block_on(async {
            let kernel = bed.opening().clock(clock(after)).open();
            kernel.resume(None).await.unwrap();
            let asked = kernel.approvals().await.unwrap().remove(0);
            Person::of(&kernel).says(&asked, true).await;
            let results = results(&kernel, pid).await;
            assert_eq!(codes(&results), [Ok(()), expected], "{before:?} {after:?}");
        });
    }
}

async fn explained(kernel: &Kernel, pid: Pid, call: &str) -> (Stance, String) {
    let told = kernel.explain(pid, call).await.unwrap();
    (told.stance, told.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_carries_its_reason() {
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    let mut person = Person::of(&kernel);
    let docs = files(
        &bed,
        &[Right::Write],
        Stance::Allow,
        r#"{"paths":["docs/**"]}"#,
    );
    let secret = files(
        &bed,
        &[Right::Admin],
        Stance::Deny,
        r#"{"paths":["secret/**"]}"#,
    );
    let grants = [bed.defaults(), vec![docs, secret]].concat();
    let calls = [
        approve("wait"),
        json!(["capability.explain", { "call": "fs.write docs/a" }]),
        json!(["capability.explain", { "call": "fs.burn docs/a" }]),
    ];
    let pid = bed.start_with(&kernel, &calls, grants).await;
    let asked = person.is_asked().await;
    let root = bed.root.display();
    let inside = format!("fs.write {root}/docs/a");
    let rows = [
        ("fs.write docs/a", Stance::Allow, "covers it"),
        (&inside, Stance::Allow, "paths `docs/**`: covers it"),
        (
            "fs.write src/a",
            Stance::Ask,
            "the path `src/a` is not in `docs/**`",
        ),
        (
            "fs.write secret/a",
            Stance::Deny,
            "paths `secret/**`: covers it",
        ),
        ("fs.read secret/a", Stance::Deny, "denied, by capability"),
        ("fs.read a", Stance::Allow, "allows reading"),
        ("fs.move a secret/a", Stance::Deny, "denied, by capability"),
        (
            "llm.chat",
            Stance::Allow,
            "allows using the cores: covers it",
        ),
        (
            "image.register",
            Stance::Deny,
            "because nothing that is held covers it",
        ),
    ];
    for (call, stance, reason) in rows {
        let (got, words) = explained(&kernel, pid, call).await;
        assert_eq!(got, stance, "{call}: {words}");
        assert!(words.contains(reason), "{call}: {words}");
    }
    let denies = kernel.capabilities(pid).await.unwrap();
    let deny = denies
        .iter()
        .find(|c| c.grant.stance == Stance::Deny)
        .unwrap();
    kernel.revoke(deny.id, "test").await.unwrap();
    let (stance, words) = explained(&kernel, pid, "fs.read secret/a").await;
    assert!(
        stance == Stance::Allow && words.contains("was taken back"),
        "{words}"
    );
    for (call, code) in [
        ("fs.burn a", Code::NotFound),
        ("fs.write ../a", Code::Confined),
        ("fs.move a", Code::Invalid),
    ] {
        let error = kernel.explain(pid, call).await.unwrap_err();
        assert!(
            error.code == code && error.hint.is_some(),
            "{call}: {error}"
        );
    }
    person.says(&asked, true).await;
    let results = results(&kernel, pid).await;
    assert_eq!(codes(&results), [Ok(()), Ok(()), Err(Code::NotFound)]);
    assert_eq!(results[1].as_ref().unwrap()["stance"], "allow");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undo_needs_the_rights_on_every_path_it_touches() {
    let bed = Bed::with(&[("docs/a", "old"), ("src/a", "old")]);
    let kernel = bed.kernel();
    Person::of(&kernel).always_says(true);
    let changed = bed
        .start(&kernel, &[write("docs/a", "new"), write("src/a", "new")])
        .await;
    kernel.wait(changed).await.unwrap();
    let docs = files(&bed, &ALL, Stance::Allow, r#"{"paths":["docs/**"]}"#);
    let grants = [vec![docs], beside_files(&bed)].concat();
    let pid = bed
        .start_with(&kernel, &[undo(Some(changed))], grants)
        .await;
    assert_eq!(codes(&results(&kernel, pid).await), [Err(Code::Denied)]);
    assert_eq!(
        (bed.text("docs/a"), bed.text("src/a")),
        ("new".into(), "new".into())
    );
    let both = files(
        &bed,
        &ALL,
        Stance::Allow,
        r#"{"paths":["docs/**","src/**"]}"#,
    );
    let grants = [vec![both], beside_files(&bed)].concat();
    let pid = bed
        .start_with(&kernel, &[undo(Some(changed))], grants)
        .await;
    assert_eq!(codes(&results(&kernel, pid).await), [Ok(())]);
    assert_eq!(
        (bed.text("docs/a"), bed.text("src/a")),
        ("old".into(), "old".into())
    );
}
