//! The KV cache of a sequence, in pages of 16 positions that sequences may share, and the memory
//! that all pages of a model come from (after Kwon et al. 2023, "paged attention").

use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Mutex, PoisonError};

use crate::kernels::{Isa, store_halves};

/// Positions of a page.
pub(crate) const POSITIONS: usize = 16;

/// Bytes of pages that nobody holds and that are kept for whoever needs one next.
const SPARE_BYTES: usize = 16 << 20;

/// The sizes that fix a cache's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KvShape {
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) head_len: usize,
}

impl KvShape {
    /// Halves that one head of one layer takes in a page, for K or for V.
    fn head_halves(self) -> usize {
        POSITIONS * self.head_len
    }

    fn page_halves(self) -> usize {
        self.layers * self.heads * 2 * self.head_halves()
    }

    /// Bytes of a page.
    pub(crate) fn page_bytes(self) -> usize {
        self.page_halves() * size_of::<u16>()
    }

    /// Bytes that [`KvShape::pack`] appends for `count` positions.
    pub(crate) fn packed_bytes(self, count: usize) -> usize {
        self.page_bytes() / POSITIONS * count
    }

    /// The rows of a page that hold its first `count` positions.
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

    /// Appends the first `count` positions of a page, and nothing of the others.
    pub(crate) fn pack(self, page: &PageMemory, count: usize, out: &mut Vec<u8>) {
        for row in self.rows(count) {
            out.extend(page[row].iter().flat_map(|half| half.to_le_bytes()));
        }
    }

    /// Writes what [`KvShape::pack`] gave into the first `count` positions of a page.
    fn unpack(self, packed: &[u8], count: usize, page: &mut PageMemory) {
        let mut packed = packed.as_chunks::<2>().0.iter();
        for row in self.rows(count) {
            for (half, bytes) in page[row].iter_mut().zip(&mut packed) {
                *half = u16::from_le_bytes(*bytes);
            }
        }
    }
}

/// Keys and values of [`POSITIONS`] positions, by layer and head: K as `[head_len][POSITIONS]`, then
/// V as `[POSITIONS][head_len]`.
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

/// Keys and values of the positions seen so far, in half precision.
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

    fn head_start(&self, layer: usize, head: usize) -> usize {
        (layer * self.shape().heads + head) * 2 * self.shape().head_halves()
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
        let (halves, head_len) = (self.shape().head_halves(), self.shape().head_len);
        // `reserve` has made the page unique, so this copies nothing.
        let page = Arc::make_mut(&mut self.own[position / POSITIONS]);
        let (keys, values) = page[start..start + 2 * halves].split_at_mut(halves);
        let at = position % POSITIONS;
        store_halves(isa, key, scratch);
        for (row, key) in keys.chunks_exact_mut(POSITIONS).zip(scratch) {
            row[at] = *key;
        }
        store_halves(isa, value, &mut values[at * head_len..][..head_len]);
    }

    /// K of a page as `[head_len][POSITIONS]`.
    pub(crate) fn keys(&self, (layer, head): (usize, usize), page: usize) -> &[u16] {
        &self.own[page][self.head_start(layer, head)..][..self.shape().head_halves()]
    }

    /// V of a page as `[POSITIONS][head_len]`.
    pub(crate) fn values(&self, (layer, head): (usize, usize), page: usize) -> &[u16] {
        let halves = self.shape().head_halves();
        &self.own[page][self.head_start(layer, head) + halves..][..halves]
    }

    /// The pages that hold positions `of`.
    pub(crate) fn pages(&self, of: Range<usize>) -> &[Page] {
        &self.own[of.start / POSITIONS..of.end.div_ceil(POSITIONS)]
    }
}
