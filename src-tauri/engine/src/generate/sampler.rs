use toktrie::SimpleVob;

use super::Sampling;
use crate::kernels::{Isa, weight_sum};

/// Chooses tokens by their logits.
#[derive(Debug)]
pub(crate) struct Sampler {
    sampling: Sampling,
    random: SplitMix64,
    isa: Isa,
}

impl Sampler {
    pub(crate) fn new(sampling: Sampling) -> Self {
        Self {
            sampling,
            random: SplitMix64(sampling.seed),
            isa: Isa::detect(),
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

    /// The next token, among the allowed ones; none if no allowed token has a usable logit.
    pub(crate) fn choose(&mut self, logits: &[f32], allowed: Option<&SimpleVob>) -> Option<u32> {
        if self.sampling.temperature == 0.0 {
            return match allowed {
                None => likeliest(logits.iter().copied().enumerate()),
                Some(set) => {
                    let ids = set.iter().map(|id| id as usize);
                    likeliest(ids.filter_map(|id| Some((id, *logits.get(id)?))))
                }
            };
        }
        let mut candidates: Vec<(u32, f32)> = match allowed {
            None => (0..).zip(logits.iter().copied()).collect(),
            Some(set) => set
                .iter()
                .filter_map(|id| Some((id, *logits.get(id as usize)?)))
                .collect(),
        };
        candidates.retain(|(_, logit)| logit.is_finite());
        let peak = candidates
            .iter()
            .map(|(_, logit)| *logit)
            .reduce(f32::max)?;
        for (_, logit) in &mut candidates {
            *logit = ((*logit - peak) / self.sampling.temperature).exp();
        }
        let kept = self.nucleus(&mut candidates);
        let total: f32 = kept.iter().map(|(_, weight)| weight).sum();
        let mut rest = self.random.unit() * total;
        for (id, weight) in kept {
            rest -= weight;
            if rest < 0.0 {
                return Some(*id);
            }
        }
        // Rounding may leave a sliver after the last one.
        kept.last().map(|(id, _)| *id)
    }

    /// The likeliest candidates that together reach `top_p` (Holtzman et al. 2020).
    fn nucleus<'a>(&self, candidates: &'a mut [(u32, f32)]) -> &'a [(u32, f32)] {
        if self.sampling.top_p >= 1.0 {
            return candidates;
        }
        let goal = candidates.iter().map(|(_, weight)| weight).sum::<f32>() * self.sampling.top_p;
        // Equal weights go by token, so that the order is the same everywhere.
        let by_weight = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        let mut count = 64;
        loop {
            // Few candidates are needed as a rule: sort only as many as it takes.
            let few = count.min(candidates.len());
            if few < candidates.len() {
                candidates.select_nth_unstable_by(few, by_weight);
            }
            candidates[..few].sort_unstable_by(by_weight);
            let mut reached = 0.0;
            for (index, (_, weight)) in candidates[..few].iter().enumerate() {
                reached += weight;
                if reached >= goal {
                    return &candidates[..=index];
                }
            }
            if few == candidates.len() {
                return candidates;
            }
            count *= 8;
        }
    }

    /// A token's natural log-probability.
    pub(crate) fn logprob(&self, logits: &[f32], id: u32) -> f32 {
        logprob(self.isa, logits, id)
    }
}

/// A token's natural log-probability under its logits.
pub(crate) fn logprob(isa: Isa, logits: &[f32], id: u32) -> f32 {
    match logits.get(id as usize) {
        Some(logit) => Normaliser::of(isa, logits).logprob(*logit),
        None => f32::NEG_INFINITY,
    }
}

/// What logits are normalised by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Normaliser {
    peak: f32,
    log_sum: f32,
}

impl Normaliser {
    pub(crate) fn of(isa: Isa, logits: &[f32]) -> Self {
        let peak = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        Self {
            peak,
            log_sum: weight_sum(isa, logits, peak).ln(),
        }
    }

    /// The natural log-probability of a token with this logit.
    pub(crate) fn logprob(self, logit: f32) -> f32 {
        logit - self.peak - self.log_sum
    }
}

/// The first of the largest logits.
fn likeliest(logits: impl Iterator<Item = (usize, f32)>) -> Option<u32> {
    let mut best: Option<(usize, f32)> = None;
    for (id, logit) in logits {
        if logit > best.map_or(f32::NEG_INFINITY, |(_, logit)| logit) {
            best = Some((id, logit));
        }
    }
    best.map(|(id, _)| id as u32)
}

/// SplitMix64 (Steele, Lea, Flood 2014): a full-period generator that any seed is good for.
#[derive(Debug)]
struct SplitMix64(u64);

impl SplitMix64 {
    /// Evenly spread over `[0, 1)`.
    fn unit(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn draw(sampling: Sampling, logits: &[f32], count: usize) -> Vec<u32> {
        let mut sampler = Sampler::new(sampling);
        (0..count)
            .map(|_| sampler.choose(logits, None).unwrap())
            .collect()
    }

    #[test]
    fn greedy_takes_the_first_of_the_largest() {
        let cases: [(&[f32], Option<u32>); 5] = [
            (&[1.0, 3.0, 3.0], Some(1)),
            (&[-5.0], Some(0)),
            (&[f32::NAN, 2.0], Some(1)),
            (&[f32::NAN], None),
            (&[], None),
        ];
        for (logits, expected) in cases {
            assert_eq!(
                Sampler::new(Sampling::default()).choose(logits, None),
                expected
            );
        }
    }

    #[test]
    fn frequencies_follow_probabilities() {
        let logits = [0.5f32.ln(), 0.3f32.ln(), 0.2f32.ln()];
        let sampling = Sampling {
            temperature: 1.0,
            top_p: 1.0,
            seed: 7,
        };
        let drawn = draw(sampling, &logits, 20_000);
        for (id, expected) in [(0, 0.5), (1, 0.3), (2, 0.2)] {
            let share = drawn.iter().filter(|&&other| other == id).count() as f64 / 20_000.0;
            assert!((share - expected).abs() < 0.015, "{id}: {share}");
        }
    }

    #[test]
    fn top_p_leaves_out_the_tail() {
        let mut logits = vec![0.1f32.ln() - 9.0; 2000];
        (logits[700], logits[5], logits[9]) = (0.6f32.ln(), 0.25f32.ln(), 0.1f32.ln());
        for (top_p, kept) in [(0.5, &[700][..]), (0.8, &[5, 700]), (0.9, &[5, 9, 700])] {
            let mut drawn = draw(
                Sampling {
                    temperature: 1.0,
                    top_p,
                    seed: 1,
                },
                &logits,
                2000,
            );
            drawn.sort_unstable();
            drawn.dedup();
            assert_eq!(drawn, kept, "{top_p}");
        }
        // A flat distribution needs more than the first candidates looked at.
        let drawn = draw(
            Sampling {
                temperature: 1.0,
                top_p: 0.9,
                seed: 1,
            },
            &[0.0; 2000],
            5000,
        );
        assert!(drawn.iter().all(|&id| id <= 1800) && drawn.iter().any(|&id| id > 1500));
    }

    #[test]
    fn the_seed_decides() {
        let logits: Vec<f32> = (0..500).map(|id| (id % 17) as f32 / 4.0).collect();
        let with = |seed| {
            draw(
                Sampling {
                    temperature: 0.8,
                    top_p: 0.95,
                    seed,
                },
                &logits,
                50,
            )
        };
        assert_eq!(with(3), with(3));
        assert_ne!(with(3), with(4));
    }

    #[test]
    fn only_allowed_tokens_are_chosen() {
        let mut allowed = SimpleVob::alloc(3);
        allowed.allow_token(2);
        for temperature in [0.0, 2.0] {
            let mut sampler = Sampler::new(Sampling {
                temperature,
                top_p: 0.9,
                seed: 0,
            });
            assert_eq!(sampler.choose(&[9.0, 8.0, -1.0], Some(&allowed)), Some(2));
            assert_eq!(sampler.choose(&[9.0, 8.0], Some(&allowed)), None);
        }
    }

    #[test]
    fn log_probabilities_are_normalised() {
        let logits = [1.0f32, 2.0, 3.0, -40.0];
        let total: f32 = (0..4)
            .map(|id| logprob(Isa::detect(), &logits, id).exp())
            .sum();
        assert!((total - 1.0).abs() < 1e-5, "{total}");
        assert_eq!(
            logprob(Isa::Portable, &logits, 2),
            logprob(Isa::detect(), &logits, 2)
        );
    }
}
