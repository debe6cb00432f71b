use std::collections::HashMap;

/// Tokens that a match has at least.
const LEAST: usize = 3;

/// Tokens up to which matches are compared.
const LONGEST: usize = 64;

/// Earlier places that are compared, the latest first.
const TRIES: usize = 16;

/// Tokens that are remembered; half of them are forgotten at a time.
const MOST: usize = 1 << 16;

/// Stands between two texts; no vocabulary has it.
const BORDER: u32 = u32::MAX;

/// Finds the latest place where tokens went as they do at the end: all places after the same
/// [`LEAST`] tokens are chained, as in Lempel and Ziv's compression.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    tokens: Vec<u32>,
    /// The last place after these tokens.
    last: HashMap<[u32; LEAST], u32>,
    /// Of each place the one before it after the same tokens; 0 for none.
    before: Vec<u32>,
    best: Option<Place>,
}

/// The end of a match: the place that follows, and its length.
#[derive(Debug, Clone, Copy)]
struct Place {
    after: usize,
    len: usize,
}

/// An earlier place that the end of the text is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Match {
    /// Tokens that agree, up to [`LONGEST`].
    pub(super) len: usize,
    /// The token that followed.
    pub(super) next: u32,
}

impl Lookup {
    pub(super) fn push(&mut self, id: u32) {
        if self.tokens.len() >= MOST {
            self.forget();
        }
        let goes_on = self.best.filter(|place| self.tokens[place.after] == id);
        self.append(id);
        // Of the longest matches, one that goes on stays one.
        self.best = match goes_on {
            Some(Place { after, len }) => Some(Place {
                after: after + 1,
                len: (len + 1).min(LONGEST),
            }),
            None => self.find(),
        };
    }

    /// What comes next is another text.
    pub(super) fn end_text(&mut self) {
        self.append(BORDER);
        self.best = None;
    }

    /// The earlier place that the end is most like, if something follows it.
    pub(super) fn found(&self) -> Option<Match> {
        let Place { after, len } = self.best?;
        let next = self.tokens[after];
        (next != BORDER).then_some(Match { len, next })
    }

    /// The tokens that followed at that place. Where they reach the end of what is known they are
    /// taken to go on as they did: a repetition repeats.
    pub(super) fn continuation(&self, count: usize) -> Vec<u32> {
        let mut found = Vec::with_capacity(count);
        let Some(Place { after, .. }) = self.best else {
            return found;
        };
        for index in 0..count {
            let next = match self.tokens.get(after + index) {
                Some(&next) => next,
                None => found[after + index - self.tokens.len()],
            };
            if next == BORDER {
                break;
            }
            found.push(next);
        }
        found
    }

    fn append(&mut self, id: u32) {
        self.tokens.push(id);
        let place = self.tokens.len();
        self.before.resize(place + 1, 0);
        if let Some(end) = self.tokens.last_chunk::<LEAST>()
            && !end.contains(&BORDER)
        {
            let earlier = self.last.insert(*end, place as u32);
            self.before[place] = earlier.unwrap_or(0);
        }
    }

    fn find(&self) -> Option<Place> {
        let mut best: Option<Place> = None;
        let mut after = self.before[self.tokens.len()] as usize;
        for _ in 0..TRIES {
            if after == 0 {
                break;
            }
            let len = self.common(after);
            if len > best.map_or(0, |best| best.len) {
                best = Some(Place { after, len });
            }
            after = self.before[after] as usize;
        }
        best
    }

    /// How many tokens before a place are those at the end.
    fn common(&self, after: usize) -> usize {
        let (earlier, all) = (&self.tokens[..after], &self.tokens);
        let pairs = earlier.iter().rev().zip(all.iter().rev()).take(LONGEST);
        pairs.take_while(|(a, b)| a == b && **a != BORDER).count()
    }

    fn forget(&mut self) {
        let kept = self.tokens.split_off(MOST / 2);
        *self = Self::default();
        kept.into_iter().for_each(|id| self.append(id));
        self.best = self.find();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    fn of(tokens: &[u32]) -> Lookup {
        let mut lookup = Lookup::default();
        tokens.iter().for_each(|&id| lookup.push(id));
        lookup
    }

    #[test]
    fn what_followed_is_found() {
        for (tokens, len, continuation) in [
            (&[1, 2, 3, 4, 5, 1, 2, 3][..], 3, &[4, 5, 1, 2][..]),
            // The latest of equals.
            (&[1, 2, 3, 4, 1, 2, 3, 5, 6, 7, 1, 2, 3], 3, &[5, 6, 7, 1]),
            // The longest, though it is earlier.
            (
                &[9, 1, 2, 3, 4, 8, 1, 2, 3, 5, 9, 1, 2, 3],
                4,
                &[4, 8, 1, 2],
            ),
            // A repetition goes on.
            (&[7, 1, 2, 1, 2, 1, 2], 4, &[1, 2, 1, 2]),
            (&[5, 5, 5, 5], 3, &[5, 5, 5, 5]),
        ] {
            let lookup = of(tokens);
            assert_eq!(lookup.found().unwrap().len, len, "{tokens:?}");
            assert_eq!(lookup.continuation(4), continuation, "{tokens:?}");
        }
        for tokens in [&[1, 2, 3, 4, 5][..], &[1, 2, 9, 1, 2], &[]] {
            assert_eq!(of(tokens).found(), None, "{tokens:?}");
        }
    }

    #[test]
    fn texts_end_at_their_borders() {
        let mut lookup = of(&[1, 2, 3]);
        lookup.end_text();
        [1, 2, 3].into_iter().for_each(|id| lookup.push(id));
        assert_eq!(lookup.found(), None, "nothing follows");
        lookup.end_text();
        [1, 2, 3, 4].into_iter().for_each(|id| lookup.push(id));
        lookup.end_text();
        [0, 1, 2, 3].into_iter().for_each(|id| lookup.push(id));
        assert_eq!(lookup.found(), Some(Match { len: 3, next: 4 }));
        assert_eq!(lookup.continuation(4), [4]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut lookup = Lookup::default();
        for index in 0..3 * MOST as u32 {
            lookup.push(index % 50_000 * 7 % 45_007);
            assert!(lookup.tokens.len() <= MOST && lookup.last.len() <= MOST);
        }
        lookup.push(1_000_000);
        assert_eq!(lookup.found(), None);
        let recent = lookup.tokens[MOST / 4..MOST / 4 + 9].to_vec();
        recent[..6].iter().for_each(|&id| lookup.push(id));
        assert_eq!(lookup.continuation(3), recent[6..]);
    }

    proptest! {
        #[test]
        fn no_match_is_longer(tokens in proptest::collection::vec(0u32..4, 0..60)) {
            let found = of(&tokens).found();
            let longest = (1..tokens.len())
                .map(|after| {
                    let pairs = tokens[..after].iter().rev().zip(tokens.iter().rev());
                    pairs.take_while(|(a, b)| a == b).count()
                })
                .max()
                .unwrap_or(0);
            // All earlier places are among those that are tried while there are few.
            let chained = tokens.windows(LEAST).filter(|w| tokens.ends_with(w)).count();
            prop_assume!(chained <= TRIES);
            let expected = (longest >= LEAST).then_some(longest.min(LONGEST));
            prop_assert_eq!(found.map(|found| found.len), expected);
        }
    }
}
