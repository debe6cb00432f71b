//! A file is copied through a named object, and its content never comes back to the model: what the
//! model is shown are handles, sizes and digests. The person sees the content, and says yes to it.
//!
//! `cargo run --example copy_through_object`

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a demonstration on a folder of its own"
)]

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use steward_kernel::capability::workspace_defaults;
use steward_kernel::human::{LineKind, Preview};
use steward_kernel::provider::{
    Cancel, ChatReply, ChatRequest, Clock, CoreInfo, Finish, LlmCore, Message, TokenSink,
};
use steward_kernel::{
    Exit, Images, JournalQuery, Kernel, KernelEvent, Program, Providers, Submission, Sys, SysError,
};
use steward_store::WorkspaceFiles;

/// What must not be seen by the model.
const CONTENT: &str = "Dear landlord,\nthe boiler has been cold since Tuesday.\n";

/// Asks the model before and after each of its two calls, and tells it all they gave back.
struct Copy;

#[async_trait]
impl Program for Copy {
    async fn run(&self, sys: Sys) -> Result<Exit, SysError> {
        let import = json!({ "path": "letter.txt", "name": "letter" });
        let export = json!({ "object": { "name": "letter" }, "path": "copy.txt" });
        let mut told = vec![format!("request: {}", sys.goal())];
        for (call, arguments) in [("object.import", import), ("object.export", export)] {
            think(&sys, &told).await?;
            let result = sys.call_by_name(call, arguments.clone()).await?;
            told.push(format!("{call} {arguments} gave {}", brief(result)));
        }
        think(&sys, &told).await?;
        Ok(Exit {
            ok: true,
            answer: "letter.txt is copied to copy.txt".to_owned(),
            error: None,
        })
    }
}

async fn think(sys: &Sys, told: &[String]) -> Result<Value, SysError> {
    let message = json!({ "role": "user", "content": told.join("\n") });
    let request = json!({ "messages": [message], "max_tokens": 16 });
    sys.call_by_name("llm.chat", json!({ "request": request }))
        .await
}

/// A result without its times, which differ from run to run.
fn brief(mut result: Value) -> Value {
    if let Some(fields) = result.as_object_mut() {
        fields.remove("created_ms");
    }
    result
}

struct OneImage;

impl Images for OneImage {
    fn program(&self, image: &str) -> Option<Arc<dyn Program>> {
        (image == "copy").then(|| Arc::new(Copy) as Arc<dyn Program>)
    }
}

/// A model that says little and remembers all that it was shown.
#[derive(Default)]
struct Model(Mutex<Vec<String>>);

#[async_trait]
impl LlmCore for Model {
    fn info(&self) -> CoreInfo {
        CoreInfo {
            model: "scripted".to_owned(),
            context: 4096,
            local: true,
        }
    }

    async fn chat(
        &self,
        request: ChatRequest,
        _: TokenSink,
        _: Cancel,
    ) -> Result<ChatReply, SysError> {
        let shown = request.messages.into_iter().map(|message| message.content);
        self.0.lock().unwrap().extend(shown);
        Ok(ChatReply {
            text: "go on".to_owned(),
            finish: Finish::Stop,
            prompt_tokens: 0,
            cached_tokens: 0,
            tokens: 2,
        })
    }

    async fn score(
        &self,
        _: Vec<Message>,
        _: String,
        choices: Vec<String>,
        _: Cancel,
    ) -> Result<Vec<f64>, SysError> {
        Ok(vec![0.0; choices.len()])
    }

    async fn count_tokens(&self, text: String) -> Result<u32, SysError> {
        Ok(u32::try_from(text.split_whitespace().count()).unwrap_or(u32::MAX))
    }
}

/// Time stands still.
struct Noon;

#[async_trait]
impl Clock for Noon {
    fn now_ms(&self) -> u64 {
        1_700_000_000_000
    }

    fn monotonic_ms(&self) -> u64 {
        0
    }

    async fn sleep_ms(&self, _: u64) {}
}

/// Does it all, and tells what happened.
pub(crate) async fn story() -> String {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(workspace.join("letter.txt"), CONTENT).unwrap();

    let model = Arc::new(Model::default());
    let files = WorkspaceFiles::open(folder.path().join("blobs")).unwrap();
    let core = Arc::clone(&model) as Arc<dyn LlmCore>;
    let providers = Providers::new(Arc::new(files), core, Arc::new(Noon));
    let journal = folder.path().join("journal.db");
    let kernel = Kernel::open(&journal, providers, Arc::new(OneImage)).unwrap();
    let mut events = kernel.subscribe();
    let submission = Submission {
        image: "copy".to_owned(),
        goal: "copy letter.txt to copy.txt".to_owned(),
        workspace: workspace.clone(),
        grants: workspace_defaults(&workspace.canonicalize().unwrap()),
        after: None,
        budget: steward_kernel::budget::Budget::default(),
    };
    let process = kernel.submit(submission).await.unwrap();

    let mut told = String::new();
    let exit = loop {
        match events.recv().await.unwrap() {
            KernelEvent::Approval(asked) => {
                writeln!(
                    told,
                    "the person is asked: {} {}",
                    asked.action, asked.relative
                )
                .unwrap();
                writeln!(told, "{}", preview(&asked.preview)).unwrap();
                let digest = &asked.digest.0;
                kernel
                    .decide(asked.id, true, digest, "the person")
                    .await
                    .unwrap();
                writeln!(told, "the person says yes").unwrap();
            }
            KernelEvent::Ended { exit, .. } => break exit,
            _ => {}
        }
    };
    writeln!(told, "the process answers: {}\n", exit.answer).unwrap();

    let shown = model.0.lock().unwrap().clone();
    writeln!(told, "the model was shown, {} times, at last:", shown.len()).unwrap();
    writeln!(told, "{}\n", shown.last().unwrap()).unwrap();
    let leaked = shown.iter().any(|text| text.contains("boiler"));
    writeln!(told, "the content was shown to the model: {leaked}").unwrap();
    let query = JournalQuery {
        pid: Some(process.pid),
        limit: 1_000,
        ..JournalQuery::default()
    };
    let rows = kernel.journal(query).await.unwrap();
    let leaked = rows.iter().any(|row| row.detail.contains("boiler"));
    writeln!(told, "the content stands in the journal: {leaked}").unwrap();
    let copy = std::fs::read_to_string(workspace.join("copy.txt")).unwrap();
    writeln!(told, "the copy is exact: {}", copy == CONTENT).unwrap();
    told
}

fn preview(preview: &Preview) -> String {
    let lines = preview.lines.iter().map(|line| match line.kind {
        LineKind::Added => format!("  + {}", line.text),
        LineKind::Removed => format!("  - {}", line.text),
        LineKind::Same | LineKind::Gap => format!("    {}", line.text),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::main]
async fn main() {
    print!("{}", story().await);
}
