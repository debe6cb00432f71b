//! Has the model write a text, and saves it.

use schemars::JsonSchema;
use serde::Deserialize;
use steward_kernel::SysError;
use steward_kernel::syscall::{Effect, FsWrite};

use super::{Card, Desk, Example, Job, Outcome};
use crate::model;

/// Writes a text that the model makes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Draft {
    /// The file.
    path: String,
    /// What the text is to be.
    instruction: String,
}

impl Job for Draft {
    const CARD: Card = Card {
        name: "draft",
        about: "has the model write a new text, such as a poem or a letter, and saves it as a file",
        effect: Effect::Irreversible,
        frames: &[
            "(write|compose|draft|create|generate|make)( me)? {instruction:=(?:an?|some|the)\\s+(?:\\w+\\s+){0,3}?(?:poem|haiku|story|letter|e-?mail|joke|essay|paragraph|introduction|invitation|speech|song|recipe|description|limerick|thank-you note|list)\\b.*?}(<and>(save|store|put|write)( it| that| this| them)? (<to>)| (into|in|to)) {path:newfile}",
            "(写|作|编|创作|起草) {instruction:=(?:一首|一封|一篇|一段|一个|首|封|篇).{1,60}?} ,? (并|然后|再)? (保存|存|写)(为|到|成|入|进) {path:newfile}",
        ],
        examples: &[
            Example {
                request: "write a poem about autumn and save it as autumn.txt",
                arguments: r#"{"path":"autumn.txt","instruction":"a poem about autumn"}"#,
            },
            Example {
                request: "写一首关于秋天的诗，保存为 autumn.txt",
                arguments: r#"{"path":"autumn.txt","instruction":"一首关于秋天的诗"}"#,
            },
        ],
        ..Card::BLANK
    };

    fn title(&self) -> String {
        format!("write {} and save it as {}", self.instruction, self.path)
    }

    async fn run(self, desk: &Desk<'_>) -> Result<Outcome, SysError> {
        let purpose = format!("write {}", self.path);
        let ask = desk.language.say(
            format!("Write {}. Give only the text itself.", self.instruction),
            format!("请写{}。只给出正文。", self.instruction),
        );
        let mut text = model::say(desk, &ask, &purpose).await?;
        text.push('\n');
        let write = FsWrite {
            path: self.path,
            text: text.clone(),
            base: None,
        };
        let done = desk.sys.call(write).await?;
        Ok(format!("{}\n\n{}", text.trim_end(), super::written(desk, &done)).into())
    }
}
