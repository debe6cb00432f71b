//! Guesses at the tokens to come: those that followed when the text, or an earlier one of the same
//! run, last went like this ("prompt lookup decoding", Saxena 2023). A step that runs guesses along
//! chooses from the row before each as if it ran alone, and keeps a guess where that gives the same
//! token: no token of an answer changes, some come sooner.
//!
//! A wider step takes longer. Whether guesses pay is told by how often they are right, which is
//! counted also while none are run, and by what steps of so many rows take.

mod lookup;

use lookup::Lookup;

/// Guesses at a time at most.
pub(crate) const MAX_GUESSES: usize = 16;

/// Lengths of match from which on guesses are counted apart: longer matches are right more often.
const CLASSES: [usize; 3] = [0, 6, 12];

/// Weight that the counts so far keep with each new one: what was right in the last hundred tokens
/// says more than what was before.
const MEMORY: f64 = 0.98;

/// How much faster guessing must be to be worth it.
const WORTH: f64 = 1.05;

/// Guesses for one text.
#[derive(Debug, Default)]
pub(crate) struct Speculator {
    lookup: Lookup,
    /// Tokens of the text so far.
    seen: usize,
    rates: [Rate; CLASSES.len()],
}

impl Speculator {
    /// Tokens of the text so far.
    pub(crate) fn seen(&self) -> usize {
        self.seen
    }

    /// Takes in a text that this one may repeat, before any of its own tokens.
    pub(crate) fn learn(&mut self, tokens: &[u32]) {
        tokens.iter().for_each(|&id| self.lookup.push(id));
        self.lookup.end_text();
    }

    /// Goes on by a token of the text that is certain; a prompt's first.
    pub(crate) fn push(&mut self, id: u32) {
        if let Some(found) = self.lookup.found() {
            self.rates[class(found.len)].count(found.next == id);
        }
        self.lookup.push(id);
        self.seen += 1;
    }

    /// The tokens that are likely to come, at most `most`: as many as make a step of `rows` rows,
    /// of which one is this text's, give the most tokens for its time. Often none. `cost` is what a
    /// step of so many rows takes, in any unit.
    pub(crate) fn guess(&self, most: usize, rows: usize, cost: impl Fn(usize) -> f64) -> Vec<u32> {
        let Some(found) = self.lookup.found() else {
            return Vec::new();
        };
        let mut best = (0, WORTH * rows as f64 / cost(rows));
        let (mut tokens, mut all_right) = (rows as f64, 1.0);
        for count in 1..=most.min(MAX_GUESSES) {
            all_right *= self.rates[class(found.len + count - 1)].share();
            tokens += all_right;
            let speed = tokens / cost(rows + count);
            if speed > best.1 {
                best = (count, speed);
            }
        }
        self.lookup.continuation(best.0)
    }
}

fn class(len: usize) -> usize {
    CLASSES.iter().rposition(|&from| len >= from).unwrap_or(0)
}

/// How often guesses are right.
#[derive(Debug, Clone, Copy)]
struct Rate {
    right: f64,
    all: f64,
}

impl Default for Rate {
    /// One in two, until it is known better.
    fn default() -> Self {
        Self {
            right: 1.0,
            all: 2.0,
        }
    }
}

impl Rate {
    fn count(&mut self, is_right: bool) {
        self.right = self.right * MEMORY + f64::from(u8::from(is_right));
        self.all = self.all * MEMORY + 1.0;
    }

    fn share(self) -> f64 {
        self.right / self.all
    }
}

#[cfg(test)]
mod tests;
