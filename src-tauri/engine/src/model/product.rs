//! Matrix products of a step, tile by tile, and the memory they write.

use crate::kernels::{
    Activations, Expanded, Isa, Matrix, TILE, WIDE, expand_tile, expanded_product, tile_product,
};
use crate::pool::Pool;

/// Columns from which on unpacking a tile first is faster.
const EXPAND_FROM: usize = 24;

/// Vectors of `rows` elements for some columns, as `[tile][column][16]`.
#[derive(Debug, Default)]
pub(crate) struct Tiles {
    pub(crate) columns: usize,
    /// Floats from one tile to the next; with several columns padded off powers of two, whose
    /// multiples would all fall into the same cache set.
    pub(crate) stride: usize,
    pub(crate) data: Vec<f32>,
}

impl Tiles {
    pub(crate) fn reset(&mut self, rows: usize, columns: usize) {
        self.columns = columns;
        self.stride = if columns == 1 {
            TILE
        } else {
            (columns + 1) * TILE
        };
        self.data.resize(rows.div_ceil(TILE) * self.stride, 0.0);
    }

    /// Copies rows from `first` on, a multiple of 16, of one column.
    pub(crate) fn read(&self, column: usize, first: usize, out: &mut [f32]) {
        let tiles = self.data[first / TILE * self.stride..].chunks(self.stride);
        for (out, tile) in out.chunks_mut(TILE).zip(tiles) {
            out.copy_from_slice(&tile[column * TILE..][..out.len()]);
        }
    }

    /// Whether all elements of all columns are finite.
    pub(crate) fn is_finite(&self) -> bool {
        let padding = self.stride - self.columns * TILE;
        let tiles = self.data.chunks(self.stride);
        // NaN and infinity are what a product with zero does not make zero.
        let of = |tile: &[f32]| {
            tile[..tile.len() - padding]
                .iter()
                .map(|value| value * 0.0)
                .sum::<f32>()
        };
        tiles.map(of).sum::<f32>() == 0.0
    }

    /// Whether all elements of one column are finite.
    pub(crate) fn column_is_finite(&self, column: usize) -> bool {
        let mut tiles = self.data.chunks(self.stride);
        tiles.all(|tile| {
            tile[column * TILE..][..TILE]
                .iter()
                .all(|value| value.is_finite())
        })
    }

    /// Adds to one column.
    pub(crate) fn add(&mut self, column: usize, values: &[f32]) {
        for (values, tile) in values.chunks(TILE).zip(self.data.chunks_mut(self.stride)) {
            let sums = &mut tile[column * TILE..][..values.len()];
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += value;
            }
        }
    }

    pub(crate) fn write(&mut self, column: usize, values: &[f32]) {
        for (values, tile) in values.chunks(TILE).zip(self.data.chunks_mut(self.stride)) {
            tile[column * TILE..][..values.len()].copy_from_slice(values);
        }
    }
}

/// Unpacked tiles of up to two matrices, reused from tile to tile by one thread.
pub(crate) type Scratch = [Vec<Expanded>; 2];

/// Computes tile `tile` of each of `matrices` for all columns of `input` and hands the 16 rows to
/// `sink`, column by column.
pub(crate) fn product<const M: usize>(
    isa: Isa,
    matrices: [&Matrix; M],
    arena: &[u8],
    tile: usize,
    input: &Activations,
    scratch: &mut Scratch,
    mut sink: impl FnMut(usize, [&[f32; TILE]; M]),
) {
    let columns = input.columns();
    if columns == 1 {
        let out = matrices.map(|matrix| tile_product::<1>(isa, matrix, arena, tile, input, 0));
        sink(0, out.each_ref().map(|out| &out[0]));
        return;
    }
    let mut expanded = [false; M];
    if columns >= EXPAND_FROM {
        for ((matrix, scratch), expanded) in matrices.iter().zip(&mut *scratch).zip(&mut expanded) {
            *expanded = expand_tile(isa, matrix, arena, tile, scratch);
        }
    }
    for first in (0..columns).step_by(WIDE) {
        let out: [_; M] = std::array::from_fn(|index| {
            if expanded[index] {
                expanded_product::<WIDE>(isa, &scratch[index], input, first)
            } else {
                tile_product::<WIDE>(isa, matrices[index], arena, tile, input, first)
            }
        });
        for column in 0..WIDE.min(columns - first) {
            sink(first + column, out.each_ref().map(|out| &out[column]));
        }
    }
}

/// Adds `matrix` times `input` to `hidden`.
pub(crate) fn add_product(
    pool: &mut Pool,
    isa: Isa,
    matrix: &Matrix,
    arena: &[u8],
    input: &Activations,
    hidden: &mut Tiles,
) {
    pool.pieces(
        &mut hidden.data,
        hidden.stride,
        Scratch::default,
        |scratch, tile, out| {
            product(
                isa,
                [matrix],
                arena,
                tile,
                input,
                scratch,
                |column, [values]| {
                    for (out, value) in out[column * TILE..].iter_mut().zip(values) {
                        *out += value;
                    }
                },
            );
        },
    );
}
