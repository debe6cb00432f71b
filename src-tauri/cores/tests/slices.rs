//! Several processes on the local core: each gets the text that it would get alone, whatever
//! interrupts it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "a test's own files")]

mod house;

use std::sync::Arc;

use house::{House, Question};
use steward_cores::LocalCore;

const fn question(text: &'static str, temperature: f32) -> Question {
    Question {
        text,
        temperature,
        tokens: 24,
    }
}

const QUESTIONS: [Question; 4] = [
    question("Tell a story about a ship.", 0.0),
    question("Tell a story about a ship.", 0.8),
    question(
        "What is the capital of France? Say why, in a whole sentence.",
        0.0,
    ),
    question("List some fruit.", 0.8),
];

/// The answers under a policy, so many at once, and a limit of memory; how often a generation gave way, and went to
/// the snapshots.
async fn answers(
    core: &Arc<LocalCore>,
    (policy, at_once): (&str, usize),
    limit: u64,
) -> (Vec<String>, u64, u64) {
    let house = House::new(core, &QUESTIONS, policy, at_once);
    house.kernel.set_context_limit(limit);
    let mut pids = Vec::new();
    for number in 0..QUESTIONS.len() {
        pids.push(house.ask(number).await);
    }
    let mut answers = Vec::new();
    for pid in pids {
        let exit = house.kernel.wait(pid).await.unwrap();
        assert!(exit.ok, "{exit:?}");
        answers.push(exit.answer);
    }
    let contexts = house.kernel.contexts();
    assert_eq!((contexts.resident, contexts.stored), (0, 0));
    (answers, contexts.switches, contexts.spills)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slices_change_no_text() {
    let core = house::core();
    let (alone, switches, _) = answers(&core, ("fifo", 1), u64::MAX).await;
    assert_eq!(switches, 0);
    assert!(alone.iter().all(|text| !text.is_empty()), "{alone:?}");
    for quantum in [1, 4, 16] {
        for limit in [u64::MAX, 0] {
            let policy = format!("round_robin(quantum={quantum})");
            let (texts, switches, spills) = answers(&core, (&policy, 1), limit).await;
            assert_eq!(texts, alone, "{policy}, {limit} bytes");
            assert!(switches > 0, "{policy}: nothing was interrupted");
            assert_eq!(spills > 0, limit == 0, "{policy}");
        }
    }
    for (policy, at_once) in [("fifo", 4), ("round_robin(quantum=3)", 3)] {
        let (texts, ..) = answers(&core, (policy, at_once), u64::MAX).await;
        assert_eq!(texts, alone, "{policy}, {at_once} at once");
    }
}
