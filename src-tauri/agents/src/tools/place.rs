//! Moves, renames and copies files.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use steward_kernel::SysError;
use steward_kernel::syscall::{Effect, FsMove, FsRead, FsWrite};

use super::{Card, Desk, Example, Job, Need, Outcome};
use crate::survey::{Survey, last_part};

/// Moves or renames a file or folder.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Move {
    /// From.
    from: String,
    /// To.
    to: String,
}

impl Job for Move {
    const CARD: Card = Card {
        name: "move",
        about: "moves or renames a file or folder",
        effect: Effect::Irreversible,
        frames: &[
            "({rename:=rename|retitle}|move|mv|relocate|put|file|shift) {from:old} (over )?(to|as|into|in|under|inside) {to:new}",
            "({rename:=rename}|move|mv) {from:old} {to:new}",
            "{rename:=call|change the name of|change} {from:old} ('s name )?((to|as|into) )?{to:newfile}",
            "{rename:=rename|retitle|change the name of} {from:old} (to|as) {to:name}",
            "{rename:=give} {from:old} the (new )?name {to:name}",
            "(把|将) {from:old} ({rename:=重命名|改名|更名}|移动|移|挪|搬|放|转移) (为|成|到|至|进|入|去)? {to:new} (里面|里|中|下)? (去)?",
            "(把|将) {from:old} (的名字)? {rename:=重命名|改名|改|更名} (为|成) {to:name}",
            "(把|将) {from:old} 的 {rename:=名字|文件名} (改成|改为|换成) {to:name}",
            "({rename:=重命名|改名}|移动) {from:old} (为|成|到|至) {to:new} (里面|里|中|下)?",
        ],
        cues: &["rename", "move", "重命名", "改名", "移动", "移到"],
        needs: &[("from", Need::Path), ("to", Need::Target)],
        examples: &[
            Example {
                request: "rename todo.txt to tasks.txt",
                arguments: r#"{"from":"todo.txt","to":"tasks.txt"}"#,
            },
            Example {
                request: "move notes.md into the letters folder",
                arguments: r#"{"from":"notes.md","to":"letters/notes.md"}"#,
            },
            Example {
                request: "把 todo.txt 改名为 tasks.txt",
                arguments: r#"{"from":"todo.txt","to":"tasks.txt"}"#,
            },
        ],
        ..Card::BLANK
    };

    fn complete(mut arguments: Map<String, Value>, survey: &Survey) -> Option<Map<String, Value>> {
        let from = super::take(&mut arguments, "from")?;
        let to = super::take(&mut arguments, "to")?;
        let renames = arguments.remove("rename").is_some();
        let to = target(&from, &to, survey);
        let to = match from.rsplit_once('/') {
            // A new name without a folder is a name beside the old one.
            Some((parent, _)) if renames && !to.contains('/') => format!("{parent}/{to}"),
            _ => to,
        };
        arguments.insert("from".to_owned(), from.into());
        arguments.insert("to".to_owned(), to.into());
        Some(arguments)
    }

    fn title(&self) -> String {
        format!("move {} to {}", self.from, self.to)
    }

    async fn run(self, desk: &Desk<'_>) -> Result<Outcome, SysError> {
        let moved = desk
            .sys
            .call(FsMove {
                from: self.from.clone(),
                to: self.to.clone(),
            })
            .await?;
        let (from, to) = (
            self.from,
            if moved.path == self.to {
                moved.path
            } else {
                self.to
            },
        );
        Ok(desk
            .language
            .say(
                format!("Moved {from} to {to}."),
                format!("已把 {from} 移到 {to}。"),
            )
            .into())
    }
}

/// Copies a text file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Copy {
    /// From.
    from: String,
    /// To.
    to: String,
}

impl Job for Copy {
    const CARD: Card = Card {
        name: "copy",
        about: "copies a text file",
        effect: Effect::Irreversible,
        frames: &[
            "(copy|cp|duplicate|clone|back up|backup|(make|create|save) a (copy|duplicate|backup)( copy)? of) {from:old} (to|as|into|in|under|inside) {to:new}",
            "(copy|cp|duplicate|clone|back up|backup|(make|create) a (copy|duplicate|backup)( copy)? of) {from:old}(,? (and )?(call|name) (it|the copy))? {to:new}",
            "(copy|duplicate|clone|back up|backup|(make|create) a (copy|duplicate|backup)( copy)? of) {from:old}",
            "(把|将) {from:old} (复制|拷贝|备份|另存) (一份)? (为|成|到|至|进|在)? {to:new} (里面|里|中|下)?",
            "(复制|拷贝|备份) (一份)? {from:old} (为|成|到|至|进) {to:new} (里面|里|中|下)?",
        ],
        cues: &[
            "copy",
            "duplicate",
            "backup",
            "back up",
            "复制",
            "拷贝",
            "备份",
        ],
        needs: &[("from", Need::Path), ("to", Need::Target)],
        examples: &[
            Example {
                request: "copy notes.md to notes-2.md",
                arguments: r#"{"from":"notes.md","to":"notes-2.md"}"#,
            },
            Example {
                request: "make a copy of notes.md",
                arguments: r#"{"from":"notes.md","to":"notes-copy.md"}"#,
            },
            Example {
                request: "把 notes.md 复制到 letters 文件夹",
                arguments: r#"{"from":"notes.md","to":"letters/notes.md"}"#,
            },
        ],
        ..Card::BLANK
    };

    fn complete(mut arguments: Map<String, Value>, survey: &Survey) -> Option<Map<String, Value>> {
        let from = super::take(&mut arguments, "from")?;
        let to = match super::take(&mut arguments, "to") {
            Some(to) => target(&from, &to, survey),
            None => match from.rsplit_once('.') {
                Some((stem, extension)) => format!("{stem}-copy.{extension}"),
                None => format!("{from}-copy"),
            },
        };
        arguments.insert("from".to_owned(), from.into());
        arguments.insert("to".to_owned(), to.into());
        Some(arguments)
    }

    fn title(&self) -> String {
        format!("copy {} to {}", self.from, self.to)
    }

    async fn run(self, desk: &Desk<'_>) -> Result<Outcome, SysError> {
        let file = super::read_all(
            desk,
            FsRead {
                path: self.from.clone(),
                limit: None,
            },
        )
        .await?;
        let written = FsWrite {
            path: self.to,
            text: file.text,
            base: None,
        };
        let copy = desk.sys.call(written).await?;
        let (from, to, size) = (self.from, copy.path, desk.language.bytes(copy.bytes));
        Ok(desk
            .language
            .say(
                format!("Copied {from} to {to} ({size})."),
                format!("已把 {from} 复制到 {to}（{size}）。"),
            )
            .into())
    }
}

/// A target as a path: into a folder under the old name, a bare word with the old extension.
fn target(from: &str, to: &str, survey: &Survey) -> String {
    if to.ends_with('/') || survey.at(to).is_some_and(|found| found.folder) {
        return format!("{}/{}", to.trim_end_matches('/'), last_part(from));
    }
    match last_part(from).rsplit_once('.') {
        Some((_, extension))
            if !last_part(to).contains('.') && survey.at(from).is_some_and(|f| !f.folder) =>
        {
            format!("{to}.{extension}")
        }
        _ => to.to_owned(),
    }
}
