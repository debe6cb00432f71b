//! Rights that are asked for, passed on and taken back.

use serde_json::{Value, json};
use steward_kernel::capability::{Grant, Resource, Right, Stance, Status};
use steward_kernel::human::EffectKind;
use steward_kernel::syscall::{CapabilityInfo, Privilege};
use steward_kernel::{Code, ProcessState};

use crate::bed::{
    Bed, NOON, Person, approve, codes, read, results, sleep, spawn, until, wait_for, write,
};
use crate::rights::{beside_files, files, of_the_child};
use crate::stand_ins::StandInClock;

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
