//! How weights lie in memory: matrices cut into tiles of 16 rows, one row per SIMD lane, so that
//! no kernel needs a sum across lanes. Packing moves bytes and rounds nothing.

use burn::tensor::f16;
use bytemuck::{Pod, Zeroable};

use crate::gguf::TensorType;

/// Rows of a tile.
pub(crate) const TILE: usize = 16;
/// Elements that share a scale.
pub(crate) const BLOCK: usize = 32;

/// 32 columns of a Q4_1 tile. `quants[g][h]` holds, for rows `8h..8h+8`, four bytes each: low
/// nibbles are columns `4g..4g+4`, high nibbles columns `16+4g..`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Q4Block {
    pub(super) scale: [[u8; 16]; 2],
    pub(super) min: [[u8; 16]; 2],
    pub(super) quants: [[[u8; 32]; 2]; 4],
}

/// 32 columns of a Q8_0 tile. `quants[g][h]` holds, for rows `8h..8h+8`, columns `4g..4g+4`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Q8Block {
    pub(super) scale: [[u8; 16]; 2],
    pub(super) quants: [[[u8; 32]; 2]; 8],
}

/// A [`Q4Block`] with its nibbles as bytes, in column order, and its scales as f32.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Expanded {
    pub(super) scale: [f32; TILE],
    pub(super) min: [f32; TILE],
    pub(super) quants: [[[u8; 32]; 2]; 8],
}

/// How a packed matrix is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Q4_1,
    Q8_0,
    /// By column: the 16 rows' halves.
    F16,
    /// By column: the 16 rows' floats.
    F32,
}

impl Format {
    pub(crate) fn of(kind: TensorType) -> Self {
        match kind {
            // d * (q - 8) is d * q + m with m = -8 d.
            TensorType::Q4_0 | TensorType::Q4_1 => Self::Q4_1,
            TensorType::Q8_0 => Self::Q8_0,
            TensorType::F16 => Self::F16,
            TensorType::F32 => Self::F32,
        }
    }

    /// Bytes of a tile with `cols` columns.
    fn tile_bytes(self, cols: usize) -> usize {
        match self {
            Self::Q4_1 => cols / BLOCK * size_of::<Q4Block>(),
            Self::Q8_0 => cols / BLOCK * size_of::<Q8Block>(),
            Self::F16 => cols * TILE * 2,
            Self::F32 => cols * TILE * 4,
        }
    }
}

/// A packed matrix of `rows` outputs and `cols` inputs, at `offset` in the arena.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix {
    pub(crate) format: Format,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) offset: usize,
}

impl Matrix {
    /// Tiles, the last one filled up with zero rows.
    pub(crate) fn tiles(&self) -> usize {
        self.rows.div_ceil(TILE)
    }

    pub(super) fn tile_bytes<'a>(&self, arena: &'a [u8], tile: usize) -> &'a [u8] {
        let size = self.format.tile_bytes(self.cols);
        let start = self.offset + tile * size;
        &arena[start..start + size]
    }
}

/// Bytes a matrix takes when packed.
pub(crate) fn packed_bytes(kind: TensorType, rows: usize, cols: usize) -> usize {
    rows.div_ceil(TILE) * Format::of(kind).tile_bytes(cols)
}

/// Packs a row-major tensor into `out`, which is zeroed and `packed_bytes` long.
pub(crate) fn pack_matrix(kind: TensorType, rows: usize, cols: usize, src: &[u8], out: &mut [u8]) {
    let row_bytes = cols / kind.block_len() * kind.block_bytes();
    let tile_bytes = Format::of(kind).tile_bytes(cols);
    for (row, src) in src.chunks_exact(row_bytes).take(rows).enumerate() {
        let tile = &mut out[row / TILE * tile_bytes..][..tile_bytes];
        let lane = row % TILE;
        match kind {
            TensorType::Q4_0 => pack_q4_row(src.as_chunks::<18>().0, lane, tile),
            TensorType::Q4_1 => pack_q4_row(src.as_chunks::<20>().0, lane, tile),
            TensorType::Q8_0 => pack_q8_row(src.as_chunks::<34>().0, lane, tile),
            TensorType::F16 => pack_plain_row::<2>(src, lane, tile),
            TensorType::F32 => pack_plain_row::<4>(src, lane, tile),
        }
    }
}

/// `SIZE` is 18 for Q4_0, which has no minimum, and 20 for Q4_1.
fn pack_q4_row<const SIZE: usize>(src: &[[u8; SIZE]], lane: usize, tile: &mut [u8]) {
    let (half, row) = (lane / 8, lane % 8);
    for (src, out) in src
        .iter()
        .zip(bytemuck::cast_slice_mut::<u8, Q4Block>(tile))
    {
        let scale = [src[0], src[1]];
        let min = if SIZE == 18 {
            // Exact: a multiplication by a power of two.
            f16::from_f32(f16::from_le_bytes(scale).to_f32() * -8.0).to_le_bytes()
        } else {
            [src[2], src[3]]
        };
        out.scale[half][2 * row..2 * row + 2].copy_from_slice(&scale);
        out.min[half][2 * row..2 * row + 2].copy_from_slice(&min);
        for (group, nibbles) in src[SIZE - 16..].chunks_exact(4).enumerate() {
            out.quants[group][half][4 * row..4 * row + 4].copy_from_slice(nibbles);
        }
    }
}

fn pack_q8_row(src: &[[u8; 34]], lane: usize, tile: &mut [u8]) {
    let (half, row) = (lane / 8, lane % 8);
    for (src, out) in src
        .iter()
        .zip(bytemuck::cast_slice_mut::<u8, Q8Block>(tile))
    {
        out.scale[half][2 * row..2 * row + 2].copy_from_slice(&src[..2]);
        for (group, quants) in src[2..].chunks_exact(4).enumerate() {
            out.quants[group][half][4 * row..4 * row + 4].copy_from_slice(quants);
        }
    }
}

fn pack_plain_row<const SIZE: usize>(src: &[u8], lane: usize, tile: &mut [u8]) {
    for (value, column) in src
        .chunks_exact(SIZE)
        .zip(tile.chunks_exact_mut(SIZE * TILE))
    {
        column[lane * SIZE..(lane + 1) * SIZE].copy_from_slice(value);
    }
}

/// Writes row `row` of a packed matrix to `out` (`cols` long) as f32: an embedding lookup.
pub(crate) fn read_row(matrix: &Matrix, arena: &[u8], row: usize, out: &mut [f32]) {
    let bytes = matrix.tile_bytes(arena, row / TILE);
    let lane = row % TILE;
    let (half, at) = (lane / 8, lane % 8);
    match matrix.format {
        Format::Q4_1 => {
            let blocks = bytemuck::cast_slice::<u8, Q4Block>(bytes);
            for (block, out) in blocks.iter().zip(out.chunks_exact_mut(BLOCK)) {
                let (scale, min) = (
                    half_at(&block.scale[half], at),
                    half_at(&block.min[half], at),
                );
                for (index, out) in out.iter_mut().enumerate() {
                    let byte = block.quants[index % 16 / 4][half][4 * at + index % 4];
                    let nibble = if index < 16 { byte & 15 } else { byte >> 4 };
                    *out = f32::from(nibble).mul_add(scale, min);
                }
            }
        }
        Format::Q8_0 => {
            let blocks = bytemuck::cast_slice::<u8, Q8Block>(bytes);
            for (block, out) in blocks.iter().zip(out.chunks_exact_mut(BLOCK)) {
                let scale = half_at(&block.scale[half], at);
                for (index, out) in out.iter_mut().enumerate() {
                    let byte = block.quants[index / 4][half][4 * at + index % 4];
                    *out = f32::from(byte as i8) * scale;
                }
            }
        }
        Format::F16 => {
            for (column, out) in bytes.as_chunks::<{ 2 * TILE }>().0.iter().zip(out) {
                *out = half_at(column, lane);
            }
        }
        Format::F32 => {
            for (column, out) in bytes.as_chunks::<{ 4 * TILE }>().0.iter().zip(out) {
                let at = 4 * lane;
                *out = f32::from_le_bytes([
                    column[at],
                    column[at + 1],
                    column[at + 2],
                    column[at + 3],
                ]);
            }
        }
    }
}

/// The `index`-th little-endian half of `bytes`.
pub(super) fn half_at(bytes: &[u8], index: usize) -> f32 {
    f16::from_le_bytes([bytes[2 * index], bytes[2 * index + 1]]).to_f32()
}
