//! Lists a folder.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use steward_kernel::SysError;
use steward_kernel::escape::shown;
use steward_kernel::provider::FileKind;
use steward_kernel::syscall::FsList;

use super::{Card, Desk, Example, Job, Outcome};
use crate::survey::Survey;

const ENTRIES_AT_MOST: u32 = 200;

/// Lists a folder.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// The folder; empty for the workspace itself.
    path: String,
}

impl Job for List {
    const CARD: Card = Card {
        name: "list",
        about: "names the files and folders in a folder",
        frames: &[
            "(list|show|show me|give me|display|print|see|view|name|tell me) (all (of )?)?(the |my )?(names of )?(the |my |all )?(files?|documents?|contents?|items|everything|things|folders?|files and folders)( and (sub)?folders)?( that are| there are| stored)? (in|inside|of|under|within|from) {path:folder}",
            "(list|show|show me|give me|display|print|see|name) (all (of )?)?(the |my )?(files?|documents?|everything|folders|files and folders|workspace|directory)( and (sub)?folders)?( that are| there are)?( here| there| in here| in this (folder|workspace|directory)| in the (workspace|current folder|current directory))?",
            "(list|ls|dir|open|show|show me|look in|look inside|look into|browse) {path:folder}( for me)?",
            "(ls|dir)",
            "(what|which) ((kind of |sort of )?(files|documents|things|items|folders|stuff)( and folders)?) (are|are there|is|do i have|do we have|have i got|live|exist)( there)?( stored)? (in|inside|under|within) {path:folder}",
            "(what|which) (files|documents|things|items|folders)( and folders)? (do i have|do we have|are there|are here|exist)( here| there| in here| in this (folder|workspace|directory))?",
            "(what('s| is| are)|whats)( there| all| stored| kept)? (in|inside|under) {path:folder}",
            "what('s| is) (in here|here|in this (folder|workspace|directory))",
            "what (do i|do we|does one) (have|keep) (in|inside|under) {path:folder}",
            "what (does|do) {path:folder} (contain|have|hold)( in it)?",
            "(contents?|files) (of|in) {path:folder}",
            "(列出|列一下|列举|显示|查看|看看|看一下|看|打开|给我看|告诉我) (一下)? {path:folder} (里面|里边|里|中|下面|下|内)? (都)? (有)? (什么|哪些|啥)? 的? (所有|全部)? 的? (文件|内容|东西|文档)? (列表)? (有哪些|有什么)?",
            "{path:folder} (里面|里边|里|中|下面|下|内)? (都)? (有|放着|放了|存了|是) (什么|哪些|啥|些什么) (文件|东西|内容|文档)? (呢|啊|吗)?",
            "(列出|列一下|列举|显示|查看|看看|给我看|有哪些) (一下)? (这里|当前|工作区|这个文件夹|所有|全部|我)? (里)? 的? (所有|全部)? 的? (文件|文档|东西) (列表)? (有哪些)?",
            "(这里|当前文件夹|当前目录|工作区|这个文件夹|我) (里面|里|中|下)? (都)? 有 (什么|哪些|啥) (文件|东西|文档)? (呢|啊)?",
        ],
        cues: &["list", "files in", "folder", "列出", "有哪些文件"],
        needs: &[("path", super::Need::Path)],
        examples: &[
            Example {
                request: "what files are in the letters folder?",
                arguments: r#"{"path":"letters"}"#,
            },
            Example {
                request: "list the files",
                arguments: r#"{"path":""}"#,
            },
            Example {
                request: "letters 文件夹里有什么？",
                arguments: r#"{"path":"letters"}"#,
            },
        ],
        ..Card::BLANK
    };

    fn complete(mut arguments: Map<String, Value>, survey: &Survey) -> Option<Map<String, Value>> {
        let path = super::take(&mut arguments, "path").unwrap_or_default();
        if survey.at(&path).is_some_and(|found| !found.folder) {
            return None;
        }
        arguments.insert("path".to_owned(), path.into());
        Some(arguments)
    }

    fn title(&self) -> String {
        format!(
            "list the files in {}",
            if self.path.is_empty() {
                "the workspace"
            } else {
                &self.path
            }
        )
    }

    async fn run(self, desk: &Desk<'_>) -> Result<Outcome, SysError> {
        let listing = desk
            .sys
            .call(FsList {
                path: self.path,
                limit: Some(ENTRIES_AT_MOST),
            })
            .await?;
        let place = desk.language.folder(&listing.path);
        if listing.entries.is_empty() {
            return Ok(desk
                .language
                .say(
                    format!("There is nothing in {place}."),
                    format!("{place} 里什么都没有。"),
                )
                .into());
        }
        let mut text = desk
            .language
            .say(format!("In {place}:"), format!("{place} 里有："));
        for entry in &listing.entries {
            let name = shown(&entry.name);
            let line = match entry.kind {
                Some(FileKind::Folder) => format!("\n- {name}/"),
                Some(FileKind::File) => {
                    format!("\n- {name} ({})", desk.language.bytes(entry.bytes))
                }
                None => desk.language.say(
                    format!("\n- {name} (a link or device, not opened)"),
                    format!("\n- {name}（链接或设备，不打开）"),
                ),
            };
            text.push_str(&line);
        }
        if listing.left_out > 0 {
            let more = listing.left_out;
            text.push_str(&desk.language.say(
                format!("\n… and {more} more."),
                format!("\n…… 还有 {more} 个。"),
            ));
        }
        Ok(text.into())
    }
}
