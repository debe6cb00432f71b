//! A generation that can stand still between any two tokens, and between two steps of its prompt.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::beam::{Ended, Search, mean};
use super::branch::{Branch, Told, shown};
use super::logprob::Likelihood;
use super::penalty::Text;
use super::sampler::{Sampler, unusable, usable};
use super::{Finish, GenerateRequest, Generation, Sequence, TokenEvent};
use crate::cancel::Cancel;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::kernels::Isa;
use crate::text::TextStream;

/// How far a [`Session`] came.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// It stands still; [`Session::run`] goes on.
    Paused,
    /// It has ended.
    Done(Generation),
}

/// A generation on its way. It owns all of its state, so that it can stand still for any time
/// while others run; going on costs nothing and changes no token.
///
/// It takes what it can from the engine's cache of prefixes when it first runs, and gives what it
/// computed back: the prompt once that is read, the answer at the end.
pub struct Session {
    pub(super) engine: Engine,
    pub(super) request: GenerateRequest,
    pub(super) prompt: Vec<u32>,
    pub(super) sampler: Sampler,
    /// The text, or all texts that a search follows.
    pub(super) branches: Vec<Branch>,
    pub(super) search: Search,
    pub(super) stage: Stage,
    pub(super) out: Generation,
}

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It has not run.
    New,
    /// It reads its prompt.
    Prefill,
    /// It writes.
    Decode,
    /// It cannot be run any more.
    Ended,
}

impl Engine {
    /// A generation that runs piece by piece. Nothing is computed yet.
    ///
    /// # Errors
    /// A request that cannot be met: a prompt beyond the context, a bad constraint, a bad figure.
    pub fn begin(&self, request: GenerateRequest) -> Result<Session, EngineError> {
        request.check(self.info().vocab)?;
        let prompt = self.prompt_tokens(&request.prompt)?;
        let grammar = match &request.constraint {
            Some(constraint) => Some(self.grammars()?.compile(constraint)?),
            None => None,
        };
        let branch = Branch {
            sequence: Sequence::new(self.model().config.kv_shape()),
            pending: Vec::new(),
            forced: 0,
            ahead: None,
            ids: Vec::new(),
            logprobs: Vec::new(),
            top_logprobs: Vec::new(),
            grammar,
            text: TextStream::new(request.stop.clone()),
        };
        Ok(Session {
            engine: self.clone(),
            sampler: Sampler::new(request.sampling.clone()),
            branches: vec![branch],
            search: Search::default(),
            stage: Stage::New,
            out: Generation {
                text: String::new(),
                ids: Vec::new(),
                logprobs: Vec::new(),
                top_logprobs: Vec::new(),
                finish: Finish::Stop,
                prompt_tokens: prompt.len(),
                cached_tokens: 0,
                prefill_seconds: 0.0,
                decode_seconds: 0.0,
            },
            request,
            prompt,
        })
    }
}

impl Session {
    /// Generates until `quantum` more tokens (`None`: to the end), the end, `pause` or `cancel`.
    /// A step of the prompt, up to 128 tokens, counts as one token of the quantum, and so does one
    /// token of each text of a search; both flags are looked at before each. The tokens are the same however the session is paused.
    ///
    /// # Errors
    /// [`EngineError::InvalidRequest`] for a session that has ended, [`EngineError::Constraint`]
    /// where the constraint's limits are reached. It has then ended.
    pub fn run(
        &mut self,
        quantum: Option<u32>,
        pause: &Cancel,
        cancel: &Cancel,
        on_token: &mut dyn FnMut(&TokenEvent<'_>),
    ) -> Result<Progress, EngineError> {
        if self.stage == Stage::Ended {
            return Err(has_ended());
        }
        let mut left = quantum;
        loop {
            if cancel.is_cancelled() {
                return Ok(Progress::Done(self.end(Finish::Cancelled, on_token)));
            }
            if left == Some(0) || pause.is_cancelled() {
                return Ok(Progress::Paused);
            }
            left = left.map(|left| left - 1);
            match self.step(cancel, on_token) {
                Ok(None) => (),
                Ok(Some(finish)) => return Ok(Progress::Done(self.end(finish, on_token))),
                Err(EngineError::Cancelled) => {
                    return Ok(Progress::Done(self.end(Finish::Cancelled, on_token)));
                }
                Err(error) => {
                    self.end(Finish::Cancelled, on_token);
                    return Err(error);
                }
            }
        }
    }

    /// Bytes of memory that it holds. Blocks of the cache that others hold as well are counted.
    pub fn resident_bytes(&self) -> u64 {
        let mut seen = HashSet::new();
        let mut bytes = size_of::<Self>() + self.prompt.capacity() * size_of::<u32>();
        for branch in &self.branches {
            let cache = &branch.sequence.cache;
            let new = |(block, _): &(&Arc<_>, usize)| seen.insert(Arc::as_ptr(block));
            bytes += cache.filled().filter(new).count() * cache.shape().block_bytes();
            let tokens = branch.sequence.tokens.capacity() + branch.ids.capacity();
            bytes += size_of::<Branch>() + tokens * size_of::<u32>();
        }
        bytes as u64
    }

    /// One step of the prompt, or one token; why it ended if it did.
    fn step(
        &mut self,
        cancel: &Cancel,
        on_token: &mut dyn FnMut(&TokenEvent<'_>),
    ) -> Result<Option<Finish>, EngineError> {
        if self.stage == Stage::New {
            self.start();
        }
        let started = Instant::now();
        let (engine, scored) = (&self.engine, self.request.scored());
        let mut told = Told {
            text: &mut self.out.text,
            on_token,
        };
        let mut rows = Vec::new();
        for branch in &mut self.branches {
            rows.extend(branch.feed(engine, scored, cancel, &mut told)?);
        }
        self.clock(started.elapsed());
        if rows.len() < self.branches.len() {
            return Ok(None);
        }
        if self.stage == Stage::Prefill {
            self.stage = Stage::Decode;
            for branch in &self.branches {
                self.engine.keep(branch.sequence.clone());
            }
        }
        let started = Instant::now();
        let finish = if self.request.beams == 1 {
            self.choose(&rows[0], on_token)
        } else {
            self.widen(&rows)
        };
        self.clock(started.elapsed());
        finish
    }

    /// Takes what is known of the prompt.
    fn start(&mut self) {
        let room = self.room();
        for branch in &mut self.branches {
            branch.sequence = self.engine.recall(&self.prompt);
            let known = branch.sequence.tokens.len();
            self.out.cached_tokens = known;
            branch.pending = self.prompt[known..].to_vec();
            if self.request.beams == 1 {
                branch.go_on(&self.engine, None, room);
            }
        }
        self.stage = Stage::Prefill;
    }

    fn clock(&mut self, time: Duration) {
        let seconds = match self.stage {
            Stage::New | Stage::Prefill => &mut self.out.prefill_seconds,
            Stage::Decode | Stage::Ended => &mut self.out.decode_seconds,
        };
        *seconds += time.as_secs_f64();
    }

    /// Goes on by the token that the sampler chooses.
    fn choose(
        &mut self,
        logits: &[f32],
        on_token: &mut dyn FnMut(&TokenEvent<'_>),
    ) -> Result<Option<Finish>, EngineError> {
        if let Some(finish) = self.finished() {
            return Ok(Some(finish));
        }
        let room = self.room();
        let [branch] = &mut self.branches[..] else {
            return Err(EngineError::Internal("no single text".to_owned()));
        };
        let allowed = match &mut branch.grammar {
            Some(grammar) => Some(grammar.allowed()?),
            None => None,
        };
        let text = Text {
            prompt: &self.prompt,
            answer: &branch.ids,
        };
        let usable = usable(&self.engine, logits);
        let id = self.sampler.choose(usable, allowed.as_ref(), text)?;
        if self.engine.tokenizer().stops().contains(&id) {
            return Ok(Some(Finish::Stop));
        }
        if let Some(grammar) = &mut branch.grammar {
            grammar.take(id)?;
        }
        let scored = self.request.scored();
        let likely = scored.map(|top| Likelihood::of(Isa::detect(), logits, id, top));
        let mut told = Told {
            text: &mut self.out.text,
            on_token,
        };
        branch.give_out(&self.engine, id, likely, &mut told);
        if branch.is_finished() || room == 1 {
            return Ok(self.finished());
        }
        branch.go_on(&self.engine, Some(id), room - 1);
        Ok(None)
    }

    /// Goes one token on in a search.
    fn widen(&mut self, rows: &[Vec<f32>]) -> Result<Option<Finish>, EngineError> {
        let width = self.request.beams;
        if self.room() > 0 {
            let branches = std::mem::take(&mut self.branches);
            self.branches = self.search.grow(&self.engine, width, branches, rows)?;
        }
        if self.room() == 0 {
            for branch in self.branches.drain(..) {
                self.search
                    .end(width, branch.ids, branch.logprobs, Finish::Length);
            }
        }
        if !self.search.is_over(width, &self.branches) {
            return Ok(None);
        }
        let best = self.search.ended.first();
        let best = best.ok_or_else(|| unusable("no text is left to go on with"))?;
        Ok(Some(best.finish))
    }

    /// Tokens that may still be generated. All texts of a search are of one length.
    fn room(&self) -> usize {
        let ids = self.branches.first().map_or(0, |branch| branch.ids.len());
        let wanted = self.request.max_tokens - ids;
        let context = self.engine.info().context - self.prompt.len() - ids;
        wanted.min(context)
    }

    fn finished(&self) -> Option<Finish> {
        let stops = self.engine.tokenizer().stops();
        let mut complete = self.branches.iter().filter(|branch| branch.is_finished());
        if complete.any(|branch| !branch.is_cut(stops)) {
            Some(Finish::Stop)
        } else if self.room() == 0 {
            Some(Finish::Length)
        } else {
            None
        }
    }

    /// Ends it, with what there is.
    fn end(&mut self, finish: Finish, on_token: &mut dyn FnMut(&TokenEvent<'_>)) -> Generation {
        self.stage = Stage::Ended;
        self.out.finish = finish;
        if self.request.beams > 1 {
            self.tell_best(on_token);
        } else {
            let mut told = Told {
                text: &mut self.out.text,
                on_token,
            };
            for mut branch in self.branches.drain(..) {
                told.close(&mut branch.text);
                self.out.ids = branch.ids;
                self.out.logprobs = branch.logprobs;
                self.out.top_logprobs = branch.top_logprobs;
                self.engine.keep(branch.sequence);
            }
        }
        self.branches.clear();
        self.out.clone()
    }

    /// Tells the best text that a search found.
    fn tell_best(&mut self, on_token: &mut dyn FnMut(&TokenEvent<'_>)) {
        let ended = self.search.ended.drain(..);
        let begun = self.branches.drain(..).map(|branch| Ended {
            ids: branch.ids,
            logprobs: branch.logprobs,
            finish: self.out.finish,
        });
        // The first of equals: what has ended comes before what was cut off.
        let best = ended.chain(begun).reduce(|best, next| {
            let better = mean(&next.logprobs) > mean(&best.logprobs);
            if better { next } else { best }
        });
        let Some(best) = best else { return };
        let mut stream = TextStream::new(self.request.stop.clone());
        let mut told = Told {
            text: &mut self.out.text,
            on_token,
        };
        for (&id, &likely) in best.ids.iter().zip(&best.logprobs) {
            let text = stream.push(shown(&self.engine, id));
            told.tell(&TokenEvent {
                token: Some(id),
                text: &text,
                logprob: self.request.logprobs.then_some(likely),
                top_logprobs: &[],
            });
        }
        told.close(&mut stream);
        if self.request.logprobs {
            self.out.logprobs = best.logprobs;
            self.out.logprobs.truncate(best.ids.len());
        }
        self.out.ids = best.ids;
    }
}

pub(super) fn has_ended() -> EngineError {
    EngineError::InvalidRequest("the generation has ended; begin another".to_owned())
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("request", &self.request)
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}
