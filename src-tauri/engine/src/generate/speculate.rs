//! Guesses at the tokens to come: those that followed when the text, or an earlier one of the same
//! run, last went like this ("prompt lookup decoding", Saxena 2023). A step that runs guesses along
//! chooses from the row before each as if it ran alone, and keeps a guess where that gives the same
//! token: no token of an answer changes, some come sooner.
//!
//! A wider step takes longer. Whether guesses pay is told by how often they are right, which is
//! counted also while none are run, and by what steps were measured to take.

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
    rates: [Rate; CLASSES.len()],
}

impl Speculator {
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
    }

    /// The tokens that are likely to come, at most `most`: as many as make a step of `rows` rows,
    /// of which one is this text's, give the most tokens for its time. Often none.
    pub(crate) fn guess(&self, most: usize, rows: usize, cost: &StepCost) -> Vec<u32> {
        let Some(found) = self.lookup.found() else {
            return Vec::new();
        };
        let mut best = (0, WORTH * rows as f64 / cost.seconds(rows));
        let (mut tokens, mut all_right) = (rows as f64, 1.0);
        for count in 1..=most.min(MAX_GUESSES) {
            all_right *= self.rates[class(found.len + count - 1)].share();
            tokens += all_right;
            let speed = tokens / cost.seconds(rows + count);
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

/// What a step takes by its rows, a straight line through what was measured.
///
/// Where all steps measured had the same number of rows, they say nothing about wider ones. Each
/// therefore also stands, with little weight, for a step that is wider by [`AHEAD`] rows and takes
/// longer by [`PER_ROW`] of a step of none for each.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StepCost {
    weight: f64,
    rows: f64,
    seconds: f64,
    rows_squared: f64,
    product: f64,
}

const AHEAD: f64 = 8.0;
const AHEAD_WEIGHT: f64 = 0.002;

/// What another row adds to a step, as a share of a step without rows.
const PER_ROW: f64 = 0.2;

impl StepCost {
    /// Takes in a measured step.
    pub(crate) fn record(&mut self, rows: usize, seconds: f64) {
        for sum in [
            &mut self.weight,
            &mut self.rows,
            &mut self.seconds,
            &mut self.rows_squared,
            &mut self.product,
        ] {
            *sum *= MEMORY;
        }
        let rows = rows as f64;
        self.add(rows, seconds, 1.0);
        let longer = (1.0 + PER_ROW * (rows + AHEAD)) / (1.0 + PER_ROW * rows);
        self.add(rows + AHEAD, seconds * longer, AHEAD_WEIGHT);
    }

    fn add(&mut self, rows: f64, seconds: f64, weight: f64) {
        self.weight += weight;
        self.rows += weight * rows;
        self.seconds += weight * seconds;
        self.rows_squared += weight * rows * rows;
        self.product += weight * rows * seconds;
    }

    /// What a step of so many rows is expected to take, up to a common factor while nothing has
    /// been measured.
    fn seconds(&self, rows: usize) -> f64 {
        let rows = rows as f64;
        if self.weight == 0.0 {
            return 1.0 + PER_ROW * rows;
        }
        let (mean_rows, mean) = (self.rows / self.weight, self.seconds / self.weight);
        let spread = self.rows_squared / self.weight - mean_rows * mean_rows;
        let together = self.product / self.weight - mean_rows * mean;
        // Measured times are noisy; more rows never take less.
        let slope = (together / spread).max(0.0);
        (mean + slope * (rows - mean_rows)).max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests;
