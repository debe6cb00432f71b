//! The queues: nothing lost, nothing twice, no room left unused, in the order that the policy says.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::Index;

use super::super::line::QUEUE_LIMIT;
use super::super::policy::KINDS;
use super::*;
use crate::error::Code;

/// What a policy promises, said anew: of those that wait, the lowest goes first.
fn place(policy: &str, seen: &Seen) -> Option<u64> {
    let Seen { caller, at_ms, .. } = *seen;
    match policy {
        "fifo" | "round_robin" => Some(at_ms),
        "priority" => Some(at_ms + 2_000 * u64::from(caller.priority)),
        "interactive" if caller.interactive => Some(at_ms),
        "interactive" => Some(at_ms + 5_000),
        "deadline" => match caller.deadline_ms {
            Some(due) if due < at_ms => Some(at_ms),
            Some(due) if due < at_ms + 30_000 => Some(due),
            _ => Some(at_ms + 30_000),
        },
        // By tokens, not by arrival: see the tests of slices.
        _ => None,
    }
}

#[derive(Debug, Clone)]
enum Event {
    Arrive(u8, bool, Option<u16>),
    /// One of those that run ends.
    End(Index),
    /// One of those that wait gives up.
    GiveUp(Index),
    /// As [`Event::End`], and one of those that wait gives up before it learns of the free slot.
    EndAndGiveUp(Index, Index),
    Pass(u16),
    SetPolicy(Index),
    SetLimit(usize),
}

fn event(switching: u32) -> impl Strategy<Value = Event> {
    let any_index = any::<Index>;
    prop_oneof![
        40 => (0..8_u8, any::<bool>(), any::<Option<u16>>())
            .prop_map(|(class, person, due)| Event::Arrive(class, person, due)),
        30 => any_index().prop_map(Event::End),
        5 => any_index().prop_map(Event::GiveUp),
        5 => (any_index(), any_index()).prop_map(|(a, b)| Event::EndAndGiveUp(a, b)),
        20 => (0..3_000_u16).prop_map(Event::Pass),
        switching => any_index().prop_map(Event::SetPolicy),
        switching => (1..9_usize).prop_map(Event::SetLimit),
    ]
}

fn take<T>(of: &mut BTreeMap<u64, T>, which: &Index) -> Option<T> {
    let number = *of.keys().nth(which.index(of.len().max(1)))?;
    of.remove(&number)
}

/// Plays a history and checks it after every event; how many arrived.
fn play(module: Module, policy: &str, events: &[Event]) -> u64 {
    let mut yard = Yard::new(module, policy);
    let mut policy = policy;
    let (mut started, mut given_up) = (BTreeSet::new(), 0);
    for event in events {
        match event {
            Event::Arrive(class, person, due) => {
                let caller = Caller {
                    priority: *class,
                    interactive: *person,
                    deadline_ms: due.map(|due| yard.now() / 2 + u64::from(due)),
                    ..caller(yard.next % 7)
                };
                let number = yard.arrive(caller);
                if yard.running.contains_key(&number) {
                    assert!(started.insert(number));
                }
            }
            Event::End(which) => drop(take(&mut yard.running, which)),
            Event::GiveUp(which) => {
                given_up += u64::from(take(&mut yard.waiting, which).is_some());
            }
            Event::EndAndGiveUp(ends, gives_up) => {
                drop(take(&mut yard.running, ends));
                given_up += u64::from(take(&mut yard.waiting, gives_up).is_some());
            }
            Event::Pass(ms) => yard.clock.pass(u64::from(*ms)),
            Event::SetPolicy(which) => {
                policy = which.get(KINDS).name;
                let choice = PolicyChoice::by_name(policy).unwrap();
                yard.scheduler.set_policy(None, &choice).unwrap();
            }
            Event::SetLimit(limit) => yard.scheduler.set_limit(module, *limit).unwrap(),
        }
        for seen in go_on_in_order(&mut yard, policy) {
            assert!(started.insert(seen.number), "{} began twice", seen.number);
        }
        yard.check();
    }
    while let Some(number) = yard.running.keys().next().copied() {
        yard.running.remove(&number);
        for seen in go_on_in_order(&mut yard, policy) {
            assert!(started.insert(seen.number), "{} began twice", seen.number);
        }
        yard.check();
    }
    assert_eq!(
        started.len() as u64 + given_up,
        yard.next,
        "a call was lost"
    );
    assert_eq!(yard.scheduler.load(module), (0, 0));
    yard.next
}

/// Lets calls go on whose turns came, and holds each against those that wait on.
fn go_on_in_order(yard: &mut Yard, policy: &str) -> Vec<Seen> {
    let started = yard.go_on();
    for (at, seen) in started.iter().enumerate() {
        let Some(first) = place(policy, seen) else {
            continue;
        };
        let after = started[at + 1..].iter();
        for other in after.chain(yard.waiting.values().map(|(other, _)| other)) {
            let place = place(policy, other).unwrap();
            assert!(
                (first, seen.number) < (place, other.number),
                "{policy}: {seen:?} went before {other:?}"
            );
        }
    }
    started
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn every_policy_keeps_its_order_and_loses_none(
        module in prop::sample::select(vec![Module::Llm, Module::Fs]),
        events in prop::collection::vec(event(0), 1_000..4_000),
    ) {
        for kind in KINDS {
            play(module, kind.name, &events);
        }
    }

    #[test]
    fn a_policy_or_limit_may_change_in_the_middle(
        events in prop::collection::vec(event(2), 1_000..4_000),
    ) {
        play(Module::Fs, "fifo", &events);
    }
}

#[test]
fn modules_do_not_wait_for_each_other() {
    let mut llm = Yard::new(Module::Llm, "fifo");
    llm.arrive(caller(1));
    llm.arrive(caller(2));
    assert_eq!(llm.scheduler.load(Module::Llm), (1, 1));
    let mut files = Yard {
        scheduler: Arc::clone(&llm.scheduler),
        ..Yard::new(Module::Fs, "fifo")
    };
    files.arrive(caller(3));
    assert_eq!(files.scheduler.load(Module::Fs), (0, 1));
}

#[test]
fn a_queue_is_bounded() {
    let mut yard = Yard::new(Module::Llm, "fifo");
    for _ in 0..=QUEUE_LIMIT {
        yard.arrive(caller(1));
    }
    let entering = yard.scheduler.enter(Module::Llm, caller(1));
    let refused = yard.come(caller(1), entering).unwrap_err();
    assert_eq!(refused.code, Code::Limit);
    let load = yard.scheduler.load(Module::Llm);
    assert_eq!(load, (QUEUE_LIMIT, 1), "a refused call takes no place");
}

#[test]
fn a_higher_limit_lets_those_in_who_wait_and_a_lower_one_ends_none() {
    let mut yard = Yard::new(Module::Llm, "fifo");
    for pid in 0..5 {
        yard.arrive(caller(pid));
    }
    yard.scheduler.set_limit(Module::Llm, 3).unwrap();
    let numbers = |started: Vec<Seen>| started.iter().map(|s| s.number).collect::<Vec<_>>();
    assert_eq!(numbers(yard.go_on()), [1, 2]);
    yard.scheduler.set_limit(Module::Llm, 1).unwrap();
    assert_eq!(yard.scheduler.load(Module::Llm), (2, 3));
    yard.running.remove(&0);
    yard.running.remove(&1);
    assert_eq!(numbers(yard.go_on()), [0; 0], "more run than may");
    yard.running.remove(&2);
    assert_eq!(numbers(yard.go_on()), [3]);
    for bad in [0, 4_097] {
        let refused = yard.scheduler.set_limit(Module::Llm, bad).unwrap_err();
        assert_eq!(refused.code, Code::Invalid);
    }
}

#[test]
fn waits_are_told() {
    let mut yard = Yard::new(Module::Llm, "round_robin(quantum=4)");
    for pid in 0..10 {
        yard.arrive(caller(pid));
    }
    for number in 0..9 {
        yard.clock.pass(10);
        yard.running.remove(&number);
        yard.go_on();
        let (_, slot) = &yard.running[&(number + 1)];
        assert_eq!((slot.entered_ms(), slot.wait_ms()), (0, 10 * (number + 1)));
        assert_eq!(slot.started_ms(), yard.now());
    }
    let loads = yard.scheduler.loads();
    let llm = loads
        .iter()
        .find(|load| load.module == Module::Llm)
        .unwrap();
    assert_eq!(llm.policy, "round_robin(quantum=4)");
    assert_eq!(
        (llm.limit, llm.waiting, llm.running, llm.turns),
        (1, 0, 1, 10)
    );
    assert_eq!((llm.mean_wait_ms, llm.p90_wait_ms), (45.0, 80));
    assert_eq!(loads.len(), Module::ALL.len());
}
