//! What the scheduler does for agents that share the local core: `cargo run --release --example
//! bench_slices -- [--json] [--agents N] [--quantum N]`.
//!
//! Some agents ask the core at once, for answers of different lengths: without a kernel, under FIFO
//! and under round robin, one generation at a time and several. An agent waits from its question to
//! the first text of its answer.

#![allow(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "an example's own files"
)]

#[path = "../tests/house/mod.rs"]
mod house;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use house::{House, Question};
use steward_cores::LocalCore;
use steward_kernel::provider::{Cancel, Generation, LlmCore, Progress, TokenSink};
use steward_kernel::{KernelEvent, Pid};

/// Rounds of each figure; the middle one counts.
const ROUNDS: usize = 3;
const TEXTS: [&str; 4] = [
    "Tell a long story about a ship and its crew.",
    "Explain in detail how bread is made.",
    "Describe a walk through an old town, street by street.",
    "Write a long letter to a friend about the summer.",
];

type Failed = Box<dyn std::error::Error>;

/// What one round came to.
#[derive(Clone, Copy)]
struct Round {
    total: Duration,
    mean_wait: Duration,
    p90_wait: Duration,
    switches: u64,
}

fn main() -> Result<(), Failed> {
    let (mut json, mut agents, mut quantum) = (false, 32_usize, 16_u32);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = true,
            "--agents" => {
                agents = arguments
                    .next()
                    .ok_or("`--agents` needs a number")?
                    .parse()?;
            }
            "--quantum" => {
                quantum = arguments
                    .next()
                    .ok_or("`--quantum` needs a number")?
                    .parse()?;
            }
            other => return Err(format!("`{other}` is no option").into()),
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let core = house::core();
        let questions: Vec<_> = (0..agents).map(question).collect();
        let round_robin = format!("round_robin(quantum={quantum})");
        // Loads the model and warms the machine.
        round(&core, &questions[..agents.min(2)], None).await?;
        let mut rows = Vec::new();
        let scheduled = [
            ("fifo", 1),
            (round_robin.as_str(), 1),
            ("fifo", core.at_once()),
            (round_robin.as_str(), core.at_once()),
        ];
        for policy in std::iter::once(None).chain(scheduled.map(Some)) {
            let mut rounds = Vec::new();
            for _ in 0..ROUNDS {
                rounds.push(round(&core, &questions, policy).await?);
            }
            rounds.sort_by_key(|round| round.total);
            rows.push((policy, rounds[ROUNDS / 2]));
        }
        let switch_us = switch(&core).await?;
        report(json, agents, &rows, switch_us);
        Ok(())
    })
}

/// The question of an agent: lengths from 16 to 79 tokens, mixed.
fn question(number: usize) -> Question {
    Question {
        text: TEXTS[number % TEXTS.len()],
        temperature: 0.0,
        tokens: 16 + u32::try_from(number * 37 % 64).unwrap_or(0),
    }
}

async fn round(
    core: &Arc<LocalCore>,
    questions: &[Question],
    policy: Option<(&str, usize)>,
) -> Result<Round, Failed> {
    let begun = Instant::now();
    let (waits, switches) = match policy {
        None => (alone(core, questions).await?, 0),
        Some(policy) => scheduled(core, questions, policy).await?,
    };
    let total = begun.elapsed();
    let mut waits = waits;
    waits.sort_unstable();
    let mean_wait = waits.iter().sum::<Duration>() / u32::try_from(waits.len().max(1))?;
    let p90_wait = waits[(waits.len() * 9).div_ceil(10) - 1];
    Ok(Round {
        total,
        mean_wait,
        p90_wait,
        switches,
    })
}

/// Every agent goes to the core by itself.
async fn alone(core: &Arc<LocalCore>, questions: &[Question]) -> Result<Vec<Duration>, Failed> {
    let begun = Instant::now();
    let mut asked = Vec::new();
    for question in questions {
        let (core, request) = (Arc::clone(core), question.request());
        asked.push(tokio::spawn(async move {
            let first = Arc::<Mutex<Option<Duration>>>::default();
            let heard = Arc::clone(&first);
            let sink: TokenSink = Box::new(move |_| {
                let mut first = heard.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert_with(|| begun.elapsed());
            });
            let reply = core.chat(request, sink, Cancel::default()).await;
            let first = *first.lock().unwrap_or_else(PoisonError::into_inner);
            reply.map(|_| first.unwrap_or_else(|| begun.elapsed()))
        }));
    }
    let mut waits = Vec::new();
    for one in asked {
        waits.push(one.await??);
    }
    Ok(waits)
}

/// Every agent is a process.
async fn scheduled(
    core: &Arc<LocalCore>,
    questions: &[Question],
    (policy, at_once): (&str, usize),
) -> Result<(Vec<Duration>, u64), Failed> {
    let house = House::new(core, questions, policy, at_once);
    let mut events = house.kernel.subscribe();
    let begun = Instant::now();
    let listening = tokio::spawn(async move {
        let mut first = HashMap::<Pid, Duration>::new();
        while let Ok(event) = events.recv().await {
            match event {
                KernelEvent::Token { pid, .. } => {
                    first.entry(pid).or_insert_with(|| begun.elapsed());
                }
                KernelEvent::Ended { process, .. } => {
                    first.entry(process.pid).or_insert_with(|| begun.elapsed());
                }
                _ => {}
            }
        }
        first
    });
    let mut pids = Vec::new();
    for number in 0..questions.len() {
        pids.push(house.ask(number).await);
    }
    for pid in pids {
        house.kernel.wait(pid).await?;
    }
    let switches = house.kernel.contexts().switches;
    drop(house);
    Ok((listening.await?.into_values().collect(), switches))
}

/// Microseconds by which a token takes longer where two generations take turns after each token.
async fn switch(core: &Arc<LocalCore>) -> Result<f64, Failed> {
    let mut differences = Vec::new();
    for _ in 0..2 * ROUNDS + 1 {
        let mut two = [begun(core, 0).await?, begun(core, 1).await?];
        let mut took = [Duration::ZERO; 2];
        for step in 0..64 {
            // In fours: the same one twice and the other twice, then in turns; the context grows
            // alike for both ways.
            let [same, turns] = [[0, 0, 1, 1], [0, 1, 0, 1]];
            for (way, order) in [same, turns].into_iter().enumerate() {
                let at = Instant::now();
                for who in order {
                    slice(&mut two[(who + step) % 2]).await?;
                }
                took[way] += at.elapsed();
            }
        }
        // In turns there is one switch for each token, otherwise one for every two.
        let more = took[1].as_secs_f64() - took[0].as_secs_f64();
        differences.push(more * 1e6 / (64.0 * 2.0));
    }
    differences.sort_by(f64::total_cmp);
    Ok(differences[differences.len() / 2])
}

async fn begun(core: &Arc<LocalCore>, number: usize) -> Result<Box<dyn Generation>, Failed> {
    let question = Question {
        tokens: 1_024,
        ..question(number)
    };
    let mut generation = Arc::clone(core).begin(question.request()).await?;
    for _ in 0..4 {
        slice(&mut generation).await?;
    }
    Ok(generation)
}

async fn slice(generation: &mut Box<dyn Generation>) -> Result<(), Failed> {
    let (yield_now, cancel) = (Cancel::default(), Cancel::default());
    let sink: TokenSink = Box::new(|_| {});
    match generation.run(Some(1), &sink, &yield_now, &cancel).await? {
        Progress::Paused => Ok(()),
        Progress::Done(reply) => Err(format!("it ended after {} tokens", reply.tokens).into()),
    }
}

fn report(json: bool, agents: usize, rows: &[(Option<(&str, usize)>, Round)], switch_us: f64) {
    let [_, alone @ .., fifo, round_robin] = rows else {
        return;
    };
    let over = |later: &Round, first: &Round| later.total.as_secs_f64() / first.total.as_secs_f64();
    let ratio = over(&round_robin.1, &fifo.1);
    if json {
        println!(r#"{{"bench":"kernel/rr-over-fifo","unit":"","value":{ratio:.4}}}"#);
        println!(r#"{{"bench":"kernel/switch-us","unit":"us","value":{switch_us:.1}}}"#);
        return;
    }
    println!("{agents} agents on the local core");
    println!(
        "{:<26} {:>7} {:>9} {:>11} {:>10} {:>9}",
        "policy", "at once", "total s", "mean wait s", "p90 wait s", "switches"
    );
    for (policy, round) in rows {
        let [total, mean, p90] =
            [round.total, round.mean_wait, round.p90_wait].map(|d| d.as_secs_f64());
        let (policy, at_once) = policy.unwrap_or(("none", agents));
        println!(
            "{policy:<26} {at_once:>7} {total:>9.2} {mean:>11.2} {p90:>10.2} {:>9}",
            round.switches
        );
    }
    println!("round robin over FIFO, total time: {ratio:.3}; a switch: {switch_us:.1} us");
    if let [(_, fifo), (_, round_robin)] = alone {
        println!("one at a time: {:.3}", over(round_robin, fifo));
    }
}
