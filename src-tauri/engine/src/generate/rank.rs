//! Which tokens are chosen from: top-k, top-p, min-p and typical, over scores in the order of
//! their tokens.
//!
//! Sums run in f64 and in a fixed order, and equal scores go by their place, so that every machine
//! keeps the same tokens in the same order.

use super::Sampling;

/// Candidates looked at first where their number is not known: few are needed as a rule.
const FIRST: usize = 64;

/// Scores compared at once with what has been found.
const CHUNK: usize = 16;

/// The places of the candidates that are kept, in the order to draw from; `None` for all as they
/// stand. `weights` are `exp(score - highest score)`.
pub(super) fn kept(sampling: &Sampling, scores: &[f32], weights: &[f32]) -> Option<Vec<u32>> {
    let count = match sampling.top_k as usize {
        0 => scores.len(),
        count => count.min(scores.len()),
    };
    let mut kept = if count < scores.len() {
        let mut kept = highest(scores, count);
        if sampling.top_p < 1.0 {
            let goal = sum(&kept, weights) * f64::from(sampling.top_p);
            kept.truncate(reaching(&kept, weights, goal).unwrap_or(kept.len()));
        }
        kept
    } else if sampling.top_p < 1.0 {
        let goal = total(weights) * f64::from(sampling.top_p);
        fewest(scores, weights, goal)
    } else if sampling.min_p > 0.0 || sampling.typical_p < 1.0 {
        at_least(weights, sampling.min_p)
    } else {
        return None;
    };
    // The likeliest is always among them, and its weight is 1.
    kept.retain(|&place| weights[place as usize] >= sampling.min_p);
    if sampling.typical_p < 1.0 {
        kept = typical(&kept, scores, weights, f64::from(sampling.typical_p));
    }
    Some(kept)
}

/// The places of the `count` highest scores, the highest first, equal ones by their place.
pub(super) fn highest(scores: &[f32], count: usize) -> Vec<u32> {
    let order = |a: &u32, b: &u32| {
        let scores = scores[*b as usize].total_cmp(&scores[*a as usize]);
        scores.then(a.cmp(b))
    };
    let mut found: Vec<u32> = Vec::with_capacity(2 * count.min(scores.len()) + CHUNK);
    let mut least = f32::NEG_INFINITY;
    let shrink = |found: &mut Vec<u32>| {
        if count < found.len() {
            found.select_nth_unstable_by(count, order);
            found.truncate(count);
        }
    };
    for (index, chunk) in scores.chunks(CHUNK).enumerate() {
        // Later ones of an equal score are not among the highest, once there are enough.
        let is_full = found.len() >= count;
        if is_full && !any(chunk, |score| score > least) {
            continue;
        }
        let places = ((index * CHUNK) as u32..).zip(chunk);
        let worth = places.filter(|(_, score)| !is_full || **score > least);
        found.extend(worth.map(|(place, _)| place));
        if found.len() >= 2 * count {
            shrink(&mut found);
            let last = found.iter().max_by(|a, b| order(a, b));
            least = last.map_or(f32::NEG_INFINITY, |&place| scores[place as usize]);
        }
    }
    shrink(&mut found);
    found.sort_unstable_by(order);
    found
}

/// The fewest of the highest whose weights reach the goal.
fn fewest(scores: &[f32], weights: &[f32], goal: f64) -> Vec<u32> {
    let mut count = FIRST;
    loop {
        let mut found = highest(scores, count);
        match reaching(&found, weights, goal) {
            Some(len) => found.truncate(len),
            None if found.len() < scores.len() => {
                count *= 8;
                continue;
            }
            None => (),
        }
        return found;
    }
}

/// How many of these reach the goal with their weights.
fn reaching(places: &[u32], weights: &[f32], goal: f64) -> Option<usize> {
    let mut reached = 0.0;
    let at = places.iter().position(|&place| {
        reached += f64::from(weights[place as usize]);
        reached >= goal
    })?;
    Some(at + 1)
}

/// Of these, the fewest whose information is closest to the expected one and that have this share
/// of the probability. The information of a token is a constant less its score: the distance is
/// that of its score to the expected score.
fn typical(places: &[u32], scores: &[f32], weights: &[f32], share: f64) -> Vec<u32> {
    // What has no weight cannot be drawn, and may have no finite score.
    let with_weight = |place: &u32| weights[*place as usize] > 0.0;
    let places: Vec<u32> = places.iter().copied().filter(with_weight).collect();
    let of = |values: &[f32]| -> Vec<f32> {
        places.iter().map(|&place| values[place as usize]).collect()
    };
    let (scores, weights) = (of(scores), of(weights));
    let all = total(&weights);
    let pairs = scores.iter().zip(&weights);
    let expected = pairs
        .map(|(score, weight)| f64::from(*score) * f64::from(*weight))
        .sum::<f64>()
        / all;
    let near: Vec<f32> = scores
        .iter()
        .map(|score| -(f64::from(*score) - expected).abs() as f32)
        .collect();
    fewest(&near, &weights, share * all)
        .into_iter()
        .map(|index| places[index as usize])
        .collect()
}

fn sum(places: &[u32], weights: &[f32]) -> f64 {
    places
        .iter()
        .map(|&place| f64::from(weights[place as usize]))
        .sum()
}

/// The sum of all weights: weight `i` goes to partial sum `i % 8`, and these are added in order.
pub(super) fn total(weights: &[f32]) -> f64 {
    let mut sums = [0.0; 8];
    for chunk in weights.chunks(sums.len()) {
        for (sum, weight) in sums.iter_mut().zip(chunk) {
            *sum += f64::from(*weight);
        }
    }
    sums.iter().sum()
}

/// The highest of some values, of which none is NaN.
pub(super) fn peak(values: &[f32]) -> f32 {
    let mut peaks = [f32::NEG_INFINITY; CHUNK];
    for chunk in values.chunks(CHUNK) {
        for (peak, value) in peaks.iter_mut().zip(chunk) {
            *peak = if *value > *peak { *value } else { *peak };
        }
    }
    peaks.into_iter().fold(f32::NEG_INFINITY, f32::max)
}

/// The first place that has this value.
pub(super) fn place_of(values: &[f32], wanted: f32) -> Option<usize> {
    let has = |chunk| any(chunk, |value| value == wanted);
    let first = values.chunks(CHUNK).position(has)? * CHUNK;
    let within = values[first..].iter().position(|value| *value == wanted)?;
    Some(first + within)
}

/// The places of at least this weight.
fn at_least(weights: &[f32], least: f32) -> Vec<u32> {
    let mut found = Vec::new();
    for (index, chunk) in weights.chunks(CHUNK).enumerate() {
        if any(chunk, |weight| weight >= least) {
            let places = ((index * CHUNK) as u32..).zip(chunk);
            let kept = places.filter(|(_, weight)| **weight >= least);
            found.extend(kept.map(|(place, _)| place));
        }
    }
    found
}

/// Whether one of a few values is so. Without a branch, so that one instruction looks at several.
fn any(chunk: &[f32], is_so: impl Fn(f32) -> bool) -> bool {
    chunk.iter().fold(false, |any, value| any | is_so(*value))
}
