//! Element-wise kernels and their reductions, written once over fixed arrays of lanes: the AVX2
//! versions are the same source compiled for that instruction set.

use super::Isa;
use super::activations::ActBlock;
use super::layout::TILE;

/// Partial sums that a reduction keeps; element `i` goes to sum `i % LANES`.
const LANES: usize = 16;

/// Compiles a body for the baseline and again for AVX2, and picks at run time.
macro_rules! compiled_twice {
    ($(#[$doc:meta])* $vis:vis fn $name:ident $(<const $n:ident: usize>)?
        ($($argument:ident: $type:ty),* $(,)?) $(-> $output:ty)? $body:block) => {
        $(#[$doc])*
        $vis fn $name $(<const $n: usize>)? (isa: Isa, $($argument: $type),*) $(-> $output)? {
            #[inline(always)]
            fn portable $(<const $n: usize>)? ($($argument: $type),*) $(-> $output)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c")]
            fn wide $(<const $n: usize>)? ($($argument: $type),*) $(-> $output)? {
                portable($($argument),*)
            }

            match isa {
                Isa::Portable => portable($($argument),*),
                #[cfg(target_arch = "x86_64")]
                // SAFETY: an `Avx2` or `Avx512` exists only where the features were detected.
                #[allow(unsafe_code)]
                Isa::Avx2(_) | Isa::Avx512(_) => unsafe { wide($($argument),*) },
            }
        }
    };
}

compiled_twice! {
    /// Root-mean-square norm in place: `x[i] * weight[i] / sqrt(mean(x^2) + epsilon)`.
    pub(crate) fn rms_norm(values: &mut [f32], weight: &[f32], epsilon: f32) {
        let mut sums = [0.0f32; LANES];
        let (chunks, rest) = values.as_chunks::<LANES>();
        for chunk in chunks {
            for (sum, value) in sums.iter_mut().zip(chunk) {
                *sum = value.mul_add(*value, *sum);
            }
        }
        for (sum, value) in sums.iter_mut().zip(rest) {
            *sum = value.mul_add(*value, *sum);
        }
        let scale = 1.0 / (total(sums) / values.len() as f32 + epsilon).sqrt();
        for (value, weight) in values.iter_mut().zip(weight) {
            *value = *value * scale * weight;
        }
    }
}

compiled_twice! {
    /// `silu(gate) * up`, the gated activation of Llama's feed-forward network.
    pub(crate) fn swiglu(gate: &[f32; TILE], up: &[f32; TILE], out: &mut [f32; TILE]) {
        for ((out, gate), up) in out.iter_mut().zip(gate).zip(up) {
            *out = gate / (1.0 + exp(-gate)) * up;
        }
    }
}

compiled_twice! {
    /// `gelu(gate) * up` with GELU's approximation by a hyperbolic tangent (Hendrycks and Gimpel
    /// 2016), which is `x * sigmoid(2 * sqrt(2 / pi) * (x + 0.044715 * x^3))`.
    pub(crate) fn geglu(gate: &[f32; TILE], up: &[f32; TILE], out: &mut [f32; TILE]) {
        const SLOPE: f32 = -1.595_769;
        for ((out, gate), up) in out.iter_mut().zip(gate).zip(up) {
            let inner = gate * (gate * gate).mul_add(0.044_715, 1.0);
            *out = gate / (1.0 + exp(SLOPE * inner)) * up;
        }
    }
}

compiled_twice! {
    /// `gelu(value)` by the error function, in place. That by Abramowitz and Stegun, formula 7.1.26,
    /// which is right to 1.5e-7.
    pub(crate) fn gelu(values: &mut [f32; TILE]) {
        for value in values {
            let x = *value * std::f32::consts::FRAC_1_SQRT_2;
            let size = x.abs();
            let t = 1.0 / 0.327_591_1f32.mul_add(size, 1.0);
            let mut series = 1.061_405_4;
            for term in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
                series = t.mul_add(series, term);
            }
            let erf = 1.0 - series * t * exp(-size * size);
            *value *= 0.5 + 0.5 * erf.copysign(x);
        }
    }
}

compiled_twice! {
    /// Layer norm in place: `(x - mean) / sqrt(variance + epsilon) * weight + bias`.
    pub(crate) fn layer_norm(values: &mut [f32], weight: &[f32], bias: &[f32], epsilon: f32) {
        let count = values.len() as f32;
        let mean = sum_of(values, |value| value) / count;
        let variance = sum_of(values, |value| (value - mean) * (value - mean)) / count;
        let scale = 1.0 / (variance + epsilon).sqrt();
        for ((value, weight), bias) in values.iter_mut().zip(weight).zip(bias) {
            *value = ((*value - mean) * scale).mul_add(*weight, *bias);
        }
    }
}

compiled_twice! {
    /// `sums[i] += factor * values[i]`.
    pub(crate) fn add_times(sums: &mut [f32], factor: f32, values: &[f32]) {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = factor.mul_add(*value, *sum);
        }
    }
}

compiled_twice! {
    /// Turns the first `valid` scores into `exp(score - max)` and the rest into zero.
    /// Gives the maximum and the sum of the terms.
    pub(crate) fn softmax_terms(scores: &mut [f32], valid: usize) -> (f32, f32) {
        let (seen, unseen) = scores.split_at_mut(valid);
        unseen.fill(f32::NEG_INFINITY);
        let mut peaks = [f32::NEG_INFINITY; LANES];
        for (index, score) in seen.iter().enumerate() {
            let peak = &mut peaks[index % LANES];
            *peak = if *score > *peak { *score } else { *peak };
        }
        let peak = peaks.into_iter().fold(f32::NEG_INFINITY, f32::max);
        let mut sums = [0.0f32; LANES];
        for chunk in scores.as_chunks_mut::<LANES>().0 {
            for (sum, score) in sums.iter_mut().zip(chunk) {
                *score = exp(*score - peak);
                *sum += *score;
            }
        }
        (peak, total(sums))
    }
}

compiled_twice! {
    /// `values[i] *= factors[i]`.
    pub(crate) fn times_each(values: &mut [f32], factors: &[f32]) {
        for (value, factor) in values.iter_mut().zip(factors) {
            *value *= factor;
        }
    }
}

compiled_twice! {
    /// Whole numbers from -127 to 127 that stand for values, and what they are multiplied by: NaN
    /// where a value is not finite.
    pub(crate) fn as_bytes(values: &[f32], out: &mut [i8]) -> f32 {
        let mut peak = 0.0f32;
        let mut sum = 0.0;
        for value in values {
            peak = peak.max(value.abs());
            sum += value * 0.0;
        }
        let inverse = if peak > 1e-30 { 127.0 / peak } else { 0.0 };
        for (out, value) in out.iter_mut().zip(values) {
            *out = (value * inverse).round_ties_even() as i8;
        }
        // Not finite: infinity times nought is not nought.
        if sum == 0.0 { peak / 127.0 } else { f32::NAN }
    }
}

compiled_twice! {
    /// The sum of `exp(logit - peak)`.
    pub(crate) fn weight_sum(logits: &[f32], peak: f32) -> f32 {
        let mut sums = [0.0f32; LANES];
        let (chunks, rest) = logits.as_chunks::<LANES>();
        for chunk in chunks {
            for (sum, logit) in sums.iter_mut().zip(chunk) {
                *sum += exp(logit - peak);
            }
        }
        for (sum, logit) in sums.iter_mut().zip(rest) {
            *sum += exp(logit - peak);
        }
        total(sums)
    }
}

/// Rounds to half precision.
pub(crate) fn store_halves(isa: Isa, values: &[f32], out: &mut [u16]) {
    super::by_isa!(isa, store_halves(values, out));
}

/// Quantises a vector into column `column` of a panel, block by block: `scale = max |x| / 127`, or
/// NaN where an element is not finite, so that no product hides it.
pub(crate) fn quantise<const N: usize>(
    isa: Isa,
    values: &[f32],
    column: usize,
    panel: &mut [ActBlock<N>],
) {
    super::by_isa!(isa, quantise(values, column, panel));
}

/// The sum of what `of` makes of each value.
#[inline(always)]
fn sum_of(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0f32; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum += of(*value);
        }
    }
    for (sum, value) in sums.iter_mut().zip(rest) {
        *sum += of(*value);
    }
    total(sums)
}

/// Adds the partial sums pairwise, always in the same order.
#[inline(always)]
fn total(mut sums: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for index in 0..width {
            sums[index] += sums[index + width];
        }
        width /= 2;
    }
    sums[0]
}

/// 1.5 * 2^23: added to a small float it rounds it to a whole number, kept in the low bits.
const ROUNDER: f32 = 12_582_912.0;

/// `e^x`; from 88 on it is infinite, up to -87 zero. Range reduction by ln 2 in two parts and the
/// Taylor series to degree 6; the relative error is below 3e-7.
#[inline(always)]
fn exp(x: f32) -> f32 {
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let clamped = if x > -87.0 { x } else { -87.0 };
    let clamped = if clamped < 88.0 { clamped } else { 88.0 };
    let shifted = clamped.mul_add(std::f32::consts::LOG2_E, ROUNDER);
    let whole = shifted - ROUNDER;
    let rest = whole.mul_add(-LN_2_LOW, whole.mul_add(-LN_2_HIGH, clamped));
    let mut series = 1.0 / 720.0;
    for term in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        series = rest.mul_add(series, term);
    }
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    let term = if x < 88.0 {
        series * power
    } else {
        f32::INFINITY
    };
    if x > -87.0 { term } else { 0.0 }
}
