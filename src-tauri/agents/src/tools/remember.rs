//! Keeps a fact for later, in a file of the workspace that the person can read and change.

use schemars::JsonSchema;
use serde::Deserialize;
use steward_kernel::syscall::{Effect, FsRead, FsWrite};
use steward_kernel::{Code, SysError};

use super::{Card, Desk, Example, Job, Outcome};

/// Where facts are kept.
const FILE: &str = "remembered.md";

/// Keeps a fact.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Remember {
    /// The fact.
    text: String,
}

impl Job for Remember {
    const CARD: Card = Card {
        name: "remember",
        about: "keeps a fact for later in the file remembered.md",
        effect: Effect::Irreversible,
        frames: &[
            "(remember|keep in mind|bear in mind|memori[sz]e|note|take note|make a note|don't forget|do not forget)( that| this| of this| of):{text:text}",
            "(remember|don't forget|do not forget|memori[sz]e|note to self):{text:text}",
            "(记住|记得|记一下|记下来|记下|请记住|别忘了|不要忘了|记着) ,? :{text:text}",
        ],
        blind: true,
        examples: &[
            Example {
                request: "remember that the door code is 4711",
                arguments: r#"{"text":"the door code is 4711"}"#,
            },
            Example {
                request: "记住：门禁密码是 4711",
                arguments: r#"{"text":"门禁密码是 4711"}"#,
            },
        ],
        ..Card::BLANK
    };

    fn title(&self) -> String {
        "remember a fact".to_owned()
    }

    async fn run(self, desk: &Desk<'_>) -> Result<Outcome, SysError> {
        let read = FsRead {
            path: FILE.to_owned(),
            limit: None,
        };
        let (mut text, base) = match super::read_all(desk, read).await {
            Ok(file) => (file.text, file.sha256),
            Err(error) if error.code == Code::NotFound => (
                desk.language.say("# Remembered\n\n", "# 记下的事\n\n"),
                None,
            ),
            Err(error) => return Err(error),
        };
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("- {}\n", self.text.replace(['\n', '\r'], " ")));
        let done = desk
            .sys
            .call(FsWrite {
                path: FILE.to_owned(),
                text,
                base,
            })
            .await?;
        let path = done.path;
        Ok(desk
            .language
            .say(
                format!("I'll remember. It is kept in {path}, where you can change it."),
                format!("记住了。它写在 {path} 里，您可以修改。"),
            )
            .into())
    }
}
