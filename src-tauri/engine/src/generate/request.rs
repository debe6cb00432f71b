use crate::error::EngineError;
use crate::text::Message;

/// What a generation goes on from.
#[derive(Debug, Clone, PartialEq)]
pub enum Prompt {
    /// A chat, rendered with the model's template.
    Messages {
        /// The messages so far.
        messages: Vec<Message>,
        /// How the answer begins; it counts as prompt and is not part of the generated text.
        assistant_prefix: String,
    },
    /// A text, in which nothing is a special token.
    Text(String),
    /// Tokens as they are.
    Tokens(Vec<u32>),
}

/// How the next token is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// 0 takes the likeliest token; larger values choose more freely.
    pub temperature: f32,
    /// The likeliest tokens that together have this probability are chosen from; 1 is all.
    pub top_p: f32,
    /// The same seed, request and model give the same answer.
    pub seed: u64,
}

impl Default for Sampling {
    /// Greedy.
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_p: 1.0,
            seed: 0,
        }
    }
}

/// What the generated text must conform to.
#[derive(Debug, Clone, PartialEq)]
pub enum Constraint {
    /// JSON that a schema describes, written with one space after each comma and colon.
    JsonSchema(serde_json::Value),
    /// A regular expression that the whole text matches.
    Regex(String),
    /// A grammar in llguidance's Lark dialect.
    Lark(String),
}

/// A generation to run.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateRequest {
    /// What to go on from.
    pub prompt: Prompt,
    /// Tokens to generate at most.
    pub max_tokens: usize,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Texts that end the answer and are not part of it.
    pub stop: Vec<String>,
    /// What the answer must conform to.
    pub constraint: Option<Constraint>,
    /// Whether to give each token's log-probability.
    pub logprobs: bool,
    /// Texts that are followed side by side, 1 to [`MAX_BEAMS`]. At 1 token follows token, as
    /// `sampling` says. With more, the answer is the text with the highest mean log-probability
    /// per token that the search found, the token that ends it counted; its tokens come all at
    /// the end, because any of them may still change until then.
    pub beams: usize,
}

/// Most texts that a search follows.
pub const MAX_BEAMS: usize = 4;

impl GenerateRequest {
    /// A greedy generation of up to `max_tokens`.
    pub fn new(prompt: Prompt, max_tokens: usize) -> Self {
        Self {
            prompt,
            max_tokens,
            sampling: Sampling::default(),
            stop: Vec::new(),
            constraint: None,
            logprobs: false,
            beams: 1,
        }
    }

    pub(crate) fn check(&self) -> Result<(), EngineError> {
        let Sampling {
            temperature, top_p, ..
        } = self.sampling;
        let refuse = |problem: String| Err(EngineError::InvalidRequest(problem));
        if !(0.0..=100.0).contains(&temperature) {
            return refuse(format!(
                "the temperature `{temperature}` is not between 0 and 100"
            ));
        }
        if !(top_p > 0.0 && top_p <= 1.0) {
            return refuse(format!("top_p `{top_p}` is not above 0 and up to 1"));
        }
        if self.stop.iter().any(String::is_empty) {
            return refuse("an empty stop string would end every answer; leave it out".to_owned());
        }
        if !(1..=MAX_BEAMS).contains(&self.beams) {
            return refuse(format!("`{}` beams: choose 1 to {MAX_BEAMS}", self.beams));
        }
        if self.beams > 1 && temperature > 0.0 {
            return refuse(format!(
                "a search with `{}` beams looks for the likeliest text and cannot sample at \
                 temperature `{temperature}`; set the temperature to 0, or beams to 1",
                self.beams
            ));
        }
        Ok(())
    }
}

/// Progress of a generation: one event per token, and one for text held back to the end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenEvent<'a> {
    /// The token; none for text that had been held back.
    pub token: Option<u32>,
    /// Text that became certain; whole characters, possibly none.
    pub text: &'a str,
    /// The token's log-probability, if it was asked for.
    pub logprob: Option<f32>,
}

/// Why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The model or the constraint ended it, or a stop string came.
    Stop,
    /// `max_tokens` or the context is used up.
    Length,
    /// It was cancelled.
    Cancelled,
}

/// The outcome of a generation.
#[derive(Debug, Clone, PartialEq)]
pub struct Generation {
    /// The generated text, up to a stop string.
    pub text: String,
    /// The generated tokens, without the token that ended the answer.
    pub ids: Vec<u32>,
    /// For each token, if asked for, its natural log-probability under the model as it is: before
    /// temperature, top-p and constraint.
    pub logprobs: Vec<f32>,
    /// Why it ended.
    pub finish: Finish,
    /// Tokens in the prompt.
    pub prompt_tokens: usize,
    /// Prompt tokens that were in the KV cache already.
    pub cached_tokens: usize,
    /// Seconds until the first token could be chosen.
    pub prefill_seconds: f64,
    /// Seconds from there to the end.
    pub decode_seconds: f64,
}

/// How likely a continuation is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Natural logarithm of the continuation's probability after the prompt.
    pub logprob: f64,
    /// Tokens in the continuation.
    pub tokens: usize,
}
