//! The KV cache of one sequence, in blocks of 64 positions that sequences may share.

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
}

/// Keys and values of the positions seen so far, in half precision.
///
/// A clone shares all blocks; a shared block is copied before it is written.
#[derive(Debug, Clone)]
pub(crate) struct KvCache {
    shape: KvShape,
    /// By layer and head: K as `[head_len][POSITIONS]`, then V as `[POSITIONS][head_len]`.
    blocks: Vec<Arc<Vec<u16>>>,
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

    /// Positions written and kept.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Blocks held, shared ones included.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
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
