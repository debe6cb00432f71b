//! Attention's products for AVX-512.

#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::cell::Cell;
use super::layout::TILE;

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
pub(super) fn store(sums: __m512) -> [f32; TILE] {
    let mut out = [0.0; TILE];
    // SAFETY: `out` is 64 bytes long; the store needs no alignment.
    unsafe { _mm512_storeu_ps(out.as_mut_ptr(), sums) };
    out
}

/// Four pages at once: their sums and rows stay in registers.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
pub(super) fn page_scores<C: Cell, const Q: usize>(
    a: [&[f32]; Q],
    pages: &[&[C]],
    out: [&mut [f32]; Q],
) {
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
fn scores_of<C: Cell, const Q: usize, const P: usize>(
    a: [&[f32]; Q],
    pages: [&[C]; P],
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
            *row = load_cells(&page[index]);
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
pub(super) fn page_sums<C: Cell, const Q: usize>(
    a: [&[f32]; Q],
    pages: &[&[C]],
    out: [&mut [f32]; Q],
) {
    let len = out[0].len() / TILE;
    let mut out = out.map(|out| out.as_chunks_mut::<TILE>().0);
    let mut at = 0;
    while at + 4 <= len {
        sums_of::<C, Q, 4>(a, pages, at, &mut out);
        at += 4;
    }
    while at < len {
        sums_of::<C, Q, 1>(a, pages, at, &mut out);
        at += 1;
    }
}

/// `16 * W` elements of [`page_sums`], from the `at`th sixteen on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn sums_of<C: Cell, const Q: usize, const W: usize>(
    a: [&[f32]; Q],
    pages: &[&[C]],
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
            let mut halves = [_mm512_setzero_ps(); W];
            for (half, row) in halves.iter_mut().zip(&row[at..at + W]) {
                *half = load_cells(row);
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
fn load_cells<C: Cell>(row: &[C; TILE]) -> __m512 {
    // SAFETY: this function has the features.
    unsafe { C::sixteen(row) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
pub(super) fn load_floats(values: &[f32; TILE]) -> __m512 {
    // SAFETY: the reference covers the 64 bytes; the load needs no alignment.
    unsafe { _mm512_loadu_ps(values.as_ptr()) }
}
