//! A language model, as the kernel needs it.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::Sampling;
use crate::context::text;
use crate::error::SysError;

/// Who says a message of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions.
    System,
    /// The person, or data on their behalf.
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: String,
}

/// The form that generated text must have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "form", rename_all = "snake_case")]
pub enum Constraint {
    /// JSON under a schema.
    JsonSchema {
        /// The schema.
        schema: serde_json::Value,
    },
    /// Text that matches a regular expression as a whole.
    Regex {
        /// The expression.
        pattern: String,
    },
    /// Text of a grammar in Lark's notation.
    Lark {
        /// The grammar.
        grammar: String,
    },
}

/// A request to a core.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChatRequest {
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// Text the assistant's turn begins with, already said.
    #[serde(default)]
    pub prefix: String,
    /// Tokens to generate at most.
    pub max_tokens: u32,
    /// How tokens are chosen.
    #[serde(default)]
    pub sampling: Sampling,
    /// Texts that end the generation and are not part of it.
    #[serde(default)]
    pub stop: Vec<String>,
    /// The form the text must have.
    #[serde(default)]
    pub constraint: Option<Constraint>,
    /// Width of the search for the likeliest text, 1 to 8; at 1 token follows token. A core that
    /// cannot search refuses more than 1.
    #[serde(default = "one")]
    pub beams: u32,
}

fn one() -> u32 {
    1
}

/// Why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model ended its turn, a stop text came, or the constraint was complete.
    Stop,
    /// The limit of tokens was reached.
    Length,
    /// It was cancelled.
    Cancelled,
}

/// What a core generated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChatReply {
    /// The text, without the prefix.
    pub text: String,
    /// Why it ended.
    pub finish: Finish,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens of the prompt that were still in the core's cache.
    pub cached_tokens: u32,
    /// Tokens generated.
    pub tokens: u32,
}

/// What a core's tokens cost, in millionths of a currency for a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// Tokens of a prompt.
    pub prompt: u64,
    /// Tokens generated.
    pub generated: u64,
}

impl Price {
    const PER: u64 = 1_000_000;

    /// Millionths of the currency for so many tokens, rounded up.
    pub fn of(self, prompt: u64, generated: u64) -> u64 {
        let prompt = self.prompt.saturating_mul(prompt);
        let generated = self.generated.saturating_mul(generated);
        prompt.saturating_add(generated).div_ceil(Self::PER)
    }

    /// How many tokens can be generated for `micros` after the prompt; `None` where there is not
    /// enough for one.
    pub fn generated_for(self, prompt: u64, micros: u64) -> Option<u64> {
        let rest = micros
            .saturating_mul(Self::PER)
            .checked_sub(self.prompt.saturating_mul(prompt))?;
        let most = rest.checked_div(self.generated).unwrap_or(u64::MAX);
        (most > 0).then_some(most)
    }
}

/// What a core is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreInfo {
    /// Name of the model.
    pub model: String,
    /// Tokens of context.
    pub context: u32,
    /// Whether it runs on this machine.
    pub local: bool,
}

/// Asks running work to stop. Cheap to clone; once set it stays set.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Default for Cancel {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Cancel {
    /// Asks for the stop.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Whether the stop was asked for.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the stop is asked for.
    pub async fn cancelled(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let mut set = self.0.subscribe();
        let _ = set.wait_for(|set| *set).await;
    }
}

/// Called with each piece of generated text as it comes.
pub type TokenSink = Box<dyn Fn(&str) + Send + Sync>;

/// How far a generation has come when it stands still.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// The quantum is used up, or it was asked to yield.
    Paused,
    /// It has ended.
    Done(ChatReply),
}

/// A generation that can stand still and go on, owned by whoever runs it.
#[async_trait]
pub trait Generation: Send {
    /// Generates until `quantum` more tokens (`None`: to the end), the end, `yield_now` or
    /// `cancel`. Up to 128 tokens of the prompt, read together, count as one token of a quantum.
    ///
    /// Text goes to `sink` as it comes. After [`Progress::Done`] it cannot be run again.
    async fn run(
        &mut self,
        quantum: Option<u32>,
        sink: &TokenSink,
        yield_now: &Cancel,
        cancel: &Cancel,
    ) -> Result<Progress, SysError>;
    /// Bytes of memory that it holds while it waits.
    fn resident_bytes(&self) -> u64;
    /// The whole state, for [`LlmCore::restore`].
    async fn snapshot(&mut self) -> Result<Vec<u8>, SysError>;
}

/// How a core's generations go on after they stood still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumption {
    /// With the same token ids as without the pause, and at no cost: the state is kept.
    Exact,
    /// From the decoded text, as the beginning of the assistant's turn ([`ChatRequest::prefix`]).
    /// The text may be cut into other tokens than it was made of, and the core reads everything
    /// anew in every slice.
    Prefix,
    /// By a new request that is told what was already said; a model may then word the joint
    /// differently, or say something twice. Costs what [`Resumption::Prefix`] costs.
    Retold,
}

/// A language model that answers.
#[async_trait]
pub trait LlmCore: Send + Sync + 'static {
    /// What it is, without loading it.
    fn info(&self) -> CoreInfo;
    /// What its tokens cost; nothing, where it runs on this machine.
    fn price(&self) -> Price {
        Price::default()
    }
    /// Generations that it serves well at once.
    fn at_once(&self) -> usize {
        1
    }
    /// How its generations go on after a pause.
    fn resumption(&self) -> Resumption {
        Resumption::Prefix
    }
    /// A generation that can pause. It does nothing before it is run.
    ///
    /// By default it goes by text, for cores that give nothing else: each slice is a
    /// [`chat`](Self::chat) of its own that goes on as [`resumption`](Self::resumption) says. A
    /// constrained text and a search with beams cannot be taken up from their text; they run
    /// whole, whatever the quantum. A core that keeps a generation's state overrides this,
    /// [`restore`](Self::restore) and [`resumption`](Self::resumption) together.
    async fn begin(self: Arc<Self>, request: ChatRequest) -> Result<Box<dyn Generation>, SysError> {
        Ok(Box::new(text::TextGeneration::new(self, request)))
    }
    /// The generation of `request` as [`Generation::snapshot`] gave it. A snapshot that is broken,
    /// or of another request or model, is refused.
    async fn restore(
        self: Arc<Self>,
        request: ChatRequest,
        snapshot: Vec<u8>,
    ) -> Result<Box<dyn Generation>, SysError> {
        let generation = text::TextGeneration::restore(self, request, &snapshot)?;
        Ok(Box::new(generation))
    }
    /// Generates the assistant's turn. Returns within 100 ms of a cancel.
    async fn chat(
        &self,
        request: ChatRequest,
        sink: TokenSink,
        cancel: Cancel,
    ) -> Result<ChatReply, SysError>;
    /// Log-likelihood (nats, summed over tokens) of each choice as the assistant's turn after
    /// `messages` and `prefix`, in order.
    async fn score(
        &self,
        messages: Vec<Message>,
        prefix: String,
        choices: Vec<String>,
        cancel: Cancel,
    ) -> Result<Vec<f64>, SysError>;
    /// Tokens that `text` takes by this core's own tokenizer.
    async fn count_tokens(&self, text: String) -> Result<u32, SysError>;
}
