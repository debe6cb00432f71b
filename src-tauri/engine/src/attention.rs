//! Grouped-query attention over the KV cache.
//!
//! Positions are taken in segments of fixed size; a segment gives an unnormalised sum with its
//! maximum, and segments are merged in order (the split of "flash decoding", Dao et al. 2023).
//! The result of a query is the same however queries and segments are shared out.

use std::ops::Range;

use crate::kernels::{Cell, Isa, page_scores, page_sums, softmax_terms, times_each};
use crate::kv::{KvCache, KvFormat, POSITIONS, Side};

/// Pages of a segment.
const PAGES: usize = 8;

/// Positions of a segment.
pub(crate) const SEGMENT: usize = PAGES * POSITIONS;

/// Queries that go through a kernel together.
const BATCH: usize = 6;

/// Attention over one segment or several merged ones, for one query.
#[derive(Debug, Clone)]
pub(crate) struct Partial {
    peak: f32,
    sum: f32,
    values: Vec<f32>,
}

impl Partial {
    pub(crate) fn new(head_len: usize) -> Self {
        Self {
            peak: f32::NEG_INFINITY,
            sum: 0.0,
            values: vec![0.0; head_len],
        }
    }

    pub(crate) fn clear(&mut self) {
        self.peak = f32::NEG_INFINITY;
        self.sum = 0.0;
        self.values.fill(0.0);
    }

    /// Takes up the partial of the next segment.
    pub(crate) fn merge(&mut self, next: &Self) {
        if next.sum == 0.0 {
            return;
        }
        if self.sum == 0.0 {
            self.peak = next.peak;
            self.sum = next.sum;
            self.values.copy_from_slice(&next.values);
            return;
        }
        let peak = self.peak.max(next.peak);
        let (old, new) = ((self.peak - peak).exp(), (next.peak - peak).exp());
        self.sum = self.sum * old + next.sum * new;
        for (value, next) in self.values.iter_mut().zip(&next.values) {
            *value = *value * old + next * new;
        }
        self.peak = peak;
    }

    /// The attention output.
    pub(crate) fn write(&self, out: &mut [f32]) {
        let scale = 1.0 / self.sum;
        for (out, value) in out.iter_mut().zip(&self.values) {
            *out = value * scale;
        }
    }
}

/// One query: its vector, scaled, and the positions it sees: up to `positions`, from `first` on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query<'a> {
    pub(crate) vector: &'a [f32],
    pub(crate) first: usize,
    pub(crate) positions: usize,
}

/// Attends `queries` of one KV head to some segments, each query's partials merged into `merged`;
/// `partials` is work memory of the same length.
pub(crate) fn attend(
    isa: Isa,
    cache: &KvCache,
    place: (usize, usize),
    segments: Range<usize>,
    queries: &[Query<'_>],
    merged: &mut [Partial],
    partials: &mut [Partial],
) {
    merged.iter_mut().for_each(Partial::clear);
    let first = queries.iter().map(|query| query.first).min().unwrap_or(0);
    for segment in segments.start.max(first / SEGMENT)..segments.end {
        attend_segment(isa, cache, place, segment, queries, partials);
        for (merged, partial) in merged.iter_mut().zip(&*partials) {
            merged.merge(partial);
        }
    }
}

fn attend_segment(
    isa: Isa,
    cache: &KvCache,
    place: (usize, usize),
    segment: usize,
    queries: &[Query<'_>],
    partials: &mut [Partial],
) {
    match cache.shape().format {
        KvFormat::F16 => attend_kept::<u16>(isa, cache, place, segment, queries, partials),
        KvFormat::Q8 => attend_kept::<i8>(isa, cache, place, segment, queries, partials),
    }
}

/// [`attend_segment`] where elements are kept as `C`.
fn attend_kept<C: Cell>(
    isa: Isa,
    cache: &KvCache,
    place: (usize, usize),
    segment: usize,
    queries: &[Query<'_>],
    partials: &mut [Partial],
) {
    let mut at = 0;
    while at < queries.len() {
        let (queries, partials) = (&queries[at..], &mut partials[at..]);
        at += match queries.len() {
            1 => attend_some::<C, 1>(isa, cache, place, segment, queries, partials),
            2 => attend_some::<C, 2>(isa, cache, place, segment, queries, partials),
            3..BATCH => attend_some::<C, 3>(isa, cache, place, segment, queries, partials),
            _ => attend_some::<C, BATCH>(isa, cache, place, segment, queries, partials),
        };
    }
}

/// Attends the first `Q` queries and gives `Q`.
fn attend_some<C: Cell, const Q: usize>(
    isa: Isa,
    cache: &KvCache,
    place: (usize, usize),
    segment: usize,
    queries: &[Query<'_>],
    partials: &mut [Partial],
) -> usize {
    let (Some(queries), Some(partials)) =
        (queries.first_chunk::<Q>(), partials.first_chunk_mut::<Q>())
    else {
        return Q;
    };
    let first = segment * SEGMENT;
    let seen = queries.map(|query| query.positions.saturating_sub(first).min(SEGMENT));
    let longest = seen.into_iter().max().unwrap_or(0);
    let count = longest.div_ceil(POSITIONS);
    let page = |index: usize| segment * PAGES + index;
    let mut pages: [&[C]; PAGES] = [&[]; PAGES];
    let mut scores = [[0.0f32; SEGMENT]; Q];

    for (index, keys) in pages[..count].iter_mut().enumerate() {
        *keys = cache.elements(place, Side::Keys, page(index));
    }
    let width = count * POSITIONS;
    page_scores(
        isa,
        queries.map(|query| query.vector),
        &pages[..count],
        scores.each_mut().map(|scores| &mut scores[..width]),
    );
    let scale = |scores: &mut [[f32; SEGMENT]; Q], side| {
        for index in 0..count {
            let Some(scales) = cache.scales(place, side, page(index)) else {
                return;
            };
            for scores in &mut *scores {
                times_each(isa, &mut scores[index * POSITIONS..][..POSITIONS], &scales);
            }
        }
    };
    scale(&mut scores, Side::Keys);
    let hidden = queries.map(|query| query.first.saturating_sub(first));
    let ranges = hidden.into_iter().zip(seen);
    for ((partial, scores), (hidden, seen)) in partials.iter_mut().zip(&mut scores).zip(ranges) {
        partial.clear();
        if seen > hidden {
            scores[..hidden].fill(f32::NEG_INFINITY);
            (partial.peak, partial.sum) = softmax_terms(isa, &mut scores[..width], seen);
        } else {
            scores.fill(0.0);
        }
    }
    scale(&mut scores, Side::Values);
    for (index, values) in pages[..count].iter_mut().enumerate() {
        *values = cache.elements(place, Side::Values, page(index));
    }
    page_sums(
        isa,
        scores.each_ref().map(|scores| &scores[..longest]),
        &pages[..count],
        partials.each_mut().map(|partial| &mut partial.values[..]),
    );
    Q
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::kv::{KvShape, Pages};

    fn noise(index: usize) -> f32 {
        ((index as f32 * 12.9898).sin() * 43_758.547).fract()
    }

    struct Case {
        head_len: usize,
        positions: usize,
        cache: KvCache,
        keys: Vec<Vec<f32>>,
        values: Vec<Vec<f32>>,
    }

    impl Case {
        fn new(head_len: usize, positions: usize, format: KvFormat) -> Self {
            let shape = KvShape {
                layers: 2,
                heads: 2,
                head_len,
                format,
            };
            let mut cache = KvCache::new(&Pages::new(shape, 1 << 30));
            let vectors = |salt: usize| -> Vec<Vec<f32>> {
                let row = |p| {
                    (0..head_len)
                        .map(|d| noise(salt + p * head_len + d))
                        .collect()
                };
                (0..positions).map(row).collect()
            };
            let (keys, values) = (vectors(1), vectors(70_000));
            cache.reserve(positions);
            for position in 0..positions {
                let scratch = &mut vec![0; head_len];
                let (key, value) = (&keys[position], &values[position]);
                cache.write(Isa::detect(), (1, 1), position, key, value, scratch);
            }
            cache.advance(positions);
            Self {
                head_len,
                positions,
                cache,
                keys,
                values,
            }
        }

        fn attend(&self, isa: Isa, queries: &[Query<'_>]) -> Vec<Vec<f32>> {
            let fresh = || vec![Partial::new(self.head_len); queries.len()];
            let (mut merged, mut partials) = (fresh(), fresh());
            let segments = 0..self.positions.div_ceil(SEGMENT);
            attend(
                isa,
                &self.cache,
                (1, 1),
                segments,
                queries,
                &mut merged,
                &mut partials,
            );
            let mut out = vec![vec![0.0; self.head_len]; queries.len()];
            for (out, merged) in out.iter_mut().zip(merged) {
                merged.write(out);
            }
            out
        }

        fn expected(&self, query: Query<'_>) -> Vec<f64> {
            let terms: Vec<f64> = self.keys[query.first..query.positions]
                .iter()
                .map(|key| {
                    let products = key.iter().zip(query.vector);
                    products
                        .map(|(k, q)| f64::from(*k) * f64::from(*q))
                        .sum::<f64>()
                        .exp()
                })
                .collect();
            let total: f64 = terms.iter().sum();
            (0..self.head_len)
                .map(|d| {
                    let terms = terms.iter().zip(&self.values[query.first..]);
                    terms
                        .map(|(term, value)| term * f64::from(value[d]))
                        .sum::<f64>()
                        / total
                })
                .collect()
        }
    }

    #[test]
    fn agrees_with_plain_attention_however_queries_are_batched() {
        // What rounding keys and values to half precision and to eight bits costs.
        agrees_with_plain_attention(KvFormat::F16, 4e-3);
        agrees_with_plain_attention(KvFormat::Q8, 2e-2);
    }

    fn agrees_with_plain_attention(format: KvFormat, slack: f64) {
        for head_len in [16, 48, 64, 128] {
            for positions in [1, 2, 15, 63, 64, 65, 128, 129, 300] {
                // What a window leaves out: nothing, some, whole segments.
                let firsts = [0, 5, 130];
                let case = Case::new(head_len, positions, format);
                let vectors: Vec<Vec<f32>> = (0..14)
                    .map(|q| {
                        (0..head_len)
                            .map(|d| noise(999 + q * head_len + d))
                            .collect()
                    })
                    .collect();
                let queries: Vec<Query<'_>> = vectors
                    .iter()
                    .enumerate()
                    .map(|(index, vector)| Query {
                        vector,
                        first: firsts[index % 3].min(positions.saturating_sub(index * 23 + 1)),
                        positions: positions.saturating_sub(index * 23).max(1),
                    })
                    .collect();
                let isa = Isa::detect();
                let together = case.attend(isa, &queries);
                assert_eq!(case.attend(Isa::Portable, &queries), together);
                for (index, query) in queries.iter().enumerate() {
                    assert_eq!(case.attend(isa, &[*query])[0], together[index]);
                    let expected = case.expected(*query);
                    for (found, expected) in together[index].iter().zip(expected) {
                        assert!(
                            (f64::from(*found) - expected).abs() < slack,
                            "{found} {expected}"
                        );
                    }
                }
            }
        }
    }
}
