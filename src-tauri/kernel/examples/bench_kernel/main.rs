//! What the kernel itself costs: `cargo run --release --example bench_kernel -- [--json]`.
//!
//! Each figure is the median of several rounds. Programs call the kernel and do nothing else; the
//! core is a stub that answers at once, the journal a real one on disk.

mod house;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use steward_kernel::syscall::{ClockNow, ClockSleep, HumanTell, ProcessYield};
use steward_kernel::{Sys, SysError};

use house::{House, Runs};

/// Rounds of each figure; the middle one counts.
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut json = false;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--json" => json = true,
            "--help" | "-h" => {
                println!(
                    "usage: bench [--json]\n\nMeasures the kernel; with --json one object a line."
                );
                return Ok(());
            }
            other => return Err(format!("`{other}` is no option; use --json or none").into()),
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let report = |name: &str, value: f64, unit: &str, more: &str| {
        if json {
            let line = serde_json::json!({ "bench": format!("kernel/{name}"), "unit": unit, "value": value });
            println!("{line}");
        } else {
            println!("{name:<22} {value:>14.1} {unit:<6} {more}");
        }
    };
    let null = runtime.block_on(rate(4, 100_000, |sys| async move {
        sys.call(ProcessYield {}).await
    }))?;
    report("null-syscall", null, "/s", "4 agents, no journal");
    let journaled = runtime.block_on(rate(64, 1_000, |sys| async move {
        sys.call(ClockNow {}).await.map(drop)
    }))?;
    report("journaled-syscall", journaled, "/s", "64 agents that look");
    let durable = runtime.block_on(rate(256, 40, |sys| async move {
        let text = "so far".to_owned();
        sys.call(HumanTell { text }).await
    }))?;
    report(
        "durable-syscall",
        durable,
        "/s",
        "256 agents, each step on disk before the next",
    );
    let p99 = runtime.block_on(dispatch(2_000))?;
    report(
        "dispatch-p99-us-2000",
        p99,
        "us",
        "2,000 agents, 10,000 calls/s",
    );
    let (r2, worst) = runtime.block_on(scaling())?;
    report(
        "scaling-r2",
        r2,
        "",
        &format!(
            "250 to 2,000 agents; worst deviation {:.0} %",
            worst * 100.0
        ),
    );
    let (bytes, seconds) = runtime.block_on(waiting(100_000))?;
    report(
        "waiting-agent-bytes",
        bytes,
        "B",
        &format!("100,000 agents, started in {seconds:.1} s"),
    );
    Ok(())
}

/// Calls a second of that many agents side by side, each making that many calls.
async fn rate<F, R>(agents: usize, calls: usize, call: F) -> Result<f64, SysError>
where
    F: Fn(Sys) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Result<(), SysError>> + Send,
{
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let call = call.clone();
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let inside = Arc::clone(&gate);
        let house = House::new(Runs(move |sys: Sys| {
            let (call, gate) = (call.clone(), Arc::clone(&inside));
            async move {
                let _all_have_started = gate.acquire().await;
                for _ in 0..calls {
                    call(sys.clone()).await?;
                }
                Ok(())
            }
        }))?;
        let pids = house.start(agents).await?;
        let begun = Instant::now();
        gate.add_permits(agents);
        house.wait(&pids).await?;
        rates.push((agents * calls) as f64 / begun.elapsed().as_secs_f64());
    }
    Ok(median(rates))
}

/// The 99th percentile of microseconds from a call to its return, of agents that call now and then.
/// All are there from the first call to the last: what starting and ending cost is not in it.
async fn dispatch(agents: usize) -> Result<f64, SysError> {
    const CALLS: usize = 20;
    let mut all = Vec::new();
    for _ in 0..3 {
        let taken = Arc::new(Mutex::new(Vec::with_capacity(agents * CALLS)));
        let inside = Arc::clone(&taken);
        let all_there = Arc::new(tokio::sync::Barrier::new(agents));
        let house = House::new(Runs(move |sys: Sys| {
            let (taken, all_there) = (Arc::clone(&inside), Arc::clone(&all_there));
            async move {
                all_there.wait().await;
                let phase = sys.pid().0 % 200;
                tokio::time::sleep(Duration::from_millis(200 + phase)).await;
                for _ in 0..CALLS {
                    let begun = Instant::now();
                    sys.call(ProcessYield {}).await?;
                    let us = begun.elapsed().as_secs_f64() * 1e6;
                    taken
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(us);
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                all_there.wait().await;
                Ok(())
            }
        }))?;
        let pids = house.start(agents).await?;
        house.wait(&pids).await?;
        let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.sort_by(f64::total_cmp);
        all.push(taken[taken.len() * 99 / 100]);
    }
    Ok(median(all))
}

/// How well a line fits the total time over the number of agents (r²), and its worst deviation.
async fn scaling() -> Result<(f64, f64), SysError> {
    let mut points = Vec::new();
    for agents in [250usize, 500, 1_000, 1_500, 2_000] {
        let mut times = Vec::new();
        for _ in 0..3 {
            let house = House::new(Runs(|sys: Sys| async move {
                for _ in 0..10 {
                    sys.call(ClockNow {}).await?;
                }
                Ok(())
            }))?;
            let begun = Instant::now();
            let pids = house.start(agents).await?;
            house.wait(&pids).await?;
            times.push(begun.elapsed().as_secs_f64());
        }
        points.push((agents as f64, median(times)));
    }
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (mx, my) = (mean(|p| p.0), mean(|p| p.1));
    let sum =
        |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|p| of(p.0 - mx, p.1 - my)).sum::<f64>();
    let slope = sum(&|x, y| x * y) / sum(&|x, _| x * x);
    let fit = |x: f64| my + slope * (x - mx);
    let left: f64 = points.iter().map(|p| (p.1 - fit(p.0)).powi(2)).sum();
    let worst = points
        .iter()
        .map(|p| ((p.1 - fit(p.0)) / fit(p.0)).abs())
        .fold(0.0, f64::max);
    Ok((1.0 - left / sum(&|_, y| y * y), worst))
}

/// Memory of one agent that waits, and the seconds that starting all took.
async fn waiting(agents: usize) -> Result<(f64, f64), SysError> {
    let house = House::new(Runs(|sys: Sys| async move {
        sys.call(ClockSleep {
            ms: 24 * 60 * 60 * 1000,
        })
        .await
    }))?;
    let before = resident();
    let begun = Instant::now();
    let pids = house.start(agents).await?;
    // All sleep once each has written down until when.
    house.kernel.flush().await?;
    let seconds = begun.elapsed().as_secs_f64();
    let bytes = (resident() - before) / pids.len() as f64;
    Ok((bytes, seconds))
}

/// Bytes of memory that this program has.
#[allow(
    clippy::disallowed_methods,
    reason = "the machine's figures, not a person's file"
)]
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.unwrap_or(0.0) * 1024.0
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}
