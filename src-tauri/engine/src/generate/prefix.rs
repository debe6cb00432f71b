use crate::kv::{KvCache, KvShape};

/// Sequences that are kept.
const MAX_KEPT: usize = 8;

/// Bytes that the kept sequences may hold.
const MAX_BYTES: usize = 256 << 20;

/// Tokens and their keys and values.
#[derive(Debug, Clone)]
pub(crate) struct Sequence {
    /// The tokens whose keys and values are in `cache`, one for one.
    pub(crate) tokens: Vec<u32>,
    pub(crate) cache: KvCache,
}

impl Sequence {
    pub(crate) fn new(shape: KvShape) -> Self {
        Self {
            tokens: Vec::new(),
            cache: KvCache::new(shape),
        }
    }

    /// One of the same shape with nothing in it.
    pub(crate) fn empty(&self) -> Self {
        Self::new(self.cache.shape())
    }
}

/// The sequences of recent requests, so that a prompt that begins like one of them needs only its
/// rest computed. Blocks are shared between sequences with a common beginning.
#[derive(Debug)]
pub(crate) struct PrefixCache {
    shape: KvShape,
    /// The least recently used first.
    kept: Vec<Sequence>,
}

impl PrefixCache {
    pub(crate) fn new(shape: KvShape) -> Self {
        Self {
            shape,
            kept: Vec::new(),
        }
    }

    /// A sequence with as much of the prompt as is known, but for its last token, whose logits
    /// have to be computed.
    pub(crate) fn begin(&mut self, prompt: &[u32]) -> Sequence {
        let wanted = &prompt[..prompt.len().saturating_sub(1)];
        let best = self
            .kept
            .iter()
            .enumerate()
            .map(|(index, kept)| (common_len(&kept.tokens, wanted), index))
            .max();
        match best {
            Some((len, index)) if len > 0 => {
                let found = self.kept.remove(index);
                let mut sequence = found.clone();
                self.kept.push(found);
                sequence.tokens.truncate(len);
                sequence.cache.truncate(len);
                sequence
            }
            _ => Sequence::new(self.shape),
        }
    }

    /// Keeps a sequence, in place of those it goes on from, and drops the oldest beyond the limits.
    /// Where a kept one goes on from it, that one stays alone.
    pub(crate) fn keep(&mut self, sequence: Sequence) {
        if sequence.tokens.is_empty() {
            return;
        }
        let longer = |kept: &Sequence| kept.tokens.starts_with(&sequence.tokens);
        if let Some(index) = self.kept.iter().position(longer) {
            let found = self.kept.remove(index);
            self.kept.push(found);
            return;
        }
        self.kept
            .retain(|kept| !sequence.tokens.starts_with(&kept.tokens));
        self.kept.push(sequence);
        while self.kept.len() > 1 && (self.kept.len() > MAX_KEPT || self.bytes() > MAX_BYTES) {
            self.kept.remove(0);
        }
    }

    /// Bytes held, shared blocks counted once for each holder.
    fn bytes(&self) -> usize {
        let blocks: usize = self.kept.iter().map(|kept| kept.cache.blocks()).sum();
        blocks * self.shape.block_bytes()
    }
}

fn common_len(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::kernels::Isa;
    use crate::kv::POSITIONS;

    const SHAPE: KvShape = KvShape {
        layers: 1,
        heads: 1,
        head_len: 16,
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
                let block = sequence.cache.values((0, 0), position / POSITIONS);
                let half = block[position % POSITIONS * 16];
                burn::tensor::f16::from_bits(half).to_f32() as u32
            })
            .collect()
    }

    fn run(prefixes: &mut PrefixCache, prompt: &[u32]) -> usize {
        let mut sequence = prefixes.begin(prompt);
        let cached = sequence.tokens.len();
        assert_eq!(sequence.tokens, prompt[..cached]);
        extend(&mut sequence, &prompt[cached..]);
        assert_eq!(stored(&sequence), prompt);
        prefixes.keep(sequence);
        for kept in &prefixes.kept {
            assert_eq!(stored(kept), kept.tokens, "a kept sequence was overwritten");
        }
        cached
    }

    #[test]
    fn common_beginnings_are_reused_and_never_overwritten() {
        let mut prefixes = PrefixCache::new(SHAPE);
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
        for (prompt, cached) in rows {
            assert_eq!(run(&mut prefixes, &prompt), cached, "{prompt:?}");
        }
    }

    #[test]
    fn old_sequences_make_room() {
        let mut prefixes = PrefixCache::new(SHAPE);
        for first in 1..=20 {
            run(&mut prefixes, &[first, 1, 2, 3]);
            // What is a beginning of a kept one takes no place of its own.
            run(&mut prefixes, &[first, 1, 2]);
        }
        assert_eq!(prefixes.kept.len(), MAX_KEPT);
        assert!(prefixes.kept.iter().all(|kept| kept.tokens.len() == 4));
        assert_eq!(run(&mut prefixes, &[20, 1, 2, 9]), 3);
        assert_eq!(run(&mut prefixes, &[1, 1, 2, 9]), 0);
    }
}
