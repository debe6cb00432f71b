//! Choosing a call where the request's wording leaves more than one: the model weighs what was
//! found, and writes only what a grammar of the found admits.

use serde_json::{Map, Value, json};
use steward_kernel::provider::{ChatRequest, Constraint, Role, Sampling};
use steward_kernel::syscall::{Effect, HumanAsk, LlmChat, LlmScore};
use steward_kernel::{Code, SysError};

use crate::call::Call;
use crate::model::message;
use crate::request::{Candidate, Evidence, Part};
use crate::search;
use crate::tools::{Desk, Need, Tool};

/// Candidates weighed at most; the model's attention is small.
const SHORTLIST: usize = 5;
/// A wording that explains so many characters more than the next needs no weighing.
const CLEAR_LEAD: usize = 3;

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    Act(Call),
    /// The tool is clear, something it needs is not in the request.
    Missing(&'static str),
}

/// The next call for a part of the request, among those that have not failed.
pub(crate) async fn choose(
    desk: &Desk<'_>,
    tools: &[&'static dyn Tool],
    part: &Part,
    failed: &[Call],
) -> Result<Choice, SysError> {
    let mut open: Vec<Candidate> = part
        .candidates
        .iter()
        .filter(|c| !failed.contains(&c.call))
        .cloned()
        .collect();
    if let Some(clear) = clear(&open) {
        return certain(desk, clear.clone()).await.map(Choice::Act);
    }
    // What talks about no tool at all is talked about, or looked for in the files.
    if open.is_empty() && part.hints.is_empty() {
        for general in tools.iter().filter(|tool| tool.card().general) {
            let Some(whole) = general.card().whole else {
                continue;
            };
            let call = Call::new(general.card().name, json!({ whole: part.text }));
            if !failed.contains(&call) && open.iter().all(|c| c.call.tool != call.tool) {
                open.push(Candidate {
                    call,
                    evidence: Evidence::Cue,
                    weight: 0,
                    several: None,
                });
            }
        }
    }
    let hinted: Vec<(&'static dyn Tool, &str)> = part
        .hints
        .iter()
        .filter(|hint| open.iter().all(|c| c.call.tool != hint.tool))
        .filter_map(|hint| {
            let tool = tools.iter().find(|tool| tool.card().name == hint.tool)?;
            Some((*tool, hint.rest.as_str()))
        })
        .collect();
    open.truncate(SHORTLIST);
    let titles: Vec<String> = open
        .iter()
        .map(|c| tools.iter().find(|t| t.card().name == c.call.tool))
        .zip(&open)
        .map(|(tool, c)| tool.map_or_else(String::new, |tool| tool.title(&c.call.arguments)))
        .chain(hinted.iter().map(|(tool, _)| tool.card().about.to_owned()))
        .collect();
    let best = match titles.len() {
        0 => return Ok(Choice::Missing("answer")),
        1 => 0,
        _ => weigh(desk, &part.text, &titles).await?,
    };
    match open.into_iter().nth(best) {
        Some(candidate) => certain(desk, candidate).await.map(Choice::Act),
        None => {
            let (tool, rest) = hinted[best.saturating_sub(titles.len() - hinted.len())];
            find_path(desk, tool, rest, part).await
        }
    }
}

/// The first candidate where its wording is the whole request and no other comes near.
fn clear(open: &[Candidate]) -> Option<&Candidate> {
    let best = open
        .first()
        .filter(|best| best.evidence == Evidence::Whole)?;
    let next = open.get(1).filter(|next| next.evidence == Evidence::Whole);
    next.is_none_or(|next| best.weight >= next.weight + CLEAR_LEAD)
        .then_some(best)
}

/// The candidate's call, after asking which of several paths is meant.
async fn certain(desk: &Desk<'_>, candidate: Candidate) -> Result<Call, SysError> {
    let mut call = candidate.call;
    if let Some((argument, paths)) = candidate.several {
        let name = call
            .text(&argument)
            .map(crate::survey::last_part)
            .unwrap_or_default();
        let text = desk.language.say(
            format!("Several files are called `{name}`. Which one?"),
            format!("有几个文件叫 `{name}`，是哪一个？"),
        );
        let path = ask_which(desk, text, paths).await?;
        call.arguments.insert(argument, Value::String(path));
    }
    Ok(call)
}

/// The person's choice among paths. Any other answer is none of them.
async fn ask_which(desk: &Desk<'_>, text: String, paths: Vec<String>) -> Result<String, SysError> {
    let answer = desk
        .sys
        .call(HumanAsk {
            text,
            choices: paths.clone(),
        })
        .await?;
    let answer = answer.trim();
    paths
        .into_iter()
        .find(|path| path == answer)
        .ok_or_else(|| {
            let what = match answer {
                "" => "no file was chosen".to_owned(),
                other => format!("`{other}` is none of the files asked about"),
            };
            SysError::new(Code::Invalid, what).hint("ask again and name the file with its folder")
        })
}

/// The index of the title that the request makes likeliest: what the model gives it after the
/// request, less what it gives it after none, so that words it likes anyway count for nothing.
async fn weigh(desk: &Desk<'_>, request: &str, titles: &[String]) -> Result<usize, SysError> {
    let mut weights = Vec::with_capacity(2);
    for said in [request, ""] {
        let score = LlmScore {
            messages: vec![
                message(
                    Role::System,
                    "You name what the person wants done, in a few words.",
                ),
                message(
                    Role::User,
                    format!("Request: {said}\nWhat does the person want?"),
                ),
            ],
            prefix: "The person wants to ".to_owned(),
            choices: titles.to_vec(),
            purpose: "weigh what is meant".to_owned(),
        };
        weights.push(desk.sys.call(score).await?);
    }
    let gain = |i: usize| -> f64 {
        let of = |weights: &[f64]| weights.get(i).copied().unwrap_or(f64::NEG_INFINITY);
        of(&weights[0]) - of(&weights[1])
    };
    Ok((0..titles.len())
        .max_by(|a, b| gain(*a).total_cmp(&gain(*b)).then(b.cmp(a)))
        .unwrap_or(0))
}

/// A call of a tool that lacks only the path of a file, which is looked for by what the request
/// says about it. To change a file the person picks it, to look at one the model may.
async fn find_path(
    desk: &Desk<'_>,
    tool: &'static dyn Tool,
    about: &str,
    part: &Part,
) -> Result<Choice, SysError> {
    let card = tool.card();
    let [(argument, Need::Path)] = card.needs else {
        return Ok(Choice::Missing(card.name));
    };
    let found = search::files(&search::documents(desk).await?, about);
    let paths: Vec<String> = found.into_iter().map(|file| file.path).take(4).collect();
    let mut call = Call::new(card.name, json!({}));
    let changes = tool.effect(&call.arguments) == Effect::Irreversible;
    let path = match paths.len() {
        0 => return Ok(Choice::Missing(card.name)),
        1 => paths.into_iter().next().unwrap_or_default(),
        _ if changes => {
            let text = desk
                .language
                .say("Which file do you mean?", "您指的是哪个文件？");
            ask_which(desk, text, paths).await?
        }
        _ => return write_call(desk, tool, argument, &paths, part).await,
    };
    call.arguments
        .insert((*argument).to_owned(), Value::String(path));
    Ok(Choice::Act(call))
}

/// The model writes the call itself, under a grammar that admits this tool and these paths only.
async fn write_call(
    desk: &Desk<'_>,
    tool: &'static dyn Tool,
    argument: &str,
    paths: &[String],
    part: &Part,
) -> Result<Choice, SysError> {
    let name = tool.card().name;
    let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let arguments = object(json!({ argument: { "enum": paths } }), json!([argument]));
    let schema = object(
        json!({ "tool": { "enum": [name] }, "arguments": arguments }),
        json!(["tool", "arguments"]),
    );
    let mut messages = vec![
        message(
            Role::System,
            format!("Answer with one JSON call. `{name}` {}.", tool.card().about),
        ),
        message(
            Role::User,
            format!("Files: {}\nRequest: {}", paths.join(", "), part.text),
        ),
    ];
    for _ in 0..=desk.bounds.max_retries {
        let request = ChatRequest {
            messages: messages.clone(),
            prefix: String::new(),
            max_tokens: 96,
            sampling: Sampling::default(),
            stop: Vec::new(),
            constraint: Some(Constraint::JsonSchema {
                schema: schema.clone(),
            }),
            beams: 1,
        };
        let call = LlmChat {
            request,
            visible: false,
            purpose: format!("choose the file to {name}"),
        };
        let reply = desk.sys.call(call).await?;
        match read_call(tool, &reply.text) {
            Ok(call)
                if call
                    .text(argument)
                    .is_some_and(|p| paths.iter().any(|path| path == p)) =>
            {
                return Ok(Choice::Act(call));
            }
            Ok(call) => {
                let wrong = call.text(argument).unwrap_or_default().to_owned();
                messages.push(message(Role::Assistant, reply.text));
                messages.push(message(
                    Role::User,
                    format!("`{wrong}` is not one of the files."),
                ));
            }
            Err(why) => {
                messages.push(message(Role::Assistant, reply.text));
                messages.push(message(
                    Role::User,
                    format!("That is no call: {why}. The form is {schema}"),
                ));
            }
        }
    }
    Ok(Choice::Missing(name))
}

/// A call as a model wrote it, checked.
pub(crate) fn read_call(tool: &dyn Tool, text: &str) -> Result<Call, String> {
    let call: Call = serde_json::from_str(text.trim()).map_err(|e| e.to_string())?;
    if call.tool != tool.card().name {
        return Err(format!("there is no tool `{}` here", call.tool));
    }
    let arguments: Map<String, Value> = call.arguments.clone();
    tool.check(&arguments)?;
    Ok(call)
}
