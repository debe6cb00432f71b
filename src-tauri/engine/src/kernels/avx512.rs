//! The products of quantised weights for AVX-512 with VNNI: a tile's 16 rows fill one register,
//! and one instruction multiplies and adds four bytes for each of them.

#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::TileOut;
use super::activations::ActBlock;
use super::avx2::prefetch;
use super::blocks::{Nibbles, Q4Block, Q4Centred, Q8Block};
use super::layout::TILE;

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
        let min = _mm512_mul_ps(scale, _mm512_set1_ps(-8.0));
        add_scaled(&mut sums, dots, scale, min, act);
    }
    sums.map(|sums| store(sums))
}

/// Dot products of 32 columns of four bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn four_bits<const N: usize>(quants: &Nibbles, act: &ActBlock<N>) -> [__m512i; N] {
    let nibble = _mm512_set1_epi8(15);
    let mut dots = [_mm512_setzero_si512(); N];
    for (group, packed) in quants.iter().enumerate() {
        let packed = load(packed);
        let low = _mm512_and_si512(packed, nibble);
        let high = _mm512_and_si512(_mm512_srli_epi16::<4>(packed), nibble);
        for (dot, act) in dots.iter_mut().zip(&act.quants) {
            *dot = _mm512_dpbusd_epi32(*dot, low, broadcast(act[group]));
            *dot = _mm512_dpbusd_epi32(*dot, high, broadcast(act[4 + group]));
        }
    }
    dots
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
    for column in 0..N {
        let scale = _mm512_mul_ps(scale, _mm512_set1_ps(act.scale[column]));
        let scaled = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[column]), scale, sums[column]);
        sums[column] = _mm512_fmadd_ps(min, _mm512_set1_ps(act.sum[column]), scaled);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
pub(super) fn q8_tile<const N: usize>(tile: &[Q8Block], panel: &[ActBlock<N>]) -> TileOut<N> {
    // The instruction wants unsigned weights: w + 128, whose surplus is 128 times the block's sum.
    let offset = _mm512_set1_epi8(-128);
    let ones = _mm512_set1_epi8(1);
    let mut sums = [_mm512_setzero_ps(); N];
    for (block, act) in tile.iter().zip(panel) {
        if N == 1 {
            prefetch(block);
        }
        let mut dots = [_mm512_setzero_si512(); N];
        let mut totals = [_mm512_setzero_si512(); N];
        for (group, weights) in block.quants.iter().enumerate() {
            let weights = _mm512_xor_si512(load(weights), offset);
            for column in 0..N {
                let act = broadcast(act.quants[column][group]);
                dots[column] = _mm512_dpbusd_epi32(dots[column], weights, act);
                totals[column] = _mm512_dpbusd_epi32(totals[column], ones, act);
            }
        }
        let scale = load_halves(&block.scale);
        for column in 0..N {
            let surplus = _mm512_slli_epi32::<7>(totals[column]);
            let dot = _mm512_cvtepi32_ps(_mm512_sub_epi32(dots[column], surplus));
            let scale = _mm512_mul_ps(scale, _mm512_set1_ps(act.scale[column]));
            sums[column] = _mm512_fmadd_ps(dot, scale, sums[column]);
        }
    }
    sums.map(|sums| store(sums))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn broadcast(bytes: [u8; 4]) -> __m512i {
    _mm512_set1_epi32(i32::from_ne_bytes(bytes))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn load(halves: &[[u8; 32]; 2]) -> __m512i {
    // SAFETY: the reference covers the 64 bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(halves.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn load_halves(bytes: &[[u8; 16]; 2]) -> __m512 {
    // SAFETY: the reference covers the 32 bytes; the load needs no alignment.
    _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn store(sums: __m512) -> [f32; TILE] {
    let mut out = [0.0; TILE];
    // SAFETY: `out` is 64 bytes long; the store needs no alignment.
    unsafe { _mm512_storeu_ps(out.as_mut_ptr(), sums) };
    out
}

/// Four pages at once: their sums and rows stay in registers.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
pub(super) fn page_scores<const Q: usize>(a: [&[f32]; Q], pages: &[&[u16]], out: [&mut [f32]; Q]) {
    let mut out = out.map(|out| out.as_chunks_mut::<TILE>().0);
    let mut at = 0;
    while let Some(four) = pages[at..].first_chunk::<4>() {
        scores_of(a, *four, at, &mut out);
        at += 4;
    }
    for (at, page) in pages.iter().enumerate().skip(at) {
        scores_of(a, [*page], at, &mut out);
    }
}

/// The scores of `P` pages, from page `at` on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn scores_of<const Q: usize, const P: usize>(
    a: [&[f32]; Q],
    pages: [&[u16]; P],
    at: usize,
    out: &mut [&mut [[f32; TILE]]; Q],
) {
    let inner = a[0].len();
    let a = a.map(|a| &a[..inner]);
    let pages = pages.map(|page| &page.as_chunks::<TILE>().0[..inner]);
    let mut sums = [[_mm512_setzero_ps(); P]; Q];
    for index in 0..inner {
        let mut rows = [_mm512_setzero_ps(); P];
        for (row, page) in rows.iter_mut().zip(&pages) {
            *row = load_half_row(&page[index]);
        }
        for (sums, a) in sums.iter_mut().zip(&a) {
            let value = _mm512_set1_ps(a[index]);
            for (sum, row) in sums.iter_mut().zip(rows) {
                *sum = _mm512_fmadd_ps(value, row, *sum);
            }
        }
    }
    for (sums, out) in sums.into_iter().zip(out) {
        for (sum, out) in sums.into_iter().zip(&mut out[at..]) {
            *out = store(sum);
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
pub(super) fn page_sums<const Q: usize>(a: [&[f32]; Q], pages: &[&[u16]], out: [&mut [f32]; Q]) {
    let len = out[0].len() / TILE;
    let mut out = out.map(|out| out.as_chunks_mut::<TILE>().0);
    let mut at = 0;
    while at + 4 <= len {
        sums_of::<Q, 4>(a, pages, at, &mut out);
        at += 4;
    }
    while at < len {
        sums_of::<Q, 1>(a, pages, at, &mut out);
        at += 1;
    }
}

/// `16 * W` elements of [`page_sums`], from the `at`th sixteen on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn sums_of<const Q: usize, const W: usize>(
    a: [&[f32]; Q],
    pages: &[&[u16]],
    at: usize,
    out: &mut [&mut [[f32; TILE]]; Q],
) {
    let (inner, len) = (a[0].len(), out[0].len());
    let mut sums = [[_mm512_setzero_ps(); W]; Q];
    for (sums, out) in sums.iter_mut().zip(&*out) {
        for (sum, out) in sums.iter_mut().zip(&out[at..]) {
            *sum = load_floats(out);
        }
    }
    for (first, page) in (0..inner).step_by(TILE).zip(pages) {
        let last = (first + TILE).min(inner);
        let a = a.map(|a| &a[first..last]);
        let rows = page.as_chunks::<TILE>().0.chunks_exact(len);
        for (index, row) in rows.take(last - first).enumerate() {
            let row: &[_; W] = row[at..at + W]
                .as_chunks::<W>()
                .0
                .first()
                .unwrap_or(&[[0; TILE]; W]);
            let mut halves = [_mm512_setzero_ps(); W];
            for (half, row) in halves.iter_mut().zip(row) {
                *half = load_half_row(row);
            }
            for (sums, a) in sums.iter_mut().zip(&a) {
                let value = _mm512_set1_ps(a[index]);
                for (sum, half) in sums.iter_mut().zip(halves) {
                    *sum = _mm512_fmadd_ps(value, half, *sum);
                }
            }
        }
    }
    for (sums, out) in sums.into_iter().zip(out) {
        for (sum, out) in sums.into_iter().zip(&mut out[at..]) {
            *out = store(sum);
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn load_half_row(halves: &[u16; TILE]) -> __m512 {
    // SAFETY: the reference covers the 32 bytes; the load needs no alignment.
    _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(halves.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn load_floats(values: &[f32; TILE]) -> __m512 {
    // SAFETY: the reference covers the 64 bytes; the load needs no alignment.
    unsafe { _mm512_loadu_ps(values.as_ptr()) }
}
