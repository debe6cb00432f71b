use std::sync::mpsc::{Sender, channel};

use super::batch::{Leave, Work};
use super::logprob::logprob;
use super::pace::Took;
use super::{Prompt, Score, Sequence};
use crate::cancel::Cancel;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::kernels::Isa;
use crate::kv::POSITIONS;
use crate::model::{Rows, Run, RunLogits};

impl Engine {
    /// How likely each of `choices` is to follow the prompt. The prompt is computed once.
    ///
    /// A choice is tokenised by itself, as the model would write it from there on. Longer choices
    /// are less likely by nature: compare choices of unlike length by `logprob / tokens`.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`] after a cancel; otherwise as for [`Engine::generate`].
    pub fn score(
        &self,
        prompt: &Prompt,
        choices: &[String],
        cancel: &Cancel,
    ) -> Result<Vec<Score>, EngineError> {
        let prompt = self.prompt_tokens(prompt)?;
        let choices = choices
            .iter()
            .map(|choice| self.encode(choice, false))
            .collect::<Result<Vec<_>, _>>()?;
        let longest = prompt.len() + choices.iter().map(Vec::len).max().unwrap_or(0);
        if longest > self.info().context {
            let context = self.info().context;
            return Err(EngineError::ContextOverflow {
                prompt: longest,
                context,
            });
        }
        let (told, heard) = channel();
        let scoring = Scoring {
            engine: self.clone(),
            sequence: Sequence::new(self.pages()),
            choices: choices.into_iter().map(Choice::new).collect(),
            pending: prompt,
            most: 0,
            cancel: cancel.clone(),
            failed: None,
            told,
        };
        self.check_pages(scoring.growth())?;
        self.batch().submit(Box::new(scoring))?;
        heard.recv().unwrap_or_else(|_| {
            let problem = "the thread that computes has given the scoring up";
            Err(EngineError::Internal(problem.to_owned()))
        })
    }
}

/// A continuation on its way.
struct Choice {
    ids: Vec<u32>,
    /// From the end of the prompt on, once that is read.
    sequence: Option<Sequence>,
    /// Tokens of it that were run.
    run: usize,
    total: f64,
}

impl Choice {
    fn new(ids: Vec<u32>) -> Self {
        Self {
            ids,
            sequence: None,
            run: 0,
            total: 0.0,
        }
    }

    /// Tokens still to be run: of the last one nothing but its likelihood is wanted.
    fn pending(&self) -> &[u32] {
        let known = self.ids.len().saturating_sub(1);
        &self.ids[self.run..known.max(self.run)]
    }
}

/// The choices after a prompt, in the batch.
struct Scoring {
    engine: Engine,
    /// What was read of the prompt, and what was not.
    sequence: Sequence,
    pending: Vec<u32>,
    choices: Vec<Choice>,
    /// Tokens that the last run took at most.
    most: usize,
    cancel: Cancel,
    failed: Option<EngineError>,
    told: Sender<Result<Vec<Score>, EngineError>>,
}

impl Scoring {
    /// Takes what a run gave; whether all is done.
    fn take(&mut self, given: &[Result<RunLogits<'_>, EngineError>]) -> Result<bool, EngineError> {
        let isa = Isa::detect();
        let mut given = given
            .iter()
            .map(|given| given.as_ref().map_err(EngineError::again));
        if !self.pending.is_empty() {
            let count = self.pending.len().min(self.most);
            self.sequence.tokens.extend(self.pending.drain(..count));
            let (Some(given), true) = (given.next(), self.pending.is_empty()) else {
                return Ok(false);
            };
            let row = given?.row(0)?;
            self.engine.prefixes().keep(&self.sequence);
            for choice in &mut self.choices {
                let first = choice.ids.first();
                choice.total = first.map_or(0.0, |&id| f64::from(logprob(isa, row, id)));
                choice.sequence = Some(self.sequence.clone());
            }
        } else {
            let most = self.most;
            for choice in chosen(&mut self.choices, most) {
                let count = choice.pending().len().min(most);
                let Some(given) = given.next() else { break };
                let next = choice.run + 1;
                for (row, &id) in given?.rows().zip(&choice.ids[next..]) {
                    choice.total += f64::from(logprob(isa, row, id));
                }
                choice.run += count;
                if choice.pending().is_empty() {
                    choice.sequence = None;
                }
            }
        }
        Ok(self
            .choices
            .iter()
            .all(|choice| choice.pending().is_empty()))
    }
}

/// The choices that a step of at most `most` tokens takes: the first unfinished ones that fit, and
/// one at least.
fn chosen(choices: &mut [Choice], most: usize) -> impl Iterator<Item = &mut Choice> {
    let mut left = most;
    let mut first = true;
    choices
        .iter_mut()
        .filter(|choice| !choice.pending().is_empty())
        .take_while(move |choice| {
            let count = choice.pending().len();
            let fits = count <= left || first;
            left = left.saturating_sub(count);
            first = false;
            fits
        })
}

impl Work for Scoring {
    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    fn stands_still(&self) -> bool {
        false
    }

    fn pending(&self) -> usize {
        let choices = self.choices.iter().map(|choice| choice.pending().len());
        self.pending.len() + choices.sum::<usize>()
    }

    fn reads(&self) -> Option<&[u32]> {
        None
    }

    fn begins_with(&self) -> &[u32] {
        &self.pending
    }

    fn growth(&self) -> usize {
        let prompt = self.sequence.tokens.len() + self.pending.len();
        let choices = self
            .choices
            .iter()
            .map(|choice| choice.ids.len().div_ceil(POSITIONS) + 1);
        let pages = prompt.div_ceil(POSITIONS) + choices.sum::<usize>();
        pages.saturating_sub(self.sequence.cache.held())
    }

    fn start(&mut self) {
        self.sequence = self.engine.recall(&self.pending);
        self.pending.drain(..self.sequence.tokens.len());
    }

    fn runs(&mut self, most: usize) -> Vec<Run<'_>> {
        self.most = most;
        if !self.pending.is_empty() {
            let count = self.pending.len().min(most);
            let rows = if count == self.pending.len() {
                Rows::Last
            } else {
                Rows::None
            };
            return vec![Run {
                tokens: &self.pending[..count],
                cache: &mut self.sequence.cache,
                rows,
                among: None,
            }];
        }
        let runs = chosen(&mut self.choices, most).filter_map(|choice| {
            let count = choice.pending().len().min(most);
            Some(Run {
                tokens: &choice.ids[choice.run..choice.run + count],
                cache: &mut choice.sequence.as_mut()?.cache,
                rows: Rows::All,
                among: None,
            })
        });
        runs.collect()
    }

    fn fed(&mut self, given: &[Result<RunLogits<'_>, EngineError>], _: Took<'_>) -> bool {
        self.take(given).unwrap_or_else(|error| {
            self.failed = Some(error);
            true
        })
    }

    fn leave(self: Box<Self>, why: Leave) {
        let outcome = match (why, self.failed) {
            (Leave::Failed(error), _) | (Leave::Done, Some(error)) => Err(error),
            (Leave::Cancelled | Leave::Paused, _) => Err(EngineError::Cancelled),
            (Leave::Done, None) => Ok(self
                .choices
                .iter()
                .map(|choice| Score {
                    logprob: choice.total,
                    tokens: choice.ids.len(),
                })
                .collect()),
        };
        // Whoever asked may have gone.
        let _ = self.told.send(outcome);
    }
}
