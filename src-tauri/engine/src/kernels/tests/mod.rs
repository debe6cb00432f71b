//! Every kernel against plain arithmetic in f64, and the AVX2 versions against the portable ones
//! to the bit, over shapes and values that proptest picks.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod goldens;
mod lanes;
mod pages;
mod products;

use burn::tensor::f16;

use super::*;
use crate::gguf::TensorType;

/// A small generator for bulk data; proptest picks its seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 24
    }

    /// Between -1 and 1.
    fn float(&mut self) -> f32 {
        (self.next() % 20_001) as f32 / 10_000.0 - 1.0
    }

    fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.float()).collect()
    }

    /// A row-major tensor in the file's format. Quants take all values, the extremes often.
    fn tensor(&mut self, kind: TensorType, elements: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for _ in 0..elements / kind.block_len() {
            match kind {
                TensorType::F32 => out.extend(self.float().to_le_bytes()),
                TensorType::F16 => out.extend(f16::from_f32(self.float()).to_le_bytes()),
                TensorType::BF16 => out.extend(&self.float().to_le_bytes()[2..]),
                _ => self.block(kind, &mut out),
            }
        }
        out
    }

    /// A block with scales between -1 and 1; all else is any bytes, often extreme ones.
    fn block(&mut self, kind: TensorType, out: &mut Vec<u8>) {
        let first = out.len();
        let edge = self.next() % 3;
        out.extend((0..kind.block_bytes()).map(|_| match edge {
            0 => 0xff,
            1 => [0x80, 0x7f, 0xf0, 0x0f][self.next() as usize % 4],
            _ => self.next() as u8,
        }));
        let scales: &[usize] = match kind {
            TensorType::Q4_1 | TensorType::Q5_1 | TensorType::Q4K | TensorType::Q5K => &[0, 2],
            TensorType::Q6K => &[208],
            _ => &[0],
        };
        for at in scales {
            let scale = f16::from_f32(self.float()).to_le_bytes();
            out[first + at..][..2].copy_from_slice(&scale);
        }
    }
}

fn pack(kind: TensorType, rows: usize, cols: usize, source: &[u8]) -> (Matrix, Vec<u8>) {
    let mut arena = vec![0; packed_bytes(kind, rows, cols)];
    pack_matrix(kind, (rows, cols), source, &mut arena, |row| row);
    (
        Matrix {
            format: Format::of(kind),
            rows,
            cols,
            offset: 0,
        },
        arena,
    )
}

fn activations(isa: Isa, columns: &[Vec<f32>]) -> Activations {
    let mut input = Activations::default();
    input.reset(columns[0].len(), columns.len());
    let mut source = columns.iter();
    for mut panel in input.panels_mut() {
        for values in panel.columns_mut() {
            values.copy_from_slice(source.next().unwrap());
        }
        panel.quantise(isa);
    }
    input
}

/// The product of all tiles as `[column][row]`.
fn product(
    isa: Isa,
    matrix: &Matrix,
    arena: &[u8],
    input: &Activations,
    expand: bool,
) -> Vec<Vec<f32>> {
    let mut out = vec![Vec::new(); input.columns()];
    for tile in 0..matrix.tiles() {
        if input.columns() == 1 {
            out[0].extend(tile_product::<1>(isa, matrix, arena, tile, input, 0)[0]);
            continue;
        }
        for first in (0..input.columns()).step_by(WIDE) {
            let mut expanded = Vec::new();
            let results = if expand && expand_tile(isa, matrix, arena, tile, &mut expanded) {
                expanded_product::<WIDE>(isa, &expanded, input, first)
            } else {
                tile_product::<WIDE>(isa, matrix, arena, tile, input, first)
            };
            for (out, result) in out[first..].iter_mut().zip(results) {
                out.extend(result);
            }
        }
    }
    out
}

fn bits(rows: &[Vec<f32>]) -> Vec<Vec<u32>> {
    rows.iter()
        .map(|row| row.iter().map(|value| value.to_bits()).collect())
        .collect()
}
