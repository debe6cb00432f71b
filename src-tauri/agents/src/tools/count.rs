//! Counts lines, words, characters, occurrences or files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use steward_kernel::SysError;
use steward_kernel::syscall::{FsList, FsRead};

use super::{Card, Desk, Example, Job, Outcome};
use crate::survey::Survey;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Unit {
    Lines,
    Words,
    Characters,
    Occurrences,
    Files,
    Folders,
}

/// Counts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Count {
    /// The file, or the folder whose files are counted.
    path: String,
    /// What is counted.
    unit: Unit,
    /// Only lines, or occurrences, of this text.
    #[serde(default)]
    text: Option<String>,
}

impl Job for Count {
    const CARD: Card = Card {
        name: "count",
        about: "counts lines, words, characters or occurrences in a file, or the files in a folder",
        frames: &[
            "(how many|count|number of|(count|tell me) how many)( the| all| all the)? {unit:=lines|rows|words|characters|letters|files|documents|folders|entries}( are| are there| there are| do we have| do i have)?( in| inside| of| does| do) {path:old}( have| has| contain| contains)?",
            "(how many|count|number of|(count|tell me) how many)( the| all| all the)? {text:word} {unit:=lines|rows|entries|messages|records}( are| are there| there are| do we have| do i have| does| do)?( in| inside| of)? {path:file}( have| has| contain| contains)?",
            "(how many|count)( the| all| all the)? {unit:=lines|rows}( are there| there are)? (in|of|from) {path:file} (that |which )?(contain|contains|mention|mentions|say|says|have|has|with|containing|mentioning):{text:word}",
            "(how many|count)( the)? {unit:=lines|rows} (that |which )?(contain|mention|say|have|with|containing)( the word)?:{text:word} (are |are there )?(in|of|from) {path:file}",
            "how (often|many times) (does|do|is|was|did)( the word| the words| the text)?:{text:word}( appears?| occurs?| shows? up| comes? up| mentioned| found| used| stand)? (in|inside) {path:file}",
            "(how many|count)( the)? {unit:=times|occurrences} (of )?{text:word} (appears?|occurs?|shows up|in) (in )?{path:file}",
            "how many {unit:=files|documents|folders} (are|do i have|are there)( here| there| in here| in this folder| in the workspace)?",
            "how long is {path:file}( in {unit:=lines|words|characters})?",
            "(数一数|数一下|统计|统计一下)? {path:old} (里面|里|中)? (一共|总共|共)? (有)? 多少 (个)? {unit:=行|字|词|个字|文件|文件夹|字符}",
            "(数一数|数一下|统计|统计一下)? {path:file} (里面|里|中)? (一共|总共|共)? 有 多少 (行|条) (包含|提到|含有|是)? {text:word} (的)? {unit:=行|日志|记录}?",
            "{text:word} 在 {path:file} (里面|里|中)? (一共|总共)? (出现|提到) 了? (多少|几) 次",
            "(数一数|数一下|统计|统计一下)? {path:file} (里面|里|中)? {text:word} (一共|总共)? (出现|提到) 了? (多少|几) 次",
        ],
        cues: &["count", "how many", "统计", "多少"],
        examples: &[
            Example {
                request: "how many words are in notes.md?",
                arguments: r#"{"unit":"words","path":"notes.md"}"#,
            },
            Example {
                request: "how many WARN lines are in logs/app.log?",
                arguments: r#"{"text":"WARN","unit":"lines","path":"logs/app.log"}"#,
            },
            Example {
                request: "how often does milk appear in todo.txt",
                arguments: r#"{"text":"milk","path":"todo.txt","unit":"occurrences"}"#,
            },
            Example {
                request: "notes.md 有多少行？",
                arguments: r#"{"path":"notes.md","unit":"lines"}"#,
            },
        ],
        ..Card::BLANK
    };

    fn complete(mut arguments: Map<String, Value>, survey: &Survey) -> Option<Map<String, Value>> {
        let word = super::take(&mut arguments, "unit");
        let path = arguments
            .entry("path")
            .or_insert_with(|| "".into())
            .as_str()?
            .to_owned();
        let unit = match word.as_deref().map(str::to_lowercase).as_deref() {
            None if arguments.contains_key("text") => Unit::Occurrences,
            None
            | Some(
                "lines" | "rows" | "entries" | "messages" | "records" | "行" | "日志" | "记录",
            ) => Unit::Lines,
            Some("words" | "词") => Unit::Words,
            Some("times" | "occurrences") => Unit::Occurrences,
            Some("files" | "documents" | "文件") => Unit::Files,
            Some("folders" | "文件夹") => Unit::Folders,
            Some(_) => Unit::Characters,
        };
        let folder = path.is_empty() || survey.at(&path).is_some_and(|found| found.folder);
        if folder != matches!(unit, Unit::Files | Unit::Folders) {
            return None;
        }
        arguments.insert("unit".to_owned(), serde_json::to_value(unit).ok()?);
        Some(arguments)
    }

    fn title(&self) -> String {
        format!(
            "count in {}",
            if self.path.is_empty() {
                "the workspace"
            } else {
                &self.path
            }
        )
    }

    async fn run(self, desk: &Desk<'_>) -> Result<Outcome, SysError> {
        use steward_kernel::provider::FileKind;
        let count = if let Unit::Files | Unit::Folders = self.unit {
            let kind = if self.unit == Unit::Files {
                FileKind::File
            } else {
                FileKind::Folder
            };
            let listing = desk
                .sys
                .call(FsList {
                    path: self.path.clone(),
                    limit: Some(10_000),
                })
                .await?;
            listing
                .entries
                .iter()
                .filter(|entry| entry.kind == Some(kind))
                .count()
        } else {
            let read = FsRead {
                path: self.path.clone(),
                limit: None,
            };
            count(
                &super::read_all(desk, read).await?.text,
                self.unit,
                self.text.as_deref(),
            )
        };
        Ok(self.told(desk, count).into())
    }
}

impl Count {
    fn told(&self, desk: &Desk<'_>, count: usize) -> String {
        let place = if self.path.is_empty() || matches!(self.unit, Unit::Files | Unit::Folders) {
            desk.language.folder(&self.path)
        } else {
            self.path.clone()
        };
        let (one, many, chinese) = match self.unit {
            Unit::Lines => ("line", "lines", "行"),
            Unit::Words => ("word", "words", "个词"),
            Unit::Characters => ("character", "characters", "个字符"),
            Unit::Occurrences => ("time", "times", "次"),
            Unit::Files => ("file", "files", "个文件"),
            Unit::Folders => ("folder", "folders", "个文件夹"),
        };
        let unit = if count == 1 { one } else { many };
        match &self.text {
            Some(text) if self.unit == Unit::Occurrences => desk.language.say(
                format!("“{text}” stands {count} {unit} in {place}."),
                format!("“{text}”在 {place} 里出现 {count} 次。"),
            ),
            Some(text) => desk.language.say(
                format!("{count} {unit} in {place} contain “{text}”."),
                format!("{place} 里有 {count} {chinese}包含“{text}”。"),
            ),
            None => desk.language.say(
                format!("{place}: {count} {unit}."),
                format!("{place}：{count} {chinese}。"),
            ),
        }
    }
}

fn count(text: &str, unit: Unit, only: Option<&str>) -> usize {
    // As written where it stands so in the text, in any letter case otherwise.
    let exact = only.is_none_or(|only| text.contains(only));
    let fold = |text: &str| {
        if exact {
            text.to_owned()
        } else {
            text.to_lowercase()
        }
    };
    let only = only.map(fold);
    match (unit, &only) {
        (Unit::Occurrences, Some(only)) if !only.is_empty() => fold(text).matches(only).count(),
        (Unit::Lines, Some(only)) => text
            .lines()
            .filter(|line| fold(line).contains(only))
            .count(),
        (Unit::Lines, None) => text.lines().count(),
        (Unit::Characters, _) => text.chars().filter(|c| !c.is_control()).count(),
        _ => text.split_whitespace().count(),
    }
}
