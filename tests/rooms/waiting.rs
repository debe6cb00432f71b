//! What waits for the person: how long, in which groups, and who hears of the answer.

use std::sync::Arc;

use serde_json::{Value, json};
use steward_kernel::human::{Answer, Approval};
use steward_kernel::{Code, Kernel, KernelEvent, Pid, ProcessState, Taken};

use crate::bed::{Bed, NOON, Person, codes, read, results, spawn, until, wait_for, write};
use crate::policies::rows_with;
use crate::stand_ins::StandInClock;

/// Waits until a process has asked and somebody sleeps for it.
async fn waits_with_a_clock(kernel: &Kernel, clock: &StandInClock, pid: Pid) -> Approval {
    until("it waits with a clock", async || {
        let waits = kernel.process(pid).await.unwrap().state == ProcessState::WaitingHuman;
        waits && clock.sleeping() > 0
    })
    .await;
    kernel.approvals().await.unwrap().remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_expires_visibly_and_never_into_a_yes() {
    let bed = Bed::with(&[("f", "old")]);
    let clock = StandInClock::at(NOON);
    let kernel = bed.opening().clock(clock.clone()).open();
    kernel.set_approval_lifetime(Some(1_000));
    let mut person = Person::of(&kernel);
    let ask = json!(["human.approve", { "title": "sure?", "text": "", "expires_ms": 10 }]);
    let odd = json!(["human.approve", { "title": "sure?", "text": "", "expires_ms": 0 }]);
    let calls = [write("f", "new"), ask, odd, read("f")];
    let pid = bed.start(&kernel, &calls).await;
    let before = bed.print();
    for (lifetime, jump) in [(1_000, NOON * 2), (10, 0)] {
        let asked = waits_with_a_clock(&kernel, &clock, pid).await;
        assert_eq!(asked.expires_ms, Some(asked.asked_ms + lifetime));
        // Only time that passes counts.
        clock.set_wall(jump);
        clock.advance(lifetime - 1);
        assert_eq!(kernel.approvals().await.unwrap().len(), 1);
        clock.advance(1);
        let (id, approved, by) = person
            .hears(|event| match event {
                KernelEvent::Decided { id, approved, by } => Some((id, approved, by)),
                _ => None,
            })
            .await;
        assert_eq!((id, approved), (asked.id, false));
        assert!(by.starts_with("nobody"), "{by}");
        let late = person.says(&asked, true).await;
        assert_eq!(
            late,
            Taken::TooLate("the time to answer was over".to_owned())
        );
    }
    let results = results(&kernel, pid).await;
    let expired = Err(Code::Expired);
    assert_eq!(
        codes(&results),
        [expired, expired, Err(Code::Invalid), Ok(())]
    );
    let error = results[0].as_ref().unwrap_err();
    assert!(error.hint.is_some() && error.message.contains("nobody answered"));
    assert_eq!(bed.print(), before);
    assert_eq!(
        rows_with(&kernel, pid, "expired without an answer").await,
        2
    );
    assert_eq!(
        bed.count("SELECT COUNT(*) FROM approval WHERE state = 'expired'"),
        2
    );
    assert_eq!(
        bed.count("SELECT COUNT(*) FROM capability WHERE uses_left IS NOT NULL"),
        0
    );
}

#[test]
fn the_time_to_answer_goes_on_over_a_restart() {
    const LIFETIME: u64 = 1_000;
    let bed_that_waits = |clock: Arc<StandInClock>| {
        let bed = Bed::with(&[("f", "old")]);
        let pid = tokio::runtime::Runtime::new().unwrap().block_on(async {
            let kernel = bed.opening().clock(clock.clone()).open();
            kernel.set_approval_lifetime(Some(LIFETIME));
            let pid = bed.start(&kernel, &[write("f", "new")]).await;
            waits_with_a_clock(&kernel, &clock, pid).await;
            pid
        });
        (bed, pid)
    };
    // The steady clock after the restart, under which boot; what comes of a yes then.
    let rows = [
        ("a", 5 + LIFETIME - 1, Ok(())),
        ("a", 5 + LIFETIME, Err(Code::Expired)),
        // Nothing tells how long the machine was off: the time begins anew.
        ("b", 1, Ok(())),
    ];
    for (boot, steady, expected) in rows {
        let (bed, pid) = bed_that_waits(StandInClock::of(Some("a"), NOON, 5));
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let clock = StandInClock::of(Some(boot), NOON, steady);
            let kernel = bed.opening().clock(clock).open();
            let waits = kernel.approvals().await.unwrap();
            assert_eq!(waits.len(), usize::from(expected.is_ok()));
            for asked in waits {
                assert_eq!(asked.id, 1);
                assert_eq!(Person::of(&kernel).says(&asked, true).await, Taken::Counted);
            }
            kernel.resume(None).await.unwrap();
            assert_eq!(
                codes(&results(&kernel, pid).await),
                [expected],
                "{boot} {steady}"
            );
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_together_is_grouped_bounded_and_answered_one_by_one() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    let mut person = Person::of(&kernel);
    // More children than may wait at once.
    let children: Vec<Value> = (0..70)
        .map(|number| spawn(&[write(&format!("f{number}"), "x")], true))
        .collect();
    let calls = [children, (0..70).map(wait_for).collect()].concat();
    let pid = bed.start(&kernel, &calls).await;
    let mut asked = Vec::new();
    for _ in 0..64 {
        asked.push(person.is_asked().await);
    }
    let group = asked[0].group;
    assert!(
        asked
            .iter()
            .all(|one| one.group == group && one.run == pid.0)
    );
    assert_eq!(group, asked[0].id);
    let over = async || {
        let all = kernel.processes().await.unwrap();
        let ended = all.iter().filter(|process| process.state.is_final());
        ended.count() == 6
    };
    until("those over the bound have been refused", &over).await;
    assert_eq!(kernel.approvals().await.unwrap().len(), 64);
    assert_eq!(std::fs::read_dir(&bed.root).unwrap().count(), 0);
    let all: Vec<(u64, String)> = asked
        .iter()
        .map(|one| (one.id, one.digest.0.clone()))
        .collect();
    let taken = kernel
        .decide_all(&all, &Answer::Yes, "window")
        .await
        .unwrap();
    assert_eq!(taken, vec![Taken::Counted; 64]);
    let late = kernel
        .decide_all(&all[..1], &Answer::No, "terminal")
        .await
        .unwrap();
    assert_eq!(
        late,
        [Taken::TooLate(
            "it was approved already, by window".to_owned()
        )]
    );
    kernel.wait(pid).await.unwrap();
    assert_eq!(std::fs::read_dir(&bed.root).unwrap().count(), 64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_surface_hears_of_an_answer() {
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    let mut surfaces = [
        Person::of(&kernel),
        Person::of(&kernel),
        Person::of(&kernel),
    ];
    let pid = bed.start(&kernel, &[write("f", "new")]).await;
    let mut asked = Vec::new();
    for surface in &mut surfaces {
        asked.push(surface.is_asked().await);
    }
    assert!(asked.iter().all(|one| *one == asked[0]));
    surfaces[1].says(&asked[1], true).await;
    for surface in &mut surfaces {
        let heard = surface
            .hears(|event| match event {
                KernelEvent::Decided { id, approved, by } => Some((id, approved, by)),
                _ => None,
            })
            .await;
        assert_eq!(heard, (asked[0].id, true, "test".to_owned()));
    }
    assert_eq!(codes(&results(&kernel, pid).await), [Ok(())]);
}
