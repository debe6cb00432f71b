//! The products of quantised weights for AVX-512 with VNNI: a tile's 16 rows fill one register,
//! and one instruction multiplies and adds four bytes for each of them.
//!
//! It wants unsigned weights. Those that count from below zero are taken from there on, and the sum
//! of the activations, times what that is too much, goes off.

#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::TileOut;
use super::activations::ActBlock;
use super::avx2::prefetch;
use super::avx512::{load_floats, store};
use super::blocks::{
    Bits, K4Block, K5Block, K6Block, Nibbles, PARTS, Q4Block, Q4Centred, Q5Block, Q5Centred,
    Q8Block,
};
use super::layout::{Expanded, TILE};

#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
pub(super) fn q4_tile<const N: usize>(tile: &[Q4Block], panel: &[ActBlock<N>]) -> TileOut<N> {
    let mut sums = [_mm512_setzero_ps(); N];
    for (block, act) in tile.iter().zip(panel) {
        if N == 1 {
            prefetch(block);
        }
        let dots = four_bits(&block.quants, act);
        let (scale, min) = (load_halves(&block.scale), load_halves(&block.min));
        add_scaled(&mut sums, dots, scale, min, act);
    }
    sums.map(|sums| store(sums))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
pub(super) fn q4_centred<const N: usize>(tile: &[Q4Centred], panel: &[ActBlock<N>]) -> TileOut<N> {
    let mut sums = [_mm512_setzero_ps(); N];
    for (block, act) in tile.iter().zip(panel) {
        if N == 1 {
            prefetch(block);
        }
        let dots = four_bits(&block.quants, act);
        let scale = load_halves(&block.scale);
        add_scaled(&mut sums, dots, scale, centred::<8>(scale), act);
    }
    sums.map(|sums| store(sums))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
pub(super) fn q5_tile<const N: usize>(tile: &[Q5Block], panel: &[ActBlock<N>]) -> TileOut<N> {
    let mut sums = [_mm512_setzero_ps(); N];
    for (block, act) in tile.iter().zip(panel) {
        if N == 1 {
            prefetch(block);
        }
        let dots = five_bits(&block.quants, &block.high, act);
        let (scale, min) = (load_halves(&block.scale), load_halves(&block.min));
        add_scaled(&mut sums, dots, scale, min, act);
    }
    sums.map(|sums| store(sums))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
pub(super) fn q5_centred<const N: usize>(tile: &[Q5Centred], panel: &[ActBlock<N>]) -> TileOut<N> {
    let mut sums = [_mm512_setzero_ps(); N];
    for (block, act) in tile.iter().zip(panel) {
        if N == 1 {
            prefetch(block);
        }
        let dots = five_bits(&block.quants, &block.high, act);
        let scale = load_halves(&block.scale);
        add_scaled(&mut sums, dots, scale, centred::<16>(scale), act);
    }
    sums.map(|sums| store(sums))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
pub(super) fn q8_tile<const N: usize>(tile: &[Q8Block], panel: &[ActBlock<N>]) -> TileOut<N> {
    let offset = _mm512_set1_epi8(-128);
    let mut sums = [_mm512_setzero_ps(); N];
    for (block, act) in tile.iter().zip(panel) {
        if N == 1 {
            prefetch(block);
        }
        let mut dots = [_mm512_setzero_si512(); N];
        for (dot, [lower, upper]) in dots.iter_mut().zip(act.totals) {
            *dot = _mm512_set1_epi32(-128 * (lower + upper));
        }
        for (group, weights) in block.quants.iter().enumerate() {
            add_dots(
                &mut dots,
                _mm512_xor_si512(load(weights), offset),
                act,
                group,
            );
        }
        add_products(
            &mut sums,
            dots.map(|dots| _mm512_cvtepi32_ps(dots)),
            load_halves(&block.scale),
            act,
        );
    }
    sums.map(|sums| store(sums))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
pub(super) fn k4_tile<const N: usize>(tile: &[K4Block], panel: &[ActBlock<N>]) -> TileOut<N> {
    let mut sums = [_mm512_setzero_ps(); N];
    for (block, acts) in tile.iter().zip(panel.as_chunks::<PARTS>().0) {
        if N == 1 {
            prefetch(block);
        }
        let (scale, min) = (load_halves(&block.scale), negated(load_halves(&block.min)));
        for (part, act) in acts.iter().enumerate() {
            let dots = four_bits(&block.quants[part], act);
            let (scale, min) = (
                times(scale, &block.scales[part]),
                times(min, &block.mins[part]),
            );
            add_scaled(&mut sums, dots, scale, min, act);
        }
    }
    sums.map(|sums| store(sums))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
pub(super) fn k5_tile<const N: usize>(tile: &[K5Block], panel: &[ActBlock<N>]) -> TileOut<N> {
    let mut sums = [_mm512_setzero_ps(); N];
    for (block, acts) in tile.iter().zip(panel.as_chunks::<PARTS>().0) {
        if N == 1 {
            prefetch(block);
        }
        let (scale, min) = (load_halves(&block.scale), negated(load_halves(&block.min)));
        for (part, act) in acts.iter().enumerate() {
            let dots = five_bits(&block.quants[part], &block.high[part], act);
            let (scale, min) = (
                times(scale, &block.scales[part]),
                times(min, &block.mins[part]),
            );
            add_scaled(&mut sums, dots, scale, min, act);
        }
    }
    sums.map(|sums| store(sums))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
pub(super) fn k6_tile<const N: usize>(tile: &[K6Block], panel: &[ActBlock<N>]) -> TileOut<N> {
    let mut sums = [_mm512_setzero_ps(); N];
    for (block, acts) in tile.iter().zip(panel.as_chunks::<PARTS>().0) {
        if N == 1 {
            prefetch(block);
        }
        let scale = load_halves(&block.scale);
        for (part, act) in acts.iter().enumerate() {
            let lower = six_bits::<N, 0>(block, part, act);
            let upper = six_bits::<N, 1>(block, part, act);
            let factors = block.scales[part].map(|factors| signed(&factors));
            let mut dots = [_mm512_setzero_ps(); N];
            for (dot, (lower, upper)) in dots.iter_mut().zip(lower.into_iter().zip(upper)) {
                // Exact: both products together are at most 2 * (16 * 32 * 127) * 128, below 2^24.
                let lower = _mm512_mul_ps(_mm512_cvtepi32_ps(lower), factors[0]);
                *dot = _mm512_fmadd_ps(_mm512_cvtepi32_ps(upper), factors[1], lower);
            }
            add_products(&mut sums, dots, scale, act);
        }
    }
    sums.map(|sums| store(sums))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
pub(super) fn expanded_tile<const N: usize>(
    tile: &[Expanded],
    panel: &[ActBlock<N>],
) -> TileOut<N> {
    let mut sums = [_mm512_setzero_ps(); N];
    for (block, act) in tile.iter().zip(panel) {
        let mut dots = [_mm512_setzero_si512(); N];
        for (group, weights) in block.quants.iter().enumerate() {
            add_dots(&mut dots, load(weights), act, group);
        }
        let (scale, min) = (load_floats(&block.scale), load_floats(&block.min));
        add_scaled(&mut sums, dots, scale, min, act);
    }
    sums.map(|sums| store(sums))
}

/// Dot products of 32 columns of four bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn four_bits<const N: usize>(quants: &Nibbles, act: &ActBlock<N>) -> [__m512i; N] {
    let mut dots = [_mm512_setzero_si512(); N];
    for (group, packed) in quants.iter().enumerate() {
        let [low, high] = nibbles(packed);
        add_dots(&mut dots, low, act, group);
        add_dots(&mut dots, high, act, 4 + group);
    }
    dots
}

/// Dot products of 32 columns of five bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn five_bits<const N: usize>(quants: &Nibbles, high: &Bits, act: &ActBlock<N>) -> [__m512i; N] {
    let sixteen = _mm512_set1_epi8(16);
    let fifth = load(high);
    let mut dots = [_mm512_setzero_si512(); N];
    for (group, packed) in quants.iter().enumerate() {
        for (upper, nibbles) in nibbles(packed).into_iter().enumerate() {
            let group = 4 * upper + group;
            let set = _mm512_test_epi8_mask(fifth, _mm512_set1_epi8((1u8 << group) as i8));
            let weights = _mm512_mask_add_epi8(nibbles, set, nibbles, sixteen);
            add_dots(&mut dots, weights, act, group);
        }
    }
    dots
}

/// Dot products of columns `16 * UPPER..` of a part.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn six_bits<const N: usize, const UPPER: usize>(
    block: &K6Block,
    part: usize,
    act: &ActBlock<N>,
) -> [__m512i; N] {
    let two = _mm512_set1_epi8(3);
    let mut dots = [_mm512_setzero_si512(); N];
    for (dot, totals) in dots.iter_mut().zip(act.totals) {
        *dot = _mm512_set1_epi32(-32 * totals[UPPER]);
    }
    let mut high = load(&block.high[part][UPPER]);
    for (group, packed) in block.quants[part].iter().enumerate() {
        let above = _mm512_slli_epi16::<4>(_mm512_and_si512(high, two));
        let weights = _mm512_or_si512(nibbles(packed)[UPPER], above);
        high = _mm512_srli_epi16::<2>(high);
        add_dots(&mut dots, weights, act, 4 * UPPER + group);
    }
    dots
}

/// Low and high nibbles as bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn nibbles(packed: &[[u8; 32]; 2]) -> [__m512i; 2] {
    let nibble = _mm512_set1_epi8(15);
    let packed = load(packed);
    [
        _mm512_and_si512(packed, nibble),
        _mm512_and_si512(_mm512_srli_epi16::<4>(packed), nibble),
    ]
}

/// Adds the products of four columns.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn add_dots<const N: usize>(
    dots: &mut [__m512i; N],
    weights: __m512i,
    act: &ActBlock<N>,
    group: usize,
) {
    for (dot, act) in dots.iter_mut().zip(&act.quants) {
        let act = _mm512_set1_epi32(i32::from_ne_bytes(act[group]));
        *dot = _mm512_dpbusd_epi32(*dot, weights, act);
    }
}

/// `sums += dots * scale * act.scale + min * act.sum` for all columns.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn add_scaled<const N: usize>(
    sums: &mut [__m512; N],
    dots: [__m512i; N],
    scale: __m512,
    min: __m512,
    act: &ActBlock<N>,
) {
    add_products(sums, dots.map(|dots| _mm512_cvtepi32_ps(dots)), scale, act);
    for (sum, act) in sums.iter_mut().zip(act.sum) {
        *sum = _mm512_fmadd_ps(min, _mm512_set1_ps(act), *sum);
    }
}

/// `sums += dots * scale * act.scale` for all columns.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn add_products<const N: usize>(
    sums: &mut [__m512; N],
    dots: [__m512; N],
    scale: __m512,
    act: &ActBlock<N>,
) {
    for (sum, (dot, act)) in sums.iter_mut().zip(dots.into_iter().zip(act.scale)) {
        let scale = _mm512_mul_ps(scale, _mm512_set1_ps(act));
        *sum = _mm512_fmadd_ps(dot, scale, *sum);
    }
}

/// `values[lane] * factors[lane]`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn times(values: __m512, factors: &[u8; TILE]) -> __m512 {
    let factors = _mm512_cvtepu8_epi32(load_bytes(factors));
    _mm512_mul_ps(values, _mm512_cvtepi32_ps(factors))
}

/// Signed bytes as floats.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn signed(bytes: &[u8; TILE]) -> __m512 {
    _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_bytes(bytes)))
}

/// What is added where quants count from `-OFFSET`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn centred<const OFFSET: i8>(scale: __m512) -> __m512 {
    _mm512_mul_ps(scale, _mm512_set1_ps(-f32::from(OFFSET)))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn negated(values: __m512) -> __m512 {
    let sign = _mm512_set1_epi32(i32::MIN);
    _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(values), sign))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn load(halves: &[[u8; 32]; 2]) -> __m512i {
    // SAFETY: the reference covers the 64 bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(halves.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn load_bytes(bytes: &[u8; TILE]) -> __m128i {
    // SAFETY: the reference covers the 16 bytes; the load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn load_halves(bytes: &[[u8; 16]; 2]) -> __m512 {
    // SAFETY: the reference covers the 32 bytes; the load needs no alignment.
    _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) })
}
