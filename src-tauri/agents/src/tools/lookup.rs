//! Answers a question from the workspace's files, in their own words.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use steward_kernel::SysError;
use steward_kernel::escape::shown;
use steward_kernel::syscall::FsRead;

use super::{Card, Desk, Example, Job, Outcome};
use crate::search::{self, Document, Passage};
use crate::survey::Survey;
use crate::{model, tools};

/// Share of a question's weight that a passage must have to count as its answer.
const ENOUGH: f64 = 0.5;
/// Share with which it is worth showing, where nothing has enough.
const NEAR: f64 = 0.3;
/// Share that is enough where the person named the file.
const ENOUGH_IN_NAMED: f64 = 0.25;

/// Answers a question from files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Lookup {
    /// The question.
    question: String,
    /// The file that has the answer, where it is named.
    #[serde(default)]
    path: Option<String>,
}

impl Job for Lookup {
    const CARD: Card = Card {
        name: "lookup",
        about: "answers a question from what the files say",
        frames: &[
            "(when|when's|where|where's|who|who's|whose|whom|why|how|how's|which|what|what's|whats|is|are|was|were|do|does|did|has|have|had|should|am|do you know|(can|could|will|would) (i|we|he|she|they|it|the|my|our|this|that)|(tell me|i want to know|say) (when|where|who|what|which|why|how|if|whether)) {rest:words}",
            "(when|where|who|whose|why|how|which|what|what's|is|are|was|were|do|does|did|has|have|tell me|find|get|give me) {rest:words} (in|from|of|inside|on|at|according to) {path:file}",
            "(when|where|who|whose|why|how|which|what|does|do|did|tell me) {rest:words} {path:file} {more:words}",
            "(what|when|where|who|how much|how many) (does|do|did) {path:file} {rest:words}",
            "(in|from|according to|based on|look in|look at|read|open|check) {path:file},?( and)?( tell me| say| find out| answer)?:(when|where|who|whose|why|how|which|what|if|whether|is|are) {rest:words}",
            "{rest:words}? (什么|谁|哪|几|多少|怎么|怎样|为什么|何时|吗|是不是|有没有|如何) {more:words}?",
            "{path:file} (里面|里|中)? (说|写|提到)? 的? {rest:words} (是)? (什么|谁|哪|几|多少|怎么|何时|如何) {more:words}?",
        ],
        cues: &["when", "where", "who", "how much", "\\?"],
        whole: Some("question"),
        general: true,
        examples: &[
            Example {
                request: "who brings the slides?",
                arguments: r#"{"question":"who brings the slides?"}"#,
            },
            Example {
                request: "what is the deposit in letters/lease.txt?",
                arguments: r#"{"question":"what is the deposit in letters/lease.txt?","path":"letters/lease.txt"}"#,
            },
        ],
        ..Card::BLANK
    };

    fn complete(mut arguments: Map<String, Value>, survey: &Survey) -> Option<Map<String, Value>> {
        arguments.remove("rest");
        arguments.remove("more");
        match arguments.contains_key("path") {
            true => super::not_a_folder(arguments, "path", survey),
            false => Some(arguments),
        }
    }

    fn title(&self) -> String {
        "answer the question from the files".to_owned()
    }

    async fn run(self, desk: &Desk<'_>) -> Result<Outcome, SysError> {
        let Some(path) = self.path.clone() else {
            let documents = search::documents(desk).await?;
            let found = search::passages(&documents, &self.question);
            let at_least = |share| found.iter().position(|passage| passage.coverage >= share);
            if let Some(at) = at_least(ENOUGH) {
                return Ok(quoted(&found[at..], 0.9).into());
            }
            let Some(at) = at_least(NEAR) else {
                return self.said_by_model(desk, documents.len()).await;
            };
            let near = quoted(&found[at..], 0.7);
            return Ok(desk
                .language
                .say(
                    format!("No file answers that outright. Nearest to it:\n\n{near}"),
                    format!("没有文件直接回答这个问题。最接近的是：\n\n{near}"),
                )
                .into());
        };
        let file = tools::read_all(
            desk,
            FsRead {
                path: path.clone(),
                limit: None,
            },
        )
        .await?;
        let question = self.question.replace(&path, " ");
        let document = [Document {
            path: path.clone(),
            text: file.text,
        }];
        let found = search::passages(&document, &question);
        match found.first() {
            Some(best) if best.coverage >= ENOUGH_IN_NAMED => Ok(quoted(&found, 0.9).into()),
            _ => self.read_by_model(desk, &document[0]).await,
        }
    }
}

impl Lookup {
    /// The model's own answer, told as such.
    async fn said_by_model(self, desk: &Desk<'_>, looked: usize) -> Result<Outcome, SysError> {
        let answer = model::say(desk, &self.question, "answer from the model's memory").await?;
        let note = desk.language.say(
            format!("(No file here tells: I looked in {looked}. This is the model's own memory, which may be wrong.)"),
            format!("（看了这里的 {looked} 个文件，都没有提到。以上是模型自己的记忆，可能有误。）"),
        );
        Ok(format!("{answer}\n\n{note}").trim().to_owned().into())
    }

    /// The model's reading of a named file in which no sentence has the question's words.
    async fn read_by_model(
        self,
        desk: &Desk<'_>,
        document: &Document,
    ) -> Result<Outcome, SysError> {
        let (text, cut) = model::fitting(&document.text, desk.bounds.reading_tokens as usize);
        let ask = format!(
            "Text:\n{text}\n\nAnswer from the text only, in one sentence: {}",
            self.question
        );
        let answer = model::say(desk, &ask, &format!("read {}", document.path)).await?;
        let path = &document.path;
        let mut note = desk.language.say(
            format!("(No sentence of {path} has these words; this is the model's reading of it, which may be wrong.)"),
            format!("（{path} 里没有直接的句子；以上是模型的理解，可能有误。）"),
        );
        if cut {
            note.push_str(
                &desk
                    .language
                    .say(" (Only its beginning was read.)", "（只读了开头部分。）"),
            );
        }
        Ok(format!("{answer}\n\n{note}").into())
    }
}

/// The best passage, and at most two others with at least a share of its score, with where they
/// stand.
fn quoted(found: &[Passage], share: f64) -> String {
    let best = found.first().map_or(0.0, |passage| passage.score);
    let mut lines: Vec<String> = Vec::new();
    for passage in found.iter().filter(|p| p.score >= best * share).take(3) {
        let line = format!("{}\n— {}", passage.text, shown(&passage.path));
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.join("\n\n")
}
