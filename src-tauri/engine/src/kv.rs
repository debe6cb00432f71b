//! The KV cache of one sequence, in blocks of 64 positions that sequences may share.

use std::ops::Range;
use std::sync::Arc;

use crate::kernels::{Isa, store_halves};

/// Positions of a block.
pub(crate) const POSITIONS: usize = 64;

/// The sizes that fix a cache's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KvShape {
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) head_len: usize,
}

impl KvShape {
    /// Halves that one head of one layer takes in a block, for K or for V.
    fn head_halves(self) -> usize {
        POSITIONS * self.head_len
    }

    fn block_halves(self) -> usize {
        self.layers * self.heads * 2 * self.head_halves()
    }

    /// Bytes of a block.
    pub(crate) fn block_bytes(self) -> usize {
        self.block_halves() * size_of::<u16>()
    }

    /// Bytes that the first `count` positions of a block are packed into.
    pub(crate) fn packed_bytes(self, count: usize) -> usize {
        self.block_bytes() / POSITIONS * count
    }

    /// The rows of a block that hold its first `count` positions.
    fn rows(self, count: usize) -> impl Iterator<Item = Range<usize>> {
        let halves = self.head_halves();
        (0..self.layers * self.heads).flat_map(move |head| {
            let keys = 2 * head * halves;
            let values = keys + halves;
            let key_rows = (keys..values)
                .step_by(POSITIONS)
                .map(move |at| at..at + count);
            key_rows.chain(std::iter::once(values..values + count * self.head_len))
        })
    }

    /// Appends the first `count` positions of a block, and nothing of the others.
    pub(crate) fn pack(self, block: &[u16], count: usize, out: &mut Vec<u8>) {
        for row in self.rows(count) {
            out.extend(block[row].iter().flat_map(|half| half.to_le_bytes()));
        }
    }

    /// A block whose first `count` positions are those of `packed`.
    pub(crate) fn unpack(self, packed: &[u8], count: usize) -> Block {
        let mut block = vec![0; self.block_halves()];
        let mut packed = packed.as_chunks::<2>().0.iter();
        for row in self.rows(count) {
            for (half, bytes) in block[row].iter_mut().zip(&mut packed) {
                *half = u16::from_le_bytes(*bytes);
            }
        }
        Arc::new(block)
    }
}

/// Keys and values of [`POSITIONS`] positions, by layer and head: K as `[head_len][POSITIONS]`, then
/// V as `[POSITIONS][head_len]`.
pub(crate) type Block = Arc<Vec<u16>>;

/// Keys and values of the positions seen so far, in half precision.
///
/// A clone shares all blocks; a shared block is copied before it is written.
#[derive(Debug, Clone)]
pub(crate) struct KvCache {
    shape: KvShape,
    blocks: Vec<Block>,
    len: usize,
}

impl KvCache {
    pub(crate) fn new(shape: KvShape) -> Self {
        Self {
            shape,
            blocks: Vec::new(),
            len: 0,
        }
    }

    /// A cache of `len` positions in as many blocks as these take.
    pub(crate) fn of_blocks(shape: KvShape, blocks: Vec<Block>, len: usize) -> Self {
        Self { shape, blocks, len }
    }

    /// The sizes that it was made for.
    pub(crate) fn shape(&self) -> KvShape {
        self.shape
    }

    /// Positions written and kept.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Blocks held, shared ones included.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The blocks in order, each with the positions of it that are written and kept.
    pub(crate) fn filled(&self) -> impl Iterator<Item = (&Block, usize)> {
        let counts = (0..self.len).step_by(POSITIONS);
        let counts = counts.map(|first| (self.len - first).min(POSITIONS));
        self.blocks.iter().zip(counts)
    }

    /// Forgets the positions from `len` on.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.blocks.truncate(self.len.div_ceil(POSITIONS));
    }

    /// Makes the `count` positions after the current ones writable.
    pub(crate) fn reserve(&mut self, count: usize) {
        let first = self.len / POSITIONS;
        let last = (self.len + count).div_ceil(POSITIONS);
        for index in first..last {
            match self.blocks.get_mut(index) {
                Some(block) => {
                    Arc::make_mut(block);
                }
                None => self
                    .blocks
                    .push(Arc::new(vec![0; self.shape.block_halves()])),
            }
        }
    }

    /// Counts `count` reserved positions as written.
    pub(crate) fn advance(&mut self, count: usize) {
        self.len += count;
    }

    fn head_start(&self, layer: usize, head: usize) -> usize {
        (layer * self.shape.heads + head) * 2 * self.shape.head_halves()
    }

    /// Writes a reserved position's key and value; `scratch` holds `head_len` halves.
    pub(crate) fn write(
        &mut self,
        isa: Isa,
        (layer, head): (usize, usize),
        position: usize,
        key: &[f32],
        value: &[f32],
        scratch: &mut [u16],
    ) {
        let start = self.head_start(layer, head);
        let halves = self.shape.head_halves();
        // `reserve` has made the block unique, so this copies nothing.
        let block = Arc::make_mut(&mut self.blocks[position / POSITIONS]);
        let (keys, values) = block[start..start + 2 * halves].split_at_mut(halves);
        let at = position % POSITIONS;
        store_halves(isa, key, scratch);
        for (row, key) in keys.chunks_exact_mut(POSITIONS).zip(scratch) {
            row[at] = *key;
        }
        store_halves(
            isa,
            value,
            &mut values[at * self.shape.head_len..][..self.shape.head_len],
        );
    }

    /// K of a block as `[head_len][POSITIONS]`.
    pub(crate) fn keys(&self, (layer, head): (usize, usize), block: usize) -> &[u16] {
        &self.blocks[block][self.head_start(layer, head)..][..self.shape.head_halves()]
    }

    /// V of a block as `[POSITIONS][head_len]`.
    pub(crate) fn values(&self, (layer, head): (usize, usize), block: usize) -> &[u16] {
        let halves = self.shape.head_halves();
        &self.blocks[block][self.head_start(layer, head) + halves..][..halves]
    }
}
