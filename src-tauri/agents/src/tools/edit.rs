//! Changes a part of a text file: adds to it, or replaces words in it.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use steward_kernel::syscall::{Effect, FsRead, FsWrite};
use steward_kernel::{Code, SysError};

use super::{Card, Desk, Example, Job, Need, Outcome};
use crate::survey::Survey;

/// Adds a line at a file's end.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Append {
    /// The file.
    path: String,
    /// The text to add.
    text: String,
}

impl Job for Append {
    const CARD: Card = Card {
        name: "append",
        about: "adds a line at the end of a file",
        effect: Effect::Irreversible,
        frames: &[
            "(add|append|put|insert|attach)( the| an?)?( new)?( lines?| items?| entry| tasks?| sentences?| words?| texts?)?( that says| saying| which says)?:{text:text} (to|onto|in|into|on|at) (the )?(end |bottom |last line )?(of )?{path:file}",
            "(add|append) (to|onto) {path:file}:{text:text}",
            "(add|append|write):{text:text} at the (end|bottom) of {path:file}",
            "(at the end of|at the bottom of) {path:file},? (add|append|write|put):{text:text}",
            "(in|to) {path:file},? (add|append)( the| an?)?( new)?( line| item| entry)?:{text:text}",
            "(在|往|给|向|到) {path:file} (里面|里|中|内)? 的? (末尾|最后|结尾|后面)? (添加|加上|加入|追加|加|增加|补充|补上|附上) (一行|一条|一项|一句|上|入)? :{text:text}",
            "(把|将) {text:text} (添加到|加到|追加到|加入到|加入|加进|添加进|补充到|添到) {path:file} (里面|里|中)? 的? (末尾|最后|结尾|后面)? (里|去)?",
        ],
        cues: &["add", "append", "添加", "加到", "追加", "加上"],
        needs: &[("text", Need::Text), ("path", Need::Path)],
        examples: &[
            Example {
                request: "add 'buy stamps' to todo.txt",
                arguments: r#"{"text":"buy stamps","path":"todo.txt"}"#,
            },
            Example {
                request: "把“买邮票”加到 todo.txt",
                arguments: r#"{"text":"买邮票","path":"todo.txt"}"#,
            },
        ],
        ..Card::BLANK
    };

    fn complete(arguments: Map<String, Value>, survey: &Survey) -> Option<Map<String, Value>> {
        super::not_a_folder(arguments, "path", survey)
    }

    fn title(&self) -> String {
        format!("add a given line to {}", self.path)
    }

    async fn run(self, desk: &Desk<'_>) -> Result<Outcome, SysError> {
        let read = FsRead {
            path: self.path.clone(),
            limit: None,
        };
        let (old, base) = match super::read_all(desk, read).await {
            Ok(file) => (file.text, file.sha256),
            Err(error) if error.code == Code::NotFound => (String::new(), None),
            Err(error) => return Err(error),
        };
        let line_end = if old.contains("\r\n") { "\r\n" } else { "\n" };
        let mut text = old;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push_str(line_end);
        }
        text.push_str(&self.text);
        text.push_str(line_end);
        let done = desk
            .sys
            .call(FsWrite {
                path: self.path,
                text,
                base,
            })
            .await?;
        let (added, path) = (self.text, done.path);
        Ok(desk
            .language
            .say(
                format!("Added “{added}” to {path}."),
                format!("已把“{added}”加到 {path}。"),
            )
            .into())
    }
}

/// Replaces words in a file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Replace {
    /// The file.
    path: String,
    /// The words to replace.
    from: String,
    /// The words instead; empty to take them out.
    to: String,
}

impl Job for Replace {
    const CARD: Card = Card {
        name: "replace",
        about: "replaces words in a file by others",
        effect: Effect::Irreversible,
        frames: &[
            "(in|inside|within) {path:file},? (change|replace|swap|substitute|correct|turn|rename)( every| all| each| the)?( occurrences? of| words?| texts?| names?| lines?)?:{from:word} (to|with|by|into|for):{to:text}",
            "{path:file}:(change|replace|swap|substitute|correct)( every| all| each| the)?( occurrences? of| words?| texts?)?:{from:word} (to|with|by|into|for):{to:text}",
            "(change|replace|swap|substitute|correct|turn)( every| all| each| the)?( occurrences? of| words?| texts?| names?| lines?)?:{from:word} (to|with|by|into|for):{to:text} (in|inside|within|throughout) {path:file}",
            "(change|replace|swap|substitute|correct)( every| all| each| the)?( occurrences? of| words?)?:{from:word} (in|inside|within) {path:file} (to|with|by|into|for):{to:text}",
            "(<delete>|cut|take|strike)( out)?( the)?( words?| lines?| texts?):{from:word} (from|in|out of) {path:file}",
            "(<delete>|cut|take|strike)( out)? {from:quote} (from|in|out of) {path:file}",
            "(把|将|在)? {path:file} (里面|里|中|内)? 的? ,? (把|将)? {from:word} (都|全部)? (改成|换成|替换成|替换为|改为|换为|改作) :{to:text}",
            "(把|将) {from:quote} (从|在) {path:file} (里面|里|中)? (删掉|删除|去掉)",
        ],
        cues: &["change", "replace", "改成", "替换", "换成"],
        needs: &[
            ("from", Need::Text),
            ("to", Need::Text),
            ("path", Need::Path),
        ],
        examples: &[
            Example {
                request: "in todo.txt change milk to bread",
                arguments: r#"{"path":"todo.txt","from":"milk","to":"bread"}"#,
            },
            Example {
                request: "把 todo.txt 里的 milk 改成 bread",
                arguments: r#"{"path":"todo.txt","from":"milk","to":"bread"}"#,
            },
        ],
        ..Card::BLANK
    };

    fn complete(mut arguments: Map<String, Value>, survey: &Survey) -> Option<Map<String, Value>> {
        arguments.entry("to").or_insert_with(|| "".into());
        super::not_a_folder(arguments, "path", survey)
    }

    fn title(&self) -> String {
        format!("replace words in {}", self.path)
    }

    async fn run(self, desk: &Desk<'_>) -> Result<Outcome, SysError> {
        let file = super::read_all(
            desk,
            FsRead {
                path: self.path.clone(),
                limit: None,
            },
        )
        .await?;
        let from = match spelled(&file.text, &self.from) {
            Some(from) if !from.is_empty() => from,
            _ => {
                let what = format!("`{}` does not stand in `{}`", self.from, self.path);
                return Err(SysError::new(Code::NotFound, what)
                    .hint(format!("look at its text with “read {}”", self.path)));
            }
        };
        let times = file.text.matches(&from).count();
        let text = file.text.replace(&from, &self.to);
        let write = FsWrite {
            path: self.path,
            text,
            base: file.sha256,
        };
        let done = desk.sys.call(write).await?;
        let (to, path) = (self.to, done.path);
        let count = if times == 1 {
            "1 place".to_owned()
        } else {
            format!("{times} places")
        };
        let text = desk.language.say(
            format!("Changed “{from}” to “{to}” in {path}, in {count}."),
            format!("已把 {path} 里的“{from}”改成“{to}”，共 {times} 处。"),
        );
        Ok(text.into())
    }
}

/// Words as they stand in a text: to the letter, else in another letter case.
fn spelled(text: &str, words: &str) -> Option<String> {
    if text.contains(words) {
        return Some(words.to_owned());
    }
    let pattern = format!("(?i){}", regex::escape(words));
    regex::Regex::new(&pattern)
        .ok()?
        .find(text)
        .map(|found| found.as_str().to_owned())
}
