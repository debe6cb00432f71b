//! Two processes whose sleeps alternate: one that waits holds nothing up. Time is simulated, so that
//! the same is told at every run.
//!
//! `cargo run --example two_sleepers`

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a demonstration on a folder of its own"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use steward_kernel::budget::Budget;
use steward_kernel::capability::{Grant, Resource, Right};
use steward_kernel::provider::Clock;
use steward_kernel::simulation::{MemoryFiles, ScriptedCore, Simulation};
use steward_kernel::{Exit, Images, Kernel, Pid, Program, Providers, Submission, Sys, SysError};

/// Sleeps some times for as long as its goal says.
struct Sleeper {
    time: Simulation,
    woke: Arc<Mutex<Vec<(u64, Pid)>>>,
}

#[async_trait]
impl Program for Sleeper {
    async fn run(&self, sys: Sys) -> Result<Exit, SysError> {
        for ms in sys
            .goal()
            .split(' ')
            .filter_map(|ms| ms.parse::<u64>().ok())
        {
            sys.call_by_name("clock.sleep", json!({ "ms": ms })).await?;
            let now = self.time.monotonic_ms();
            self.woke.lock().unwrap().push((now, sys.pid()));
        }
        Ok(Exit {
            ok: true,
            answer: "rested".to_owned(),
            error: None,
        })
    }
}

struct OneImage(Arc<Sleeper>);

impl Images for OneImage {
    fn program(&self, image: &str) -> Option<Arc<dyn Program>> {
        (image == "sleeper").then(|| Arc::clone(&self.0) as Arc<dyn Program>)
    }
}

/// Lets both sleep; who woke when.
pub(crate) fn story(seed: u64) -> String {
    let folder = tempfile::tempdir().unwrap();
    let time = Simulation::new(seed);
    let woke = Arc::<Mutex<Vec<_>>>::default();
    let sleeper = Sleeper {
        time: time.clone(),
        woke: Arc::clone(&woke),
    };
    let files = Arc::new(MemoryFiles::default());
    let core = Arc::new(ScriptedCore::new::<String>([]));
    let mut providers = Providers::new(files, core, Arc::new(time.clone()));
    providers.executor = Arc::new(time.clone());
    let images = Arc::new(OneImage(Arc::new(sleeper)));
    let kernel = Kernel::open(&folder.path().join("journal.db"), providers, images).unwrap();
    let submission = |goal: &str| Submission {
        image: "sleeper".to_owned(),
        goal: goal.to_owned(),
        workspace: Path::new("/").to_owned(),
        grants: vec![Grant::allow(Resource::Clock, [Right::Use])],
        after: None,
        budget: Budget::default(),
    };
    let goals = [submission("100 100 100"), submission("150 100 100")];
    let ended = time.block_on(async move {
        let mut pids = Vec::new();
        for goal in goals {
            pids.push(kernel.submit(goal).await.unwrap().pid);
        }
        for pid in pids {
            assert!(kernel.wait(pid).await.unwrap().ok);
        }
    });
    assert!(ended.is_some());
    let mut told = String::new();
    for (ms, pid) in woke.lock().unwrap().iter() {
        writeln!(told, "{ms:>4} ms  process {pid} wakes").unwrap();
    }
    told
}

fn main() {
    print!("{}", story(1));
}
