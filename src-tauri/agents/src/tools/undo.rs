//! Takes back what a run changed.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use steward_kernel::syscall::{Effect, FsUndo};
use steward_kernel::{Code, SysError};

use super::{Card, Desk, Example, Job, Outcome};
use crate::survey::Survey;

/// Takes back what a run changed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Undo {
    /// The run's number; the last one where absent.
    #[serde(default)]
    run: Option<u64>,
}

impl Job for Undo {
    const CARD: Card = Card {
        name: "undo",
        about: "puts back the files that the last request, or a given run, changed",
        effect: Effect::Irreversible,
        frames: &[
            "(undo|revert|reverse|take back|roll back|rollback)( it| that| this| everything)?( again)?( what you (just )?did| you (just )?did)?",
            "(undo|revert|reverse|take back|roll back)( the| my| your| that| this)?( very)?( last| latest| previous| recent)? (change|changes|step|action|deletion|edit|edits|operation|request|thing|write|move)( you (just )?(made|did))?",
            "(undo|revert|roll back) (what you (just )?did|what just happened|your changes)",
            "(undo|revert|roll back) run {run:=\\d+}",
            "(take|put|bring|get) (it|that|them|this|everything) back( the way it was| as it was| again)?",
            "(put|change|set) (it|that|everything) back( the way it was| as it was| to how it was)",
            "(撤销|撤回|恢复|还原|取消|回退) (刚才|刚刚|上一步|上一次|上次|最近|那个|这个|一下)? 的? (操作|改动|修改|更改|删除|变更|动作)?",
            "(撤销|撤回|回退) 运行 {run:=\\d+}",
            "(把)? (它|刚才的|刚才删的|文件)? (恢复|还原) (回来|原样|一下)?",
        ],
        cues: &["undo", "revert", "roll back", "撤销", "撤回", "还原"],
        blind: true,
        examples: &[
            Example {
                request: "undo that",
                arguments: "{}",
            },
            Example {
                request: "undo run 12",
                arguments: r#"{"run":12}"#,
            },
            Example {
                request: "撤销刚才的操作",
                arguments: "{}",
            },
        ],
        ..Card::BLANK
    };

    fn complete(mut arguments: Map<String, Value>, _: &Survey) -> Option<Map<String, Value>> {
        if let Some(run) = super::take(&mut arguments, "run") {
            arguments.insert("run".to_owned(), run.parse::<u64>().ok()?.into());
        }
        Some(arguments)
    }

    fn title(&self) -> String {
        "take back the last change".to_owned()
    }

    async fn run(self, desk: &Desk<'_>) -> Result<Outcome, SysError> {
        let run = self
            .run
            .or_else(|| desk.sys.history().last().map(|turn| turn.run));
        let undone = match desk.sys.call(FsUndo { run }).await {
            // The last request changed nothing; the person means the last that did.
            Err(error) if self.run.is_none() && run.is_some() && error.code == Code::NotFound => {
                desk.sys.call(FsUndo { run: None }).await?
            }
            other => other?,
        };
        let mut text = if undone.restored.is_empty() {
            desk.language
                .say("Nothing was put back.", "没有恢复任何文件。")
        } else {
            let paths = undone.restored.join(", ");
            desk.language
                .say(format!("Put back: {paths}."), format!("已恢复：{paths}。"))
        };
        if !undone.kept.is_empty() {
            let kept = undone.kept.join("; ");
            text.push_str(&desk.language.say(
                format!(" Left as they are: {kept}."),
                format!("保持不动：{kept}。"),
            ));
        }
        Ok(text.into())
    }
}
