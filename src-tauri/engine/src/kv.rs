//! The KV cache of a sequence, in pages of 16 positions that sequences may share, and the memory
//! that all pages of a model come from (after Kwon et al. 2023, "paged attention").

use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Mutex, PoisonError};

use crate::kernels::{Cell, Isa, as_bytes, store_halves};

/// Positions of a page.
pub(crate) const POSITIONS: usize = 16;

/// Bytes of pages that nobody holds and that are kept for whoever needs one next.
const SPARE_BYTES: usize = 16 << 20;

/// What keys and values are kept as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum KvFormat {
    /// Half precision.
    #[default]
    F16,
    /// Eight bits, with a scale for each key and value of a head: about half the memory, and a text
    /// that may differ.
    Q8,
}

/// The sizes that fix a cache's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KvShape {
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) head_len: usize,
    pub(crate) format: KvFormat,
}

impl KvShape {
    /// Halves that the elements of K or V of one head of one layer take in a page.
    fn element_halves(self) -> usize {
        let elements = POSITIONS * self.head_len;
        match self.format {
            KvFormat::F16 => elements,
            KvFormat::Q8 => elements / 2,
        }
    }

    /// Halves that K or V of one head of one layer takes in a page, with what scales it has.
    fn side_halves(self) -> usize {
        match self.format {
            KvFormat::F16 => self.element_halves(),
            KvFormat::Q8 => self.element_halves() + 2 * POSITIONS,
        }
    }

    fn page_halves(self) -> usize {
        self.layers * self.heads * 2 * self.side_halves()
    }

    /// Bytes of a page.
    pub(crate) fn page_bytes(self) -> usize {
        self.page_halves() * size_of::<u16>()
    }

    /// Bytes that a position takes.
    pub(crate) fn token_bytes(self) -> u64 {
        (self.page_bytes() / POSITIONS) as u64
    }

    /// Bytes that [`KvShape::pack`] appends for `count` positions.
    pub(crate) fn packed_bytes(self, count: usize) -> usize {
        self.page_bytes() / POSITIONS * count
    }

    /// The bytes of a page that hold its first `count` positions, row by row.
    fn rows(self, count: usize) -> impl Iterator<Item = Range<usize>> {
        let element = match self.format {
            KvFormat::F16 => 2,
            KvFormat::Q8 => 1,
        };
        let (elements, side) = (2 * self.element_halves(), 2 * self.side_halves());
        let scales = move |at: usize| {
            let scales = at + elements..at + elements + 4 * count;
            std::iter::once(scales).filter(move |_| elements < side)
        };
        (0..self.layers * self.heads).flat_map(move |head| {
            let keys = 2 * head * side;
            let values = keys + side;
            let key_rows = (keys..keys + elements)
                .step_by(POSITIONS * element)
                .map(move |at| at..at + count * element);
            let value_rows = values..values + count * self.head_len * element;
            key_rows
                .chain(scales(keys))
                .chain(std::iter::once(value_rows))
                .chain(scales(values))
        })
    }

    /// Appends the first `count` positions of a page, and nothing of the others.
    pub(crate) fn pack(self, page: &PageMemory, count: usize, out: &mut Vec<u8>) {
        let bytes: &[u8] = bytemuck::cast_slice(page);
        for row in self.rows(count) {
            out.extend_from_slice(&bytes[row]);
        }
    }

    /// Writes what [`KvShape::pack`] gave into the first `count` positions of a page.
    fn unpack(self, mut packed: &[u8], count: usize, page: &mut PageMemory) {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(page);
        for row in self.rows(count) {
            let Some((found, rest)) = packed.split_at_checked(row.len()) else {
                return;
            };
            bytes[row].copy_from_slice(found);
            packed = rest;
        }
    }
}

/// Keys and values of [`POSITIONS`] positions, by layer and head: K as `[head_len][POSITIONS]`, then
/// V as `[POSITIONS][head_len]`, each with a float for each position behind it where elements are of
/// eight bits.
pub(crate) type Page = Arc<PageMemory>;

/// The memory of a page; it goes back to where it came from.
#[derive(Debug)]
pub(crate) struct PageMemory {
    halves: Vec<u16>,
    pages: Arc<Pages>,
}

impl Deref for PageMemory {
    type Target = [u16];

    fn deref(&self) -> &[u16] {
        &self.halves
    }
}

impl DerefMut for PageMemory {
    fn deref_mut(&mut self) -> &mut [u16] {
        &mut self.halves
    }
}

impl Clone for PageMemory {
    fn clone(&self) -> Self {
        let mut copy = self.pages.take();
        copy.copy_from_slice(self);
        copy
    }
}

impl Drop for PageMemory {
    fn drop(&mut self) {
        self.pages.put_back(std::mem::take(&mut self.halves));
    }
}

/// Where a model's pages come from, and how many there are.
#[derive(Debug)]
pub(crate) struct Pages {
    shape: KvShape,
    most: usize,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    held: usize,
    spare: Vec<Vec<u16>>,
}

impl Pages {
    /// Pages of a shape, of which at most `bytes` are to be held.
    pub(crate) fn new(shape: KvShape, bytes: u64) -> Arc<Self> {
        let most = bytes / shape.page_bytes() as u64;
        Arc::new(Self {
            shape,
            most: usize::try_from(most).unwrap_or(usize::MAX),
            memory: Mutex::default(),
        })
    }

    pub(crate) fn shape(&self) -> KvShape {
        self.shape
    }

    /// Pages that are to be held at most.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Pages that somebody holds.
    pub(crate) fn held(&self) -> usize {
        self.memory().held
    }

    /// A page whose first `count` positions are those of `packed`.
    pub(crate) fn unpack(self: &Arc<Self>, packed: &[u8], count: usize) -> Page {
        let mut page = self.take();
        self.shape.unpack(packed, count, &mut page);
        Arc::new(page)
    }

    /// A page. What is in it is left from whoever held it before.
    fn take(self: &Arc<Self>) -> PageMemory {
        let spare = {
            let mut memory = self.memory();
            memory.held += 1;
            memory.spare.pop()
        };
        PageMemory {
            halves: spare.unwrap_or_else(|| vec![0; self.shape.page_halves()]),
            pages: Arc::clone(self),
        }
    }

    fn put_back(&self, halves: Vec<u16>) {
        let mut memory = self.memory();
        memory.held -= 1;
        if (memory.spare.len() + 1) * self.shape.page_bytes() <= SPARE_BYTES {
            memory.spare.push(halves);
        }
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keys and values of the positions seen so far.
///
/// A clone shares all pages; a shared page is copied before it is written.
#[derive(Debug, Clone)]
pub(crate) struct KvCache {
    pages: Arc<Pages>,
    own: Vec<Page>,
    len: usize,
}

impl KvCache {
    pub(crate) fn new(pages: &Arc<Pages>) -> Self {
        Self::of_pages(pages, Vec::new(), 0)
    }

    /// A cache of `len` positions in as many pages as these take.
    pub(crate) fn of_pages(pages: &Arc<Pages>, own: Vec<Page>, len: usize) -> Self {
        Self {
            pages: Arc::clone(pages),
            own,
            len,
        }
    }

    /// One from the same memory with nothing in it.
    pub(crate) fn empty(&self) -> Self {
        Self::new(&self.pages)
    }

    /// The sizes that it was made for.
    pub(crate) fn shape(&self) -> KvShape {
        self.pages.shape()
    }

    /// Positions written and kept.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The pages in order, each with the positions of it that are written and kept.
    pub(crate) fn filled(&self) -> impl Iterator<Item = (&Page, usize)> {
        let counts = (0..self.len).step_by(POSITIONS);
        let counts = counts.map(|first| (self.len - first).min(POSITIONS));
        self.own.iter().zip(counts)
    }

    /// Forgets the positions from `len` on.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.own.truncate(self.len.div_ceil(POSITIONS));
    }

    /// Pages that are held.
    pub(crate) fn held(&self) -> usize {
        self.own.len()
    }

    /// Makes the `count` positions after the current ones writable.
    pub(crate) fn reserve(&mut self, count: usize) {
        let first = self.len / POSITIONS;
        let last = (self.len + count).div_ceil(POSITIONS);
        for index in first..last {
            match self.own.get_mut(index) {
                Some(page) => {
                    Arc::make_mut(page);
                }
                None => self.own.push(Arc::new(self.pages.take())),
            }
        }
    }

    /// Counts `count` reserved positions as written.
    pub(crate) fn advance(&mut self, count: usize) {
        self.len += count;
    }

    /// Where K or V of a head begins in a page, in halves.
    fn start(&self, (layer, head): (usize, usize), side: Side) -> usize {
        let sides = 2 * (layer * self.shape().heads + head) + side as usize;
        sides * self.shape().side_halves()
    }

    /// Writes a reserved position's key and value; `scratch` holds `head_len` halves.
    pub(crate) fn write(
        &mut self,
        isa: Isa,
        place: (usize, usize),
        position: usize,
        key: &[f32],
        value: &[f32],
        scratch: &mut [u16],
    ) {
        let shape = self.shape();
        let (start, side) = (self.start(place, Side::Keys), shape.side_halves());
        let (elements, at) = (shape.element_halves(), position % POSITIONS);
        // `reserve` has made the page unique, so this copies nothing.
        let page = Arc::make_mut(&mut self.own[position / POSITIONS]);
        let (keys, values) = page[start..start + 2 * side].split_at_mut(side);
        match shape.format {
            KvFormat::F16 => {
                store_halves(isa, key, scratch);
                put_column(keys, at, scratch);
                store_halves(
                    isa,
                    value,
                    &mut values[at * shape.head_len..][..shape.head_len],
                );
            }
            KvFormat::Q8 => {
                let (keys, key_scales) = keys.split_at_mut(elements);
                let (values, value_scales) = values.split_at_mut(elements);
                let bytes = &mut bytemuck::cast_slice_mut::<u16, i8>(scratch)[..shape.head_len];
                put_scale(key_scales, at, as_bytes(isa, key, bytes));
                put_column(bytemuck::cast_slice_mut(keys), at, bytes);
                let values: &mut [i8] = bytemuck::cast_slice_mut(values);
                let value_bytes = &mut values[at * shape.head_len..][..shape.head_len];
                put_scale(value_scales, at, as_bytes(isa, value, value_bytes));
            }
        }
    }

    /// K of a page as `[head_len][POSITIONS]`, or V as `[POSITIONS][head_len]`. `C` is what the
    /// format's elements are.
    pub(crate) fn elements<C: Cell>(&self, place: (usize, usize), side: Side, page: usize) -> &[C] {
        let halves = &self.own[page][self.start(place, side)..][..self.shape().element_halves()];
        bytemuck::cast_slice(halves)
    }

    /// What the keys or values of a page's positions are multiplied by; `None` where they are as they
    /// are kept.
    pub(crate) fn scales(
        &self,
        place: (usize, usize),
        side: Side,
        page: usize,
    ) -> Option<[f32; POSITIONS]> {
        if self.shape().format == KvFormat::F16 {
            return None;
        }
        let start = self.start(place, side) + self.shape().element_halves();
        let halves = self.own[page][start..][..2 * POSITIONS].as_chunks::<2>().0;
        Some(std::array::from_fn(|at| {
            let [low, high] = halves[at];
            f32::from_bits(u32::from(high) << 16 | u32::from(low))
        }))
    }

    /// The pages that hold positions `of`.
    pub(crate) fn pages(&self, of: Range<usize>) -> &[Page] {
        &self.own[of.start / POSITIONS..of.end.div_ceil(POSITIONS)]
    }
}

/// Keys or values.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    Keys,
    Values,
}

fn put_column<C: Copy>(rows: &mut [C], at: usize, column: &[C]) {
    for (row, element) in rows.chunks_exact_mut(POSITIONS).zip(column) {
        row[at] = *element;
    }
}

/// A float lies in two halves, the lower one first.
fn put_scale(scales: &mut [u16], at: usize, scale: f32) {
    let bits = scale.to_bits();
    scales[2 * at] = bits as u16;
    scales[2 * at + 1] = (bits >> 16) as u16;
}
