//! Makes a folder.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use steward_kernel::SysError;
use steward_kernel::syscall::{Effect, FsMkdir};

use super::{Card, Desk, Example, Job, Outcome};
use crate::survey::Survey;

/// Makes a folder.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MakeFolder {
    /// The folder.
    path: String,
}

impl Job for MakeFolder {
    const CARD: Card = Card {
        name: "make_folder",
        about: "makes a folder",
        effect: Effect::Irreversible,
        frames: &[
            "(<make>|new|mkdir|open up) {path:folder}( here| for me)?",
            "mkdir {path:new}",
            "(创建|新建|建立|建|新增|添加) (一个)? (新的?)? {path:folder} 的? (文件夹|目录)?",
        ],
        examples: &[
            Example {
                request: "make a folder called trips",
                arguments: r#"{"path":"trips"}"#,
            },
            Example {
                request: "新建文件夹 旅行",
                arguments: r#"{"path":"旅行"}"#,
            },
        ],
        ..Card::BLANK
    };

    fn complete(mut arguments: Map<String, Value>, _: &Survey) -> Option<Map<String, Value>> {
        let path = super::take(&mut arguments, "path")?;
        arguments.insert("path".to_owned(), path.trim_end_matches('/').into());
        Some(arguments)
    }

    fn title(&self) -> String {
        format!("make the folder {}", self.path)
    }

    async fn run(self, desk: &Desk<'_>) -> Result<Outcome, SysError> {
        let made = desk.sys.call(FsMkdir { path: self.path }).await?;
        Ok(desk
            .language
            .say(
                format!("Made the folder {}/.", made.path),
                format!("已建好文件夹 {}/。", made.path),
            )
            .into())
    }
}
