//! The tool table of the base image. A tool is only a wrapper: what it may do is decided by the
//! kernel, at every system call it makes.

mod answer;
mod calculate;
mod column;
mod count;
mod delete;
mod draft;
mod edit;
mod find;
mod list;
mod lookup;
mod mkdir;
mod place;
mod read;
mod remember;
mod summarise;
mod undo;
mod write;

pub(crate) use answer::what_can_be_asked;

use std::future::Future;
use std::marker::PhantomData;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use steward_kernel::image::Loop;
use steward_kernel::syscall::{Effect, FileText, FsRead, Written};
use steward_kernel::{Code, Sys, SysError};

use crate::survey::Survey;
use crate::wording::Language;

/// A worked request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Example {
    /// What a person says.
    pub request: &'static str,
    /// The arguments it means, as JSON.
    pub arguments: &'static str,
}

/// What an argument must be found as where only a cue of the tool was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A path that should be there.
    Path,
    /// A path to write to.
    Target,
    /// A quoted text.
    Text,
}

/// What a tool is and how it is asked for.
#[derive(Debug)]
pub struct Card {
    /// Its name.
    pub name: &'static str,
    /// What it does, for people and models.
    pub about: &'static str,
    /// What it does to the world.
    pub effect: Effect,
    /// Wordings that ask for it, as frames.
    pub frames: &'static [&'static str],
    /// Words that hint at it.
    pub cues: &'static [&'static str],
    /// Arguments that must stand in the request where only a cue was seen.
    pub needs: &'static [(&'static str, Need)],
    /// The argument that takes the request's own words.
    pub whole: Option<&'static str>,
    /// Whether its wordings are so wide that every other tool's come first.
    pub general: bool,
    /// Whether it can do without looking at the workspace.
    pub blind: bool,
    /// Worked requests.
    pub examples: &'static [Example],
}

impl Card {
    /// A card with nothing but a name.
    pub const BLANK: Card = Card {
        name: "",
        about: "",
        effect: Effect::Read,
        frames: &[],
        cues: &[],
        needs: &[],
        whole: None,
        general: false,
        blind: false,
        examples: &[],
    };
}

/// What a tool gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What the person is told.
    pub text: String,
}

impl From<String> for Outcome {
    fn from(text: String) -> Self {
        Self { text }
    }
}

/// What a tool works with.
pub struct Desk<'a> {
    /// The door to the kernel.
    pub sys: &'a Sys,
    /// Names in the workspace.
    pub survey: &'a Survey,
    /// The language of the request.
    pub language: Language,
    /// The image's bounds.
    pub bounds: &'a Loop,
    /// The image's system prompt.
    pub system_prompt: &'a str,
}

/// A tool of the table.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What it is and how it is asked for.
    fn card(&self) -> &'static Card;
    /// JSON schema of its arguments.
    fn schema(&self) -> Value;
    /// Whether arguments are of the schema.
    ///
    /// # Errors
    /// What does not fit.
    fn check(&self, arguments: &Map<String, Value>) -> Result<(), String>;
    /// Arguments as captured from a wording, made whole; `None` where they cannot be meant.
    fn complete(
        &self,
        arguments: Map<String, Value>,
        survey: &Survey,
    ) -> Option<Map<String, Value>>;
    /// What a call of these arguments does to the world.
    fn effect(&self, arguments: &Map<String, Value>) -> Effect;
    /// What the call does, in a few English words.
    fn title(&self, arguments: &Map<String, Value>) -> String;
    /// Carries a call out.
    ///
    /// # Errors
    /// Those of the system calls it makes; arguments that do not fit.
    async fn run(
        &self,
        desk: &Desk<'_>,
        arguments: Map<String, Value>,
    ) -> Result<Outcome, SysError>;
}

/// The arguments of a tool, with what the tool is and does.
pub(crate) trait Job: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    const CARD: Card;

    fn complete(arguments: Map<String, Value>, _survey: &Survey) -> Option<Map<String, Value>> {
        Some(arguments)
    }

    fn title(&self) -> String;

    fn effect(&self) -> Effect {
        Self::CARD.effect
    }

    fn run(self, desk: &Desk<'_>) -> impl Future<Output = Result<Outcome, SysError>> + Send;
}

struct Of<J>(PhantomData<fn() -> J>);

impl<J: Job> Of<J> {
    const CARD: &'static Card = &J::CARD;
    const NEW: &'static Self = &Self(PhantomData);
}

#[async_trait]
impl<J: Job> Tool for Of<J> {
    fn card(&self) -> &'static Card {
        Self::CARD
    }

    fn schema(&self) -> Value {
        schemars::schema_for!(J).into()
    }

    fn check(&self, arguments: &Map<String, Value>) -> Result<(), String> {
        parse::<J>(arguments.clone()).map(drop)
    }

    fn complete(
        &self,
        arguments: Map<String, Value>,
        survey: &Survey,
    ) -> Option<Map<String, Value>> {
        J::complete(arguments, survey)
    }

    fn effect(&self, arguments: &Map<String, Value>) -> Effect {
        parse::<J>(arguments.clone()).map_or(J::CARD.effect, |job| job.effect())
    }

    fn title(&self, arguments: &Map<String, Value>) -> String {
        parse::<J>(arguments.clone()).map_or_else(|_| J::CARD.name.to_owned(), |job| job.title())
    }

    async fn run(
        &self,
        desk: &Desk<'_>,
        arguments: Map<String, Value>,
    ) -> Result<Outcome, SysError> {
        let job = parse::<J>(arguments).map_err(|why| {
            let what = format!("arguments of `{}` do not fit: {why}", J::CARD.name);
            SysError::new(steward_kernel::Code::Invalid, what)
                .hint("give arguments of the tool's JSON schema")
        })?;
        job.run(desk).await
    }
}

fn parse<J: Job>(arguments: Map<String, Value>) -> Result<J, String> {
    serde_json::from_value(Value::Object(arguments)).map_err(|e| e.to_string())
}

/// Every tool, in the order in which equal evidence counts.
pub fn all() -> Vec<&'static dyn Tool> {
    vec![
        Of::<undo::Undo>::NEW,
        Of::<calculate::Calculate>::NEW,
        Of::<summarise::Summarise>::NEW,
        Of::<list::List>::NEW,
        Of::<read::Read>::NEW,
        Of::<draft::Draft>::NEW,
        Of::<edit::Append>::NEW,
        Of::<edit::Replace>::NEW,
        Of::<write::Write>::NEW,
        Of::<delete::Delete>::NEW,
        Of::<place::Move>::NEW,
        Of::<place::Copy>::NEW,
        Of::<mkdir::MakeFolder>::NEW,
        Of::<count::Count>::NEW,
        Of::<column::Column>::NEW,
        Of::<remember::Remember>::NEW,
        Of::<find::Find>::NEW,
        Of::<answer::Answer>::NEW,
        Of::<lookup::Lookup>::NEW,
    ]
}

/// A text argument taken out.
fn take(arguments: &mut Map<String, Value>, name: &str) -> Option<String> {
    match arguments.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// Arguments whose path is not a folder.
fn not_a_folder(
    arguments: Map<String, Value>,
    name: &str,
    survey: &Survey,
) -> Option<Map<String, Value>> {
    let path = arguments.get(name).and_then(Value::as_str)?;
    (!survey.at(path).is_some_and(|found| found.folder)).then_some(arguments)
}

/// A text file as a whole: one that was cut is refused, since what follows would lose its rest.
pub(crate) async fn read_all(desk: &Desk<'_>, mut read: FsRead) -> Result<FileText, SysError> {
    const WHOLE_AT_MOST: u64 = 1 << 20;
    read.limit = Some(WHOLE_AT_MOST);
    let path = read.path.clone();
    let file = desk.sys.call(read).await?;
    if file.cut {
        let what = format!(
            "`{path}` has {} bytes; {WHOLE_AT_MOST} at most can be worked on",
            file.total
        );
        return Err(SysError::new(Code::Limit, what).hint("split the file, or name a smaller one"));
    }
    Ok(file)
}

/// What the person is told of a file written.
fn written(desk: &Desk<'_>, done: &Written) -> String {
    let (path, size) = (&done.path, desk.language.bytes(done.bytes));
    if done.overwritten {
        desk.language.say(
            format!("Replaced {path} ({size})."),
            format!("已替换 {path}（{size}）。"),
        )
    } else {
        desk.language.say(
            format!("Saved {path} ({size})."),
            format!("已保存 {path}（{size}）。"),
        )
    }
}
