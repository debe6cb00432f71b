//! Products of quantised weights for AVX2.
//!
//! Four bits: a product of a nibble and a signed byte is at most 15 * 127, so the sum of a row's 16
//! pairs of a block, 30,480, fits the 16-bit lane that `maddubs` gives: one widening per block. Five
//! bits: 31 * 127, so half a block, 31,496. Six bits: they count from -32, so half a block is 32,512.
//! Eight bits: a pair is at most 2 * 128 * 127 = 32,512. `maddubs` wants one unsigned side, so the
//! sign of a weight moves to the activation.

#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::TileOut;
use super::activations::ActBlock;
use super::avx2::{
    broadcast, keep_order, load, load_floats, load_halves, prefetch, store, store_floats,
};
use super::blocks::{
    Bits, K4Block, K5Block, K6Block, Nibbles, PARTS, Q4Block, Q4Centred, Q5Block, Q5Centred,
    Q8Block,
};
use super::layout::{Expanded, TILE};

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q4_tile<const N: usize>(tile: &[Q4Block], panel: &[ActBlock<N>]) -> TileOut<N> {
    let mut sums = [[_mm256_setzero_ps(); 2]; N];
    for (block, act) in tile.iter().zip(panel) {
        if N == 1 {
            prefetch(block);
        }
        let dots = four_bits(&block.quants, act);
        let scale = [load_halves(&block.scale[0]), load_halves(&block.scale[1])];
        let min = [load_halves(&block.min[0]), load_halves(&block.min[1])];
        add_scaled(&mut sums, &dots, scale, min, act);
    }
    store(&sums)
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q4_centred<const N: usize>(tile: &[Q4Centred], panel: &[ActBlock<N>]) -> TileOut<N> {
    let mut sums = [[_mm256_setzero_ps(); 2]; N];
    for (block, act) in tile.iter().zip(panel) {
        if N == 1 {
            prefetch(block);
        }
        let dots = four_bits(&block.quants, act);
        let scale = [load_halves(&block.scale[0]), load_halves(&block.scale[1])];
        add_scaled(&mut sums, &dots, scale, centred::<8>(scale), act);
    }
    store(&sums)
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q4_expand_centred(tile: &[Q4Centred], out: &mut [Expanded]) {
    for (block, out) in tile.iter().zip(out) {
        let scale = [load_halves(&block.scale[0]), load_halves(&block.scale[1])];
        store_pair(scale, &mut out.scale);
        store_pair(centred::<8>(scale), &mut out.min);
        spread(&block.quants, &mut out.quants);
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q4_expand(tile: &[Q4Block], out: &mut [Expanded]) {
    for (block, out) in tile.iter().zip(out) {
        let scale = [load_halves(&block.scale[0]), load_halves(&block.scale[1])];
        let min = [load_halves(&block.min[0]), load_halves(&block.min[1])];
        store_pair(scale, &mut out.scale);
        store_pair(min, &mut out.min);
        spread(&block.quants, &mut out.quants);
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn expanded_tile<const N: usize>(
    tile: &[Expanded],
    panel: &[ActBlock<N>],
) -> TileOut<N> {
    let mut sums = [[_mm256_setzero_ps(); 2]; N];
    for (block, act) in tile.iter().zip(panel) {
        let mut dots = [[_mm256_setzero_si256(); 2]; N];
        for group in 0..8 {
            let weights = [load(&block.quants[group][0]), load(&block.quants[group][1])];
            for (dots, act) in dots.iter_mut().zip(&act.quants) {
                add_pairs(dots, weights, act[group]);
            }
        }
        let scale = load_floats(&block.scale);
        let min = load_floats(&block.min);
        add_scaled(&mut sums, &dots, scale, min, act);
    }
    store(&sums)
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q8_tile<const N: usize>(tile: &[Q8Block], panel: &[ActBlock<N>]) -> TileOut<N> {
    let ones = _mm256_set1_epi16(1);
    let mut sums = [[_mm256_setzero_ps(); 2]; N];
    for (block, act) in tile.iter().zip(panel) {
        if N == 1 {
            prefetch(block);
        }
        let mut dots = [[_mm256_setzero_si256(); 2]; N];
        for group in 0..8 {
            let weights = [load(&block.quants[group][0]), load(&block.quants[group][1])];
            let sizes = weights.map(|weights| _mm256_abs_epi8(weights));
            for (dots, act) in dots.iter_mut().zip(&act.quants) {
                let act = broadcast(act[group]);
                for half in 0..2 {
                    let signed = _mm256_sign_epi8(act, weights[half]);
                    let pairs = _mm256_maddubs_epi16(sizes[half], signed);
                    dots[half] = _mm256_add_epi32(dots[half], _mm256_madd_epi16(pairs, ones));
                    keep_order(&mut dots[half]);
                }
            }
        }
        let scale = [load_halves(&block.scale[0]), load_halves(&block.scale[1])];
        for column in 0..N {
            let act_scale = _mm256_set1_ps(act.scale[column]);
            for half in 0..2 {
                let dot = _mm256_cvtepi32_ps(dots[column][half]);
                let scale = _mm256_mul_ps(scale[half], act_scale);
                sums[column][half] = _mm256_fmadd_ps(dot, scale, sums[column][half]);
            }
        }
    }
    store(&sums)
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q5_tile<const N: usize>(tile: &[Q5Block], panel: &[ActBlock<N>]) -> TileOut<N> {
    let mut sums = [[_mm256_setzero_ps(); 2]; N];
    for (block, act) in tile.iter().zip(panel) {
        if N == 1 {
            prefetch(block);
        }
        let dots = five_bits(&block.quants, &block.high, act);
        let scale = [load_halves(&block.scale[0]), load_halves(&block.scale[1])];
        let min = [load_halves(&block.min[0]), load_halves(&block.min[1])];
        add_affine(&mut sums, &dots, scale, min, act);
    }
    store(&sums)
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q5_centred<const N: usize>(tile: &[Q5Centred], panel: &[ActBlock<N>]) -> TileOut<N> {
    let mut sums = [[_mm256_setzero_ps(); 2]; N];
    for (block, act) in tile.iter().zip(panel) {
        if N == 1 {
            prefetch(block);
        }
        let dots = five_bits(&block.quants, &block.high, act);
        let scale = [load_halves(&block.scale[0]), load_halves(&block.scale[1])];
        add_affine(&mut sums, &dots, scale, centred::<16>(scale), act);
    }
    store(&sums)
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn k4_tile<const N: usize>(tile: &[K4Block], panel: &[ActBlock<N>]) -> TileOut<N> {
    let mut sums = [[_mm256_setzero_ps(); 2]; N];
    for (block, acts) in tile.iter().zip(panel.as_chunks::<PARTS>().0) {
        if N == 1 {
            prefetch(block);
        }
        let scale = [load_halves(&block.scale[0]), load_halves(&block.scale[1])];
        let min = negated([load_halves(&block.min[0]), load_halves(&block.min[1])]);
        for (part, act) in acts.iter().enumerate() {
            let dots = four_bits(&block.quants[part], act);
            let scale = times(scale, &block.scales[part]);
            let min = times(min, &block.mins[part]);
            add_scaled(&mut sums, &dots, scale, min, act);
        }
    }
    store(&sums)
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn k4_expand(tile: &[K4Block], out: &mut [Expanded]) {
    for (block, out) in tile.iter().zip(out.as_chunks_mut::<PARTS>().0) {
        let scale = [load_halves(&block.scale[0]), load_halves(&block.scale[1])];
        let min = negated([load_halves(&block.min[0]), load_halves(&block.min[1])]);
        for (part, out) in out.iter_mut().enumerate() {
            store_pair(times(scale, &block.scales[part]), &mut out.scale);
            store_pair(times(min, &block.mins[part]), &mut out.min);
            spread(&block.quants[part], &mut out.quants);
        }
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn k5_tile<const N: usize>(tile: &[K5Block], panel: &[ActBlock<N>]) -> TileOut<N> {
    let mut sums = [[_mm256_setzero_ps(); 2]; N];
    for (block, acts) in tile.iter().zip(panel.as_chunks::<PARTS>().0) {
        if N == 1 {
            prefetch(block);
        }
        let scale = [load_halves(&block.scale[0]), load_halves(&block.scale[1])];
        let min = negated([load_halves(&block.min[0]), load_halves(&block.min[1])]);
        for (part, act) in acts.iter().enumerate() {
            let dots = five_bits(&block.quants[part], &block.high[part], act);
            let scale = times(scale, &block.scales[part]);
            let min = times(min, &block.mins[part]);
            add_affine(&mut sums, &dots, scale, min, act);
        }
    }
    store(&sums)
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn k6_tile<const N: usize>(tile: &[K6Block], panel: &[ActBlock<N>]) -> TileOut<N> {
    let mut sums = [[_mm256_setzero_ps(); 2]; N];
    for (block, acts) in tile.iter().zip(panel.as_chunks::<PARTS>().0) {
        if N == 1 {
            prefetch(block);
        }
        let scale = [load_halves(&block.scale[0]), load_halves(&block.scale[1])];
        for (part, act) in acts.iter().enumerate() {
            let mut totals = [[_mm256_setzero_si256(); 2]; N];
            six_bits::<N, 0>(block, part, act, &mut totals);
            six_bits::<N, 1>(block, part, act, &mut totals);
            for column in 0..N {
                let act_scale = _mm256_set1_ps(act.scale[column]);
                for half in 0..2 {
                    let dot = _mm256_cvtepi32_ps(totals[column][half]);
                    let scale = _mm256_mul_ps(scale[half], act_scale);
                    sums[column][half] = _mm256_fmadd_ps(dot, scale, sums[column][half]);
                }
            }
        }
    }
    store(&sums)
}

/// Adds the products of columns `16 * UPPER..` of a part, times that half's factors.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn six_bits<const N: usize, const UPPER: usize>(
    block: &K6Block,
    part: usize,
    act: &ActBlock<N>,
    totals: &mut [[__m256i; 2]; N],
) {
    let (nibble, two) = (_mm256_set1_epi8(15), _mm256_set1_epi8(3));
    let middle = _mm256_set1_epi8(32);
    let ones = _mm256_set1_epi16(1);
    let mut dots = [[_mm256_setzero_si256(); 2]; N];
    let high = &block.high[part][UPPER];
    let mut high = [load(&high[0]), load(&high[1])];
    for (group, quants) in block.quants[part].iter().enumerate() {
        let weights: [__m256i; 2] = [0, 1].map(|half| {
            let packed = load(&quants[half]);
            let packed = if UPPER == 0 {
                packed
            } else {
                _mm256_srli_epi16::<4>(packed)
            };
            let low = _mm256_and_si256(packed, nibble);
            let high = _mm256_slli_epi16::<4>(_mm256_and_si256(high[half], two));
            _mm256_sub_epi8(_mm256_or_si256(low, high), middle)
        });
        high = high.map(|high| _mm256_srli_epi16::<2>(high));
        let sizes = weights.map(|weights| _mm256_abs_epi8(weights));
        for (dots, act) in dots.iter_mut().zip(&act.quants) {
            let act = broadcast(act[4 * UPPER + group]);
            for half in 0..2 {
                let signed = _mm256_sign_epi8(act, weights[half]);
                let pairs = _mm256_maddubs_epi16(sizes[half], signed);
                dots[half] = _mm256_add_epi16(dots[half], pairs);
                keep_order(&mut dots[half]);
            }
        }
    }
    let (low, high) = block.scales[part][UPPER].split_at(8);
    let factors = [low, high].map(|factors| _mm256_cvtepi8_epi32(load_low(factors)));
    for (totals, dots) in totals.iter_mut().zip(dots) {
        for half in 0..2 {
            let dot = _mm256_madd_epi16(dots[half], ones);
            let product = _mm256_mullo_epi32(dot, factors[half]);
            totals[half] = _mm256_add_epi32(totals[half], product);
        }
    }
}

/// Dot products of 32 columns of four bits, in lanes of 16 bits that are yet to be added by twos.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn four_bits<const N: usize>(quants: &Nibbles, act: &ActBlock<N>) -> [[__m256i; 2]; N] {
    let nibble = _mm256_set1_epi8(15);
    let mut dots = [[_mm256_setzero_si256(); 2]; N];
    for (group, quants) in quants.iter().enumerate() {
        let packed = [load(&quants[0]), load(&quants[1])];
        for upper in 0..2 {
            let weights = packed.map(|packed| {
                let packed = if upper == 0 {
                    packed
                } else {
                    _mm256_srli_epi16::<4>(packed)
                };
                _mm256_and_si256(packed, nibble)
            });
            for (dots, act) in dots.iter_mut().zip(&act.quants) {
                add_pairs(dots, weights, act[4 * upper + group]);
            }
        }
    }
    dots
}

/// Dot products of 32 columns of five bits.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn five_bits<const N: usize>(
    quants: &Nibbles,
    high: &Bits,
    act: &ActBlock<N>,
) -> [[__m256i; 2]; N] {
    let (nibble, bit) = (_mm256_set1_epi8(15), _mm256_set1_epi8(1));
    let ones = _mm256_set1_epi16(1);
    let mut high = [load(&high[0]), load(&high[1])];
    let mut totals = [[_mm256_setzero_si256(); 2]; N];
    for upper in 0..2 {
        let mut dots = [[_mm256_setzero_si256(); 2]; N];
        for (group, quants) in quants.iter().enumerate() {
            let weights: [__m256i; 2] = [0, 1].map(|half| {
                let packed = load(&quants[half]);
                let packed = if upper == 0 {
                    packed
                } else {
                    _mm256_srli_epi16::<4>(packed)
                };
                let fifth = _mm256_slli_epi16::<4>(_mm256_and_si256(high[half], bit));
                _mm256_or_si256(_mm256_and_si256(packed, nibble), fifth)
            });
            high = high.map(|high| _mm256_srli_epi16::<1>(high));
            for (dots, act) in dots.iter_mut().zip(&act.quants) {
                add_pairs(dots, weights, act[4 * upper + group]);
            }
        }
        for (totals, dots) in totals.iter_mut().zip(dots) {
            for half in 0..2 {
                let dot = _mm256_madd_epi16(dots[half], ones);
                totals[half] = _mm256_add_epi32(totals[half], dot);
            }
        }
    }
    totals
}

/// Nibbles as bytes, in column order.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn spread(quants: &Nibbles, out: &mut [[[u8; 32]; 2]; 8]) {
    for (group, quants) in quants.iter().enumerate() {
        for (half, packed) in quants.iter().enumerate() {
            for (out, packed) in out[group][half].iter_mut().zip(packed) {
                *out = packed & 15;
            }
            for (out, packed) in out[4 + group][half].iter_mut().zip(packed) {
                *out = packed >> 4;
            }
        }
    }
}

/// `values[lane] * factors[lane]`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn times(values: [__m256; 2], factors: &[u8; TILE]) -> [__m256; 2] {
    let (low, high) = factors.split_at(8);
    let factors = [low, high].map(|factors| _mm256_cvtepu8_epi32(load_low(factors)));
    [0, 1].map(|half| _mm256_mul_ps(values[half], _mm256_cvtepi32_ps(factors[half])))
}

/// What is added where quants count from `-OFFSET`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn centred<const OFFSET: i8>(scale: [__m256; 2]) -> [__m256; 2] {
    scale.map(|scale| _mm256_mul_ps(scale, _mm256_set1_ps(-f32::from(OFFSET))))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn store_pair(values: [__m256; 2], out: &mut [f32; TILE]) {
    for (value, out) in values.into_iter().zip(out.chunks_exact_mut(8)) {
        store_floats(value, out);
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn negated(values: [__m256; 2]) -> [__m256; 2] {
    values.map(|value| _mm256_xor_ps(value, _mm256_set1_ps(-0.0)))
}

/// Eight bytes, in the low half of a register.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn load_low(bytes: &[u8]) -> __m128i {
    let bytes = bytes
        .first_chunk::<8>()
        .map_or(0, |bytes| i64::from_le_bytes(*bytes));
    _mm_set_epi64x(0, bytes)
}

/// `dots[half] += weights[half] * act`, in pairs of bytes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn add_pairs(dots: &mut [__m256i; 2], weights: [__m256i; 2], act: [u8; 4]) {
    let act = broadcast(act);
    for (dot, weights) in dots.iter_mut().zip(weights) {
        *dot = _mm256_add_epi16(*dot, _mm256_maddubs_epi16(weights, act));
        keep_order(dot);
    }
}

/// `sums += dots * scale * act.scale + min * act.sum` for all columns.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn add_scaled<const N: usize>(
    sums: &mut [[__m256; 2]; N],
    dots: &[[__m256i; 2]; N],
    scale: [__m256; 2],
    min: [__m256; 2],
    act: &ActBlock<N>,
) {
    let ones = _mm256_set1_epi16(1);
    for column in 0..N {
        let act_scale = _mm256_set1_ps(act.scale[column]);
        let act_sum = _mm256_set1_ps(act.sum[column]);
        for half in 0..2 {
            let dot = _mm256_cvtepi32_ps(_mm256_madd_epi16(dots[column][half], ones));
            let scale = _mm256_mul_ps(scale[half], act_scale);
            let scaled = _mm256_fmadd_ps(dot, scale, sums[column][half]);
            sums[column][half] = _mm256_fmadd_ps(min[half], act_sum, scaled);
        }
    }
}

/// [`add_scaled`] for dot products that are whole.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn add_affine<const N: usize>(
    sums: &mut [[__m256; 2]; N],
    dots: &[[__m256i; 2]; N],
    scale: [__m256; 2],
    min: [__m256; 2],
    act: &ActBlock<N>,
) {
    for column in 0..N {
        let act_scale = _mm256_set1_ps(act.scale[column]);
        let act_sum = _mm256_set1_ps(act.sum[column]);
        for half in 0..2 {
            let dot = _mm256_cvtepi32_ps(dots[column][half]);
            let scale = _mm256_mul_ps(scale[half], act_scale);
            let scaled = _mm256_fmadd_ps(dot, scale, sums[column][half]);
            sums[column][half] = _mm256_fmadd_ps(min[half], act_sum, scaled);
        }
    }
}
