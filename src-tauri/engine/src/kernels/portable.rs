//! The kernels in plain Rust: what the others are tested against, and what runs where there is no
//! AVX2. The loops mirror the order in which the SIMD lanes add, so that results agree to the bit.

use super::TileOut;
use super::activations::ActBlock;
use super::blocks::{
    Block, K4Block, K5Block, K6Block, Nibbles, Q4Block, Q4Centred, Q5Block, Q5Centred, Q8Block,
};
use super::cell::Cell;
use super::layout::{BLOCK, Expanded, TILE};

#[inline(always)]
fn block_tile<B: Block, const N: usize>(tile: &[B], panel: &[ActBlock<N>]) -> TileOut<N> {
    let mut out = [[0.0; TILE]; N];
    for (index, act) in panel.iter().enumerate() {
        let (block, part) = (&tile[index / B::PARTS], index % B::PARTS);
        for lane in 0..TILE {
            let (scale, min) = (block.scale(part, lane), block.min(part, lane));
            let factors = block.factors(part, lane);
            for (column, out) in out.iter_mut().enumerate() {
                let mut dots = [0; 2];
                for (at, act) in act.quants[column].as_flattened().iter().enumerate() {
                    dots[at / 16] += block.quant(part, lane, at) * i32::from(*act as i8);
                }
                let dot = dots[0] * factors[0] + dots[1] * factors[1];
                out[lane] = (dot as f32).mul_add(scale * act.scale[column], out[lane]);
                if let Some(min) = min {
                    out[lane] = min.mul_add(act.sum[column], out[lane]);
                }
            }
        }
    }
    out
}

pub(super) fn q4_centred<const N: usize>(tile: &[Q4Centred], panel: &[ActBlock<N>]) -> TileOut<N> {
    block_tile(tile, panel)
}

pub(super) fn q5_centred<const N: usize>(tile: &[Q5Centred], panel: &[ActBlock<N>]) -> TileOut<N> {
    block_tile(tile, panel)
}

pub(super) fn q4_tile<const N: usize>(tile: &[Q4Block], panel: &[ActBlock<N>]) -> TileOut<N> {
    block_tile(tile, panel)
}

pub(super) fn q5_tile<const N: usize>(tile: &[Q5Block], panel: &[ActBlock<N>]) -> TileOut<N> {
    block_tile(tile, panel)
}

pub(super) fn q8_tile<const N: usize>(tile: &[Q8Block], panel: &[ActBlock<N>]) -> TileOut<N> {
    block_tile(tile, panel)
}

pub(super) fn k4_tile<const N: usize>(tile: &[K4Block], panel: &[ActBlock<N>]) -> TileOut<N> {
    block_tile(tile, panel)
}

pub(super) fn k5_tile<const N: usize>(tile: &[K5Block], panel: &[ActBlock<N>]) -> TileOut<N> {
    block_tile(tile, panel)
}

pub(super) fn k6_tile<const N: usize>(tile: &[K6Block], panel: &[ActBlock<N>]) -> TileOut<N> {
    block_tile(tile, panel)
}

/// The float that each BF16 is the upper half of, times the input.
#[inline(always)]
pub(super) fn bfloat_tile<const N: usize>(tile: &[u16], input: [&[f32]; N]) -> TileOut<N> {
    let mut out = [[0.0; TILE]; N];
    for (index, weights) in tile.as_chunks::<TILE>().0.iter().enumerate() {
        let weights = weights.map(|half| f32::from_bits(u32::from(half) << 16));
        for (out, input) in out.iter_mut().zip(input) {
            for (out, weight) in out.iter_mut().zip(weights) {
                *out = weight.mul_add(input[index], *out);
            }
        }
    }
    out
}

/// Unpacks blocks of four-bit weights.
#[inline(always)]
fn expand<'a, B: Block>(
    tile: &'a [B],
    out: &mut [Expanded],
    quants: impl Fn(&'a B, usize) -> &'a Nibbles,
) {
    for (block, out) in tile.iter().zip(out.chunks_exact_mut(B::PARTS)) {
        for (part, out) in out.iter_mut().enumerate() {
            for lane in 0..TILE {
                out.scale[lane] = block.scale(part, lane);
                out.min[lane] = block.min(part, lane).unwrap_or_default();
            }
            for (group, quants) in quants(block, part).iter().enumerate() {
                out.quants[group] = quants.map(|half| half.map(|byte| byte & 15));
                out.quants[4 + group] = quants.map(|half| half.map(|byte| byte >> 4));
            }
        }
    }
}

pub(super) fn q4_expand_centred(tile: &[Q4Centred], out: &mut [Expanded]) {
    expand(tile, out, |block, _| &block.quants);
}

pub(super) fn q4_expand(tile: &[Q4Block], out: &mut [Expanded]) {
    expand(tile, out, |block, _| &block.quants);
}

pub(super) fn k4_expand(tile: &[K4Block], out: &mut [Expanded]) {
    expand(tile, out, |block, part| &block.quants[part]);
}

pub(super) fn expanded_tile<const N: usize>(
    tile: &[Expanded],
    panel: &[ActBlock<N>],
) -> TileOut<N> {
    let mut out = [[0.0; TILE]; N];
    for (block, act) in tile.iter().zip(panel) {
        for row in 0..TILE {
            for (column, out) in out.iter_mut().enumerate() {
                let mut dot = 0;
                for group in 0..8 {
                    for byte in 0..4 {
                        let weight = block.quants[group][row / 8][4 * (row % 8) + byte];
                        let value = act.quants[column][group][byte] as i8;
                        dot += i32::from(weight) * i32::from(value);
                    }
                }
                let scale = block.scale[row] * act.scale[column];
                let scaled = (dot as f32).mul_add(scale, out[row]);
                out[row] = block.min[row].mul_add(act.sum[column], scaled);
            }
        }
    }
    out
}

pub(super) fn half_product<const Q: usize>(
    a: [&[f32]; Q],
    b: &[u16],
    stride: usize,
    out: [&mut [f32]; Q],
) {
    for (a, out) in a.into_iter().zip(out) {
        cell_product(a, b, stride, out);
    }
}

/// `out[j] += sum over i of a[i] * b[i * stride + j]`.
fn cell_product<C: Cell>(a: &[f32], b: &[C], stride: usize, out: &mut [f32]) {
    for (&a, b) in a.iter().zip(b.chunks(stride)) {
        for (out, &b) in out.iter_mut().zip(b) {
            *out = a.mul_add(b.wide(), *out);
        }
    }
}

pub(super) fn page_scores<C: Cell, const Q: usize>(
    a: [&[f32]; Q],
    pages: &[&[C]],
    out: [&mut [f32]; Q],
) {
    for (a, out) in a.into_iter().zip(out) {
        out.fill(0.0);
        for (page, out) in pages.iter().zip(out.as_chunks_mut::<TILE>().0) {
            cell_product(a, page, TILE, out);
        }
    }
}

pub(super) fn page_sums<C: Cell, const Q: usize>(
    a: [&[f32]; Q],
    pages: &[&[C]],
    out: [&mut [f32]; Q],
) {
    for (a, out) in a.into_iter().zip(out) {
        for (a, page) in a.chunks(TILE).zip(pages) {
            cell_product(a, page, out.len(), out);
        }
    }
}

#[inline(always)]
pub(super) fn float_tile<const N: usize>(tile: &[f32], input: [&[f32]; N]) -> TileOut<N> {
    let mut out = [[0.0; TILE]; N];
    for (index, weights) in tile.as_chunks::<TILE>().0.iter().enumerate() {
        for (out, input) in out.iter_mut().zip(input) {
            for (out, weight) in out.iter_mut().zip(weights) {
                *out = weight.mul_add(input[index], *out);
            }
        }
    }
    out
}

pub(super) fn store_halves(values: &[f32], out: &mut [u16]) {
    for (value, out) in values.iter().zip(out) {
        *out = burn::tensor::f16::from_f32(*value).to_bits();
    }
}

pub(super) fn quantise<const N: usize>(values: &[f32], column: usize, panel: &mut [ActBlock<N>]) {
    for (values, block) in values.as_chunks::<BLOCK>().0.iter().zip(panel) {
        let peak = values
            .iter()
            .fold(0.0, |peak: f32, value| peak.max(value.abs()));
        // Below this 127 / peak overflows, and the block is nothing beside any other.
        let inverse = if peak > 1e-30 { 127.0 / peak } else { 0.0 };
        let mut totals = [0; 2];
        let quants = block.quants[column].as_flattened_mut();
        for (index, (quant, value)) in quants.iter_mut().zip(values).enumerate() {
            let rounded = (value * inverse).round_ties_even() as i8;
            totals[index / 16] += i32::from(rounded);
            *quant = rounded as u8;
        }
        let finite = values.iter().all(|value| value.is_finite());
        let scale = if finite { peak / 127.0 } else { f32::NAN };
        block.scale[column] = scale;
        block.sum[column] = scale * (totals[0] + totals[1]) as f32;
        block.totals[column] = totals;
    }
}
