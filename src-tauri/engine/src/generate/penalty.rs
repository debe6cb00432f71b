use std::collections::HashMap;
use std::ops::Range;

use super::Sampling;

/// What a generation has so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<'a> {
    pub(crate) prompt: &'a [u32],
    pub(crate) answer: &'a [u32],
}

impl Text<'_> {
    fn len(self) -> usize {
        self.prompt.len() + self.answer.len()
    }

    /// The token at a place, and whether it is one of the answer.
    fn at(self, place: usize) -> (u32, bool) {
        match place.checked_sub(self.prompt.len()) {
            None => (self.prompt[place], false),
            Some(place) => (self.answer[place], true),
        }
    }
}

/// How often tokens came lately. It follows from the text, and is brought up to it before use: a
/// text only grows.
#[derive(Debug, Clone, Default)]
pub(super) struct Recent {
    counts: HashMap<u32, Count>,
    /// The places of the text that are counted.
    counted: Range<usize>,
}

/// How often one token came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    all: u32,
    in_answer: u32,
}

impl Recent {
    /// Counts the last `window` tokens of a text, each once over its life.
    pub(super) fn follow(&mut self, text: Text<'_>, window: Option<u32>) {
        let end = text.len();
        let start = window.map_or(0, |window| end.saturating_sub(window as usize));
        if start >= self.counted.end {
            self.counts.clear();
            self.counted = start..start;
        }
        for place in self.counted.end..end {
            let (id, in_answer) = text.at(place);
            let count = self.counts.entry(id).or_default();
            count.all += 1;
            count.in_answer += u32::from(in_answer);
        }
        for place in self.counted.start..start {
            let (id, in_answer) = text.at(place);
            if let Some(count) = self.counts.get_mut(&id) {
                count.all -= 1;
                count.in_answer -= u32::from(in_answer);
                if count.all == 0 {
                    self.counts.remove(&id);
                }
            }
        }
        self.counted = start..end;
    }

    /// The tokens that are counted.
    pub(super) fn counts(&self) -> impl Iterator<Item = (u32, Count)> {
        self.counts.iter().map(|(id, count)| (*id, *count))
    }
}

impl Count {
    /// A token's logit, less what it is penalised by.
    pub(super) fn penalised(self, logit: f32, sampling: &Sampling) -> f32 {
        if !logit.is_finite() {
            return logit;
        }
        let repeated = if logit > 0.0 {
            logit / sampling.repetition_penalty
        } else {
            logit * sampling.repetition_penalty
        };
        let presence = match self.in_answer {
            0 => 0.0,
            _ => sampling.presence_penalty,
        };
        let frequency = self.in_answer as f32 * sampling.frequency_penalty;
        (repeated - frequency - presence).clamp(f32::MIN, f32::MAX)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_are_those_of_the_window(
            prompt in proptest::collection::vec(0u32..6, 0..20),
            answer in proptest::collection::vec(0u32..6, 0..40),
            jumps in proptest::collection::vec(0usize..9, 1..12),
            window in proptest::option::of(1u32..12),
        ) {
            let mut recent = Recent::default();
            let mut len = 0;
            for jump in jumps {
                len = (len + jump).min(answer.len());
                let text = Text { prompt: &prompt, answer: &answer[..len] };
                recent.follow(text, window);
                let first = window.map_or(0, |window| text.len().saturating_sub(window as usize));
                let mut expected: HashMap<u32, Count> = HashMap::new();
                for place in first..text.len() {
                    let (id, in_answer) = text.at(place);
                    let count = expected.entry(id).or_default();
                    count.all += 1;
                    count.in_answer += u32::from(in_answer);
                }
                prop_assert_eq!(&recent.counts, &expected);
            }
        }
    }

    #[test]
    fn penalties_are_as_their_sources_say() {
        let sampling = |repetition_penalty, frequency_penalty, presence_penalty| Sampling {
            repetition_penalty,
            frequency_penalty,
            presence_penalty,
            ..Sampling::default()
        };
        let count = |all, in_answer| Count { all, in_answer };
        for (logit, count, sampling, expected) in [
            (3.0, count(1, 0), sampling(1.5, 0.0, 0.0), 2.0),
            (-3.0, count(4, 4), sampling(1.5, 0.0, 0.0), -4.5),
            (3.0, count(5, 2), sampling(1.0, 0.5, 0.0), 2.0),
            (3.0, count(5, 0), sampling(1.0, 0.5, 1.0), 3.0),
            (3.0, count(5, 3), sampling(1.0, 0.0, 0.75), 2.25),
            (-1.0, count(2, 2), sampling(2.0, -0.5, 0.25), -1.25),
        ] {
            assert_eq!(
                count.penalised(logit, &sampling),
                expected,
                "{logit} {count:?}"
            );
        }
    }
}
