use std::sync::PoisonError;
use std::time::Instant;

use super::constraint::Grammar;
use super::sampler::Sampler;
use super::{Finish, GenerateRequest, Generation, Sequence, TokenEvent};
use crate::cancel::Cancel;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::model::{Logits, Rows, STEP_TOKENS};
use crate::text::TextStream;

impl Engine {
    /// Generates an answer, handing each token to `on_token` as it comes.
    ///
    /// A cancelled generation is not an error: it gives what there is, with [`Finish::Cancelled`].
    ///
    /// # Errors
    /// A request that cannot be met: a prompt beyond the context, a bad constraint, a bad figure.
    pub fn generate(
        &self,
        request: &GenerateRequest,
        cancel: &Cancel,
        on_token: &mut dyn FnMut(&TokenEvent<'_>),
    ) -> Result<Generation, EngineError> {
        request.check()?;
        let prompt = self.prompt_tokens(&request.prompt)?;
        let grammar = match &request.constraint {
            Some(constraint) => Some(self.grammars()?.compile(constraint)?),
            None => None,
        };
        let sequence = self.begin(&prompt);
        let cached = sequence.tokens.len();
        let mut run = Run {
            engine: self,
            request,
            cancel,
            grammar,
            sampler: Sampler::new(request.sampling),
            sequence,
            stream: TextStream::new(request.stop.clone()),
            on_token,
            out: Generation {
                text: String::new(),
                ids: Vec::new(),
                logprobs: Vec::new(),
                finish: Finish::Stop,
                prompt_tokens: prompt.len(),
                cached_tokens: cached,
                prefill_seconds: 0.0,
                decode_seconds: 0.0,
            },
            started: Instant::now(),
        };
        let finish = match run.run(&prompt) {
            Err(EngineError::Cancelled) => Ok(Finish::Cancelled),
            other => other,
        };
        run.close();
        let Run { out, sequence, .. } = run;
        self.keep(sequence);
        Ok(Generation {
            finish: finish?,
            ..out
        })
    }

    /// Runs tokens through the model, in steps; gives the logits of the last step's wanted rows.
    pub(crate) fn extend(
        &self,
        sequence: &mut Sequence,
        tokens: &[u32],
        rows: Rows,
        cancel: &Cancel,
        mut each: impl FnMut(usize, &Logits) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let steps = tokens.chunks(STEP_TOKENS);
        let last = steps.len().saturating_sub(1);
        for (index, tokens) in steps.enumerate() {
            if cancel.is_cancelled() {
                return Err(EngineError::Cancelled);
            }
            let rows = if rows == Rows::Last && index < last {
                Rows::None
            } else {
                rows
            };
            let logits = self
                .model()
                .step(tokens, &mut sequence.cache, rows, cancel)?;
            sequence.tokens.extend_from_slice(tokens);
            each(index * STEP_TOKENS, &logits)?;
        }
        Ok(())
    }
}

/// A generation on its way.
struct Run<'a> {
    engine: &'a Engine,
    request: &'a GenerateRequest,
    cancel: &'a Cancel,
    grammar: Option<Grammar>,
    sampler: Sampler,
    sequence: Sequence,
    stream: TextStream,
    on_token: &'a mut dyn FnMut(&TokenEvent<'_>),
    out: Generation,
    started: Instant,
}

impl Run<'_> {
    fn run(&mut self, prompt: &[u32]) -> Result<Finish, EngineError> {
        let rest = prompt[self.sequence.tokens.len()..].to_vec();
        let mut logits = self.advance(&rest)?;
        self.out.prefill_seconds = self.started.elapsed().as_secs_f64();
        loop {
            if let Some(finish) = self.finished() {
                return Ok(finish);
            }
            let allowed = match &mut self.grammar {
                Some(grammar) => Some(grammar.allowed()?),
                None => None,
            };
            let usable = &logits[..self.engine.tokenizer().len().min(logits.len())];
            let Some(id) = self.sampler.choose(usable, allowed.as_ref()) else {
                return Err(EngineError::Internal(
                    "no token has a usable logit".to_owned(),
                ));
            };
            if self.engine.tokenizer().stops().contains(&id) {
                return Ok(Finish::Stop);
            }
            if let Some(grammar) = &mut self.grammar {
                grammar.take(id)?;
            }
            self.emit(id, &logits);
            if let Some(finish) = self.finished() {
                return Ok(finish);
            }
            logits = self.advance(&[id])?;
        }
    }

    /// Runs known tokens and those that the grammar forces after them, and emits the latter.
    /// Gives the logits for the token after all of these.
    fn advance(&mut self, known: &[u32]) -> Result<Vec<f32>, EngineError> {
        let forced = self.forced();
        let mut batch = known.to_vec();
        batch.extend(&forced);
        if !self.request.logprobs || forced.is_empty() {
            let logits = self.logits_after(&batch)?;
            for id in forced {
                self.emit(id, &[]);
            }
            return Ok(logits);
        }
        // The row before each forced token says how likely the token was.
        let mut row = self.logits_after(known)?;
        let mut rows = Vec::new();
        let Self {
            engine,
            sequence,
            cancel,
            ..
        } = self;
        engine.extend(sequence, &forced, Rows::All, cancel, |_, logits| {
            for index in 0..logits.rows() {
                rows.push(logits.row(index)?.to_vec());
            }
            Ok(())
        })?;
        for (id, next) in forced.into_iter().zip(rows) {
            self.emit(id, &row);
            row = next;
        }
        Ok(row)
    }

    fn logits_after(&mut self, tokens: &[u32]) -> Result<Vec<f32>, EngineError> {
        let mut last = Vec::new();
        let Self {
            engine,
            sequence,
            cancel,
            ..
        } = self;
        engine.extend(sequence, tokens, Rows::Last, cancel, |_, logits| {
            if logits.rows() > 0 {
                last = logits.row(0)?.to_vec();
            }
            Ok(())
        })?;
        Ok(last)
    }

    /// Tokens that the grammar leaves no choice about, as far as there is room for them.
    fn forced(&mut self) -> Vec<u32> {
        let room = self.room();
        let Some(grammar) = &mut self.grammar else {
            return Vec::new();
        };
        let mut forced = grammar.take_forced();
        let stops = self.engine.tokenizer().stops();
        if let Some(end) = forced.iter().position(|id| stops.contains(id)) {
            forced.truncate(end);
        }
        forced.truncate(room);
        forced
    }

    /// Tokens that may still be generated.
    fn room(&self) -> usize {
        let wanted = self.request.max_tokens - self.out.ids.len();
        let context = self.engine.info().context - self.out.prompt_tokens - self.out.ids.len();
        wanted.min(context)
    }

    fn finished(&self) -> Option<Finish> {
        if self.cancel.is_cancelled() {
            Some(Finish::Cancelled)
        } else if self.stream.stopped() || self.grammar.as_ref().is_some_and(Grammar::is_finished) {
            Some(Finish::Stop)
        } else if self.room() == 0 {
            Some(Finish::Length)
        } else {
            None
        }
    }

    /// Counts a token as generated; `logits` are those it was chosen from, if its log-probability
    /// is wanted.
    fn emit(&mut self, id: u32, logits: &[f32]) {
        if self.stream.stopped() {
            return;
        }
        let tokenizer = self.engine.tokenizer();
        let bytes = if tokenizer.is_control(id) {
            &[]
        } else {
            tokenizer.bytes(id)
        };
        let text = self.stream.push(bytes);
        let logprob = self
            .request
            .logprobs
            .then(|| self.sampler.logprob(logits, id));
        self.out.ids.push(id);
        self.out.logprobs.extend(logprob);
        self.out.text.push_str(&text);
        (self.on_token)(&TokenEvent {
            token: Some(id),
            text: &text,
            logprob,
        });
    }

    /// Lets go of the text that was held back.
    fn close(&mut self) {
        let text = self.stream.finish();
        if !text.is_empty() {
            self.out.text.push_str(&text);
            (self.on_token)(&TokenEvent {
                token: None,
                text: &text,
                logprob: None,
            });
        }
        let total = self.started.elapsed().as_secs_f64();
        if self.out.prefill_seconds == 0.0 {
            self.out.prefill_seconds = total;
        }
        self.out.decode_seconds = total - self.out.prefill_seconds;
    }
}

impl Engine {
    pub(super) fn begin(&self, prompt: &[u32]) -> Sequence {
        self.prefixes()
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .begin(prompt)
    }

    pub(super) fn keep(&self, sequence: Sequence) {
        self.prefixes()
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .keep(sequence);
    }
}
