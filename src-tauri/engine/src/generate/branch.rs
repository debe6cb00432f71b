//! One text on its way: what has been run, what is known but not run, and what was given out.

use super::constraint::Grammar;
use super::{Sequence, TokenEvent};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::kernels::Isa;
use crate::model::{Rows, Run, RunLogits};
use crate::text::TextStream;

use super::logprob::{Likelihood, TokenLogprob};

pub(super) struct Branch {
    /// The tokens that were run, with their keys and values while it is in the batch.
    pub(super) sequence: Sequence,
    /// Known tokens that still have to be run.
    pub(super) pending: Vec<u32>,
    /// How many at the end of `pending` the grammar forced; they are given out once they are run.
    pub(super) forced: usize,
    /// How many at the end of `pending` are guesses. Where there are any, none is forced.
    pub(super) guessed: usize,
    /// How likely the first pending token is, if that is a forced one and it is wanted.
    pub(super) ahead: Option<Likelihood>,
    /// The tokens that were generated.
    pub(super) ids: Vec<u32>,
    /// Their log-probabilities, if they are wanted.
    pub(super) logprobs: Vec<f32>,
    /// The likeliest tokens in the place of each, if they are wanted.
    pub(super) top_logprobs: Vec<Vec<TokenLogprob>>,
    pub(super) grammar: Option<Grammar>,
    pub(super) text: TextStream,
}

impl Branch {
    /// The pending tokens that a run of at most `most` takes, and the rows that it has to give.
    fn next(&self, scored: Option<usize>, most: usize) -> (usize, Rows) {
        let known = self.pending.len() - self.forced;
        let scored = scored.is_some() && self.forced > 0;
        // The row before each forced token says how likely the token was: of the known tokens the
        // last one's row is needed, of the forced ones all. A single known token goes with these.
        let count = match known {
            2.. if scored => known.min(most),
            _ => self.pending.len().min(most),
        };
        let rows = if (scored && known <= 1) || self.guessed > 0 {
            Rows::All
        } else if count == self.pending.len() || (scored && count == known) {
            Rows::Last
        } else {
            Rows::None
        };
        (count, rows)
    }

    /// The next run, of at most `most` tokens.
    pub(super) fn run(&mut self, scored: Option<usize>, most: usize) -> Run<'_> {
        let (count, rows) = self.next(scored, most);
        Run {
            tokens: &self.pending[..count],
            cache: &mut self.sequence.cache,
            rows,
            // A log-probability takes the logits of all.
            among: match (&mut self.grammar, scored) {
                (Some(grammar), None) if rows == Rows::Last => grammar.few(),
                _ => None,
            },
        }
    }

    /// Takes what the run of at most `most` tokens gave: the logits for what follows once nothing
    /// is pending.
    pub(super) fn fed<'a>(
        &mut self,
        engine: &Engine,
        (scored, most): (Option<usize>, usize),
        given: RunLogits<'a>,
        told: &mut Told<'_>,
    ) -> Result<Option<&'a [f32]>, EngineError> {
        let (count, rows) = self.next(scored, most);
        let top = scored.unwrap_or(0);
        let scored = scored.is_some() && self.forced > 0;
        let known = self.pending.len() - self.forced;
        self.sequence
            .tokens
            .extend_from_slice(&self.pending[..count]);
        for index in 0..count {
            let id = self.pending[index];
            let likely = self.ahead.take();
            if let (Rows::All, Some(&next)) = (rows, self.pending.get(index + 1)) {
                let row = given.row(index)?;
                self.ahead = Some(Likelihood::of(Isa::detect(), row, next, top));
            }
            if index >= known {
                self.forced -= 1;
                self.give_out(engine, id, likely, told);
            }
        }
        if let (true, Rows::Last, Some(&next)) = (scored, rows, self.pending.get(count)) {
            let row = given.row(0)?;
            self.ahead = Some(Likelihood::of(Isa::detect(), row, next, top));
        }
        self.pending.drain(..count);
        Ok(given.last().filter(|_| self.pending.is_empty()))
    }

    /// Lets go of guesses that were not run.
    pub(super) fn forget_guesses(&mut self) {
        self.pending.truncate(self.pending.len() - self.guessed);
        self.guessed = 0;
    }

    /// Leaves its keys and values where they may make room for others.
    pub(super) fn put_down(&mut self, engine: &Engine) {
        engine.prefixes().keep(&self.sequence);
        self.sequence.cache = self.sequence.cache.empty();
    }

    /// Takes its keys and values up again; what has gone of them is pending then. An `only` one
    /// shares them with no other of its search.
    pub(super) fn take_up(&mut self, engine: &Engine, only: bool) {
        let mut prefixes = engine.prefixes();
        let known = if only {
            prefixes.take_back(&self.sequence.tokens)
        } else {
            prefixes.recall(&self.sequence.tokens)
        };
        let gone = self.sequence.tokens.split_off(known.tokens.len());
        self.pending.splice(..0, gone);
        self.sequence = known;
    }

    /// Goes on by a token that was chosen and those that the grammar forces after it, at most
    /// `room` of these.
    pub(super) fn go_on(&mut self, engine: &Engine, id: Option<u32>, room: usize) {
        self.pending.extend(id);
        let Some(grammar) = &mut self.grammar else {
            return;
        };
        let mut forced = grammar.take_forced();
        let stops = engine.tokenizer().stops();
        if let Some(end) = forced.iter().position(|id| stops.contains(id)) {
            forced.truncate(end);
        }
        forced.truncate(room);
        self.forced = forced.len();
        self.pending.extend(forced);
        // Texts go on side by side, on all threads; the step that comes next would wait for each.
        grammar.few();
    }

    /// Counts a token as generated and tells of it.
    pub(super) fn give_out(
        &mut self,
        engine: &Engine,
        id: u32,
        likelihood: Option<Likelihood>,
        told: &mut Told<'_>,
    ) {
        if self.text.stopped() {
            return;
        }
        let (logprob, top) = match likelihood {
            Some(Likelihood { logprob, top }) => (Some(logprob), top),
            None => (None, Vec::new()),
        };
        self.ids.push(id);
        self.logprobs.extend(logprob);
        let text = self.text.push(shown(engine, id));
        told.tell(&TokenEvent {
            token: Some(id),
            text: &text,
            logprob,
            top_logprobs: &top,
        });
        if !top.is_empty() {
            self.top_logprobs.push(top);
        }
    }

    /// Whether nothing may follow.
    pub(super) fn is_finished(&self) -> bool {
        self.text.stopped() || self.grammar.as_ref().is_some_and(Grammar::is_finished)
    }
}

impl Branch {
    /// Whether the constraint forced more than there was room for.
    pub(super) fn is_cut(&self, stops: &[u32]) -> bool {
        let taken = self.grammar.iter().flat_map(Grammar::taken);
        !self.text.stopped() && taken.filter(|id| !stops.contains(id)).count() > self.ids.len()
    }
}

/// The bytes that a token adds to the text.
pub(super) fn shown(engine: &Engine, id: u32) -> &[u8] {
    let tokenizer = engine.tokenizer();
    if tokenizer.is_control(id) {
        &[]
    } else {
        tokenizer.bytes(id)
    }
}

/// Where text goes: into the answer and to whoever listens.
pub(super) struct Told<'a> {
    pub(super) text: &'a mut String,
    pub(super) on_token: &'a mut dyn FnMut(&TokenEvent<'_>),
}

impl Told<'_> {
    pub(super) fn tell(&mut self, event: &TokenEvent<'_>) {
        self.text.push_str(event.text);
        (self.on_token)(event);
    }

    /// Lets out the text that a stream held back.
    pub(super) fn close(&mut self, stream: &mut TextStream) {
        let text = stream.finish();
        if !text.is_empty() {
            self.tell(&TokenEvent {
                token: None,
                text: &text,
                logprob: None,
                top_logprobs: &[],
            });
        }
    }
}
