//! Shows a file.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use steward_kernel::SysError;
use steward_kernel::syscall::FsRead;

use super::{Card, Desk, Example, Job, Need, Outcome};
use crate::survey::Survey;

/// Bytes that are shown; the rest is told of.
const SHOWN_AT_MOST: u64 = 16 << 10;

/// Shows a file's text.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Read {
    /// The file.
    path: String,
}

impl Job for Read {
    const CARD: Card = Card {
        name: "read",
        about: "shows what a file says",
        frames: &[
            "(<show>|give) (to me |me )?((the |all (of )?the |all of )?(whole |full |entire )?(contents?|text|lines) (of|in|from) |what('s| is)( written)? in )?{path:file}( to me| out loud| aloud| out| again)?(<and>(show|print|display|give|read|tell)( it| me)?( it)?( to me| out)?( what it says| what's in it| what is in it| the contents?)?)?",
            "(<show>) (me )?what {path:file} (says|contains|has in it)",
            "what('s| is| are)( written| stored| there)? (in|inside) {path:file}",
            "what (does|do) {path:file} (say|contain|hold|read|have in it)",
            "((what (is|are) )?the )?(contents?|text) of {path:file}",
            "(读取|读一下|读一读|读|打开|显示|查看|看看|看一下|看|念|给我看) (一下)? {path:file} (里面|里|中)? 的? (内容|全文|文字)? (,? (并|然后|再)? (给我看|显示出来|显示|告诉我|念给我听))?",
            "{path:file} (里面|里|中)? (都)? (写了|写着|写的是|有|是) (什么|啥|些什么) (内容|东西)? (呢|啊)?",
            "(把|将) {path:file} 的? (内容)? (读|显示|念|打开) (出来|给我看|给我听|给我|一下)?",
            "{path:file} 的? 内容 (是什么)?",
        ],
        cues: &[
            "read", "show", "open", "display", "say", "says", "读", "打开", "显示", "查看",
        ],
        needs: &[("path", Need::Path)],
        examples: &[
            Example {
                request: "show me notes.md",
                arguments: r#"{"path":"notes.md"}"#,
            },
            Example {
                request: "what does todo.txt say?",
                arguments: r#"{"path":"todo.txt"}"#,
            },
            Example {
                request: "读一下 notes.md",
                arguments: r#"{"path":"notes.md"}"#,
            },
        ],
        ..Card::BLANK
    };

    fn complete(arguments: Map<String, Value>, survey: &Survey) -> Option<Map<String, Value>> {
        let path = arguments
            .get("path")
            .and_then(Value::as_str)
            .unwrap_or_default();
        (!survey.at(path).is_some_and(|found| found.folder)).then_some(arguments)
    }

    fn title(&self) -> String {
        format!("show what {} says", self.path)
    }

    async fn run(self, desk: &Desk<'_>) -> Result<Outcome, SysError> {
        let file = desk
            .sys
            .call(FsRead {
                path: self.path.clone(),
                limit: Some(SHOWN_AT_MOST),
            })
            .await?;
        if file.text.is_empty() {
            let text = desk.language.say(
                format!("{} is empty.", self.path),
                format!("{} 是空的。", self.path),
            );
            return Ok(text.into());
        }
        let mut text = format!("{}:\n\n{}", self.path, file.text.trim_end());
        if file.cut {
            let (shown, all) = (file.text.len(), file.total);
            text.push_str(&desk.language.say(
                format!("\n\n(The first {shown} of {all} bytes.)"),
                format!("\n\n（前 {shown} 字节，共 {all} 字节。）"),
            ));
        }
        Ok(text.into())
    }
}
