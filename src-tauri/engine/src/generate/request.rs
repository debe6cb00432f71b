use super::{Sampling, TokenLogprob};
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
    /// Texts that end the answer and are not part of it: the one that is complete first, wherever
    /// tokens begin and end. Up to 256, of up to 1,024 bytes each.
    pub stop: Vec<String>,
    /// What the answer must conform to.
    pub constraint: Option<Constraint>,
    /// Whether to give each token's log-probability.
    pub logprobs: bool,
    /// How many of the likeliest tokens to give with each token, up to [`MAX_TOP_LOGPROBS`]; only
    /// with `logprobs`, and not with a search.
    pub top_logprobs: usize,
    /// Texts that are followed side by side, 1 to [`MAX_BEAMS`]. At 1 token follows token, as
    /// `sampling` says. With more, the answer is the text with the highest mean log-probability
    /// per token that the search found, the token that ends it counted; its tokens come all at
    /// the end, because any of them may still change until then.
    pub beams: usize,
    /// Whether tokens may be guessed from what followed before, so that some come sooner. It changes
    /// no token.
    pub speculate: bool,
    /// Whether the answer goes on where the model would end it, so that work of a known length can
    /// be measured; with neither a constraint nor a search.
    pub ignore_eos: bool,
}

/// Most texts that a search follows.
pub const MAX_BEAMS: usize = 8;

/// Most tokens that are given beside each token of an answer.
pub const MAX_TOP_LOGPROBS: usize = 20;

const MAX_STOPS: usize = 256;
const MAX_STOP_BYTES: usize = 1024;

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
            top_logprobs: 0,
            beams: 1,
            speculate: true,
            ignore_eos: false,
        }
    }

    /// How many alternatives are wanted beside each log-probability, if these are.
    pub(super) fn scored(&self) -> Option<usize> {
        self.logprobs.then_some(self.top_logprobs)
    }

    /// Whether each parameter is in its range; `vocab` is the size of the vocabulary.
    pub(crate) fn check(&self, vocab: usize) -> Result<(), EngineError> {
        let refuse = |problem: String| Err(EngineError::InvalidRequest(problem));
        self.sampling.check(vocab)?;
        if self.stop.len() > MAX_STOPS {
            let count = self.stop.len();
            return refuse(format!("`{count}` stop strings: give {MAX_STOPS} at most"));
        }
        if self.stop.iter().any(String::is_empty) {
            return refuse("an empty stop string would end every answer; leave it out".to_owned());
        }
        if let Some(stop) = self.stop.iter().find(|stop| stop.len() > MAX_STOP_BYTES) {
            let len = stop.len();
            return refuse(format!(
                "a stop string of `{len}` bytes: give {MAX_STOP_BYTES} at most"
            ));
        }
        if self.top_logprobs > MAX_TOP_LOGPROBS {
            let count = self.top_logprobs;
            return refuse(format!(
                "top_logprobs `{count}` is not between 0 and {MAX_TOP_LOGPROBS}"
            ));
        }
        if self.top_logprobs > 0 && !self.logprobs {
            let count = self.top_logprobs;
            return refuse(format!(
                "top_logprobs `{count}` needs logprobs; ask for these as well"
            ));
        }
        if !(1..=MAX_BEAMS).contains(&self.beams) {
            return refuse(format!("`{}` beams: choose 1 to {MAX_BEAMS}", self.beams));
        }
        if self.ignore_eos && (self.constraint.is_some() || self.beams > 1) {
            return refuse(
                "`ignore_eos` does not go with a constraint or a search, which end the answer \
                 themselves; leave it out"
                    .to_owned(),
            );
        }
        if self.beams > 1 {
            self.check_search()?;
        }
        Ok(())
    }

    /// What does not go with a search.
    fn check_search(&self) -> Result<(), EngineError> {
        let Sampling {
            temperature,
            logit_bias,
            ..
        } = &self.sampling;
        let (what, instead) = if *temperature > 0.0 {
            let what = format!("cannot sample at temperature `{temperature}`");
            (what, "set the temperature to 0")
        } else if self.sampling.has_penalties() || !logit_bias.is_empty() {
            let what = "takes no penalties and no logit_bias".to_owned();
            (what, "leave these out")
        } else if self.top_logprobs > 0 {
            let what = format!("gives no `{}` top_logprobs", self.top_logprobs);
            (what, "leave these out")
        } else {
            return Ok(());
        };
        Err(EngineError::InvalidRequest(format!(
            "a search with `{}` beams looks for the likeliest text of the model as it is and {what}; \
             {instead}, or set beams to 1",
            self.beams
        )))
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
    /// The likeliest tokens in its place, if they were asked for.
    pub top_logprobs: &'a [TokenLogprob],
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
    /// [`Sampling`] and constraint.
    pub logprobs: Vec<f32>,
    /// For each token, if asked for, the likeliest tokens in its place, the likeliest first.
    pub top_logprobs: Vec<Vec<TokenLogprob>>,
    /// Why it ended.
    pub finish: Finish,
    /// Tokens in the prompt.
    pub prompt_tokens: usize,
    /// Prompt tokens that were in the KV cache already.
    pub cached_tokens: usize,
    /// Tokens that took no step of their own, because they were guessed rightly.
    pub guessed: usize,
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
