//! A thousand histories of a kernel: processes that write, move, sleep, ask and start others, a
//! person who answers when they like, rights taken back, kills, clocks that jump and power cuts. All
//! of it is decided by a seed, so a history that fails can be seen again:
//!
//! ```sh
//! STEWARD_HISTORY=417 cargo nextest run -p steward-kernel --test histories thousand
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use std::collections::BTreeSet;

use steward_kernel::syscall::Module;
use steward_kernel::{JournalRow, Kernel};
use world::{Answers, World};

const HISTORIES: u64 = 1_000;

/// One history from its seed; all that the journal says of it.
fn history(seed: u64) -> Vec<JournalRow> {
    let world = World::new(seed);
    let pick = |bound| world.simulation.pick(bound);
    let answers = Answers::default();
    let mut kernel = world.kernel();
    world.person(&kernel, &answers);
    world.start(&kernel);
    for _ in 0..pick(6) {
        for _ in 0..pick(60) {
            if !world.simulation.step() && !world.simulation.advance() {
                break;
            }
        }
        if pick(3) > 0 {
            world.meddle(&kernel);
            continue;
        }
        world.simulation.crash();
        drop(kernel);
        kernel = world.kernel();
        world.person(&kernel, &answers);
        let again = kernel.clone();
        let resumed = async move { again.resume(None).await };
        world.simulation.block_on(resumed).unwrap().unwrap();
    }
    world.simulation.run();
    check(&world, &kernel, &answers);
    world.rows(&kernel)
}

/// What must hold of every history once nothing can go on.
fn check(world: &World, kernel: &Kernel, answers: &Answers) {
    let asking = kernel.clone();
    let processes = async move { asking.processes().await };
    for process in world.simulation.block_on(processes).unwrap().unwrap() {
        assert!(
            process.state.is_final(),
            "neither ended nor able to go on: {process:?}"
        );
    }
    for module in [Module::Fs, Module::Llm, Module::Process] {
        assert_eq!(kernel.load(module), (0, 0), "{module:?}: a place is lost");
    }
    let rows = world.rows(kernel);
    // Each effect was set out for by a row of its own, after a yes that counted once.
    let executing = rows.iter().filter(|row| row.kind == "executing").count();
    let applied = world.files.applied().len();
    let yes = answers.lock().unwrap().values().filter(|yes| **yes).count();
    assert!(applied <= executing, "{applied} effects, {executing} rows");
    assert!(executing <= yes, "{executing} acts, {yes} times yes");
    in_order(&rows);
    // No right outlives its process, and nothing is left waiting for the person.
    for left in [
        "capability WHERE status = 'active'",
        "approval WHERE state = 'pending'",
        "payload",
        "object WHERE gone_ms IS NULL",
        "object_payload",
        "(SELECT 1 FROM object_version GROUP BY call HAVING COUNT(*) > 1)",
        "change WHERE state = 'executing'",
    ] {
        let sql = format!("SELECT COUNT(*) FROM {left}");
        let count: i64 = world.keeper.query_row(&sql, (), |r| r.get(0)).unwrap();
        assert_eq!(count, 0, "left behind: {left}");
    }
}

/// Nothing ends twice, and nothing begins after its process has ended.
fn in_order(rows: &[JournalRow]) {
    let mut ended = BTreeSet::new();
    let mut done = BTreeSet::new();
    for row in rows {
        match row.kind.as_str() {
            "intent" => assert!(!ended.contains(&row.pid), "after the end: {row:?}"),
            "outcome" if row.detail.starts_with("done: ") => {
                assert!(done.insert((row.pid, row.seq)), "twice: {row:?}");
            }
            "process" if matches!(row.name.as_str(), "exited" | "failed" | "killed") => {
                assert!(ended.insert(row.pid), "ended twice: {row:?}");
            }
            _ => {}
        }
    }
}

#[test]
fn a_thousand_histories_keep_every_promise() {
    let seeds = match std::env::var("STEWARD_HISTORY") {
        Ok(seed) => {
            let seed = seed.parse::<u64>().unwrap();
            seed..seed + 1
        }
        Err(_) => 0..HISTORIES,
    };
    let many = seeds.end - seeds.start > 1;
    let mut acts = 0;
    for seed in seeds {
        let rows = std::panic::catch_unwind(|| history(seed));
        let rows = rows.unwrap_or_else(|_| panic!("history {seed} failed: STEWARD_HISTORY={seed}"));
        acts += rows.iter().filter(|row| row.kind == "executing").count();
    }
    assert!(acts > 0 || !many, "nothing happened in any of them");
}

#[test]
fn a_history_is_a_function_of_its_seed() {
    for seed in 2_000..2_050 {
        assert_eq!(history(seed), history(seed), "seed {seed}");
    }
}
