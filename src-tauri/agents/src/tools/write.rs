//! Writes a text, given by the person, into a file.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use steward_kernel::SysError;
use steward_kernel::syscall::{Effect, FsWrite};

use super::{Card, Desk, Example, Job, Need, Outcome};
use crate::survey::Survey;

/// Writes a file as a whole.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Write {
    /// The file.
    path: String,
    /// Its whole new text.
    text: String,
}

impl Job for Write {
    const CARD: Card = Card {
        name: "write",
        about: "makes a file with a given text, or replaces the text of one",
        effect: Effect::Irreversible,
        frames: &[
            "(<make>|new|save|put together|i'd like|i would like|i want|i need|give me) {path:new},?( and)? (<saying>):{text:text}",
            "(<make>|new|touch) {path:newfile}( with nothing in it| without content| that is empty)?",
            "(<make>|save|new) {path:newfile}:{text:quote}",
            "(write|save|store|type|record|note down|jot down|print|output|echo) {text:text} (<to>|to a file called) {path:newfile}",
            "put {text:quote} (<to>) {path:newfile}",
            "(save|store) {text:quote} (as|under) {path:newfile}",
            "(write|type|put)( down)? (to|into|in|inside) {path:newfile}:{text:text}",
            "in {path:newfile}, (write|type|put)( down)?:{text:text}",
            "(set|change|replace)( all)? (the )?(whole |entire )?(contents?|text) of {path:newfile} (to|with|by):{text:text}",
            "(overwrite|fill|replace) {path:newfile} with:{text:text}",
            "(创建|新建|建立|建|写|生成|做|新增) (一个)? {path:newfile} ,? (里面|其中)? (内容|正文|文字|文本)? (为|是|写上|写着|写入|写道|写|包含|：)  :{text:text}",
            "(创建|新建|建立|建|生成) (一个)? (空|空白)? 的? {path:newfile}",
            "(在|往|向) {path:newfile} (里面|里|中|内)? (写入|写上|写下|写|填入|填上|输入) :{text:text}",
            "(把|将) {text:text} (写入|写到|写进|保存到|保存为|保存成|存到|存为|存入|存进|记到|记入) {path:newfile} (里面|里|中)?",
            "(把|将) {path:newfile} 的? (内容|全文) (改成|改为|换成|替换为) :{text:text}",
        ],
        cues: &[
            "write", "create", "save", "put", "写", "创建", "新建", "保存",
        ],
        needs: &[("path", Need::Target), ("text", Need::Text)],
        examples: &[
            Example {
                request: "create a file tea.txt that says green tea",
                arguments: r#"{"path":"tea.txt","text":"green tea"}"#,
            },
            Example {
                request: "write 'see you at six' into letters/note.txt",
                arguments: r#"{"path":"letters/note.txt","text":"see you at six"}"#,
            },
            Example {
                request: "新建文件 tea.txt，内容为绿茶",
                arguments: r#"{"path":"tea.txt","text":"绿茶"}"#,
            },
        ],
        ..Card::BLANK
    };

    fn complete(mut arguments: Map<String, Value>, survey: &Survey) -> Option<Map<String, Value>> {
        arguments.entry("text").or_insert_with(|| "".into());
        let path = arguments.get("path").and_then(Value::as_str)?;
        if survey.at(path).is_some_and(|found| found.folder) {
            return None;
        }
        Some(arguments)
    }

    fn title(&self) -> String {
        format!("write a given text into {}", self.path)
    }

    async fn run(self, desk: &Desk<'_>) -> Result<Outcome, SysError> {
        let mut text = self.text;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let done = desk
            .sys
            .call(FsWrite {
                path: self.path,
                text,
                base: None,
            })
            .await?;
        Ok(super::written(desk, &done).into())
    }
}
