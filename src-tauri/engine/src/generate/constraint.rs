use std::sync::Arc;

use llguidance::api::{StopReason, TopLevelGrammar};
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};
use toktrie::{InferenceCapabilities, SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenizerEnv};

use super::Constraint;
use crate::error::EngineError;
use crate::text::Tokenizer;

/// Allowed tokens up to which their logits alone are computed. A tile of the output layer holds 16
/// tokens, so that these take at most a twelfth of the default model's.
const FEW: usize = 256;

/// Compiles constraints for one vocabulary.
pub(crate) struct Grammars {
    factory: ParserFactory,
}

impl Grammars {
    pub(crate) fn new(tokenizer: Arc<Tokenizer>) -> Result<Self, EngineError> {
        let environment: TokEnv = Arc::new(Vocabulary {
            trie: trie(&tokenizer),
            tokenizer,
        });
        let slices = llguidance::earley::SlicedBiasComputer::general_slices();
        let capabilities = InferenceCapabilities {
            ff_tokens: true,
            ..Default::default()
        };
        let mut factory =
            ParserFactory::new(&environment, capabilities, &slices).map_err(refused)?;
        factory.quiet();
        Ok(Self { factory })
    }

    /// A matcher at the beginning of the text.
    pub(crate) fn compile(&self, constraint: &Constraint) -> Result<Grammar, EngineError> {
        let grammar = match constraint {
            Constraint::JsonSchema(schema) => {
                TopLevelGrammar::from_json_schema(with_fixed_spaces(schema.clone()))
            }
            Constraint::Regex(regex) => TopLevelGrammar::from_regex(regex),
            Constraint::Lark(grammar) => TopLevelGrammar::from_lark(grammar.clone()),
        };
        let matcher = Matcher::new(self.factory.create_parser(grammar));
        match matcher.get_error() {
            Some(error) => Err(EngineError::Constraint(error)),
            None => Ok(Grammar {
                matcher,
                taken: Vec::new(),
                next: None,
            }),
        }
    }
}

/// How far a generated text has come in its grammar.
#[derive(Clone)]
pub(crate) struct Grammar {
    matcher: Matcher,
    /// The tokens that led here. The matcher's state follows from them.
    taken: Vec<u32>,
    /// What may come next, once that was asked for.
    next: Option<Next>,
}

#[derive(Clone)]
struct Next {
    allowed: SimpleVob,
    /// The same in rising order, if they are few.
    few: Option<Vec<u32>>,
}

impl Grammar {
    /// The tokens that are the only way on, taken; empty where there is a choice.
    pub(crate) fn take_forced(&mut self) -> Vec<u32> {
        let forced = self.matcher.consume_ff_tokens();
        if !forced.is_empty() {
            self.next = None;
        }
        self.taken.extend(&forced);
        forced
    }

    /// The tokens that may come next.
    pub(crate) fn allowed(&mut self) -> Result<&SimpleVob, EngineError> {
        let next = match self.next.take() {
            Some(next) => next,
            None => self.look_ahead()?,
        };
        Ok(&self.next.insert(next).allowed)
    }

    /// The tokens that may come next, if they are few: then the logits of the others need not be
    /// computed.
    pub(crate) fn few(&mut self) -> Option<&[u32]> {
        // An error shows again when the token is chosen.
        self.allowed().ok()?;
        self.next.as_ref()?.few.as_deref()
    }

    fn look_ahead(&mut self) -> Result<Next, EngineError> {
        let reason = self.matcher.stop_reason();
        if !reason.is_ok() && !self.matcher.is_error() {
            return Err(refused(reason));
        }
        let allowed = self.matcher.compute_mask_or_eos().map_err(refused)?;
        let few = (allowed.num_set() <= FEW).then(|| allowed.iter().collect());
        Ok(Next { allowed, few })
    }

    /// Goes on by a token.
    pub(crate) fn take(&mut self, id: u32) -> Result<(), EngineError> {
        self.next = None;
        self.matcher.consume_token(id).map_err(refused)?;
        self.taken.push(id);
        Ok(())
    }

    /// Goes from the beginning to where another was that took these.
    pub(crate) fn retake(&mut self, taken: &[u32]) -> Result<(), EngineError> {
        self.next = None;
        self.matcher.consume_tokens(taken).map_err(|error| {
            EngineError::Snapshot(format!("its tokens break the constraint: {error}"))
        })?;
        self.taken.extend(taken);
        Ok(())
    }

    /// All tokens taken, forced ones included.
    pub(crate) fn taken(&self) -> &[u32] {
        &self.taken
    }

    /// Whether nothing can follow; one that failed is not finished.
    pub(crate) fn is_finished(&self) -> bool {
        let reason = self.matcher.stop_reason();
        reason != StopReason::NotStopped && reason.is_ok()
    }
}

fn refused(error: impl std::fmt::Display) -> EngineError {
    EngineError::Constraint(error.to_string())
}

/// Asks for JSON with fixed white space: free white space tempts small models to go on for ever,
/// and leaves nothing forced.
fn with_fixed_spaces(mut schema: Value) -> Value {
    if let Value::Object(object) = &mut schema {
        object.entry("x-guidance").or_insert_with(|| {
            json!({ "whitespace_flexible": false, "item_separator": ", ", "key_separator": ": " })
        });
    }
    schema
}

/// The vocabulary as llguidance wants it: control tokens marked, the rest as bytes.
fn trie(tokenizer: &Tokenizer) -> TokTrie {
    let words: Vec<Vec<u8>> = (0..tokenizer.len() as u32)
        .map(|id| {
            let bytes = tokenizer.bytes(id);
            if tokenizer.is_control(id) {
                [&[TokTrie::SPECIAL_TOKEN_MARKER], bytes].concat()
            } else {
                bytes.to_vec()
            }
        })
        .collect();
    let stops = tokenizer.stops();
    let first = stops.first().copied().unwrap_or_default();
    TokTrie::from(&TokRxInfo::new(words.len() as u32, first), &words).with_eos_tokens(stops)
}

struct Vocabulary {
    trie: TokTrie,
    tokenizer: Arc<Tokenizer>,
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            // Only a text beyond all bounds is refused; the bytes then go one by one.
            self.tokenizer
                .encode(text, false)
                .unwrap_or_else(|_| self.trie.greedy_tokenize(text.as_bytes()))
        })
    }
}
