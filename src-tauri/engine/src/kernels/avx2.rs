//! The kernels for AVX2. A tile has one output row per lane, so sums never cross lanes.

#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::activations::ActBlock;
use super::cell::Cell;
use super::layout::{BLOCK, TILE};
use super::{TileOut, portable};

/// How far ahead of use weights are fetched when they are read once (a single column).
const AHEAD: usize = 4096;

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn half_product<const Q: usize>(
    a: [&[f32]; Q],
    b: &[u16],
    stride: usize,
    mut out: [&mut [f32]; Q],
) {
    // Twelve sums, the broadcast values and one row of `b` fill the 16 registers.
    let mut at = 0;
    if Q <= 3 {
        while at + 32 <= out[0].len() {
            half_strip::<Q, 4>(
                a,
                &b[at..],
                stride,
                out.each_mut().map(|out| &mut out[at..at + 32]),
            );
            at += 32;
        }
    }
    while at + 16 <= out[0].len() {
        half_strip::<Q, 2>(
            a,
            &b[at..],
            stride,
            out.each_mut().map(|out| &mut out[at..at + 16]),
        );
        at += 16;
    }
}

/// `8 * W` columns of [`half_product`].
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn half_strip<const Q: usize, const W: usize>(
    a: [&[f32]; Q],
    b: &[u16],
    stride: usize,
    out: [&mut [f32]; Q],
) {
    let mut sums = [[_mm256_setzero_ps(); W]; Q];
    for (sums, out) in sums.iter_mut().zip(&out) {
        for (sum, out) in sums.iter_mut().zip(out.as_chunks::<8>().0) {
            *sum = load_eight(out);
        }
    }
    for index in 0..a[0].len() {
        let row = b[index * stride..][..8 * W].as_chunks::<8>().0;
        let values = a.map(|a| _mm256_set1_ps(a[index]));
        for (lane, row) in row.iter().enumerate() {
            let row = load_cells(row);
            for (sums, value) in sums.iter_mut().zip(values) {
                sums[lane] = _mm256_fmadd_ps(value, row, sums[lane]);
            }
        }
    }
    for (sums, out) in sums.iter().zip(out) {
        for (sum, out) in sums.iter().zip(out.chunks_exact_mut(8)) {
            store_floats(*sum, out);
        }
    }
}

/// Two pages at once where few queries would leave the multipliers waiting for their own sums.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn page_scores<C: Cell, const Q: usize>(
    a: [&[f32]; Q],
    pages: &[&[C]],
    out: [&mut [f32]; Q],
) {
    let mut out = out.map(|out| out.as_chunks_mut::<TILE>().0);
    let mut at = 0;
    if Q <= 3 {
        while at + 2 <= pages.len() {
            scores_of::<C, Q, 2>(a, [pages[at], pages[at + 1]], at, &mut out);
            at += 2;
        }
    }
    while at < pages.len() {
        scores_of::<C, Q, 1>(a, [pages[at]], at, &mut out);
        at += 1;
    }
}

/// The scores of `P` pages, from page `at` on.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn scores_of<C: Cell, const Q: usize, const P: usize>(
    a: [&[f32]; Q],
    pages: [&[C]; P],
    at: usize,
    out: &mut [&mut [[f32; TILE]]; Q],
) {
    let inner = a[0].len();
    let a = a.map(|a| &a[..inner]);
    let pages = pages.map(|page| &page.as_chunks::<TILE>().0[..inner]);
    let mut sums = [[[_mm256_setzero_ps(); 2]; P]; Q];
    for index in 0..inner {
        let mut rows = [[_mm256_setzero_ps(); 2]; P];
        for (halves, page) in rows.iter_mut().zip(&pages) {
            for (half, row) in halves.iter_mut().zip(page[index].as_chunks::<8>().0) {
                *half = load_cells(row);
            }
        }
        for (sums, a) in sums.iter_mut().zip(&a) {
            let value = _mm256_set1_ps(a[index]);
            for (sums, halves) in sums.iter_mut().zip(&rows) {
                for (sum, half) in sums.iter_mut().zip(halves) {
                    *sum = _mm256_fmadd_ps(value, *half, *sum);
                }
            }
        }
    }
    for (sums, out) in sums.iter().zip(out) {
        for (sums, out) in sums.iter().zip(&mut out[at..]) {
            for (sum, out) in sums.iter().zip(out.as_chunks_mut::<8>().0) {
                store_floats(*sum, out);
            }
        }
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn page_sums<C: Cell, const Q: usize>(
    a: [&[f32]; Q],
    pages: &[&[C]],
    mut out: [&mut [f32]; Q],
) {
    let mut at = 0;
    if Q <= 3 {
        while at + 32 <= out[0].len() {
            sums_of::<C, Q, 4>(a, pages, at, &mut out);
            at += 32;
        }
    }
    while at + 16 <= out[0].len() {
        sums_of::<C, Q, 2>(a, pages, at, &mut out);
        at += 16;
    }
}

/// `8 * W` elements of [`page_sums`], from element `at` on.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn sums_of<C: Cell, const Q: usize, const W: usize>(
    a: [&[f32]; Q],
    pages: &[&[C]],
    at: usize,
    out: &mut [&mut [f32]; Q],
) {
    let len = out[0].len();
    let mut sums = [[_mm256_setzero_ps(); W]; Q];
    for (sums, out) in sums.iter_mut().zip(&*out) {
        for (sum, out) in sums.iter_mut().zip(out[at..].as_chunks::<8>().0) {
            *sum = load_eight(out);
        }
    }
    for (index, page) in (0..a[0].len()).step_by(TILE).zip(pages) {
        let last = (index + TILE).min(a[0].len());
        let terms = a.map(|a| &a[index..last]);
        for (index, row) in page.chunks_exact(len).take(last - index).enumerate() {
            let mut halves = [_mm256_setzero_ps(); W];
            for (half, row) in halves
                .iter_mut()
                .zip(row[at..at + 8 * W].as_chunks::<8>().0)
            {
                *half = load_cells(row);
            }
            for (sums, terms) in sums.iter_mut().zip(&terms) {
                let value = _mm256_set1_ps(terms[index]);
                for (sum, half) in sums.iter_mut().zip(halves) {
                    *sum = _mm256_fmadd_ps(value, half, *sum);
                }
            }
        }
    }
    for (sums, out) in sums.iter().zip(out) {
        for (sum, out) in sums.iter().zip(out[at..].chunks_exact_mut(8)) {
            store_floats(*sum, out);
        }
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn float_tile<const N: usize>(tile: &[f32], input: [&[f32]; N]) -> TileOut<N> {
    portable::float_tile(tile, input)
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn bfloat_tile<const N: usize>(tile: &[u16], input: [&[f32]; N]) -> TileOut<N> {
    portable::bfloat_tile(tile, input)
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn store_halves(values: &[f32], out: &mut [u16]) {
    let (values, rest) = values.as_chunks::<8>();
    let (chunks, out_rest) = out.as_chunks_mut::<8>();
    for (values, out) in values.iter().zip(chunks) {
        let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(load_eight(values));
        // SAFETY: `out` is 16 bytes long; the store needs no alignment.
        unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), halves) };
    }
    portable::store_halves(rest, out_rest);
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn quantise<const N: usize>(values: &[f32], column: usize, panel: &mut [ActBlock<N>]) {
    let sign = _mm256_set1_ps(-0.0);
    let ones = _mm256_set1_epi16(1);
    // Packing works within 128-bit halves: this puts the groups of four back in order.
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (values, block) in values.as_chunks::<BLOCK>().0.iter().zip(panel) {
        let chunks = values.as_chunks::<8>().0;
        let values = [0, 1, 2, 3].map(|index| load_eight(&chunks[index]));
        let sizes = values.map(|values| _mm256_andnot_ps(sign, values));
        let peak = largest(_mm256_max_ps(
            _mm256_max_ps(sizes[0], sizes[1]),
            _mm256_max_ps(sizes[2], sizes[3]),
        ));
        let inverse = _mm256_set1_ps(if peak > 1e-30 { 127.0 / peak } else { 0.0 });
        let whole = values.map(|values| _mm256_cvtps_epi32(_mm256_mul_ps(values, inverse)));
        let low = _mm256_packs_epi32(whole[0], whole[1]);
        let high = _mm256_packs_epi32(whole[2], whole[3]);
        let totals = [low, high].map(|half| add_across(_mm256_madd_epi16(half, ones)));
        let bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
        // SAFETY: the column's quants are 32 bytes; the store needs no alignment.
        unsafe { _mm256_storeu_si256(block.quants[column].as_mut_ptr().cast(), bytes) };
        let unknown = _mm256_or_ps(
            _mm256_cmp_ps::<_CMP_UNORD_Q>(values[0], values[1]),
            _mm256_cmp_ps::<_CMP_UNORD_Q>(values[2], values[3]),
        );
        let finite = peak.is_finite() && _mm256_movemask_ps(unknown) == 0;
        let scale = if finite { peak / 127.0 } else { f32::NAN };
        block.scale[column] = scale;
        block.sum[column] = scale * (totals[0] + totals[1]) as f32;
        block.totals[column] = totals;
    }
}

/// The largest of eight floats.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn largest(values: __m256) -> f32 {
    let four = _mm_max_ps(
        _mm256_castps256_ps128(values),
        _mm256_extractf128_ps::<1>(values),
    );
    let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
}

/// The sum of eight integers.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn add_across(values: __m256i) -> i32 {
    let four = _mm_add_epi32(
        _mm256_castsi256_si128(values),
        _mm256_extracti128_si256::<1>(values),
    );
    let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
    _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two)))
}

/// Hides a value from LLVM, which would otherwise turn the chain of additions into a tree, with
/// every product alive at once and half the tile spilled to the stack.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn keep_order(value: &mut __m256i) {
    // SAFETY: the empty instruction reads and writes the named register only.
    unsafe {
        std::arch::asm!(
            "/* {0} */",
            inout(ymm_reg) * value,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn broadcast(bytes: [u8; 4]) -> __m256i {
    _mm256_set1_epi32(i32::from_ne_bytes(bytes))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the reference covers the 32 bytes; the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn load_halves(bytes: &[u8; 16]) -> __m256 {
    // SAFETY: the reference covers the 16 bytes; the load needs no alignment.
    _mm256_cvtph_ps(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn load_cells<C: Cell>(row: &[C; 8]) -> __m256 {
    // SAFETY: this function has the features.
    unsafe { C::eight(row) }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn load_eight(values: &[f32; 8]) -> __m256 {
    // SAFETY: the reference covers the 32 bytes; the load needs no alignment.
    unsafe { _mm256_loadu_ps(values.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn load_floats(values: &[f32; TILE]) -> [__m256; 2] {
    let halves = values.as_chunks::<8>().0;
    [load_eight(&halves[0]), load_eight(&halves[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn store_floats(values: __m256, out: &mut [f32]) {
    assert!(out.len() >= 8);
    // SAFETY: `out` holds at least eight floats; the store needs no alignment.
    unsafe { _mm256_storeu_ps(out.as_mut_ptr(), values) };
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn store<const N: usize>(sums: &[[__m256; 2]; N]) -> TileOut<N> {
    let mut out = [[0.0; TILE]; N];
    for (out, sums) in out.iter_mut().zip(sums) {
        let (low, high) = out.split_at_mut(8);
        store_floats(sums[0], low);
        store_floats(sums[1], high);
    }
    out
}

/// Fetches what lies [`AHEAD`] bytes after a block; the address may be past the weights' end.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn prefetch<T>(block: &T) {
    let start = std::ptr::from_ref(block).cast::<i8>();
    for line in (0..size_of::<T>()).step_by(64) {
        // A hint, which never faults, whatever the address.
        _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(AHEAD + line));
    }
}
