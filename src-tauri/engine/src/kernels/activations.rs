//! Activations quantised to 8 bits in blocks of 32, as llama.cpp does, kept with their f32 values.

use super::layout::BLOCK;
use super::{Isa, quantise};

/// Columns that a kernel takes at once when there is more than one.
pub(crate) const WIDE: usize = 4;

/// 32 elements of `N` columns: signed bytes in groups of four, their scale, the sums of the bytes of
/// each half, and scale times both together.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub(crate) struct ActBlock<const N: usize> {
    pub(super) quants: [[[u8; 4]; 8]; N],
    pub(super) scale: [f32; N],
    pub(super) sum: [f32; N],
    pub(super) totals: [[i32; 2]; N],
}

impl<const N: usize> ActBlock<N> {
    const ZERO: Self = Self {
        quants: [[[0; 4]; 8]; N],
        scale: [0.0; N],
        sum: [0.0; N],
        totals: [[0; 2]; N],
    };
}

/// The input of a matrix product: `columns` vectors of `len` elements each.
#[derive(Debug, Default)]
pub(crate) struct Activations {
    len: usize,
    columns: usize,
    values: Vec<f32>,
    narrow: Vec<ActBlock<1>>,
    wide: Vec<ActBlock<WIDE>>,
}

impl Activations {
    /// Makes room for `columns` vectors of `len` elements. Old contents are undefined.
    pub(crate) fn reset(&mut self, len: usize, columns: usize) {
        let blocks = len / BLOCK;
        self.len = len;
        self.columns = columns;
        self.values.resize(len * columns, 0.0);
        if columns == 1 {
            self.narrow.resize(blocks, ActBlock::ZERO);
        } else {
            self.wide
                .resize(blocks * columns.div_ceil(WIDE), ActBlock::ZERO);
        }
    }

    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// Panels of up to [`WIDE`] columns, each to be written on any thread.
    pub(crate) fn panels_mut(&mut self) -> Vec<Panel<'_>> {
        let len = self.len;
        if self.columns == 1 {
            let blocks = Blocks::Narrow(&mut self.narrow);
            return vec![Panel {
                len,
                values: &mut self.values,
                blocks,
            }];
        }
        // `max(1)` keeps `chunks_mut` legal for vectors shorter than a block, which have none.
        let mut wide = self.wide.chunks_mut((len / BLOCK).max(1));
        self.values
            .chunks_mut(len * WIDE)
            .map(|values| {
                let blocks = Blocks::Wide(wide.next().unwrap_or_default());
                Panel {
                    len,
                    values,
                    blocks,
                }
            })
            .collect()
    }

    /// The f32 values of the `N` columns from `first` on; the last column stands in for absent ones.
    pub(super) fn values<const N: usize>(&self, first: usize) -> [&[f32]; N] {
        std::array::from_fn(|index| {
            let column = (first + index).min(self.columns - 1);
            &self.values[column * self.len..][..self.len]
        })
    }
}

/// Access to the quantised columns in panels `N` wide.
pub(crate) trait PanelsOf<const N: usize> {
    /// The blocks of the `N` columns from `first` on.
    fn panel(&self, first: usize) -> &[ActBlock<N>];
}

impl PanelsOf<1> for Activations {
    fn panel(&self, _first: usize) -> &[ActBlock<1>] {
        &self.narrow
    }
}

impl PanelsOf<WIDE> for Activations {
    fn panel(&self, first: usize) -> &[ActBlock<WIDE>] {
        let blocks = self.len / BLOCK;
        &self.wide[first / WIDE * blocks..][..blocks]
    }
}

/// Up to [`WIDE`] columns that one thread writes.
pub(crate) struct Panel<'a> {
    len: usize,
    values: &'a mut [f32],
    blocks: Blocks<'a>,
}

enum Blocks<'a> {
    Narrow(&'a mut [ActBlock<1>]),
    Wide(&'a mut [ActBlock<WIDE>]),
}

impl Panel<'_> {
    /// The columns' values, one column after the other.
    pub(crate) fn columns_mut(&mut self) -> impl Iterator<Item = &mut [f32]> {
        self.values.chunks_exact_mut(self.len)
    }

    /// Quantises the columns, once their values are written.
    pub(crate) fn quantise(&mut self, isa: Isa) {
        for (index, values) in self.values.chunks_exact(self.len).enumerate() {
            match &mut self.blocks {
                Blocks::Narrow(blocks) => quantise(isa, values, index, blocks),
                Blocks::Wide(blocks) => quantise(isa, values, index, blocks),
            }
        }
    }
}
