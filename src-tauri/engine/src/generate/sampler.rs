use toktrie::SimpleVob;

use super::Sampling;
use super::penalty::{Recent, Text};
use super::rank::{kept, peak, place_of, total};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::kernels::{Isa, softmax_terms};

/// Lanes that the kernels take at once.
const LANES: usize = 16;

/// Weights that are passed over together when one is drawn.
const BLOCK: usize = 256;

/// Chooses the tokens of one text by their logits.
#[derive(Debug)]
pub(crate) struct Sampler {
    sampling: Sampling,
    random: SplitMix64,
    recent: Recent,
    isa: Isa,
}

impl Sampler {
    pub(crate) fn new(sampling: Sampling) -> Self {
        Self {
            random: SplitMix64(sampling.seed),
            recent: Recent::default(),
            isa: Isa::detect(),
            sampling,
        }
    }

    /// Where the generator of random numbers stands.
    pub(crate) fn position(&self) -> u64 {
        self.random.0
    }

    /// Goes on from where another's generator stood.
    pub(crate) fn set_position(&mut self, position: u64) {
        self.random.0 = position;
    }

    /// The token that comes after `text`, among the allowed ones.
    ///
    /// # Errors
    /// [`EngineError::Logits`] where a logit is not a number, or none is finite.
    pub(crate) fn choose(
        &mut self,
        logits: &[f32],
        allowed: Option<&SimpleVob>,
        text: Text<'_>,
    ) -> Result<u32, EngineError> {
        let mut candidates = Candidates::of(logits, allowed)?;
        self.adjust(&mut candidates, text);
        let peak = peak(&candidates.scores);
        let place = if self.sampling.temperature == 0.0 {
            place_of(&candidates.scores, peak)
        } else {
            self.draw(&mut candidates.scores, peak)
        };
        let place = place.ok_or_else(|| unusable("no token is left to choose"))?;
        Ok(candidates.id(place))
    }

    /// Bias and penalties.
    fn adjust(&mut self, candidates: &mut Candidates, text: Text<'_>) {
        for (&id, bias) in &self.sampling.logit_bias {
            if let Some(score) = candidates.score(id) {
                *score += bias;
            }
        }
        if self.sampling.has_penalties() {
            self.recent.follow(text, self.sampling.penalty_window);
            for (id, count) in self.recent.counts() {
                if let Some(score) = candidates.score(id) {
                    *score = count.penalised(*score, &self.sampling);
                }
            }
        }
    }

    /// The place of a score, drawn by its probability.
    fn draw(&mut self, scores: &mut [f32], peak: f32) -> Option<usize> {
        match self.weighted(scores, peak) {
            (weights, None) => self.random.draw(&weights),
            (weights, Some(kept)) => {
                let of = |place: &u32| weights[*place as usize];
                let drawn = self.random.draw(&kept.iter().map(of).collect::<Vec<_>>())?;
                Some(kept[drawn] as usize)
            }
        }
    }

    /// The weight of each score, and the places that are left to choose from, if not all are.
    fn weighted(&self, scores: &mut [f32], peak: f32) -> (Vec<f32>, Option<Vec<u32>>) {
        let steepness = self.sampling.temperature.recip().min(f32::MAX);
        for score in &mut *scores {
            *score = (*score - peak) * steepness;
        }
        let mut weights = scores.to_vec();
        weights.resize(scores.len().next_multiple_of(LANES), 0.0);
        softmax_terms(self.isa, &mut weights, scores.len());
        weights.truncate(scores.len());
        let kept = kept(&self.sampling, scores, &weights);
        (weights, kept)
    }
}

/// The tokens that may come, and their scores, in the order of the tokens.
struct Candidates {
    /// All of the vocabulary where absent.
    ids: Option<Vec<u32>>,
    scores: Vec<f32>,
}

impl Candidates {
    fn of(logits: &[f32], allowed: Option<&SimpleVob>) -> Result<Self, EngineError> {
        let known = |id: &u32| (*id as usize) < logits.len();
        let ids: Option<Vec<u32>> = allowed.map(|set| set.iter().filter(known).collect());
        let scores = match &ids {
            None => logits.to_vec(),
            Some(ids) => ids.iter().map(|&id| logits[id as usize]).collect(),
        };
        let candidates = Self { ids, scores };
        check(&candidates.scores, |place| candidates.id(place))?;
        Ok(candidates)
    }

    fn id(&self, place: usize) -> u32 {
        match &self.ids {
            None => place as u32,
            Some(ids) => ids[place],
        }
    }

    fn score(&mut self, id: u32) -> Option<&mut f32> {
        let place = match &self.ids {
            None => id as usize,
            Some(ids) => ids.binary_search(&id).ok()?,
        };
        self.scores.get_mut(place)
    }
}

/// The logits of the tokens there are; some models have rows beyond these.
pub(super) fn usable<'a>(engine: &Engine, logits: &'a [f32]) -> &'a [f32] {
    &logits[..engine.tokenizer().len().min(logits.len())]
}

/// Whether a row of logits can be chosen by.
pub(super) fn check_usable(logits: &[f32]) -> Result<(), EngineError> {
    check(logits, |place| place as u32)
}

fn check(logits: &[f32], id: impl Fn(usize) -> u32) -> Result<(), EngineError> {
    // Without a branch, so that one instruction looks at several.
    if !logits.is_empty()
        && logits
            .iter()
            .fold(true, |all, logit| all & logit.is_finite())
    {
        return Ok(());
    }
    let is_bad = |logit: &f32| logit.is_nan() || *logit == f32::INFINITY;
    if let Some(place) = logits.iter().position(is_bad) {
        let (id, logit) = (id(place), logits[place]);
        return Err(unusable(format!("the logit of token `{id}` is `{logit}`")));
    }
    if !logits.iter().any(|logit| logit.is_finite()) {
        return Err(unusable("no token that may come has a finite logit"));
    }
    Ok(())
}

pub(super) fn unusable(problem: impl Into<String>) -> EngineError {
    EngineError::Logits(problem.into())
}

/// The seed of one of several answers; the first has that of the request.
pub(super) fn seed_of(seed: u64, answer: usize) -> u64 {
    match answer {
        0 => seed,
        _ => SplitMix64(SplitMix64(seed).next() ^ answer as u64).next(),
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): a full-period generator that any seed is good for.
#[derive(Debug, Clone)]
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Evenly spread over `[0, 1)`.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The place of one of the weights, by these.
    fn draw(&mut self, weights: &[f32]) -> Option<usize> {
        let sums: Vec<f64> = weights.chunks(BLOCK).map(total).collect();
        let mut rest = self.unit() * sums.iter().sum::<f64>();
        let block = first_below(&mut rest, sums.iter().copied())?;
        let first = block * BLOCK;
        let weights = &weights[first..weights.len().min(first + BLOCK)];
        let weights = weights.iter().map(|weight| f64::from(*weight));
        Some(first + first_below(&mut rest, weights)?)
    }
}

/// Where what is left is used up; what was left before that stays. Rounding may leave a sliver:
/// that goes to the last which has a weight.
fn first_below(rest: &mut f64, weights: impl Iterator<Item = f64>) -> Option<usize> {
    let mut last = None;
    for (place, weight) in weights.enumerate().filter(|(_, weight)| *weight > 0.0) {
        last = Some(place);
        if *rest < weight {
            break;
        }
        *rest -= weight;
    }
    last
}

#[cfg(test)]
mod tests;
