//! How weights lie in memory: matrices cut into tiles of 16 rows, one row per SIMD lane, so that
//! no kernel needs a sum across lanes. Packing moves bytes and rounds nothing.

use bytemuck::{Pod, Zeroable};

use super::blocks::{
    Block, K4Block, K5Block, K6Block, PARTS, Q4Block, Q4Centred, Q5Block, Q5Centred, Q8Block,
    half_at, pack_row,
};
use crate::gguf::TensorType;

/// Rows of a tile.
pub(crate) const TILE: usize = 16;
/// Elements that share a scale.
pub(crate) const BLOCK: usize = 32;

/// 32 columns of four-bit quants as bytes, in column order, and their scales as f32.
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
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q4K,
    Q5K,
    Q6K,
    /// By column: the 16 rows' halves.
    F16,
    /// By column: the 16 rows' upper halves of floats.
    BF16,
    /// By column: the 16 rows' floats.
    F32,
}

impl Format {
    pub(crate) fn of(kind: TensorType) -> Self {
        match kind {
            TensorType::Q4_0 => Self::Q4_0,
            TensorType::Q4_1 => Self::Q4_1,
            TensorType::Q5_0 => Self::Q5_0,
            TensorType::Q5_1 => Self::Q5_1,
            TensorType::Q8_0 => Self::Q8_0,
            TensorType::Q4K => Self::Q4K,
            TensorType::Q5K => Self::Q5K,
            TensorType::Q6K => Self::Q6K,
            TensorType::F16 => Self::F16,
            TensorType::BF16 => Self::BF16,
            TensorType::F32 => Self::F32,
        }
    }

    /// Whether its products take activations of 8 bits.
    #[cfg(test)]
    pub(crate) fn is_quantised(self) -> bool {
        !matches!(self, Self::F16 | Self::BF16 | Self::F32)
    }

    /// Bytes of a tile with `cols` columns.
    fn tile_bytes(self, cols: usize) -> usize {
        match self {
            Self::Q4_0 => cols / BLOCK * size_of::<Q4Centred>(),
            Self::Q4_1 => cols / BLOCK * size_of::<Q4Block>(),
            Self::Q5_0 => cols / BLOCK * size_of::<Q5Centred>(),
            Self::Q5_1 => cols / BLOCK * size_of::<Q5Block>(),
            Self::Q8_0 => cols / BLOCK * size_of::<Q8Block>(),
            Self::Q4K => cols / (PARTS * BLOCK) * size_of::<K4Block>(),
            Self::Q5K => cols / (PARTS * BLOCK) * size_of::<K5Block>(),
            Self::Q6K => cols / (PARTS * BLOCK) * size_of::<K6Block>(),
            Self::F16 | Self::BF16 => cols * TILE * 2,
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

/// Packs a row-major tensor into `out`, which is zeroed and `packed_bytes` long; row `row` of what
/// is packed is row `row_of(row)` of the tensor.
pub(crate) fn pack_matrix(
    kind: TensorType,
    (rows, cols): (usize, usize),
    src: &[u8],
    out: &mut [u8],
    row_of: impl Fn(usize) -> usize,
) {
    let row_bytes = cols / kind.block_len() * kind.block_bytes();
    let tile_bytes = Format::of(kind).tile_bytes(cols);
    for row in 0..rows {
        let src = &src[row_of(row) * row_bytes..][..row_bytes];
        let tile = &mut out[row / TILE * tile_bytes..][..tile_bytes];
        let lane = row % TILE;
        match kind {
            TensorType::Q4_0 => pack_row::<Q4Centred>(src, lane, tile),
            TensorType::Q5_0 => pack_row::<Q5Centred>(src, lane, tile),
            TensorType::Q4_1 => pack_row::<Q4Block>(src, lane, tile),
            TensorType::Q5_1 => pack_row::<Q5Block>(src, lane, tile),
            TensorType::Q8_0 => pack_row::<Q8Block>(src, lane, tile),
            TensorType::Q4K => pack_row::<K4Block>(src, lane, tile),
            TensorType::Q5K => pack_row::<K5Block>(src, lane, tile),
            TensorType::Q6K => pack_row::<K6Block>(src, lane, tile),
            TensorType::F16 | TensorType::BF16 => pack_plain_row::<2>(src, lane, tile),
            TensorType::F32 => pack_plain_row::<4>(src, lane, tile),
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
    match matrix.format {
        Format::Q4_0 => read_blocks::<Q4Centred>(bytes, lane, out),
        Format::Q4_1 => read_blocks::<Q4Block>(bytes, lane, out),
        Format::Q5_0 => read_blocks::<Q5Centred>(bytes, lane, out),
        Format::Q5_1 => read_blocks::<Q5Block>(bytes, lane, out),
        Format::Q8_0 => read_blocks::<Q8Block>(bytes, lane, out),
        Format::Q4K => read_blocks::<K4Block>(bytes, lane, out),
        Format::Q5K => read_blocks::<K5Block>(bytes, lane, out),
        Format::Q6K => read_blocks::<K6Block>(bytes, lane, out),
        Format::F16 => {
            for (column, out) in bytes.as_chunks::<{ 2 * TILE }>().0.iter().zip(out) {
                *out = half_at(column, lane);
            }
        }
        Format::BF16 => {
            for (column, out) in bytes.as_chunks::<{ 2 * TILE }>().0.iter().zip(out) {
                *out = wide_float([column[2 * lane], column[2 * lane + 1]]);
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

fn read_blocks<B: Block>(bytes: &[u8], lane: usize, out: &mut [f32]) {
    let blocks = bytemuck::cast_slice::<u8, B>(bytes);
    for (block, out) in blocks.iter().zip(out.chunks_exact_mut(B::PARTS * BLOCK)) {
        for (part, out) in out.chunks_exact_mut(BLOCK).enumerate() {
            for (column, out) in out.iter_mut().enumerate() {
                *out = block.weight(part, lane, column);
            }
        }
    }
}

/// The float that a little-endian BF16 is the upper half of.
pub(crate) fn wide_float(half: [u8; 2]) -> f32 {
    f32::from_bits(u32::from(u16::from_le_bytes(half)) << 16)
}
