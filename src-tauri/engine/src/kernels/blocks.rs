//! Quantised blocks as they lie in memory: 32 or 256 columns of a tile of 16 rows.
//!
//! Nibbles are in groups: `quants[g][h]` holds, for rows `8h..8h+8`, four bytes each; low nibbles are
//! columns `4g..4g+4`, high nibbles columns `16+4g..`. A fifth bit is in `high[h]`: of the byte of row
//! and column `4g+b`, bit `g` of byte `b` of the row.

use burn::tensor::f16;
use bytemuck::{Pod, Zeroable};

use super::layout::{BLOCK, TILE};

/// Halves of a tile's 16 rows.
type Halves = [[u8; 16]; 2];
/// Nibbles of 32 columns.
pub(super) type Nibbles = [[[u8; 32]; 2]; 4];
/// One bit of each of 32 columns.
pub(super) type Bits = [[u8; 32]; 2];
/// Parts of 32 columns in a block of 256.
pub(super) const PARTS: usize = 8;

/// Blocks as plain arithmetic sees them.
pub(super) trait Block: Pod {
    /// Parts of 32 columns.
    const PARTS: usize;

    /// The whole number that is stored.
    fn quant(&self, part: usize, lane: usize, column: usize) -> i32;

    /// What it is multiplied by.
    fn scale(&self, part: usize, lane: usize) -> f32;

    /// What is added, of blocks that have it.
    fn min(&self, _part: usize, _lane: usize) -> Option<f32> {
        None
    }

    /// What the quants of columns `0..16` and `16..32` are multiplied by besides.
    fn factors(&self, _part: usize, _lane: usize) -> [i32; 2] {
        [1, 1]
    }

    /// The weight of a row and column.
    fn weight(&self, part: usize, lane: usize, column: usize) -> f32 {
        let quant = self.quant(part, lane, column) as f32;
        let factor = self.factors(part, lane)[column / 16] as f32;
        // Exact: a half has 11 bits, a factor 8.
        let scale = self.scale(part, lane) * factor;
        match self.min(part, lane) {
            Some(min) => quant.mul_add(scale, min),
            None => quant * scale,
        }
    }
}

/// Q4_0: `scale * (quant - 8)`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Q4Centred {
    pub(super) scale: Halves,
    pub(super) quants: Nibbles,
}

/// Q5_0: `scale * (quant - 16)`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Q5Centred {
    pub(super) scale: Halves,
    pub(super) quants: Nibbles,
    pub(super) high: Bits,
}

/// Q4_1: `scale * quant + min`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Q4Block {
    pub(super) scale: Halves,
    pub(super) min: Halves,
    pub(super) quants: Nibbles,
}

/// Q5_1: `scale * quant + min`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Q5Block {
    pub(super) scale: Halves,
    pub(super) min: Halves,
    pub(super) quants: Nibbles,
    pub(super) high: Bits,
}

/// Q8_0: `scale * quant`. `quants[g][h]` holds, for rows `8h..8h+8`, columns `4g..4g+4`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Q8Block {
    pub(super) scale: Halves,
    pub(super) quants: [[[u8; 32]; 2]; 8],
}

/// Q4_K: 256 columns; `scale * scales[part] * quant - min * mins[part]`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct K4Block {
    pub(super) scale: Halves,
    pub(super) min: Halves,
    pub(super) scales: [[u8; TILE]; PARTS],
    pub(super) mins: [[u8; TILE]; PARTS],
    pub(super) quants: [Nibbles; PARTS],
}

/// Q5_K: as Q4_K, with a fifth bit.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct K5Block {
    pub(super) scale: Halves,
    pub(super) min: Halves,
    pub(super) scales: [[u8; TILE]; PARTS],
    pub(super) mins: [[u8; TILE]; PARTS],
    pub(super) quants: [Nibbles; PARTS],
    pub(super) high: [Bits; PARTS],
}

/// Q6_K: 256 columns; `scale * scales[part][half of it] * (quant - 32)`. The fifth and sixth bits are
/// in `high[part][g / 4]`, bits `2 * (g % 4)` and the one after it.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct K6Block {
    pub(super) scale: Halves,
    pub(super) scales: [[[u8; TILE]; 2]; PARTS],
    pub(super) quants: [Nibbles; PARTS],
    pub(super) high: [[Bits; 2]; PARTS],
}

fn half_of(halves: &Halves, lane: usize) -> f32 {
    half_at(&halves[lane / 8], lane % 8)
}

/// The `index`-th little-endian half of `bytes`.
pub(super) fn half_at(bytes: &[u8], index: usize) -> f32 {
    f16::from_le_bytes([bytes[2 * index], bytes[2 * index + 1]]).to_f32()
}

fn nibble(quants: &Nibbles, lane: usize, column: usize) -> u8 {
    let byte = quants[column % 16 / 4][lane / 8][4 * (lane % 8) + column % 4];
    if column < 16 { byte & 15 } else { byte >> 4 }
}

fn bit(high: &Bits, lane: usize, column: usize) -> u8 {
    high[lane / 8][4 * (lane % 8) + column % 4] >> (column / 4) & 1
}

impl Block for Q4Centred {
    const PARTS: usize = 1;

    #[inline(always)]
    fn quant(&self, _: usize, lane: usize, column: usize) -> i32 {
        i32::from(nibble(&self.quants, lane, column))
    }

    #[inline(always)]
    fn scale(&self, _: usize, lane: usize) -> f32 {
        half_of(&self.scale, lane)
    }

    #[inline(always)]
    fn min(&self, _: usize, lane: usize) -> Option<f32> {
        Some(half_of(&self.scale, lane) * -8.0)
    }
}

impl Block for Q5Centred {
    const PARTS: usize = 1;

    #[inline(always)]
    fn quant(&self, _: usize, lane: usize, column: usize) -> i32 {
        let high = bit(&self.high, lane, column) << 4;
        i32::from(nibble(&self.quants, lane, column) | high)
    }

    #[inline(always)]
    fn scale(&self, _: usize, lane: usize) -> f32 {
        half_of(&self.scale, lane)
    }

    #[inline(always)]
    fn min(&self, _: usize, lane: usize) -> Option<f32> {
        Some(half_of(&self.scale, lane) * -16.0)
    }
}

impl Block for Q4Block {
    const PARTS: usize = 1;

    #[inline(always)]
    fn quant(&self, _: usize, lane: usize, column: usize) -> i32 {
        i32::from(nibble(&self.quants, lane, column))
    }

    #[inline(always)]
    fn scale(&self, _: usize, lane: usize) -> f32 {
        half_of(&self.scale, lane)
    }

    #[inline(always)]
    fn min(&self, _: usize, lane: usize) -> Option<f32> {
        Some(half_of(&self.min, lane))
    }
}

impl Block for Q5Block {
    const PARTS: usize = 1;

    #[inline(always)]
    fn quant(&self, _: usize, lane: usize, column: usize) -> i32 {
        let high = bit(&self.high, lane, column) << 4;
        i32::from(nibble(&self.quants, lane, column) | high)
    }

    #[inline(always)]
    fn scale(&self, _: usize, lane: usize) -> f32 {
        half_of(&self.scale, lane)
    }

    #[inline(always)]
    fn min(&self, _: usize, lane: usize) -> Option<f32> {
        Some(half_of(&self.min, lane))
    }
}

impl Block for Q8Block {
    const PARTS: usize = 1;

    #[inline(always)]
    fn quant(&self, _: usize, lane: usize, column: usize) -> i32 {
        let byte = self.quants[column / 4][lane / 8][4 * (lane % 8) + column % 4];
        i32::from(byte as i8)
    }

    #[inline(always)]
    fn scale(&self, _: usize, lane: usize) -> f32 {
        half_of(&self.scale, lane)
    }
}

impl Block for K4Block {
    const PARTS: usize = PARTS;

    #[inline(always)]
    fn quant(&self, part: usize, lane: usize, column: usize) -> i32 {
        i32::from(nibble(&self.quants[part], lane, column))
    }

    #[inline(always)]
    fn scale(&self, part: usize, lane: usize) -> f32 {
        half_of(&self.scale, lane) * f32::from(self.scales[part][lane])
    }

    #[inline(always)]
    fn min(&self, part: usize, lane: usize) -> Option<f32> {
        Some(half_of(&self.min, lane) * -f32::from(self.mins[part][lane]))
    }
}

impl Block for K5Block {
    const PARTS: usize = PARTS;

    #[inline(always)]
    fn quant(&self, part: usize, lane: usize, column: usize) -> i32 {
        let high = bit(&self.high[part], lane, column) << 4;
        i32::from(nibble(&self.quants[part], lane, column) | high)
    }

    #[inline(always)]
    fn scale(&self, part: usize, lane: usize) -> f32 {
        half_of(&self.scale, lane) * f32::from(self.scales[part][lane])
    }

    #[inline(always)]
    fn min(&self, part: usize, lane: usize) -> Option<f32> {
        Some(half_of(&self.min, lane) * -f32::from(self.mins[part][lane]))
    }
}

impl Block for K6Block {
    const PARTS: usize = PARTS;

    #[inline(always)]
    fn quant(&self, part: usize, lane: usize, column: usize) -> i32 {
        let group = column / 4;
        let byte = self.high[part][group / 4][lane / 8][4 * (lane % 8) + column % 4];
        let high = (byte >> (2 * (group % 4)) & 3) << 4;
        i32::from(nibble(&self.quants[part], lane, column) | high) - 32
    }

    #[inline(always)]
    fn scale(&self, _: usize, lane: usize) -> f32 {
        half_of(&self.scale, lane)
    }

    #[inline(always)]
    fn factors(&self, part: usize, lane: usize) -> [i32; 2] {
        self.scales[part].map(|scales| i32::from(scales[lane] as i8))
    }
}

/// Writes the blocks of one row, as the file has them, into lane `lane` of packed blocks.
pub(super) trait Pack: Pod {
    /// Bytes of a block of one row in the file.
    const BYTES: usize;

    /// Takes one block.
    fn put(&mut self, lane: usize, source: &[u8]);
}

/// Packs a row.
pub(super) fn pack_row<B: Pack>(source: &[u8], lane: usize, tile: &mut [u8]) {
    let blocks = bytemuck::cast_slice_mut::<u8, B>(tile);
    for (source, block) in source.chunks_exact(B::BYTES).zip(blocks) {
        block.put(lane, source);
    }
}

fn put_half(halves: &mut Halves, lane: usize, bytes: [u8; 2]) {
    halves[lane / 8][2 * (lane % 8)..][..2].copy_from_slice(&bytes);
}

/// `nibbles` has columns `0..16` in its low halves, `16..32` in its high ones.
fn put_nibbles(quants: &mut Nibbles, lane: usize, nibbles: &[u8]) {
    for (group, nibbles) in nibbles.chunks_exact(4).enumerate() {
        quants[group][lane / 8][4 * (lane % 8)..][..4].copy_from_slice(nibbles);
    }
}

/// Sets the bit of each column, of 32 that `is_set` tells.
fn put_bits(high: &mut Bits, lane: usize, is_set: impl Fn(usize) -> bool) {
    let bytes = &mut high[lane / 8][4 * (lane % 8)..][..4];
    for column in 0..BLOCK {
        bytes[column % 4] |= u8::from(is_set(column)) << (column / 4);
    }
}

impl Pack for Q4Centred {
    const BYTES: usize = 18;

    fn put(&mut self, lane: usize, source: &[u8]) {
        put_half(&mut self.scale, lane, [source[0], source[1]]);
        put_nibbles(&mut self.quants, lane, &source[2..]);
    }
}

impl Pack for Q4Block {
    const BYTES: usize = 20;

    fn put(&mut self, lane: usize, source: &[u8]) {
        put_half(&mut self.scale, lane, [source[0], source[1]]);
        put_half(&mut self.min, lane, [source[2], source[3]]);
        put_nibbles(&mut self.quants, lane, &source[4..]);
    }
}

/// Four bytes of high bits, then nibbles.
fn put_five(high: &mut Bits, quants: &mut Nibbles, lane: usize, source: &[u8]) {
    let bits = u32::from_le_bytes([source[0], source[1], source[2], source[3]]);
    put_bits(high, lane, |column| bits >> column & 1 == 1);
    put_nibbles(quants, lane, &source[4..]);
}

impl Pack for Q5Centred {
    const BYTES: usize = 22;

    fn put(&mut self, lane: usize, source: &[u8]) {
        put_half(&mut self.scale, lane, [source[0], source[1]]);
        put_five(&mut self.high, &mut self.quants, lane, &source[2..]);
    }
}

impl Pack for Q5Block {
    const BYTES: usize = 24;

    fn put(&mut self, lane: usize, source: &[u8]) {
        put_half(&mut self.scale, lane, [source[0], source[1]]);
        put_half(&mut self.min, lane, [source[2], source[3]]);
        put_five(&mut self.high, &mut self.quants, lane, &source[4..]);
    }
}

impl Pack for Q8Block {
    const BYTES: usize = 34;

    fn put(&mut self, lane: usize, source: &[u8]) {
        put_half(&mut self.scale, lane, [source[0], source[1]]);
        for (group, quants) in source[2..].chunks_exact(4).enumerate() {
            self.quants[group][lane / 8][4 * (lane % 8)..][..4].copy_from_slice(quants);
        }
    }
}

/// The six-bit scales and minimums of the eight parts of a K block, from their twelve bytes.
fn k_scales(bytes: &[u8], part: usize) -> [u8; 2] {
    if part < 4 {
        return [bytes[part] & 63, bytes[part + 4] & 63];
    }
    [
        (bytes[part + 4] & 15) | (bytes[part - 4] >> 6 << 4),
        (bytes[part + 4] >> 4) | (bytes[part] >> 6 << 4),
    ]
}

/// Part `part` of the nibbles of a K block, in which a byte holds elements of two parts: packed as
/// blocks of 32 are.
fn k_nibbles(bytes: &[u8], part: usize) -> [u8; 16] {
    let bytes = &bytes[part / 2 * 32..][..32];
    let of = |column: usize| bytes[column] >> (4 * (part % 2)) & 15;
    std::array::from_fn(|column| of(column) | (of(column + 16) << 4))
}

impl Pack for K4Block {
    const BYTES: usize = 144;

    fn put(&mut self, lane: usize, source: &[u8]) {
        put_half(&mut self.scale, lane, [source[0], source[1]]);
        put_half(&mut self.min, lane, [source[2], source[3]]);
        for part in 0..PARTS {
            let [scale, min] = k_scales(&source[4..16], part);
            self.scales[part][lane] = scale;
            self.mins[part][lane] = min;
            put_nibbles(
                &mut self.quants[part],
                lane,
                &k_nibbles(&source[16..], part),
            );
        }
    }
}

impl Pack for K5Block {
    const BYTES: usize = 176;

    fn put(&mut self, lane: usize, source: &[u8]) {
        put_half(&mut self.scale, lane, [source[0], source[1]]);
        put_half(&mut self.min, lane, [source[2], source[3]]);
        let high = &source[16..48];
        for part in 0..PARTS {
            let [scale, min] = k_scales(&source[4..16], part);
            self.scales[part][lane] = scale;
            self.mins[part][lane] = min;
            put_nibbles(
                &mut self.quants[part],
                lane,
                &k_nibbles(&source[48..], part),
            );
            put_bits(&mut self.high[part], lane, |column| {
                high[column] >> part & 1 == 1
            });
        }
    }
}

impl Pack for K6Block {
    const BYTES: usize = 210;

    fn put(&mut self, lane: usize, source: &[u8]) {
        let (low, rest) = source.split_at(128);
        let (high, rest) = rest.split_at(64);
        let (scales, scale) = rest.split_at(16);
        put_half(&mut self.scale, lane, [scale[0], scale[1]]);
        for part in 0..PARTS {
            // Half a block has four parts: two in low nibbles, and the same bytes' high ones.
            let (half, quarter) = (part / 4, part % 4);
            let low = &low[64 * half + 32 * (quarter % 2)..][..32];
            let high = &high[32 * half..][..32];
            let of = |column: usize| {
                let nibble = low[column] >> (4 * (quarter / 2)) & 15;
                (nibble, high[column] >> (2 * quarter) & 3)
            };
            let nibbles: [u8; 16] =
                std::array::from_fn(|column| of(column).0 | (of(column + 16).0 << 4));
            put_nibbles(&mut self.quants[part], lane, &nibbles);
            for column in 0..BLOCK {
                let group = column / 4;
                let bytes = &mut self.high[part][group / 4][lane / 8];
                bytes[4 * (lane % 8) + column % 4] |= of(column).1 << (2 * (group % 4));
            }
            for (index, scales_of) in self.scales[part].iter_mut().enumerate() {
                scales_of[lane] = scales[2 * part + index];
            }
        }
    }
}
