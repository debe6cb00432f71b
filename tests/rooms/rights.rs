//! Rights in full, through the real primitives: constraints, uses, leases, asking for a right, passing
//! it on, taking it back, and the reasons that are given.

use serde_json::{Value, json};
use steward_kernel::capability::{Constraints, Grant, Resource, Right, Stance, Status};
use steward_kernel::human::{EffectKind, NewPolicy, Place, Policy, Scope};
use steward_kernel::syscall::{CapabilityInfo, Privilege};
use steward_kernel::{Code, Kernel, Pid, ProcessState, Taken};

use crate::bed::{
    Bed, NOON, Person, approve, codes, delete, mkdir, outcomes, read, rename, results, sleep,
    spawn, undo, until, wait_for, write,
};
use crate::stand_ins::{Results, StandInClock};

fn constraints(json: &str) -> Constraints {
    Constraints::parse(json).unwrap()
}

pub(crate) fn files(bed: &Bed, rights: &[Right], stance: Stance, json: &str) -> Grant {
    let root = bed.root.clone();
    Grant::new(Resource::Workspace { root }, rights, stance).under(constraints(json))
}

/// The usual rights but those on the workspace.
fn beside_files(bed: &Bed) -> Vec<Grant> {
    let mut grants = bed.defaults();
    grants.retain(|grant| !matches!(grant.resource, Resource::Workspace { .. }));
    grants
}

const CHANGE: [Right; 2] = [Right::Write, Right::Delete];
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
fn of_the_child(results: &Results, call: usize) -> Results {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_passed_on_ends_with_what_it_comes_from() {
    let bed = Bed::with(&[("f", "old")]);
    let clock = StandInClock::at(NOON);
    let kernel = bed.opening().clock(clock.clone()).open();
    let mut person = Person::of(&kernel);
    let lent = files(&bed, &[Right::Read], Stance::Allow, "{}").lasting(1_000);
    let grants = [vec![lent], beside_files(&bed)].concat();
    let child = [read("f"), approve("go on?"), read("f")];
    let calls = [spawn(&child, false), wait_for(0)];
    let pid = bed.start_with(&kernel, &calls, grants).await;
    let asked = person.is_asked().await;
    let held = kernel.capabilities(asked.pid).await.unwrap();
    assert_eq!(kernel.left_ms(&held[0]), Some(1_000));
    clock.advance(1_000);
    let now = kernel.all_capabilities(asked.pid).await.unwrap();
    assert_eq!(now[0].status, Status::Expired);
    person.says(&asked, true).await;
    let got = of_the_child(&results(&kernel, pid).await, 1);
    assert_eq!(codes(&got), [Ok(()), Ok(()), Err(Code::Denied)]);
    let error = got[2].as_ref().unwrap_err();
    assert!(error.hint.is_some(), "{error}");
}

fn request(grant: &Grant) -> Value {
    json!(["capability.request", { "grant": grant, "why": "to do it" }])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_is_asked_for_and_a_yes_gives_it() {
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    let mut person = Person::of(&kernel);
    let wanted = files(&bed, &[Right::Read], Stance::Allow, r#"{"paths":["f"]}"#).times(1);
    let calls = [
        read("f"),
        request(&wanted),
        request(&wanted),
        read("f"),
        read("f"),
    ];
    let pid = bed.start_with(&kernel, &calls, beside_files(&bed)).await;
    let asked = person.is_asked().await;
    assert_eq!(
        (asked.kind, asked.action.as_str()),
        (EffectKind::Grant, "capability.request")
    );
    let words = format!(
        "allows reading the workspace `{}`, paths `f`, once",
        bed.root.display()
    );
    assert_eq!((asked.path, asked.scopes.len()), (words, 0));
    assert_eq!(asked.preview.lines[0].text, "to do it");
    let asked = kernel.approvals().await.unwrap().remove(0);
    person.says(&asked, false).await;
    let asked = person.is_asked().await;
    person.says(&asked, true).await;
    let (yes, denied) = (Ok(()), Err(Code::Denied));
    let results = results(&kernel, pid).await;
    assert_eq!(
        codes(&results),
        [denied, Err(Code::Refused), yes, yes, denied]
    );
    let id = results[2].as_ref().unwrap().as_u64().unwrap();
    let all = kernel.all_capabilities(pid).await.unwrap();
    let issued = all.iter().find(|capability| capability.id == id).unwrap();
    assert_eq!((issued.issuer.as_str(), issued.subject), ("person", pid));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn not_every_right_can_be_asked_for() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    let clock = || Grant::allow(Resource::Clock, [Right::Use]);
    let elsewhere = Resource::Workspace {
        root: bed.outside.clone(),
    };
    let rows = [
        Grant::allow(elsewhere, [Right::Read]),
        Grant::deny(Resource::Clock, [Right::Use]),
        Grant {
            rights: vec![],
            ..clock()
        },
        clock().times(0),
    ];
    let calls: Vec<Value> = rows.iter().map(request).collect();
    let pid = bed.start(&kernel, &calls).await;
    let results = results(&kernel, pid).await;
    assert_eq!(codes(&results), vec![Err(Code::Invalid); rows.len()]);
    assert_eq!(bed.count("SELECT COUNT(*) FROM approval"), 0);
    // Nor does a capability to give oneself rights spare the question.
    let admin = Grant::allow(Resource::Capabilities, [Right::Admin]);
    let mut person = Person::of(&kernel);
    let grants = [vec![admin], bed.defaults()].concat();
    let pid = bed.start_with(&kernel, &[request(&clock())], grants).await;
    let asked = person.is_asked().await;
    person.says(&asked, false).await;
    assert_eq!(
        codes(&crate::bed::results(&kernel, pid).await),
        [Err(Code::Refused)]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_passed_on_can_be_taken_back_and_nothing_else() {
    let bed = Bed::with(&[("docs/f", "old"), ("f", "old")]);
    let kernel = bed.kernel();
    let mut person = Person::of(&kernel);
    let docs = files(
        &bed,
        &[Right::Write],
        Stance::Allow,
        r#"{"paths":["docs/**"]}"#,
    );
    let grants = [bed.defaults(), vec![docs.clone()]].concat();
    let child = [
        approve("first"),
        write("docs/f", "new"),
        write("f", "new"),
        approve("second"),
        write("docs/f", "newer"),
    ];
    let delegate =
        |grant: &Grant| json!(["capability.delegate", { "to": "$0", "grants": [grant] }]);
    let network = Grant::allow(Resource::Network, [Right::Use]);
    let pid = bed
        .start_with(
            &kernel,
            &[
                spawn(&child, false),
                delegate(&docs),
                delegate(&network),
                wait_for(0),
            ],
            grants,
        )
        .await;
    let first = person.is_asked().await;
    let parent_waits =
        async || kernel.process(pid).await.unwrap().state == ProcessState::WaitingEvent;
    until("the parent waits for its child", &parent_waits).await;
    person.says(&first, true).await;
    let second = person.is_asked().await;
    assert_eq!(
        (bed.text("docs/f"), bed.text("f")),
        ("new".into(), "old".into())
    );
    // Taken from the parent, it is gone for the child at its next call.
    let held = kernel.capabilities(pid).await.unwrap();
    let from = held
        .iter()
        .find(|c| c.grant.constraints == docs.constraints)
        .unwrap();
    assert!(kernel.revoke(from.id, "test").await.unwrap());
    let given = kernel.all_capabilities(first.pid).await.unwrap();
    let passed = given.iter().find(|c| c.parent == Some(from.id)).unwrap();
    assert_eq!(
        (passed.status, passed.issuer.clone()),
        (Status::Revoked, format!("pid {pid}"))
    );
    person.says(&second, true).await;
    let got = results(&kernel, pid).await;
    let (yes, denied) = (Ok(()), Err(Code::Denied));
    assert_eq!(codes(&got), [yes, yes, denied, yes]);
    assert_eq!(
        codes(&of_the_child(&got, 3)),
        [yes, yes, denied, yes, denied]
    );
    assert_eq!(bed.text("docs/f"), "new");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_is_no_right_to_another_ones_capability() {
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    let other = bed.start(&kernel, &[]).await;
    kernel.wait(other).await.unwrap();
    let id = bed.count("SELECT MIN(id) FROM capability");
    let calls = [
        json!(["capability.inspect", { "id": id }]),
        json!(["capability.inspect", { "id": 1_000_000 }]),
        json!(["capability.revoke", { "id": id }]),
        json!(["capability.list", { "pid": other }]),
        json!(["capability.delegate", { "to": other, "grants": [Grant::allow(Resource::Clock, [Right::Use])] }]),
        json!(["access.add_privilege", { "subject": other, "target": other }]),
        json!(["access.check", { "subject": other, "target": other }]),
        json!(["capability.list", {}]),
    ];
    let pid = bed.start(&kernel, &calls).await;
    let results = results(&kernel, pid).await;
    assert_eq!(codes(&results[..7].to_vec()), vec![Err(Code::Denied); 7]);
    let message = |n: usize| results[n].as_ref().unwrap_err().message.clone();
    let numbered = |id: u64| format!("capability `{id}` is none of the caller's");
    assert_eq!(
        (message(0), message(1)),
        (numbered(id), numbered(1_000_000))
    );
    let own: Vec<CapabilityInfo> = serde_json::from_value(results[7].clone().unwrap()).unwrap();
    assert!(own.len() >= bed.defaults().len());
    assert!(
        own.iter()
            .all(|info| info.subject == pid && info.status == Status::Active)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_lets_others_reach_what_is_its_own() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    let mut person = Person::of(&kernel);
    let privilege = json!(["access.add_privilege", { "subject": "$0", "target": "$1" }]);
    let check = json!(["access.check", { "subject": "$0", "target": "$1" }]);
    let waiting = spawn(&[approve("may I end?")], false);
    let calls = [
        waiting.clone(),
        waiting,
        check.clone(),
        privilege,
        check,
        sleep(0),
    ];
    let pid = bed.start(&kernel, &calls).await;
    let (first, second) = (person.is_asked().await, person.is_asked().await);
    let results = results(&kernel, pid).await;
    let may = |objects, messages| json!(Privilege { objects, messages });
    assert_eq!(results[2], Ok(may(false, false)));
    assert_eq!(results[4], Ok(may(true, true)));
    for asked in [first, second] {
        person.says(&asked, true).await;
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
