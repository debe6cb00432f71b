//! The loop of an agent: observe, think, act, evaluate.

use async_trait::async_trait;
use steward_kernel::image::Image;
use steward_kernel::syscall::{Effect, Exit};
use steward_kernel::{Code, Program, Sys, SysError};

use crate::call::Call;
use crate::choose::{Choice, choose};
use crate::image::ImageError;
use crate::request::{Part, Reader, Reading};
use crate::survey::Survey;
use crate::tools::{self, Desk, Tool};
use crate::wording::Language;

const REQUEST_BYTES_AT_MOST: usize = 16 << 10;

/// The program of an image.
#[derive(Debug)]
pub struct Agent {
    image: Image,
    reader: Reader,
}

impl Agent {
    /// An agent of an image.
    ///
    /// # Errors
    /// The image names a tool that is not there.
    pub fn new(image: Image) -> Result<Self, ImageError> {
        let reader = Reader::new(tools_of(&image)?).map_err(|e| ImageError::Wording {
            image: image.name.clone(),
            why: e.to_string(),
        })?;
        Ok(Self { image, reader })
    }

    /// The image.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// What the request asks for, and the workspace's names where they were needed for it.
    async fn observe(&self, sys: &Sys) -> Result<(Reading, Survey), SysError> {
        let earlier: Vec<&str> = sys
            .history()
            .iter()
            .map(|turn| turn.request.as_str())
            .collect();
        let unseen = Survey::default();
        let reading = self.reader.read(sys.goal(), &unseen, &earlier);
        if reading.is_whole() && reading.parts.iter().all(|part| self.is_blind(part)) {
            return Ok((reading, unseen));
        }
        let survey = Survey::walk(sys).await?;
        Ok((self.reader.read(sys.goal(), &survey, &earlier), survey))
    }

    fn is_blind(&self, part: &Part) -> bool {
        let best = part.candidates.first();
        let tool = best.and_then(|best| self.tool(&best.call.tool));
        tool.is_some_and(|tool| tool.card().blind)
    }

    fn tool(&self, name: &str) -> Option<&'static dyn Tool> {
        self.reader
            .tools()
            .iter()
            .find(|tool| tool.card().name == name)
            .copied()
    }
}

/// The tools that an image names, in the order in which requests are read for them.
pub(crate) fn tools_of(image: &Image) -> Result<Vec<&'static dyn Tool>, ImageError> {
    let all = tools::all();
    let is = |tool: &&'static dyn Tool, name: &String| tool.card().name == name;
    let missing = |name: &&String| !all.iter().any(|tool| is(tool, name));
    if let Some(tool) = image.tools.iter().find(missing) {
        let known: Vec<&str> = all.iter().map(|tool| tool.card().name).collect();
        return Err(ImageError::NoTool {
            image: image.name.clone(),
            tool: tool.clone(),
            known: known.join(", "),
        });
    }
    let named = |tool: &&'static dyn Tool| image.tools.iter().any(|name| is(tool, name));
    Ok(all.iter().copied().filter(named).collect())
}

#[async_trait]
impl Program for Agent {
    async fn run(&self, sys: Sys) -> Result<Exit, SysError> {
        let language = Language::of(sys.goal());
        if sys.goal().trim().is_empty() {
            let error = SysError::new(Code::Invalid, "the request is empty")
                .hint("say what you want, such as “summarise notes.md”");
            return Ok(failed(language.failure(&error, &[]), error));
        }
        if sys.goal().len() > REQUEST_BYTES_AT_MOST {
            let what = format!(
                "the request has {} bytes; {REQUEST_BYTES_AT_MOST} at most can be read",
                sys.goal().len()
            );
            let error =
                SysError::new(Code::Limit, what).hint("put the long part into a file and name it");
            return Ok(failed(language.failure(&error, &[]), error));
        }
        let (reading, survey) = self.observe(&sys).await?;
        let desk = Desk {
            sys: &sys,
            survey: &survey,
            language,
            bounds: &self.image.bounds,
            system_prompt: &self.image.system_prompt,
        };
        let mut work = Work {
            agent: self,
            desk,
            steps: 0,
            done: Vec::new(),
            told: Vec::new(),
        };
        for part in &reading.parts {
            if let Err(stop) = work.part(part).await? {
                work.told.push(stop.told);
                return Ok(failed(work.told.join("\n\n"), stop.error));
            }
        }
        Ok(Exit {
            ok: true,
            answer: work.told.join("\n\n"),
            error: None,
        })
    }
}

fn failed(answer: String, error: SysError) -> Exit {
    Exit {
        ok: false,
        answer,
        error: Some(error),
    }
}

/// Why the work ends before the request is done, and what the person is told.
struct Stop {
    told: String,
    error: SysError,
}

struct Work<'a> {
    agent: &'a Agent,
    desk: Desk<'a>,
    steps: u32,
    done: Vec<Call>,
    told: Vec<String>,
}

impl Work<'_> {
    /// One part of the request: calls are tried until one does it or the bound is reached.
    async fn part(&mut self, part: &Part) -> Result<Result<(), Stop>, SysError> {
        let mut tried: Vec<Call> = Vec::new();
        loop {
            let choice = choose(&self.desk, self.agent.reader.tools(), part, &tried).await;
            let call = match choice {
                Ok(Choice::Act(call)) => call,
                Ok(Choice::Missing(tool)) => return Ok(Err(self.missing(tool))),
                Err(error) => return self.evaluate(error, None).map(Err),
            };
            let Some(tool) = self.agent.tool(&call.tool) else {
                return Ok(Err(self.missing(&call.tool)));
            };
            if self.done.contains(&call) {
                self.told.push(self.repeated(&tool.title(&call.arguments)));
                return Ok(Ok(()));
            }
            if self.steps == self.agent.image.bounds.max_steps {
                return Ok(Err(self.out_of_steps()));
            }
            self.steps += 1;
            self.done.push(call.clone());
            match tool.run(&self.desk, call.arguments.clone()).await {
                Ok(outcome) => {
                    self.told.push(outcome.text);
                    return Ok(Ok(()));
                }
                Err(error) => {
                    let reads = tool.effect(&call.arguments) == Effect::Read;
                    let wrong = matches!(error.code, Code::NotFound | Code::Invalid);
                    tried.push(call.clone());
                    let retries = self.agent.image.bounds.max_retries as usize;
                    // Another reading of the request is tried only where nothing can be harmed.
                    let other = part
                        .candidates
                        .iter()
                        .any(|c| !tried.contains(&c.call) && self.reads(&c.call));
                    if !(reads && wrong && other && tried.len() <= retries) {
                        return self.evaluate(error, Some((tool, &call))).map(Err);
                    }
                }
            }
        }
    }

    fn reads(&self, call: &Call) -> bool {
        self.agent
            .tool(&call.tool)
            .is_some_and(|tool| tool.effect(&call.arguments) == Effect::Read)
    }

    /// What an error means for the person. An interruption ends the process itself.
    fn evaluate(
        &self,
        error: SysError,
        of: Option<(&'static dyn Tool, &Call)>,
    ) -> Result<Stop, SysError> {
        let language = self.desk.language;
        let told = match (error.code, of) {
            (Code::Interrupted, _) => return Err(error),
            (Code::Refused, Some((tool, call))) => language.refused(&tool.title(&call.arguments)),
            (Code::Refused, None) => language.refused(self.desk.sys.goal()),
            (Code::NotFound, Some((_, call))) => {
                let named = ["path", "from"].iter().find_map(|name| call.text(name));
                let missing = named.filter(|path| self.desk.survey.at(path).is_none());
                let close = missing
                    .map(|path| self.desk.survey.close_to(path))
                    .unwrap_or_default();
                language.failure(&error, &close)
            }
            _ => language.failure(&error, &[]),
        };
        Ok(Stop { told, error })
    }

    fn missing(&self, tool: &str) -> Stop {
        let language = self.desk.language;
        let card = self.agent.tool(tool).map(Tool::card);
        let fits = |example: &&tools::Example| Language::of(example.request) == language;
        let example =
            card.and_then(|card| card.examples.iter().find(fits).or(card.examples.first()));
        let told = match example {
            Some(example) => language.say(
                format!(
                    "I am not sure what to do it with. Say it like “{}”.",
                    example.request
                ),
                format!("还不清楚要对什么做。可以这样说：“{}”。", example.request),
            ),
            None => tools::what_can_be_asked(&self.desk),
        };
        Stop {
            told,
            error: SysError::new(Code::Invalid, "the request leaves open what is meant"),
        }
    }

    fn repeated(&self, title: &str) -> String {
        self.desk.language.say(
            format!("Already done, not done again: {title}."),
            format!("已经做过，没有重复：{title}。"),
        )
    }

    fn out_of_steps(&self) -> Stop {
        let steps = self.steps;
        let told = self.desk.language.say(
            format!("I stopped after {steps} steps, which is the bound. Ask for the rest in another request."),
            format!("做了 {steps} 步就停下了，这是上限。其余的请另外再说。"),
        );
        let error = SysError::new(
            Code::Limit,
            format!("{steps} steps were taken, which is the bound"),
        );
        Stop { told, error }
    }
}
