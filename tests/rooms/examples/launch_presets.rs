//! What `steward run --access read|edit|full` gives: the same three calls under each of them, and
//! what came of it. The person says yes whenever they are asked. The kernel, its journal and the
//! files are real; no model is asked.
//!
//! `cargo run --example launch_presets`

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a demonstration on a folder of its own"
)]

#[allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "the examples share it, and the tests have them all in one program"
)]
#[path = "stage/mod.rs"]
mod stage;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use stage::{Line, OneImage, Stage};
use steward_kernel::capability::{FileAccess, workspace_grants};
use steward_kernel::{Exit, KernelEvent, Program, Submission, Sys, SysError};

/// Reads, writes and deletes, and goes on where it is refused.
struct Caller(Arc<Mutex<Vec<Line>>>);

#[async_trait]
impl Program for Caller {
    async fn run(&self, sys: Sys) -> Result<Exit, SysError> {
        let calls = [
            ("fs.read", json!({ "path": "notes.txt" })),
            ("fs.write", json!({ "path": "new.txt", "text": "new\n" })),
            ("fs.delete", json!({ "path": "old.txt" })),
        ];
        for (name, arguments) in calls {
            let result = sys.call_by_name(name, arguments.clone()).await;
            let line = Line::of(sys.pid(), name, &arguments, &result);
            self.0.lock().unwrap().push(line);
        }
        Ok(Exit {
            ok: true,
            answer: "tried all".to_owned(),
            error: None,
        })
    }
}

/// The calls under one of them, how often the person was asked, and the files that are there after.
async fn under(word: &str, access: FileAccess) -> String {
    let lines = Arc::<Mutex<Vec<Line>>>::default();
    let stage = Stage::new(&[("notes.txt", "buy bread\n"), ("old.txt", "old\n")]);
    let kernel = stage.open(OneImage::new("caller", Caller(Arc::clone(&lines))));
    let mut events = kernel.subscribe();
    let submission = Submission {
        image: "caller".to_owned(),
        goal: "read, write and delete".to_owned(),
        workspace: stage.workspace.clone(),
        grants: workspace_grants(&stage.workspace, access),
        after: None,
        budget: steward_kernel::budget::Budget::default(),
    };
    kernel.submit(submission).await.unwrap();
    let mut asked = 0;
    loop {
        match events.recv().await.unwrap() {
            KernelEvent::Approval(approval) => {
                asked += 1;
                let digest = &approval.digest.0;
                kernel
                    .decide(approval.id, true, digest, "the person")
                    .await
                    .unwrap();
            }
            KernelEvent::Ended { .. } => break,
            _ => {}
        }
    }
    let files = std::fs::read_dir(&stage.workspace).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    let lines = lines.lock().unwrap();
    let told: String = lines.iter().map(ToString::to_string).collect();
    let told = told.replace(&*stage.workspace.to_string_lossy(), "~/project");
    format!(
        "--access {word}\n{told}asked: {asked}; files: {}\n",
        names.join(", ")
    )
}

/// All three.
pub(crate) async fn story() -> String {
    let presets = [
        ("read", FileAccess::Read),
        ("edit", FileAccess::Edit),
        ("full", FileAccess::Full),
    ];
    let mut told = Vec::new();
    for (word, access) in presets {
        told.push(under(word, access).await);
    }
    told.join("\n")
}

#[tokio::main]
async fn main() {
    print!("{}", story().await);
}
