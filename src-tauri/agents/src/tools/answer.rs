//! Talks: answers without the files, and tells what can be asked for.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use steward_kernel::SysError;

use super::{Card, Desk, Example, Job, Outcome};
use crate::model;
use crate::survey::Survey;

/// Answers in words.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    /// What the person says.
    request: String,
    /// Whether they greet or ask what can be done here.
    #[serde(default)]
    help: bool,
}

impl Job for Answer {
    const CARD: Card = Card {
        name: "answer",
        about: "talks with the person, without the files",
        frames: &[
            "{help:=help|what can you do|what do you do|what can i ask( you)?|what can i say|how (does this|do you) work|how do i use (this|you)|who are you|what are you|commands}( me)?( for me| here| exactly)?",
            "{help:=帮助|你能做什么|你会做什么|你可以做什么|你会什么|你能干什么|怎么用|你是谁|能做什么|会做什么}",
            "{help:=hi|hello|hey|good morning|good evening|good afternoon|hi there|hello there}( steward)?",
            "{help:=你好|您好|早上好|晚上好|嗨} (管家)?",
            "(write|compose|tell me|tell|make up|invent|explain|translate|describe|define|suggest|recommend|give me an idea|give me ideas|brainstorm|imagine|sing|say|talk about) {rest:words}",
            "(写|作|讲|说|解释|翻译|介绍|推荐|描述|建议) (一下)? {rest:words}",
        ],
        cues: &[
            "explain",
            "translate",
            "joke",
            "poem",
            "story",
            "解释",
            "翻译",
        ],
        whole: Some("request"),
        general: true,
        blind: true,
        examples: &[
            Example {
                request: "tell me a joke",
                arguments: r#"{"request":"tell me a joke"}"#,
            },
            Example {
                request: "what can you do?",
                arguments: r#"{"request":"what can you do?","help":true}"#,
            },
        ],
        ..Card::BLANK
    };

    fn complete(mut arguments: Map<String, Value>, _: &Survey) -> Option<Map<String, Value>> {
        arguments.remove("rest");
        if arguments.remove("help").is_some() {
            arguments.insert("help".to_owned(), true.into());
        }
        Some(arguments)
    }

    fn title(&self) -> String {
        "answer in words".to_owned()
    }

    async fn run(self, desk: &Desk<'_>) -> Result<Outcome, SysError> {
        if self.help {
            return Ok(what_can_be_asked(desk).into());
        }
        let answer = model::say(desk, &self.request, "answer").await?;
        if answer.is_empty() {
            return Ok(what_can_be_asked(desk).into());
        }
        Ok(answer.into())
    }
}

/// What can be asked for, by worked requests.
pub(crate) fn what_can_be_asked(desk: &Desk<'_>) -> String {
    desk.language.say(
        "I work with the files of this workspace. For example:\n\
         - list the files, show me notes.md, what is in the letters folder\n\
         - summarise notes.md and save it as summary.md\n\
         - create a file tea.txt that says green tea\n\
         - add 'buy stamps' to todo.txt, in todo.txt change milk to bread\n\
         - rename, move, copy or delete a file; make a folder\n\
         - find the document about the rent, when is my appointment?\n\
         - how many lines are in app.log, the total of units in sales.csv, 17 * 23, 12 miles in km\n\
         - remember that …, undo that\n\
         I ask before anything is changed.",
        "我在这个工作区里替您处理文件。例如：\n\
         - 列出文件，读一下 notes.md，letters 文件夹里有什么\n\
         - 总结 notes.md，保存为 summary.md\n\
         - 新建文件 tea.txt，内容为绿茶\n\
         - 把“买邮票”加到 todo.txt，把 todo.txt 里的 milk 改成 bread\n\
         - 重命名、移动、复制、删除文件，新建文件夹\n\
         - 找关于租约的文件，我的预约是什么时候？\n\
         - app.log 有多少行，sales.csv 里 units 的总和，17 * 23，12 英里是多少公里\n\
         - 记住……，撤销\n\
         做任何改动之前，我都会先问您。",
    )
}
