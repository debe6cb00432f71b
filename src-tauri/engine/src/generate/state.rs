//! The state of a generation, and how it goes from token to token.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use super::batch::WRITES;
use super::beam::{Ended, Search, mean};
use super::branch::{Branch, Told, shown};
use super::logprob::Likelihood;
use super::pace::Took;
use super::penalty::Text;
use super::sampler::{Sampler, unusable, usable};
use super::speculate::Speculator;
use super::{Finish, GenerateRequest, Generation, TokenEvent};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::kernels::Isa;
use crate::kv::POSITIONS;
use crate::model::{Run, RunLogits};
use crate::text::TextStream;

pub(super) struct State {
    pub(super) engine: Engine,
    pub(super) request: GenerateRequest,
    pub(super) prompt: Vec<u32>,
    pub(super) sampler: Sampler,
    /// The text, or all texts that a search follows.
    pub(super) branches: Vec<Branch>,
    /// The logits for what follows each text, once nothing of it is pending; of a search only.
    rows: Vec<Option<Vec<f32>>>,
    pub(super) search: Search,
    pub(super) stage: Stage,
    pub(super) out: Generation,
    /// Tokens that the next run of each text takes at most.
    most: usize,
    /// What may come, of a text without a constraint that is not searched for.
    speculator: Option<Speculator>,
    resident: u64,
}

/// How far a generation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It has not run.
    New,
    /// It reads its prompt.
    Prefill,
    /// It writes.
    Decode,
}

impl State {
    pub(super) fn new(
        engine: Engine,
        request: GenerateRequest,
        prompt: Vec<u32>,
        first: Branch,
    ) -> Self {
        Self {
            engine,
            sampler: Sampler::new(request.sampling.clone()),
            branches: vec![first],
            rows: Vec::new(),
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
                guessed: 0,
                prefill_seconds: 0.0,
                decode_seconds: 0.0,
            },
            request,
            prompt,
            most: 0,
            speculator: None,
            resident: 0,
        }
    }

    /// Tokens that have to be run before the next can be chosen.
    pub(super) fn pending(&self) -> usize {
        self.branches
            .iter()
            .map(|branch| branch.pending.len())
            .sum()
    }

    /// Tokens that were written, of each text.
    pub(super) fn written(&self) -> usize {
        self.branches.first().map_or(0, |branch| branch.ids.len())
    }

    /// Pages that it may come to hold in all.
    pub(super) fn pages(&self) -> usize {
        let tokens = self.prompt.len() + self.written() + self.room();
        tokens.div_ceil(POSITIONS) * self.request.beams
    }

    /// Pages that it holds.
    pub(super) fn held(&self) -> usize {
        self.branches
            .iter()
            .map(|branch| branch.sequence.cache.held())
            .sum()
    }

    /// Bytes of memory that it needs so as to go on at once. Pages that its texts share are counted
    /// once, those that it shares with others as well.
    pub(super) fn resident_bytes(&self) -> u64 {
        if self.held() == 0 {
            return self.resident;
        }
        let mut seen = HashSet::new();
        let mut bytes = size_of::<Self>() + self.prompt.capacity() * size_of::<u32>();
        for branch in &self.branches {
            let cache = &branch.sequence.cache;
            let new = |(page, _): &(&Arc<_>, usize)| seen.insert(Arc::as_ptr(page));
            bytes += cache.filled().filter(new).count() * cache.shape().page_bytes();
            let tokens = branch.sequence.tokens.capacity() + branch.ids.capacity();
            bytes += size_of::<Branch>() + tokens * size_of::<u32>();
        }
        bytes as u64
    }

    /// Takes what is known of its texts.
    pub(super) fn start(&mut self) {
        if self.stage != Stage::New {
            let only = self.request.beams == 1;
            for branch in &mut self.branches {
                branch.take_up(&self.engine, only);
            }
            return;
        }
        let room = self.room();
        let beams = self.request.beams;
        for branch in &mut self.branches {
            branch.sequence = self.engine.recall(&self.prompt);
            let known = branch.sequence.tokens.len();
            self.out.cached_tokens = known;
            branch.pending = self.prompt[known..].to_vec();
            if beams == 1 {
                branch.go_on(&self.engine, None, room);
            }
        }
        self.stage = Stage::Prefill;
    }

    /// Leaves its keys and values where they may make room for others.
    pub(super) fn put_down(&mut self) {
        self.resident = self.resident_bytes();
        for branch in &mut self.branches {
            branch.forget_guesses();
            branch.put_down(&self.engine);
        }
    }

    /// The next run of each text that has something pending.
    pub(super) fn runs(&mut self, most: usize) -> Vec<Run<'_>> {
        self.most = most;
        self.rows.resize_with(self.branches.len(), || None);
        let scored = self.request.scored();
        let behind = self
            .branches
            .iter_mut()
            .filter(|branch| !branch.pending.is_empty());
        behind.map(|branch| branch.run(scored, most)).collect()
    }

    /// Takes what the runs gave; why it ended if it did. `quantum` tokens are left of its turn,
    /// those that it writes now included.
    pub(super) fn fed(
        &mut self,
        given: &[Result<RunLogits<'_>, EngineError>],
        took: Took<'_>,
        quantum: Option<u32>,
        on_token: &mut dyn FnMut(&TokenEvent<'_>),
    ) -> Result<Option<Finish>, EngineError> {
        let begun = Instant::now();
        let (stage, before) = (self.stage, self.written());
        let finish = self.take(given, on_token);
        if matches!(finish, Ok(None)) && self.stage == Stage::Decode {
            let written = self.written() - before;
            let left = quantum
                .map_or(usize::MAX, |left| left as usize)
                .saturating_sub(written);
            self.guess(left, took);
        }
        let seconds = took.seconds + begun.elapsed().as_secs_f64();
        match stage {
            Stage::New | Stage::Prefill => self.out.prefill_seconds += seconds,
            Stage::Decode => self.out.decode_seconds += seconds,
        }
        finish
    }

    fn take(
        &mut self,
        given: &[Result<RunLogits<'_>, EngineError>],
        on_token: &mut dyn FnMut(&TokenEvent<'_>),
    ) -> Result<Option<Finish>, EngineError> {
        let (engine, how) = (&self.engine, (self.request.scored(), self.most));
        let mut told = Told {
            text: &mut self.out.text,
            on_token,
        };
        if let ([branch], [Ok(given)]) = (&self.branches[..], given)
            && branch.guessed > 0
        {
            return self.verify(*given, on_token);
        }
        let mut given = given.iter();
        let mut row = None;
        for (branch, kept) in self.branches.iter_mut().zip(&mut self.rows) {
            if branch.pending.is_empty() {
                continue;
            }
            let Some(given) = given.next() else { break };
            let given = given.as_ref().map_err(EngineError::again)?;
            row = branch.fed(engine, how, *given, &mut told)?;
            if self.request.beams > 1 {
                *kept = row.map(<[f32]>::to_vec);
            }
        }
        if self
            .branches
            .iter()
            .any(|branch| !branch.pending.is_empty())
        {
            return Ok(None);
        }
        if self.stage == Stage::Prefill {
            self.stage = Stage::Decode;
            for branch in &self.branches {
                self.engine.prefixes().keep_pages(&branch.sequence);
            }
        }
        if self.request.beams > 1 {
            let rows: Vec<_> = self.rows.drain(..).flatten().collect();
            return self.widen(&rows);
        }
        self.choose(row.unwrap_or_default(), on_token)
    }

    /// Takes what a run gave of which the last tokens were guesses: as many as are what is chosen
    /// anyway.
    fn verify(
        &mut self,
        given: RunLogits<'_>,
        on_token: &mut dyn FnMut(&TokenEvent<'_>),
    ) -> Result<Option<Finish>, EngineError> {
        let Some(branch) = self.branches.first_mut() else {
            return Ok(None);
        };
        let mut run = std::mem::take(&mut branch.pending);
        let guesses = run.split_off(run.len() - std::mem::take(&mut branch.guessed));
        let mut certain = branch.sequence.tokens.len() + run.len();
        branch.sequence.tokens.extend(run.iter().chain(&guesses));
        let mut finish = None;
        let mut guesses = guesses.into_iter();
        for row in given.rows() {
            finish = self.choose(row, on_token)?;
            let Some(branch) = self.branches.first_mut() else {
                break;
            };
            let right = guesses
                .next()
                .is_some_and(|guess| branch.pending == [guess]);
            if finish.is_some() || !right {
                break;
            }
            certain += 1;
            self.out.guessed += 1;
            branch.pending.clear();
        }
        if let Some(branch) = self.branches.first_mut() {
            branch.sequence.truncate(certain);
        }
        Ok(finish)
    }

    /// Puts guesses after what is pending, where they pay; with it at most `left` tokens may come.
    fn guess(&mut self, left: usize, took: Took<'_>) {
        let room = self.room();
        let [branch] = &mut self.branches[..] else {
            return;
        };
        if !self.request.speculate
            || self.request.beams > 1
            || branch.grammar.is_some()
            || branch.pending.len() != 1
        {
            return;
        }
        let speculator = self.speculator.get_or_insert_with(|| {
            let mut speculator = Speculator::default();
            self.engine.earlier(|answer| speculator.learn(answer));
            let written = branch.ids.len() - 1;
            let known = self.prompt.iter().chain(&branch.ids[..written]);
            known.for_each(|&id| speculator.push(id));
            speculator
        });
        let seen = speculator.seen() - self.prompt.len();
        branch.ids[seen..]
            .iter()
            .for_each(|&id| speculator.push(id));
        let most = left.min(room).min(WRITES).saturating_sub(1);
        let guesses = speculator.guess(most, took.columns, |rows| took.pace.cost(rows));
        branch.guessed = guesses.len();
        branch.pending.extend(guesses);
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
        let id = self.sampler.choose(usable, allowed, text)?;
        if !self.request.ignore_eos && self.engine.tokenizer().stops().contains(&id) {
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
    pub(super) fn end(
        &mut self,
        finish: Finish,
        on_token: &mut dyn FnMut(&TokenEvent<'_>),
    ) -> Generation {
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
                self.engine.remember(&branch.ids);
                self.out.ids = branch.ids;
                self.out.logprobs = branch.logprobs;
                self.out.top_logprobs = branch.top_logprobs;
                self.engine.prefixes().keep(&branch.sequence);
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
