//! How long the audit takes to answer: `cargo run --release --example bench_audit -- [--json]`.
//!
//! A journal of a million rows as months of work leave them, asked by process, capability, system
//! call, resource, decision and time, and by two of them together, in random order.

#[path = "bench_kernel/house.rs"]
#[allow(dead_code, reason = "this one starts no process")]
mod house;

use std::collections::BTreeMap;
use std::time::Instant;

use rusqlite::{Connection, params};
use steward_kernel::{JournalQuery, Kernel, Pid, Retention, SysError};

use house::{Runs, kernel};

const ROWS: u64 = 1_000_000;
const STEP_MS: u64 = 2_000;
const ROUNDS: usize = 60;
const NAMES: [&str; 10] = [
    "fs.read",
    "llm.chat",
    "fs.list",
    "fs.stat",
    "llm.score",
    "fs.write",
    "process.spawn",
    "object.create",
    "human.ask",
    "fs.delete",
];
const DECISIONS: [(u64, &str); 5] = [
    (850, "allow"),
    (920, "ask"),
    (980, "yes"),
    (985, "no"),
    (995, "deny"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let json = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--json") => true,
        Some(_) => return Err("usage: bench_audit [--json]".into()),
    };
    let folder = tempfile::TempDir::new()?;
    let journal = folder.path().join("journal.db");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let open = || {
        let _in_runtime = runtime.enter();
        kernel(&journal, Runs(|_| async { Ok(()) }))
    };
    drop(open()?);
    fill(&journal)?;
    let kernel = open()?;
    // The rows are to be in one file.
    kernel.set_retention(Retention {
        bytes: u64::MAX,
        rows: ROWS,
    });
    let (all, kinds) = runtime.block_on(ask_all(&kernel))?;
    if json {
        let line = serde_json::json!({
            "bench": "kernel/audit-query-p95-ms", "unit": "ms", "value": percentile(all, 95),
        });
        println!("{line}");
        return Ok(());
    }
    println!(
        "audit-query-p95-ms     {:>14.2} ms     a million rows",
        percentile(all, 95)
    );
    for (kind, times) in kinds {
        let (p50, p95) = (percentile(times.clone(), 50), percentile(times, 95));
        println!("  {kind:<28} p50 {p50:>8.2} ms   p95 {p95:>8.2} ms");
    }
    Ok(())
}

/// A generator of numbers that is the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

/// Few of many: the first ones are the most frequent.
fn skewed(random: &mut Random, bound: u64) -> u64 {
    let most = random.below(bound) + 1;
    random.below(most)
}

/// Writes the rows, without a chain: how long a query takes does not depend on it.
fn fill(journal: &std::path::Path) -> rusqlite::Result<()> {
    let mut db = Connection::open(journal)?;
    db.pragma_update(None, "synchronous", "OFF")?;
    let tx = db.transaction()?;
    let mut random = Random(7);
    {
        let mut insert = tx.prepare(
            "INSERT INTO journal (at_ms, pid, run, seq, kind, name, detail, resource, capability,
               decision, by_, wait_ms, run_ms, hash)
             VALUES (?,?,?,?,'outcome',?,?,?,?,?,?,?,?,?)",
        )?;
        for n in 0..ROWS {
            let run = 1 + n / 400;
            let pid = if random.below(10) == 0 {
                1
            } else {
                run + random.below(3)
            };
            let name = NAMES[skewed(&mut random, NAMES.len() as u64) as usize];
            let resource = path(&mut random);
            let capability = 1 + run + skewed(&mut random, 50);
            let chance = random.below(1000);
            let decision = DECISIONS
                .iter()
                .find(|(below, _)| chance < *below)
                .map(|(_, d)| *d);
            insert.execute(params![
                n * STEP_MS,
                pid,
                run,
                n,
                name,
                format!(
                    "done: {} bytes, sha256 {:08x}, by capability {capability}",
                    n % 9_999,
                    n
                ),
                resource,
                capability,
                decision,
                format!("capability {capability}"),
                random.below(20),
                random.below(400),
                [n as u8; 32],
            ])?;
        }
    }
    tx.commit()
}

fn path(random: &mut Random) -> String {
    let (folder, file) = (skewed(random, 200), skewed(random, 300));
    format!("/home/mei/Steward/project-{folder}/notes/{file}.md")
}

type Kind = (
    &'static str,
    &'static str,
    fn(&mut Random, &mut JournalQuery),
);

/// Every kind of condition with its column, over values that are there.
const KINDS: [Kind; 8] = [
    ("process", "pid", |r, q| {
        q.pid = Some(Pid(1 + skewed(r, ROWS / 400)));
    }),
    ("capability", "capability", |r, q| {
        q.capability = Some(2 + r.below(ROWS / 400));
    }),
    ("call", "name", |r, q| {
        q.name = Some(NAMES[r.below(NAMES.len() as u64) as usize].to_owned());
    }),
    ("calls", "name", |r, q| {
        q.name = Some(["fs.*", "llm.*", "process.*"][r.below(3) as usize].to_owned());
    }),
    ("resource", "resource", |r, q| q.resource = Some(path(r))),
    ("folder", "resource", |r, q| {
        q.resource = Some(format!("/home/mei/Steward/project-{}", r.below(200)));
    }),
    ("decision", "decision", |r, q| {
        q.decision = Some(DECISIONS[r.below(5) as usize].1.to_owned());
    }),
    ("time", "at_ms", |r, q| {
        let since = r.below(ROWS * STEP_MS);
        q.since_ms = Some(since);
        q.until_ms = Some(since + r.below(ROWS * STEP_MS / 4));
    }),
];

async fn ask_all(kernel: &Kernel) -> Result<(Vec<f64>, BTreeMap<String, Vec<f64>>), SysError> {
    let mut random = Random(11);
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut all = Vec::new();
    for _ in 0..ROUNDS {
        for (i, (first, column, ask)) in KINDS.iter().enumerate() {
            for (second, another, also) in &KINDS[i..] {
                if first != second && column == another {
                    continue;
                }
                let mut query = JournalQuery::default();
                ask(&mut random, &mut query);
                let mut name = (*first).to_owned();
                if first != second {
                    also(&mut random, &mut query);
                    name = format!("{first} + {second}");
                }
                let begun = Instant::now();
                kernel.journal(query).await?;
                let took = begun.elapsed().as_secs_f64() * 1e3;
                all.push(took);
                times.entry(name).or_default().push(took);
            }
        }
    }
    Ok((all, times))
}

fn percentile(mut times: Vec<f64>, percent: usize) -> f64 {
    times.sort_by(f64::total_cmp);
    let at = (times.len() * percent).div_ceil(100).saturating_sub(1);
    times.get(at).copied().unwrap_or_default()
}
