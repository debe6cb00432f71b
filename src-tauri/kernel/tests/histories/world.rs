//! One world: its disk and journal outlive a power cut, its kernel does not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use rusqlite::Connection;
use serde_json::{Value, json};
use steward_kernel::capability::workspace_defaults;
use steward_kernel::provider::Clock;
use steward_kernel::simulation::{MemoryFiles, ScriptedCore, Simulation};
use steward_kernel::{
    Executor, Exit, Images, JournalQuery, JournalRow, Kernel, KernelEvent, Pid, Program, Providers,
    Submission, Sys, SysError, Taken,
};

const ROOT: &str = "/workspace";
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Makes the calls that its goal lists; what they say is its answer.
struct Script;

#[async_trait]
impl Program for Script {
    async fn run(&self, sys: Sys) -> Result<Exit, SysError> {
        let calls: Vec<(String, Value)> = serde_json::from_str(sys.goal()).unwrap();
        let mut said = Vec::new();
        for (name, args) in calls {
            said.push(match sys.call_by_name(&name, args).await {
                Ok(value) => value.to_string(),
                Err(error) => error.code.as_str().to_owned(),
            });
        }
        Ok(Exit {
            ok: true,
            answer: said.join("\n"),
            error: None,
        })
    }
}

struct One;

impl Images for One {
    fn program(&self, image: &str) -> Option<Arc<dyn Program>> {
        (image == "script").then(|| Arc::new(Script) as Arc<dyn Program>)
    }
}

/// What the person said to each approval, where it counted.
pub(crate) type Answers = Arc<Mutex<BTreeMap<u64, bool>>>;

pub(crate) struct World {
    pub(crate) simulation: Simulation,
    pub(crate) files: MemoryFiles,
    journal: PathBuf,
    /// Keeps the journal, which is in memory, while no kernel has it open.
    pub(crate) keeper: Connection,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        // A name of its own: the same seed may run twice at a time.
        static WORLDS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let number = WORLDS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let journal = PathBuf::from(format!("file:world-{number}?mode=memory&cache=shared"));
        let files = MemoryFiles::default();
        for name in ["a", "b", "c"] {
            files.put(Path::new(ROOT), name, format!("{name} at first"));
        }
        Self {
            simulation: Simulation::new(seed),
            files,
            keeper: Connection::open(&journal).unwrap(),
            journal,
        }
    }

    pub(crate) fn kernel(&self) -> Kernel {
        let world = self.simulation.clone();
        let providers = Providers {
            executor: Arc::new(world.clone()),
            ..Providers::new(
                Arc::new(self.files.clone()),
                Arc::new(ScriptedCore::new(["one two three"; 64])),
                Arc::new(world),
            )
        };
        Kernel::open(&self.journal, providers, Arc::new(One)).unwrap()
    }

    /// A call that the seed picks.
    fn call(&self, depth: usize) -> Value {
        let pick = |bound| self.simulation.pick(bound);
        let path = ["a", "b", "c", "d/e", "../out"][pick(5)];
        let other = ["a", "b", "x", "d/y"][pick(4)];
        match pick(18) {
            0 | 1 => json!(["fs.write", { "path": path, "text": pick(1000).to_string() }]),
            2 => json!(["fs.read", { "path": path }]),
            3 => json!(["fs.list", {}]),
            4 => json!(["fs.move", { "from": path, "to": other }]),
            5 => json!(["fs.delete", { "path": path }]),
            6 => json!(["fs.mkdir", { "path": other }]),
            7 => json!(["clock.sleep", { "ms": pick(5_000) }]),
            8 => json!(["human.ask", { "text": "which?" }]),
            9 => {
                let messages = json!([{ "role": "user", "content": "hello" }]);
                json!(["llm.chat", { "request": { "messages": messages, "max_tokens": 8 } }])
            }
            10 => json!(["process.yield", {}]),
            11 if depth == 0 => {
                let goal = self.script(1, 3).to_string();
                let change = pick(2) == 0;
                json!(["process.spawn", { "image": "script", "goal": goal, "may_change": change }])
            }
            11 => json!(["clock.now", {}]),
            13 => json!(["object.create", { "kind": "text", "name": other, "text": path }]),
            14 => json!(["object.import", { "path": path, "name": "c" }]),
            15 => json!(["object.update", { "object": { "name": "c" }, "text": other }]),
            16 => json!(["object.export", { "object": { "name": "c" }, "path": path }]),
            17 => json!(["object.delete", { "object": { "name": "a" } }]),
            _ => json!(["human.tell", { "text": "so far" }]),
        }
    }

    fn script(&self, depth: usize, most: usize) -> Value {
        let calls = 1 + self.simulation.pick(most);
        (0..calls).map(|_| self.call(depth)).collect()
    }

    /// Starts a few runs.
    pub(crate) fn start(&self, kernel: &Kernel) {
        for _ in 0..1 + self.simulation.pick(3) {
            let submission = Submission {
                image: "script".to_owned(),
                goal: self.script(0, 6).to_string(),
                workspace: PathBuf::from(ROOT),
                grants: workspace_defaults(Path::new(ROOT)),
                after: None,
                budget: steward_kernel::budget::Budget::default(),
            };
            let kernel = kernel.clone();
            let started = async move { kernel.submit(submission).await };
            self.simulation.block_on(started).unwrap().unwrap();
        }
    }

    /// A person who answers whatever is asked, some time later.
    pub(crate) fn person(&self, kernel: &Kernel, answers: &Answers) {
        let (kernel, world) = (kernel.clone(), self.simulation.clone());
        let answers = Arc::clone(answers);
        let mut events = kernel.subscribe();
        self.simulation.spawn(Box::pin(async move {
            let mut asked = kernel.approvals().await.unwrap();
            for question in kernel.questions().await.unwrap() {
                kernel.answer(question.id, "that", "person").await.unwrap();
            }
            loop {
                for approval in std::mem::take(&mut asked) {
                    world.sleep_ms(world.pick(10_000) as u64).await;
                    let yes = world.pick(3) > 0;
                    let digest = &approval.digest.0;
                    let taken = kernel.decide(approval.id, yes, digest, "person").await;
                    if taken == Ok(Taken::Counted) {
                        answers.lock().unwrap().insert(approval.id, yes);
                    }
                }
                match events.recv().await {
                    Ok(KernelEvent::Approval(approval)) => asked.push(*approval),
                    Ok(KernelEvent::Question(question)) => {
                        drop(kernel.answer(question.id, "that", "person").await);
                    }
                    Ok(_) => {}
                    Err(_) => return,
                }
            }
        }));
    }

    /// What somebody does in between.
    pub(crate) fn meddle(&self, kernel: &Kernel) {
        let pid = Pid(1 + self.simulation.pick(4) as u64);
        let (kernel, world) = (kernel.clone(), self.simulation.clone());
        match self.simulation.pick(4) {
            0 => self.simulation.spawn(Box::pin(async move {
                drop(kernel.kill(pid, "person").await);
            })),
            1 => self.simulation.spawn(Box::pin(async move {
                let held = kernel.capabilities(pid).await.unwrap_or_default();
                if let Some(one) = held.get(world.pick(held.len())) {
                    drop(kernel.revoke(one.id, "person").await);
                }
            })),
            2 => {
                let back = self.simulation.pick(2) == 0;
                self.simulation
                    .set_wall_clock(if back { -DAY_MS } else { DAY_MS });
            }
            _ => self
                .files
                .put(Path::new(ROOT), "b", "changed by somebody else"),
        }
    }

    /// All that the journal says, oldest first.
    pub(crate) fn rows(&self, kernel: &Kernel) -> Vec<JournalRow> {
        let kernel = kernel.clone();
        let query = JournalQuery {
            limit: 100_000,
            ..Default::default()
        };
        let rows = async move { kernel.journal(query).await };
        let mut rows = self.simulation.block_on(rows).unwrap().unwrap();
        rows.reverse();
        rows
    }
}
