//! Beam search: the likeliest text, by keeping the most likely beginnings.
//!
//! A beginning's score is the sum of its tokens' log-probabilities under the model as it is. Ended
//! texts are of unlike lengths and are compared by the mean per token, the token that ended them
//! counted. The search is over when as many texts have ended as it is wide and no beginning's mean
//! is above theirs; a beginning that would rise later is given up for that.

use toktrie::SimpleVob;

use super::Finish;
use super::branch::{Branch, Told};
use super::logprob::{Likelihood, Normaliser};
use super::sampler::{check_usable, usable};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::kernels::Isa;

/// A text that was taken to its end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ended {
    pub(super) ids: Vec<u32>,
    /// One for each token, and one for the token that ended the text, if one did.
    pub(super) logprobs: Vec<f32>,
    pub(super) finish: Finish,
}

/// A beginning and a token after it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Way {
    from: usize,
    id: u32,
    logprob: f32,
    total: f64,
}

/// The ended texts of a search.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// The best first, at most as many as the search is wide.
    pub(super) ended: Vec<Ended>,
}

impl Search {
    /// Goes one token on from each branch to the best ways of all, given the logits of each.
    pub(super) fn grow(
        &mut self,
        engine: &Engine,
        width: usize,
        mut branches: Vec<Branch>,
        logits: &[Vec<f32>],
    ) -> Result<Vec<Branch>, EngineError> {
        let stops = engine.tokenizer().stops();
        let mut ways = Vec::new();
        for (from, (branch, logits)) in branches.iter_mut().zip(logits).enumerate() {
            let allowed = match &mut branch.grammar {
                Some(grammar) => Some(grammar.allowed()?),
                None => None,
            };
            let usable = usable(engine, logits);
            check_usable(usable)?;
            // Enough that the beginnings can all come from one, whichever of its tokens are stops.
            let count = width + stops.len();
            ways.extend(ways_on(
                from,
                total(&branch.logprobs),
                usable,
                allowed,
                count,
            ));
        }
        ways.sort_by(|a, b| {
            b.total
                .total_cmp(&a.total)
                .then(a.from.cmp(&b.from))
                .then(a.id.cmp(&b.id))
        });
        let mut grown: Vec<(usize, Branch)> = Vec::new();
        for (rank, way) in ways.iter().enumerate() {
            if grown.len() == width {
                break;
            }
            let parent = &branches[way.from];
            if stops.contains(&way.id) {
                // One that is likelier than the beginnings that go on.
                if rank < width {
                    let logprobs = [&parent.logprobs[..], &[way.logprob]].concat();
                    self.end(width, parent.ids.clone(), logprobs, Finish::Stop);
                }
                continue;
            }
            let child = parent.child(engine, way)?;
            if child.is_finished() {
                self.end(width, child.ids, child.logprobs, Finish::Stop);
            } else {
                grown.push((way.from, child));
            }
        }
        Ok(with_sequences(grown, branches))
    }

    /// Takes up an ended text among the best.
    pub(super) fn end(&mut self, width: usize, ids: Vec<u32>, logprobs: Vec<f32>, finish: Finish) {
        let ended = Ended {
            ids,
            logprobs,
            finish,
        };
        let rank = mean(&ended.logprobs);
        let at = self
            .ended
            .partition_point(|other| mean(&other.logprobs) >= rank);
        self.ended.insert(at, ended);
        self.ended.truncate(width);
    }

    /// Whether no branch is worth following any further.
    pub(super) fn is_over(&self, width: usize, branches: &[Branch]) -> bool {
        let best = branches.iter().map(|branch| mean(&branch.logprobs));
        let best = best.fold(f64::NEG_INFINITY, f64::max);
        let full = self.ended.len() >= width;
        branches.is_empty()
            || full
                && self
                    .ended
                    .last()
                    .is_some_and(|worst| mean(&worst.logprobs) >= best)
    }
}

impl Branch {
    /// The branch one token on, but for its keys and values.
    fn child(&self, engine: &Engine, way: &Way) -> Result<Self, EngineError> {
        let mut child = Self {
            sequence: self.sequence.empty(),
            pending: vec![way.id],
            forced: 0,
            guessed: 0,
            ahead: None,
            ids: self.ids.clone(),
            logprobs: self.logprobs.clone(),
            top_logprobs: Vec::new(),
            grammar: self.grammar.clone(),
            text: self.text.clone(),
        };
        if let Some(grammar) = &mut child.grammar {
            grammar.take(way.id)?;
        }
        // Nothing is told before the search is over.
        let mut told = Told {
            text: &mut String::new(),
            on_token: &mut |_| (),
        };
        let likelihood = Likelihood {
            logprob: way.logprob,
            top: Vec::new(),
        };
        child.give_out(engine, way.id, Some(likelihood), &mut told);
        Ok(child)
    }
}

/// Gives each branch its parent's keys and values; the last child of a parent takes them over, so
/// that nothing is copied where a parent has one child.
fn with_sequences(grown: Vec<(usize, Branch)>, mut parents: Vec<Branch>) -> Vec<Branch> {
    let froms: Vec<usize> = grown.iter().map(|(from, _)| *from).collect();
    let children = grown.into_iter().enumerate();
    children
        .map(|(index, (from, mut child))| {
            let sequence = &mut parents[from].sequence;
            child.sequence = if froms[index + 1..].contains(&from) {
                sequence.clone()
            } else {
                let empty = sequence.empty();
                std::mem::replace(sequence, empty)
            };
            child
        })
        .collect()
}

/// The `count` likeliest tokens after a beginning of the given score.
fn ways_on(
    from: usize,
    score: f64,
    logits: &[f32],
    allowed: Option<&SimpleVob>,
    count: usize,
) -> Vec<Way> {
    let mut ids: Vec<u32> = match allowed {
        None => (0..logits.len() as u32).collect(),
        Some(set) => set
            .iter()
            .filter(|&id| (id as usize) < logits.len())
            .collect(),
    };
    ids.retain(|&id| logits[id as usize].is_finite());
    let by_logit = |a: &u32, b: &u32| {
        let order = logits[*b as usize].total_cmp(&logits[*a as usize]);
        order.then(a.cmp(b))
    };
    if count < ids.len() {
        ids.select_nth_unstable_by(count, by_logit);
        ids.truncate(count);
    }
    let normaliser = Normaliser::of(Isa::detect(), logits);
    ids.into_iter()
        .map(|id| {
            let logprob = normaliser.logprob(logits[id as usize]);
            Way {
                from,
                id,
                logprob,
                total: score + f64::from(logprob),
            }
        })
        .collect()
}

fn total(logprobs: &[f32]) -> f64 {
    logprobs.iter().copied().map(f64::from).sum()
}

/// Mean log-probability per token; that of no token is 0.
pub(super) fn mean(logprobs: &[f32]) -> f64 {
    total(logprobs) / logprobs.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn the_likeliest_ways_are_found() {
        let logits = [0.5f32, 2.0, f32::NAN, 1.0, 2.0, -3.0];
        let ids = |allowed: Option<&SimpleVob>, count| {
            let mut ways = ways_on(1, -1.0, &logits, allowed, count);
            ways.sort_by(|a, b| b.total.total_cmp(&a.total).then(a.id.cmp(&b.id)));
            assert!(
                ways.iter()
                    .all(|way| way.from == 1 && way.total == -1.0 + f64::from(way.logprob))
            );
            ways.iter().map(|way| way.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(None, 3), [1, 4, 3]);
        assert_eq!(ids(None, 1), [1]);
        assert_eq!(ids(None, 99), [1, 4, 3, 0, 5]);
        let mut allowed = SimpleVob::alloc(6);
        for id in [0, 2, 5] {
            allowed.allow_token(id);
        }
        assert_eq!(ids(Some(&allowed), 3), [0, 5]);
    }

    #[test]
    fn ended_texts_go_by_their_mean() {
        let mut search = Search::default();
        for (id, logprobs) in [
            (1, &[-3.0][..]),
            (2, &[-1.0, -2.0]),
            (3, &[-2.0, -4.0]),
            (4, &[-1.5]),
        ] {
            search.end(3, vec![id], logprobs.to_vec(), Finish::Stop);
        }
        let order: Vec<u32> = search.ended.iter().map(|ended| ended.ids[0]).collect();
        assert_eq!(order, [2, 4, 1], "the earlier of equals first");
        assert!(search.is_over(3, &[]) && search.is_over(4, &[]));
    }
}
