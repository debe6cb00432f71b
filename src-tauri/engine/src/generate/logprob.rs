use super::rank::{highest, peak};
use crate::kernels::{Isa, weight_sum};

/// A token and how likely it was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenLogprob {
    /// The token.
    pub id: u32,
    /// Its natural log-probability under the model as it is.
    pub logprob: f32,
}

/// How likely a token was, and which would have been likeliest.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Likelihood {
    pub(super) logprob: f32,
    pub(super) top: Vec<TokenLogprob>,
}

impl Likelihood {
    /// Of token `id`, with the `top` likeliest of all.
    pub(super) fn of(isa: Isa, logits: &[f32], id: u32, top: usize) -> Self {
        let normaliser = Normaliser::of(isa, logits);
        let likely = |id: u32| TokenLogprob {
            id,
            logprob: normaliser.logprob(logits[id as usize]),
        };
        Self {
            logprob: logits
                .get(id as usize)
                .map_or(f32::NEG_INFINITY, |logit| normaliser.logprob(*logit)),
            top: match top {
                0 => Vec::new(),
                top => highest(logits, top).into_iter().map(likely).collect(),
            },
        }
    }
}

/// A token's natural log-probability under its logits.
pub(crate) fn logprob(isa: Isa, logits: &[f32], id: u32) -> f32 {
    Likelihood::of(isa, logits, id, 0).logprob
}

/// What logits are normalised by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Normaliser {
    peak: f32,
    log_sum: f32,
}

impl Normaliser {
    pub(crate) fn of(isa: Isa, logits: &[f32]) -> Self {
        let peak = peak(logits);
        Self {
            peak,
            log_sum: ln(weight_sum(isa, logits, peak)),
        }
    }

    /// The natural log-probability of a token with this logit.
    pub(crate) fn logprob(self, logit: f32) -> f32 {
        logit - self.peak - self.log_sum
    }
}

/// The natural logarithm of a positive number, by operations that give the same on every machine:
/// a search compares what comes of it. `x = mantissa * 2^exponent` with the mantissa around 1, and
/// `ln(mantissa)` by the series of the inverse hyperbolic tangent.
fn ln(x: f32) -> f32 {
    if !(x > 0.0 && x.is_finite()) {
        return if x == 0.0 {
            f32::NEG_INFINITY
        } else {
            f32::NAN
        };
    }
    // Every f32 is a normal f64.
    let bits = f64::from(x).to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut series = 0.0;
    for term in (0..10).rev() {
        series = series * square + 1.0 / f64::from(2 * term + 1);
    }
    (2.0 * s * series + f64::from(exponent) * std::f64::consts::LN_2) as f32
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

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
        assert_eq!(logprob(Isa::detect(), &logits, 4), f32::NEG_INFINITY);
    }

    #[test]
    fn the_likeliest_come_first() {
        let logits = [1.0f32, 4.0, 3.0, 4.0];
        let found = Likelihood::of(Isa::detect(), &logits, 0, 3);
        let ids: Vec<u32> = found.top.iter().map(|token| token.id).collect();
        assert_eq!(ids, [1, 3, 2]);
        for token in &found.top {
            assert_eq!(token.logprob, logprob(Isa::detect(), &logits, token.id));
        }
        assert_eq!(Likelihood::of(Isa::detect(), &logits, 0, 9).top.len(), 4);
        assert_eq!(Likelihood::of(Isa::detect(), &logits, 0, 0).top, []);
    }

    proptest! {
        #[test]
        fn logarithms_are_right(bits in 1u32..0x7f80_0000) {
            let x = f32::from_bits(bits);
            let expected = f64::from(x).ln();
            let error = (f64::from(ln(x)) - expected).abs();
            prop_assert!(error <= expected.abs() * 6e-8, "{x}: {} not {expected}", ln(x));
        }
    }

    #[test]
    fn logarithms_of_borders() {
        assert_eq!((ln(1.0), ln(0.0)), (0.0, f32::NEG_INFINITY));
        assert!(ln(-1.0).is_nan() && ln(f32::NAN).is_nan());
    }
}
