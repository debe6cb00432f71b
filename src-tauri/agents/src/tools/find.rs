//! Finds files by what they are about.

use schemars::JsonSchema;
use serde::Deserialize;
use steward_kernel::SysError;
use steward_kernel::escape::shown;

use super::{Card, Desk, Example, Job, Outcome};
use crate::search;

const SHOWN: usize = 5;

/// Finds files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Find {
    /// What the files are about.
    query: String,
}

impl Job for Find {
    const CARD: Card = Card {
        name: "find",
        about: "finds the files that tell about something",
        frames: &[
            "(find|search for|look for|locate|search|look up|show me|give me|open|where is|where's|where are)( me)?( all)?( of)?( the| a| an| my| any| our| that| some)? (<thing>) (<about>) (the |a |an |my )?{query:words}",
            "(find|search for|look for|locate|search|look up|hunt for)( me)?( all)?( the| a| an| my| any| our)? {query:words}( in| among| within)?( my| the| all)?( of)?( my| the)? (files?|documents?|folder|workspace|notes)",
            "(where is|where's|where are|find|open) (the|my|our) {query:words} (<thing>)",
            "(search|look through|look in|go through|scan)( all)?( of)?( my| the| these)? (files|documents|notes|folder|workspace) for {query:words}",
            "(find|search for|look for|locate|grep)( me)?( the| a| an| my| any| our)? {query:words}",
            "(which|what)( one)?( of)?( my| the| these| our)? (<thing>) (is|are|was|were|tells?|mentions?|talks?|speaks?|says?|has|have|contains?|explains?|describes?|covers?|lists?|deals? with|do i have|do i need|shows?|gives?)( me)?( something| anything)?( about| on| of| for| how to| that)? {query:words}",
            "(in )?(which|what) (<thing>) (is|are|did|do|does|was|can|would|could)( i| we| the| my)? {query:words}",
            "(is there|are there|do i have|have i got)( a| an| any| some)? (<thing>) (<about>) {query:words}",
            "(找|找到|查找|搜索|找出|找一下|找找|搜一下|搜) (一下)? (所有)? (关于|有关|提到|包含|含有|讲)? {query:words} 的? (那个|那份|那篇|所有)? (文件|文档|笔记|资料)",
            "(找|找到|查找|搜索|找出|找一下|搜一下|搜) (一下)? (关于|有关)? {query:words}",
            "(我的)? 哪(个|些|份|篇) (文件|文档|笔记) (里|中|里面)? (提到|讲|说|写|包含|有|介绍|记)? (的是|了|到|着|的)? (关于|如何|怎么)? {query:words} 的?",
            "{query:words} (在|写在|记在) 哪(个|些|份|篇) (文件|文档|笔记) (里|中|里面)?",
        ],
        cues: &[
            "find",
            "search",
            "which file",
            "which document",
            "where",
            "找",
            "搜索",
            "哪个文件",
        ],
        whole: Some("query"),
        examples: &[
            Example {
                request: "find the document about the rental agreement",
                arguments: r#"{"query":"rental agreement"}"#,
            },
            Example {
                request: "哪个文件提到了租约？",
                arguments: r#"{"query":"租约"}"#,
            },
        ],
        ..Card::BLANK
    };

    fn title(&self) -> String {
        format!("find files about {}", self.query)
    }

    async fn run(self, desk: &Desk<'_>) -> Result<Outcome, SysError> {
        let documents = search::documents(desk).await?;
        let found = search::files(&documents, &self.query);
        let best = found.first().map_or(0.0, |file| file.score);
        let query = &self.query;
        let near: Vec<_> = found
            .iter()
            .filter(|f| f.score >= best * 0.5 && f.coverage >= 0.3)
            .take(SHOWN)
            .collect();
        if near.is_empty() {
            let looked = documents.len();
            return Ok(desk
                .language
                .say(
                    format!("None of the {looked} text files here says anything about “{query}”."),
                    format!("这里的 {looked} 个文本文件都没有提到“{query}”。"),
                )
                .into());
        }
        let lines = near
            .iter()
            .map(|f| format!("- {}: {}", shown(&f.path), excerpt(&f.text)));
        let lines = lines.collect::<Vec<_>>().join("\n");
        Ok(desk
            .language
            .say(
                format!("About “{query}”:\n{lines}"),
                format!("与“{query}”有关的：\n{lines}"),
            )
            .into())
    }
}

fn excerpt(text: &str) -> String {
    const CHARACTERS: usize = 160;
    if text.chars().count() <= CHARACTERS {
        return text.to_owned();
    }
    let cut: String = text.chars().take(CHARACTERS).collect();
    format!("{}…", cut.trim_end())
}
