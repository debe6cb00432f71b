//! What is known of texts that were computed before: a radix tree of their tokens, a page of keys
//! and values at a node (after Zheng et al. 2024, "RadixAttention").

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::kv::{KvCache, POSITIONS, Page, Pages};

/// Tokens and their keys and values.
#[derive(Debug, Clone)]
pub(crate) struct Sequence {
    /// The tokens whose keys and values are in `cache`, one for one.
    pub(crate) tokens: Vec<u32>,
    pub(crate) cache: KvCache,
}

impl Sequence {
    pub(crate) fn new(pages: &Arc<Pages>) -> Self {
        Self {
            tokens: Vec::new(),
            cache: KvCache::new(pages),
        }
    }

    /// Forgets the tokens from `len` on.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
        self.cache.truncate(len);
    }

    /// One from the same memory with nothing in it.
    pub(crate) fn empty(&self) -> Self {
        Self {
            tokens: Vec::new(),
            cache: self.cache.empty(),
        }
    }
}

/// The children of a node by the tokens of their pages: [`POSITIONS`] of them, or fewer in a leaf.
type Children = BTreeMap<Box<[u32]>, Node>;

#[derive(Debug)]
struct Node {
    page: Page,
    used: Cell<u64>,
    children: Children,
}

/// The texts of recent requests, so that one that begins like them needs only its rest computed.
///
/// Whoever goes on from a text shares its pages. What nobody uses goes when room is needed, the
/// least recently used first.
#[derive(Debug)]
pub(crate) struct PrefixCache {
    pages: Arc<Pages>,
    root: Children,
    /// Counts uses.
    now: u64,
}

impl PrefixCache {
    pub(crate) fn new(pages: Arc<Pages>) -> Self {
        Self {
            pages,
            root: Children::new(),
            now: 0,
        }
    }

    /// A sequence with as much of `tokens` as is known.
    pub(crate) fn recall(&mut self, tokens: &[u32]) -> Sequence {
        self.now += 1;
        let mut own = Vec::new();
        let mut len = 0;
        let mut children = &self.root;
        while let Some((node, common)) = longest(children, &tokens[len..]) {
            node.used.set(self.now);
            own.push(Arc::clone(&node.page));
            len += common;
            if common < POSITIONS {
                break;
            }
            children = &node.children;
        }
        Sequence {
            tokens: tokens[..len].to_vec(),
            cache: KvCache::of_pages(&self.pages, own, len),
        }
    }

    /// [`PrefixCache::recall`] for the one who kept it: a last page that is not full is handed
    /// over, so that going on writes into it and not into a copy.
    pub(crate) fn take_back(&mut self, tokens: &[u32]) -> Sequence {
        let sequence = self.recall(tokens);
        let full = tokens.len() / POSITIONS * POSITIONS;
        if sequence.tokens.len() == tokens.len() && full < tokens.len() {
            let children = self.children_of(&tokens[..full]);
            if let Some(children) = children
                && children
                    .get(&tokens[full..])
                    .is_some_and(|node| node.children.is_empty())
            {
                children.remove(&tokens[full..]);
            }
        }
        sequence
    }

    fn children_of(&mut self, tokens: &[u32]) -> Option<&mut Children> {
        let mut pages = tokens.chunks(POSITIONS);
        pages.try_fold(&mut self.root, |children, page| {
            Some(&mut children.get_mut(page)?.children)
        })
    }

    /// Keeps the whole pages of a sequence that goes on.
    pub(crate) fn keep_pages(&mut self, sequence: &Sequence) {
        self.keep_some(sequence, sequence.tokens.len() / POSITIONS * POSITIONS);
    }

    /// Keeps a sequence. Where its beginning is kept already, those pages stay and its own are let
    /// go.
    pub(crate) fn keep(&mut self, sequence: &Sequence) {
        self.keep_some(sequence, sequence.tokens.len());
    }

    fn keep_some(&mut self, sequence: &Sequence, len: usize) {
        self.now += 1;
        let mut children = &mut self.root;
        let pages = sequence.tokens[..len]
            .chunks(POSITIONS)
            .zip(sequence.cache.filled());
        for (tokens, (page, _)) in pages {
            if tokens.len() < POSITIONS && longer(children, tokens) {
                return;
            }
            for len in 1..tokens.len() {
                children.remove(&tokens[..len]);
            }
            let node = children.entry(tokens.into()).or_insert_with(|| Node {
                page: Arc::clone(page),
                used: Cell::new(self.now),
                children: Children::new(),
            });
            node.used.set(self.now);
            children = &mut node.children;
        }
    }

    /// How many of `tokens` are known.
    pub(crate) fn known(&self, tokens: &[u32]) -> usize {
        let mut len = 0;
        let mut children = &self.root;
        while let Some((node, common)) = longest(children, &tokens[len..]) {
            len += common;
            if common < POSITIONS {
                break;
            }
            children = &node.children;
        }
        len
    }

    /// Pages that [`PrefixCache::make_room`] could free.
    pub(crate) fn unused(&self) -> usize {
        self.root.values().map(|node| node.unused().0).sum()
    }

    /// Lets go of what nobody uses until at most `most` pages are held in all, or nothing is left
    /// to let go of.
    pub(crate) fn make_room(&mut self, most: usize) {
        while self.pages.held() > most {
            let Some(used) = oldest(&self.root) else {
                return;
            };
            remove(&mut self.root, used);
        }
    }
}

impl Node {
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.page) > 1
    }

    /// The pages from here on that could be freed, and whether that is all of them.
    fn unused(&self) -> (usize, bool) {
        let below = self.children.values().map(Self::unused);
        let (count, all) = below.fold((0, true), |(count, all), (next, whole)| {
            (count + next, all && whole)
        });
        let all = all && !self.is_used();
        (count + usize::from(all), all)
    }
}

/// The child that begins most like `tokens`, and how many tokens they share; none for none.
fn longest<'a>(children: &'a Children, tokens: &[u32]) -> Option<(&'a Node, usize)> {
    let page = &tokens[..tokens.len().min(POSITIONS)];
    // In lexicographic order the one that shares most stands next to where `page` would stand.
    let before = children.range::<[u32], _>((Bound::Unbounded, Bound::Included(page)));
    let after = children.range::<[u32], _>((Bound::Included(page), Bound::Unbounded));
    let near = before.rev().take(1).chain(after.take(1));
    let shared = near.map(|(key, node)| (node, common_len(key, page)));
    shared
        .max_by_key(|(_, common)| *common)
        .filter(|(_, common)| *common > 0)
}

/// Whether a child begins with `tokens`.
fn longer(children: &Children, tokens: &[u32]) -> bool {
    let mut after = children.range::<[u32], _>((Bound::Included(tokens), Bound::Unbounded));
    after.next().is_some_and(|(key, _)| key.starts_with(tokens))
}

/// When the leaf was used that nobody uses and that was longest not used.
fn oldest(children: &Children) -> Option<u64> {
    let of = |node: &Node| {
        if node.children.is_empty() {
            (!node.is_used()).then(|| node.used.get())
        } else {
            oldest(&node.children)
        }
    };
    children.values().filter_map(of).min()
}

/// Removes unused leaves that were used last at `used`; whether any was there.
fn remove(children: &mut Children, used: u64) -> bool {
    let mut found = false;
    children.retain(|_, node| {
        if !node.children.is_empty() {
            found = (node.used.get() >= used && remove(&mut node.children, used)) || found;
            return true;
        }
        let goes = node.used.get() == used && !node.is_used();
        found = goes || found;
        !goes
    });
    found
}

pub(super) fn common_len(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::kernels::Isa;
    use crate::kv::{KvFormat, KvShape, Side};

    const SHAPE: KvShape = KvShape {
        layers: 1,
        heads: 1,
        head_len: 16,
        format: KvFormat::F16,
    };

    fn extend(sequence: &mut Sequence, tokens: &[u32]) {
        sequence.cache.reserve(tokens.len());
        for &token in tokens {
            let position = sequence.tokens.len();
            let vector = [token as f32; 16];
            let scratch = &mut [0; 16];
            sequence
                .cache
                .write(Isa::Portable, (0, 0), position, &vector, &vector, scratch);
            sequence.tokens.push(token);
        }
        sequence.cache.advance(tokens.len());
    }

    /// The tokens as they can be read back from the values.
    fn stored(sequence: &Sequence) -> Vec<u32> {
        (0..sequence.cache.len())
            .map(|position| {
                let page =
                    sequence
                        .cache
                        .elements::<u16>((0, 0), Side::Values, position / POSITIONS);
                let half = page[position % POSITIONS * 16];
                burn::tensor::f16::from_bits(half).to_f32() as u32
            })
            .collect()
    }

    struct Case {
        pages: Arc<Pages>,
        cache: PrefixCache,
        kept: Vec<Vec<u32>>,
    }

    impl Case {
        fn new() -> Self {
            let pages = Pages::new(SHAPE, 1 << 30);
            Self {
                cache: PrefixCache::new(Arc::clone(&pages)),
                pages,
                kept: Vec::new(),
            }
        }

        /// Computes a text, and keeps it; how much of it was known.
        fn run(&mut self, text: &[u32]) -> usize {
            let mut sequence = self.cache.recall(&text[..text.len() - 1]);
            let known = sequence.tokens.len();
            assert_eq!(sequence.tokens, text[..known]);
            extend(&mut sequence, &text[known..]);
            assert_eq!(stored(&sequence), text);
            self.cache.keep(&sequence);
            self.kept.push(text.to_vec());
            known
        }

        /// Nothing that is kept was overwritten.
        fn check(&mut self) {
            for text in &self.kept {
                let sequence = self.cache.recall(text);
                assert_eq!(stored(&sequence), sequence.tokens);
            }
        }
    }

    #[test]
    fn common_beginnings_are_reused_and_never_overwritten() {
        let mut case = Case::new();
        let base: Vec<u32> = (1..200).collect();
        let with = |len: usize, end: &[u32]| [&base[..len], end].concat();
        let rows: [(Vec<u32>, usize); 8] = [
            (with(100, &[]), 0),
            (with(100, &[]), 99),
            (with(100, &[7, 7]), 100),
            (with(70, &[9; 80]), 70),
            (with(150, &[]), 100),
            (with(70, &[9; 90]), 150),
            (with(0, &[5]), 0),
            (with(3, &[]), 2),
        ];
        for (text, known) in rows {
            assert_eq!(case.run(&text), known, "{text:?}");
            case.check();
        }
    }

    #[test]
    fn pages_are_held_once_and_the_oldest_make_room() {
        let mut case = Case::new();
        let start: Vec<u32> = (100..132).collect();
        for last in 1..=20 {
            case.run(&[&start[..], &[last; 16], &[last]].concat());
        }
        // Two shared, and two of each text's own.
        assert_eq!((case.pages.held(), case.cache.unused()), (42, 42));
        let holder = case.cache.recall(&[&start[..], &[3; 16]].concat());
        assert_eq!(
            case.cache.unused(),
            42 - 3,
            "what it goes on from stays too"
        );
        case.cache.make_room(10);
        assert_eq!(case.pages.held(), 10);
        assert_eq!(stored(&holder), holder.tokens);
        case.check();
        assert_eq!(case.run(&[&start[..], &[20; 16], &[20]].concat()), 48);
        assert_eq!(case.run(&[&start[..], &[1; 16], &[1]].concat()), 32);
        case.cache.make_room(0);
        assert_eq!(case.pages.held(), 3);
        drop(holder);
        case.cache.make_room(0);
        assert_eq!(case.pages.held(), 0);
    }

    #[test]
    fn what_is_taken_back_is_written_on_without_a_copy() {
        let mut case = Case::new();
        let text: Vec<u32> = (1..40).collect();
        case.run(&text);
        let held = case.pages.held();
        let mut sequence = case.cache.take_back(&text);
        assert_eq!(sequence.tokens, text);
        extend(&mut sequence, &[77]);
        assert_eq!(case.pages.held(), held);
        assert_eq!(case.cache.recall(&text).tokens.len(), 32);
        case.cache.keep(&sequence);
        assert_eq!(case.cache.recall(&text).tokens, text);
        assert_eq!(case.pages.held(), held);
        case.check();
    }
}
