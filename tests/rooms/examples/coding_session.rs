//! A coding session without a model: a coder reads why a test fails, has a forked worker find the
//! cause, is refused what it has no right to, shows its patch, and applies it after the person's
//! yes. After the deterministic demonstration of AgentLibOS (2025). The kernel, its journal and the
//! files are real; what a model would say is written here.
//!
//! `cargo run --example coding_session -- [--json]`

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a demonstration on a folder of its own"
)]

#[path = "stage/mod.rs"]
mod stage;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use stage::{Line, OneImage, Stage};
use steward_kernel::capability::{Constraints, Grant, Resource, Right, workspace_defaults};
use steward_kernel::human::{LineKind, Preview};
use steward_kernel::{
    Code, Exit, JournalQuery, KernelEvent, Pid, Program, Submission, Sys, SysError,
};

const SOURCE: &str = "\
def price(items):
    total = 0
    for item in items:
        total += item.cents
    return total / 100 + 1
";

const MENDED: &str = "\
def price(items):
    total = 0
    for item in items:
        total += item.cents
    return total / 100
";

/// What a test runner wrote. It is made up, as the whole session is.
const LOG: &str = "\
test_empty (tests.Price) ... FAIL
test_two_items (tests.Price) ... FAIL

FAIL: test_empty (tests.Price)
  File \"tests.py\", line 7: assertEqual(price([]), 0)
AssertionError: 1.0 != 0

FAIL: test_two_items (tests.Price)
  File \"tests.py\", line 11: assertEqual(price([a, b]), 3.5)
AssertionError: 4.5 != 3.5

Ran 2 tests: 2 failed
";

const CAUSE: &str = "Both results are too large by exactly 1: `price` adds 1 to its sum (line 5).";

/// The first process.
const CODER: Pid = Pid(1);

/// What was done, and what the worker did while the coder waited for it.
#[derive(Default)]
struct Told {
    lines: Vec<Line>,
    workers: Vec<Line>,
}

/// The coder, and the worker that it forks.
struct Coder(Arc<Mutex<Told>>);

impl Coder {
    /// Makes a call and notes what came of it.
    async fn call(&self, sys: &Sys, name: &str, arguments: Value) -> Result<Value, SysError> {
        let result = sys.call_by_name(name, arguments.clone()).await;
        let line = Line::of(sys.pid(), name, &arguments, &result);
        let mut told = self.0.lock().unwrap();
        match sys.pid() {
            CODER => told.lines.push(line),
            _ => told.workers.push(line),
        }
        result
    }

    /// What the worker does: it may read, and nothing else.
    async fn find_cause(&self, sys: &Sys, log: &Value) -> Result<Exit, SysError> {
        let read = self.call(sys, "object.read", json!({ "object": log }));
        let failed = read.await?["text"]
            .as_str()
            .unwrap_or_default()
            .matches("FAIL:")
            .count();
        let early = json!({ "path": "price.py", "text": MENDED });
        // It goes ahead of itself, and the kernel does not let it.
        let refused = self.call(sys, "fs.write", early).await.is_err();
        let finding = json!({ "kind": "text", "name": "cause", "text": CAUSE });
        let finding = self.call(sys, "object.create", finding).await?;
        let keep = json!({ "object": finding["id"] });
        self.call(sys, "object.keep", keep).await?;
        Ok(Exit {
            ok: refused,
            answer: format!("{failed} tests fail for one cause"),
            error: None,
        })
    }
}

#[async_trait]
impl Program for Coder {
    async fn run(&self, sys: Sys) -> Result<Exit, SysError> {
        let status = json!({ "text": "reads the log" });
        sys.call_by_name("process.status", status).await?;
        let import = json!({ "path": "test.log", "name": "log" });
        let log = sys.call_by_name("object.import", import.clone()).await;
        let before = json!({ "label": "before the change" });
        let before = sys.call_by_name("checkpoint.create", before).await?;
        let task = "find out why the tests fail";
        let fork = json!({ "mode": "restricted", "task": task });
        let forked = sys.call_by_name("process.fork", fork.clone()).await;
        let id = log
            .as_ref()
            .map(|log| log["id"].clone())
            .unwrap_or_default();
        if forked.as_ref().is_ok_and(|forked| forked["as"] == "child") {
            return self.find_cause(&sys, &id).await;
        }
        let coder = sys.pid();
        let begun = [
            Line::of(coder, "object.import", &import, &log),
            Line::plain(coder, "checkpoint.create", "before the change"),
            Line::of(coder, "process.fork", &fork, &forked),
        ];
        let child = forked?["child"].clone();
        let found = self
            .call(&sys, "process.wait", json!({ "pid": child }))
            .await?;
        {
            let Told { lines, workers } = &mut *self.0.lock().unwrap();
            lines.splice(..0, begun.into_iter().chain(workers.drain(..)));
        }
        self.call(&sys, "process.merge", json!({ "child": child }))
            .await?;
        self.call(
            &sys,
            "object.read",
            json!({ "object": { "name": "cause" } }),
        )
        .await?;

        let pipeline = json!({ "path": "ci/deploy.sh", "text": "# tests are for others\n" });
        if self.call(&sys, "fs.write", pipeline).await.is_ok() {
            return Err(SysError::new(Code::Internal, "the pipeline was changed"));
        }
        let patch = json!({ "path": "price.py", "text": MENDED });
        self.call(&sys, "fs.write", patch).await?;

        let after = json!({ "label": "after the change" });
        let after = self.call(&sys, "checkpoint.create", after).await?;
        let compared = json!({ "from": before["id"], "to": after["id"] });
        self.call(&sys, "checkpoint.diff", compared).await?;
        let report = format!(
            "{}. {CAUSE} It is mended in price.py.",
            found["answer"].as_str().unwrap_or_default()
        );
        self.call(&sys, "human.tell", json!({ "text": report }))
            .await?;
        Ok(Exit {
            ok: true,
            answer: report,
            error: None,
        })
    }
}

/// Everything that can be seen of the session, and its summary.
pub(crate) async fn story() -> (String, Value) {
    let told = Arc::<Mutex<Told>>::default();
    let program = Coder(Arc::clone(&told));
    let stage = Stage::new(&[
        ("price.py", SOURCE),
        ("test.log", LOG),
        ("ci/deploy.sh", "make\n"),
    ]);
    let kernel = stage.open(OneImage::new("coder", program));
    let mut events = kernel.subscribe();
    let submission = Submission {
        image: "coder".to_owned(),
        goal: "make the tests of price.py pass".to_owned(),
        workspace: stage.workspace.clone(),
        grants: rights(&stage),
        after: None,
        budget: steward_kernel::budget::Budget::default(),
    };
    let process = kernel.submit(submission).await.unwrap();
    let (mut asked, mut processes) = (0, std::collections::BTreeSet::new());
    let exit = loop {
        match events.recv().await.unwrap() {
            KernelEvent::Approval(approval) => {
                asked += 1;
                let title = format!("{} {}", approval.action, approval.relative);
                let patch = preview(&approval.preview);
                let line = Line::asked(&title, &patch);
                told.lock().unwrap().lines.push(line);
                let digest = &approval.digest.0;
                kernel
                    .decide(approval.id, true, digest, "the person")
                    .await
                    .unwrap();
            }
            KernelEvent::Process(info) => drop(processes.insert(info.pid)),
            KernelEvent::Ended {
                process: ended,
                exit,
                ..
            } if ended.pid == process.pid => break exit,
            _ => {}
        }
    };
    let mended = std::fs::read_to_string(stage.workspace.join("price.py")).unwrap() == MENDED;
    let kept = std::fs::read_to_string(stage.workspace.join("ci/deploy.sh")).unwrap() == "make\n";
    let verified = kernel.verify().await.unwrap();
    let mut checkpoints = Vec::new();
    for id in 1.. {
        match kernel.inspect_checkpoint(id).await {
            Ok(_) => checkpoints.push(id),
            Err(_) => break,
        }
    }
    let done = JournalQuery {
        kind: Some("executing".to_owned()),
        limit: 100,
        ..JournalQuery::default()
    };
    let effects = kernel.journal(done).await.unwrap().len();
    let lines = &told.lock().unwrap().lines;
    let refused = lines.iter().filter(|line| line.refused).count();
    let summary = json!({
        "ok": exit.ok,
        "processes": processes.len(),
        "calls": lines.iter().filter(|line| line.is_call()).count(),
        "refused": refused,
        "approvals": asked,
        "effects": effects,
        "checkpoints": checkpoints,
        "patch_applied": mended,
        "protected_file_untouched": kept,
        "journal_verified": verified.whole,
    });
    let told: String = lines.iter().map(ToString::to_string).collect();
    let told = told.replace(&*stage.workspace.to_string_lossy(), "~/project");
    let summary_text = serde_json::to_string_pretty(&summary).unwrap();
    (
        format!("{told}\nreport: {}\n\n{summary_text}\n", exit.answer),
        summary,
    )
}

/// The usual rights, but for the pipeline, which nobody changes.
fn rights(stage: &Stage) -> Vec<Grant> {
    let root = stage.workspace.clone();
    let mut grants = workspace_defaults(&root);
    let mut deny = Grant::deny(Resource::Workspace { root }, [Right::Write, Right::Delete]);
    deny.constraints =
        serde_json::from_value::<Constraints>(json!({ "paths": ["ci/**"] })).unwrap();
    grants.push(deny);
    grants.push(Grant::allow(
        Resource::Checkpoints,
        [Right::Use, Right::Read],
    ));
    grants
}

fn preview(preview: &Preview) -> String {
    let shown = preview.lines.iter().map(|line| match line.kind {
        LineKind::Added => format!("      + {}\n", line.text),
        LineKind::Removed => format!("      - {}\n", line.text),
        LineKind::Same => format!("        {}\n", line.text),
        LineKind::Gap => "        …\n".to_owned(),
    });
    shown.collect()
}

#[tokio::main]
async fn main() {
    let mut json = false;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--json" => json = true,
            _ => {
                println!(
                    "usage: coding_session [--json]\n\nPlays a coding session of two agents on the kernel; --json prints its summary only."
                );
                std::process::exit(i32::from(argument != "--help") * 2);
            }
        }
    }
    let (told, summary) = story().await;
    if json {
        println!("{summary}");
    } else {
        print!("{told}");
    }
}
