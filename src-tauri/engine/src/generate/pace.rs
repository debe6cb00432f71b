//! How long steps take, and how much can be read beside texts that are written.

/// A step as it was.
#[derive(Debug, Clone, Copy)]
pub(super) struct Took<'a> {
    pub(super) columns: usize,
    pub(super) seconds: f64,
    pub(super) pace: &'a Pace,
}

/// Columns that cost about the same together as one: the weights are read once for all of them.
const FREE: usize = 4;

/// Columns from which on a step says what one more costs.
const WIDE: usize = 16;

/// Weight of a new measurement.
const NEW: f64 = 0.2;

/// What steps cost, as measured so far: `one` for a single column, `base` for two to [`FREE`], and
/// `column` for each one more; in seconds.
#[derive(Debug)]
pub(super) struct Pace {
    one: f64,
    base: f64,
    column: f64,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            one: 3e-3,
            base: 4e-3,
            column: 1e-3,
        }
    }
}

impl Pace {
    /// A step of so many columns took so long.
    pub(super) fn observe(&mut self, columns: usize, seconds: f64) {
        if columns == 1 {
            self.one += NEW * (seconds - self.one);
            self.base = self.base.max(self.one);
        } else if columns <= FREE {
            self.base += NEW * (seconds - self.base);
        } else if columns >= WIDE {
            let column = (seconds - self.base).max(0.0) / (columns - FREE) as f64;
            self.column += NEW * (column - self.column);
        }
    }

    /// What a step of so many columns takes, in seconds.
    pub(super) fn cost(&self, columns: usize) -> f64 {
        match columns {
            0 | 1 => self.one,
            _ => self.base + self.column * columns.saturating_sub(FREE) as f64,
        }
    }

    /// Tokens that can be read in a step that writes `columns`, so that it takes at most twice as
    /// long; at least one, so that whoever reads comes to an end.
    pub(super) fn beside(&self, columns: usize) -> usize {
        let alone = self.cost(columns);
        let more = (alone / self.column.max(1e-9)) as usize;
        let all = columns.max(FREE) + more.min(1 << 16);
        // Kernels take columns by fours.
        (all / FREE * FREE).saturating_sub(columns).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_read_as_doubles_the_time() {
        let mut pace = Pace::default();
        for _ in 0..100 {
            pace.observe(1, 3e-3);
            pace.observe(128, 3e-3 + 124.0 * 0.75e-3);
        }
        assert_eq!(pace.beside(1), 7);
        assert_eq!(pace.beside(4), 4);
        assert_eq!(pace.beside(16), 16);
        assert_eq!(pace.beside(5), 3);
    }
}
