//! Deletes a file or an empty folder.

use schemars::JsonSchema;
use serde::Deserialize;
use steward_kernel::SysError;
use steward_kernel::syscall::{Effect, FsDelete};

use super::{Card, Desk, Example, Job, Need, Outcome};

/// Deletes a file or an empty folder.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Delete {
    /// The file or folder.
    path: String,
}

impl Job for Delete {
    const CARD: Card = Card {
        name: "delete",
        about: "deletes a file or an empty folder",
        effect: Effect::Irreversible,
        frames: &[
            "(<delete>|rm|bin|del|drop) {path:olds}( from (here|this folder|the workspace|my computer|disk))?",
            "(throw|take) {path:olds} (away|out)",
            "i (don't|do not|no longer) need {path:olds}( any ?more)?,? (<and>|so )?(you can |you may |please |just )*(<delete>) (it|them|that)",
            "(删除|删掉|删去|删了|删|移除|去掉|扔掉|清除) (掉)? {path:olds} (掉)? (了)?",
            "(把|将) {path:olds} (都|全)? (给)? (删除|删掉|删了|删去|删|移除|去掉|扔掉|扔了|清除|清掉) (掉)? (了)?",
            "{path:olds} (不要了|不需要了|没用了|可以删了) ,? (把它|请|就)? (删掉|删除|删了|删)? (它)? (吧)?",
        ],
        cues: &[
            "delete",
            "remove",
            "erase",
            "trash",
            "get rid of",
            "throw away",
            "删",
            "移除",
            "扔",
        ],
        needs: &[("path", Need::Path)],
        examples: &[
            Example {
                request: "delete old.txt",
                arguments: r#"{"path":"old.txt"}"#,
            },
            Example {
                request: "把 old.txt 删掉",
                arguments: r#"{"path":"old.txt"}"#,
            },
        ],
        ..Card::BLANK
    };

    fn title(&self) -> String {
        format!("delete {}", self.path)
    }

    async fn run(self, desk: &Desk<'_>) -> Result<Outcome, SysError> {
        let gone = desk.sys.call(FsDelete { path: self.path }).await?;
        let text = desk.language.say(
            format!("Deleted {}. “Undo that” brings it back.", gone.path),
            format!("已删除 {}。说“撤销”可以恢复。", gone.path),
        );
        Ok(text.into())
    }
}
