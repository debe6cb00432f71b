//! Summarises a file, and saves the summary where that was asked.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use steward_kernel::provider::{ChatRequest, Finish, Role, Sampling};
use steward_kernel::syscall::{Effect, FsRead, FsWrite, LlmChat};
use steward_kernel::{Code, SysError};

use super::{Card, Desk, Example, Job, Need, Outcome};
use crate::model::{self, message};
use crate::summary::{self, Source, WORDS_AT_LEAST, WORDS_ENOUGH};
use crate::survey::Survey;

const SUMMARY_TOKENS: u32 = 110;
/// With this the default model keeps to a text more often than with a shorter one.
const SYSTEM_PROMPT: &str = "You are Steward, a calm and exact assistant. Answer briefly, in plain \
                             text. Say so when you do not know.";

/// Summarises a file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Summarise {
    /// The file.
    path: String,
    /// Where to save the summary.
    #[serde(default)]
    save: Option<String>,
}

impl Job for Summarise {
    const CARD: Card = Card {
        name: "summarise",
        about: "sums up a file in a few sentences, and saves that where asked",
        effect: Effect::Read,
        frames: &[
            "(<summarise>|give|write|make) (what is in |what's in |the (contents?|text) of )?{path:file}( briefly| shortly| in short| in (a few|two|three|one|1|2|3|few|some)( short)? (words|sentences|lines|sentence))?(<and>(save|store|write|put|keep)( it| that| this| the summary| the result| them)? (<to>) {save:newfile})?",
            "(<summarise>) {path:file} (<to>) {save:newfile}",
            "(save|store|put|write) a( short| brief)? (summary|overview|recap) of {path:file} (<to>) {save:newfile}",
            "(<show>|make|write)( me)? (a |the )?(short |brief |quick )*(summary|overview|gist|recap|version) of {path:file}(<and>(save|store|write|put) (it|that|this) (<to>) {save:newfile})?",
            "what('s| is)( the)? (summary|gist|main point|main idea|point) of {path:file}",
            "(what('s| is)|tell me what|tell me) {path:file} (is )?about",
            "what is {path:file} (all )?about",
            "(总结|概括|归纳|概述|小结|简述|摘要) (一下|下)? {path:file} (的)? (内容|主要内容|大意|要点)? (,? (并|然后|再|并且)? (把它|把摘要|把总结|将其|将摘要)? (另存|保存|存放|存|写)(为|到|成|入|进|在)? {save:newfile} (里|中)?)?",
            "(把|将|给|为|对) {path:file} (的内容)? (做|写|作|进行)? (一?个|一份)? (简短)? 的? (总结|概括|归纳|概述|小结|摘要) (一下|下)? (成一段话|成几句话)? (,? (并|然后|再|并且)? (把它|把摘要|把总结|将其|将摘要)? (另存|保存|存放|存|写)(为|到|成|入|进|在)? {save:newfile} (里|中)?)?",
            "(写|做|生成|给我|给) (一?个|一份)? {path:file} 的 (简短|简要)? 的? (摘要|总结|概要|小结) (,? (并|然后|再|并且)? (把它|把摘要|把总结|将其|将摘要)? (另存|保存|存放|存|写)(为|到|成|入|进|在)? {save:newfile} (里|中)?)?",
            "{path:file} (主要)? (讲|说|写|是关于) (了|的是|的)? (什么|些什么|啥)",
        ],
        cues: &[
            "summar\\w+",
            "sum up",
            "gist",
            "overview",
            "tl;?dr",
            "总结",
            "概括",
            "摘要",
        ],
        needs: &[("path", Need::Path)],
        examples: &[
            Example {
                request: "summarise notes.md and save it as short.md",
                arguments: r#"{"path":"notes.md","save":"short.md"}"#,
            },
            Example {
                request: "give me a short summary of report.txt",
                arguments: r#"{"path":"report.txt"}"#,
            },
            Example {
                request: "总结一下 notes.md，保存为 short.md",
                arguments: r#"{"path":"notes.md","save":"short.md"}"#,
            },
        ],
        ..Card::BLANK
    };

    fn complete(arguments: Map<String, Value>, survey: &Survey) -> Option<Map<String, Value>> {
        super::not_a_folder(arguments, "path", survey)
    }

    fn title(&self) -> String {
        match &self.save {
            Some(save) => format!("summarise {} and save that as {save}", self.path),
            None => format!("summarise {}", self.path),
        }
    }

    fn effect(&self) -> Effect {
        if self.save.is_some() {
            Effect::Irreversible
        } else {
            Effect::Read
        }
    }

    async fn run(self, desk: &Desk<'_>) -> Result<Outcome, SysError> {
        let bytes = u64::from(desk.bounds.reading_tokens) * 8;
        let file = desk
            .sys
            .call(FsRead {
                path: self.path.clone(),
                limit: Some(bytes),
            })
            .await?;
        let (text, cut) = model::fitting(file.text.trim(), desk.bounds.reading_tokens as usize);
        if text.is_empty() {
            let text = format!("`{}` is empty", self.path);
            return Err(SysError::new(Code::Invalid, text).hint("name a file that has some text"));
        }
        let (summary, by_model) = summarise(desk, &self.path, text).await?;
        let mut notes = Vec::new();
        if cut || file.cut {
            let (read, all) = (text.len(), file.total);
            notes.push(desk.language.say(
                format!("(Only the first {read} of {all} bytes were read: the rest does not fit the model at once.)"),
                format!("（只读了前 {read} 字节，共 {all} 字节：其余部分一次放不进模型。）"),
            ));
        }
        if !by_model {
            notes.push(desk.language.say(
                "(The model found no summary that keeps to the file, so these are the file's own first sentences.)",
                "（模型没有写出忠于原文的摘要，以上是文件开头的原句。）",
            ));
        }
        if let Some(save) = self.save {
            let write = FsWrite {
                path: save,
                text: format!("{summary}\n"),
                base: None,
            };
            let done = desk.sys.call(write).await?;
            notes.insert(0, super::written(desk, &done));
        }
        Ok(std::iter::once(summary)
            .chain(notes)
            .collect::<Vec<_>>()
            .join("\n\n")
            .into())
    }
}

/// A summary that keeps to the text, and whether the model wrote it.
async fn summarise(desk: &Desk<'_>, path: &str, text: &str) -> Result<(String, bool), SysError> {
    let source = Source::of(text);
    // The second asks with the answer begun, which leaves a small model less room to stray. What
    // the first said rightly is kept.
    let mut said = Vec::new();
    let tries = [
        (
            "Give a concise summary of the text, keeping its own words.",
            "",
        ),
        (
            "Summarize the text above. Keep its names, dates and numbers.",
            "In short, ",
        ),
    ];
    for (ask, prefix) in tries {
        let request = ChatRequest {
            messages: vec![
                message(Role::System, SYSTEM_PROMPT),
                message(Role::User, format!("{text}\n\n{ask}")),
            ],
            prefix: prefix.to_owned(),
            max_tokens: SUMMARY_TOKENS,
            sampling: Sampling::default(),
            stop: Vec::new(),
            constraint: None,
            beams: 1,
        };
        let call = LlmChat {
            request,
            // Two texts one after the other would read as one.
            visible: said.is_empty(),
            purpose: format!("summarise {path}"),
        };
        let reply = desk.sys.call(call).await?;
        if reply.finish == Finish::Cancelled {
            return Err(SysError::new(
                Code::Interrupted,
                "the summary was interrupted",
            ));
        }
        said.push(model::tidy(&reply));
        if let Some(summary) = summary::check(&source, &said, WORDS_ENOUGH) {
            return Ok((summary, true));
        }
    }
    match summary::check(&source, &said, WORDS_AT_LEAST) {
        Some(summary) => Ok((summary, true)),
        None => Ok((summary::first_sentences(text), false)),
    }
}
