//! Policies by name, and small histories worked out by hand.

use proptest::prelude::*;

use super::super::policy::KINDS;
use super::*;
use crate::error::Code;

#[test]
fn a_policy_is_read_as_it_is_written() {
    for kind in KINDS {
        let choice = PolicyChoice::by_name(kind.name).unwrap();
        assert_eq!(
            (choice.name(), choice.to_string()),
            (kind.name, kind.name.to_owned())
        );
    }
    for (text, written) in [
        (" round_robin( quantum = 4 ) ", "round_robin(quantum=4)"),
        ("fifo()", "fifo"),
        (
            "priority(age_ms=100,quantum=8)",
            "priority(age_ms=100, quantum=8)",
        ),
        ("fair_share(by=process)", "fair_share(by=process)"),
        ("interactive(patience_ms=1)", "interactive(patience_ms=1)"),
        (
            "deadline(patience_ms=86400000)",
            "deadline(patience_ms=86400000)",
        ),
    ] {
        assert_eq!(PolicyChoice::by_name(text).unwrap().to_string(), written);
    }
    assert_eq!(PolicyChoice::default().name(), "fifo");
}

#[test]
fn a_wrong_policy_is_refused_with_what_there_is() {
    for (text, message, hint) in [
        (
            "lottery",
            "`lottery`",
            "fifo, round_robin, priority, fair_share, interactive, deadline",
        ),
        ("", "``", "fifo"),
        ("round_robin(quantum=0)", "`0`", "from 1 to"),
        ("round_robin(quantum=x)", "`x`", "from 1 to"),
        ("round_robin(quantum=4", "no `)`", "round_robin(quantum=16)"),
        ("round_robin(4)", "`4` is no parameter", "name=value"),
        ("round_robin(slice=4)", "`slice`", "it takes: quantum"),
        (
            "round_robin(quantum=4, quantum=5)",
            "`quantum`",
            "it takes: quantum",
        ),
        ("fifo(quantum=4)", "`quantum`", "it takes none"),
        ("fair_share(by=person)", "`person`", "run, process"),
    ] {
        let error = PolicyChoice::by_name(text).unwrap_err();
        assert_eq!(error.code, Code::Invalid, "{text}");
        assert!(error.message.contains(message), "{text}: {error}");
        assert!(
            error.hint.as_deref().unwrap().contains(hint),
            "{text}: {error:?}"
        );
    }
    assert!(
        PolicyChoice::by_name(&"x".repeat(10_000))
            .unwrap_err()
            .message
            .len()
            < 100
    );
}

proptest! {
    #[test]
    fn any_text_is_refused_or_written_as_it_is_read(
        text in "(fifo|round_robin|fair_share|deadline|[a-z_(]{0,9})[( ]{0,2}([a-z_]{0,9}[=, ]{0,2}[0-9)]{0,9}){0,3}",
    ) {
        if let Ok(choice) = PolicyChoice::by_name(&text) {
            let again = PolicyChoice::by_name(&choice.to_string()).unwrap();
            prop_assert_eq!(choice.to_string(), again.to_string());
        }
    }
}

/// Numbers in the order in which they start, each ending at once.
fn order(yard: &mut Yard) -> Vec<u64> {
    let mut order = Vec::new();
    while let Some(number) = yard.running.keys().next().copied() {
        order.push(number);
        yard.running.remove(&number);
        yard.go_on();
    }
    order
}

#[test]
fn urgent_classes_go_first_until_others_have_aged() {
    let of = |class| Caller {
        priority: class,
        ..caller(1)
    };
    let mut yard = Yard::new(Module::Llm, "priority(age_ms=100)");
    for class in [0, 7, 3] {
        yard.arrive(of(class));
    }
    yard.clock.pass(299);
    yard.arrive(of(0));
    yard.clock.pass(2);
    // The call of class 3 came 301 ms before this one.
    yard.arrive(of(0));
    assert_eq!(order(&mut yard), [0, 3, 2, 4, 1]);
}

#[test]
fn a_person_goes_before_the_background() {
    let mut yard = Yard::new(Module::Llm, "interactive(patience_ms=1000)");
    let person = Caller {
        interactive: true,
        ..caller(1)
    };
    yard.arrive(person);
    yard.arrive(caller(2));
    yard.clock.pass(999);
    yard.arrive(person);
    yard.clock.pass(2);
    yard.arrive(person);
    assert_eq!(order(&mut yard), [0, 2, 1, 3]);
}

#[test]
fn the_earliest_deadline_goes_first() {
    let due = |ms| Caller {
        deadline_ms: Some(ms),
        ..caller(1)
    };
    let mut yard = Yard::new(Module::Llm, "deadline(patience_ms=1000)");
    yard.arrive(caller(0));
    yard.arrive(due(5_000));
    yard.arrive(caller(0));
    yard.arrive(due(800));
    yard.arrive(due(300));
    assert_eq!(order(&mut yard), [0, 4, 3, 1, 2]);
}

#[test]
fn a_run_with_many_calls_gets_no_more_than_one_with_few() {
    let mut yard = Yard::new(Module::Fs, "fair_share");
    yard.scheduler.set_limit(Module::Fs, 1).unwrap();
    let of = |run, pid| Caller::new(Pid(pid), run);
    for pid in 0..6 {
        yard.arrive(of(1, pid));
    }
    for pid in 6..9 {
        yard.arrive(of(2, pid));
    }
    assert_eq!(order(&mut yard), [0, 6, 1, 7, 2, 8, 3, 4, 5]);
}

#[test]
fn the_guide_tells_of_every_policy() {
    let guide = include_str!("../../../../../docs/scheduling.md");
    for kind in KINDS {
        assert!(
            guide.contains(&format!("| `{}` |", kind.name)),
            "{}",
            kind.name
        );
    }
}
