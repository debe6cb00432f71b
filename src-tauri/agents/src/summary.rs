//! Whether a summary keeps to its text: what can be checked exactly is not taken on trust.
//!
//! A number or a name that the text has not is invented. A clause must follow one sentence of the
//! text: most of its words must stand there in the same order (the precision of ROUGE-L; Lin, 2004).
//! Small models say false things mostly by joining true words of different sentences.

use std::collections::BTreeSet;

use crate::model::sentences;
use crate::search::terms;

const WORDS_AT_MOST: usize = 75;
/// Words with which a summary is taken.
pub(crate) const WORDS_AT_LEAST: usize = 8;
/// Words with which nothing more is tried.
pub(crate) const WORDS_ENOUGH: usize = 20;
/// Share of a clause's meaning-carrying words that must stand in one sentence of the text, in order.
const CLAUSE_GROUNDED: f64 = 0.6;
/// The same for all clauses of a sentence together.
const SENTENCE_GROUNDED: f64 = 0.8;

/// What a summary is held against.
pub(crate) struct Source {
    sentences: Vec<Vec<String>>,
    terms: BTreeSet<String>,
    numbers: BTreeSet<String>,
    words: usize,
}

impl Source {
    pub(crate) fn of(text: &str) -> Self {
        Self {
            sentences: sentences(text).into_iter().map(terms).collect(),
            terms: terms(text).into_iter().collect(),
            numbers: numbers(text),
            words: words(text),
        }
    }

    /// Where in the text a sentence begins to follow it, if it has no number and no name that the
    /// text has not, and each clause of it follows a sentence of the text.
    fn holds(&self, sentence: &str) -> Option<usize> {
        let names = sentence
            .split_whitespace()
            .skip(1)
            .filter(|w| w.starts_with(char::is_uppercase));
        let known = |word: &str| terms(word).iter().all(|term| self.terms.contains(term));
        let true_to_it = numbers(sentence).is_subset(&self.numbers) && names.into_iter().all(known);
        self.follows(sentence).filter(|_| true_to_it)
    }

    fn follows(&self, sentence: &str) -> Option<usize> {
        let (mut said, mut found) = (0.0, 0.0);
        let mut first = None;
        for clause in clauses(sentence) {
            let terms = terms(&clause);
            let ranked = self
                .sentences
                .iter()
                .map(|sentence| common(&terms, sentence))
                .enumerate();
            let (at, best) = ranked.max_by_key(|(at, best)| (*best, std::cmp::Reverse(*at)))?;
            let (all, best) = (terms.len() as f64, best as f64);
            if best < all * CLAUSE_GROUNDED {
                return None;
            }
            first = first.or((best > 0.0).then_some(at));
            said += all;
            found += best;
        }
        first.filter(|_| found >= said * SENTENCE_GROUNDED)
    }
}

/// A sentence's clauses; a short one counts with the one before it.
fn clauses(sentence: &str) -> Vec<String> {
    const TERMS_OF_A_CLAUSE: usize = 2;
    let mut clauses: Vec<String> = Vec::new();
    let mut number = false;
    let ends = |c: char| {
        let after_digit = std::mem::replace(&mut number, c.is_ascii_digit());
        matches!(c, ';' | '，' | '；') || (c == ',' && !after_digit)
    };
    let parts: Vec<&str> = sentence.split(ends).collect();
    for part in parts.into_iter().flat_map(|part| part.split(" and ")) {
        match clauses.last_mut() {
            Some(last) if terms(part).len() < TERMS_OF_A_CLAUSE => {
                last.push(' ');
                last.push_str(part);
            }
            _ => clauses.push(part.to_owned()),
        }
    }
    clauses
}

/// Length of the longest common subsequence.
fn common(a: &[String], b: &[String]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for x in a {
        let mut diagonal = 0;
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = if x == y {
                diagonal + 1
            } else {
                above.max(row[j])
            };
            diagonal = above;
        }
    }
    row[b.len()]
}

/// A sentence of a summary that keeps to the text.
struct Kept<'a> {
    /// The sentence of the text that its beginning follows.
    at: usize,
    text: &'a str,
    terms: BTreeSet<String>,
}

impl Kept<'_> {
    /// Whether most of what this says another says too.
    fn is_said_by(&self, other: &Kept<'_>) -> bool {
        self.terms.intersection(&other.terms).count() * 10 >= self.terms.len() * 8
    }
}

/// The sentences of summaries that keep to the text, each once, in the text's order, within the
/// bound of words; `None` where fewer than `least` words are left.
pub(crate) fn check(source: &Source, summaries: &[String], least: usize) -> Option<String> {
    let mut kept: Vec<Kept<'_>> = Vec::new();
    for sentence in summaries.iter().flat_map(|summary| sentences(summary)) {
        let text = sentence.trim().trim_start_matches(['#', '*', '-', ' ']);
        let Some(at) = source.holds(text).filter(|_| !text.ends_with(':')) else {
            continue;
        };
        let new = Kept {
            at,
            text,
            terms: terms(text).into_iter().collect(),
        };
        let others = |kept: &Kept<'_>| {
            if kept.is_said_by(&new) {
                0
            } else {
                words(kept.text)
            }
        };
        let length = kept.iter().map(others).sum::<usize>() + words(text);
        if length <= WORDS_AT_MOST && !kept.iter().any(|earlier| new.is_said_by(earlier)) {
            kept.retain(|earlier| !earlier.is_said_by(&new));
            kept.push(new);
        }
    }
    kept.sort_by_key(|sentence| sentence.at);
    let all: Vec<String> = kept
        .iter()
        .map(|sentence| capitalised(sentence.text))
        .collect();
    let all = all.join(" ");
    let short_enough = source.words < 2 * WORDS_AT_LEAST || words(&all) < source.words;
    (words(&all) >= least.min(source.words / 3).max(1) && short_enough).then_some(all)
}

fn capitalised(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters.as_str().chars()).collect()
}

/// The first sentences of a text, to the letter, within the bound of words.
pub(crate) fn first_sentences(text: &str) -> String {
    let mut kept = String::new();
    for sentence in sentences(text) {
        let sentence = sentence.trim();
        if sentence.is_empty() || sentence.starts_with('#') {
            continue;
        }
        if !kept.is_empty() && words(&kept) + words(sentence) > WORDS_AT_MOST {
            break;
        }
        if !kept.is_empty() {
            kept.push(' ');
        }
        kept.push_str(sentence);
    }
    if kept.is_empty() {
        kept = text.trim().to_owned();
    }
    cut(&kept)
}

/// One endless sentence is cut in it.
fn cut(text: &str) -> String {
    const CHARACTERS: usize = 600;
    if text.chars().count() <= CHARACTERS {
        return text.to_owned();
    }
    text.chars().take(CHARACTERS).chain(['…']).collect()
}

/// Words, where two Chinese characters count as one.
fn words(text: &str) -> usize {
    let han = text
        .chars()
        .filter(|c| ('\u{4E00}'..='\u{9FFF}').contains(c))
        .count();
    let other = text
        .split(|c: char| c.is_whitespace() || ('\u{4E00}'..='\u{9FFF}').contains(&c))
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .count();
    other + han / 2
}

/// Numbers of a text, without separators of thousands.
fn numbers(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut number = String::new();
    let mut chars = text.chars().chain([' ']).peekable();
    while let Some(c) = chars.next() {
        let inner = matches!(c, ',' | '.' | ':')
            && !number.is_empty()
            && chars.peek().is_some_and(char::is_ascii_digit);
        if c.is_ascii_digit() || (inner && c != ',') {
            number.push(c);
        } else if !inner && !number.is_empty() {
            found.insert(std::mem::take(&mut number));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "The hut was built in 1904 by two brothers. The roof leaks since March, and \
                        repairs cost 1,200 euros. Anna asks for help on Saturday.";

    #[test]
    fn only_sentences_that_keep_to_the_text_are_kept() {
        let source = Source::of(TEXT);
        for (summary, expected) in [
            (
                "The hut was built in 1904 and its roof leaks.",
                Some("The hut was built in 1904 and its roof leaks."),
            ),
            (
                "The hut was built in 1987 by brothers. the roof leaks, and repairs cost 1200 euros.",
                Some("The roof leaks, and repairs cost 1200 euros."),
            ),
            (
                "Anna asks for help with the roof on Saturday. Anna asks for help on Saturday with the roof.",
                Some("Anna asks for help with the roof on Saturday."),
            ),
            ("The hut in Tyrol was built in 1904 by two brothers.", None),
            (
                "The roof was built in March and repairs of the brothers ask for help.",
                None,
            ),
            (
                "A wonderful story of courage, hope and friendship for everyone.",
                None,
            ),
            ("The hut.", None),
            ("", None),
            (TEXT, None),
        ] {
            assert_eq!(
                check(&source, &[summary.to_owned()], WORDS_AT_LEAST).as_deref(),
                expected,
                "{summary}"
            );
        }
    }

    #[test]
    fn what_several_summaries_say_rightly_is_put_together() {
        let source = Source::of(TEXT);
        let said = [
            "Anna asks for help on Saturday. It is a lovely place in Norway.",
            "the roof leaks since March. Anna asks for help.",
        ];
        let together = "The roof leaks since March. Anna asks for help on Saturday.";
        let said = said.map(str::to_owned);
        assert_eq!(check(&source, &said[..1], WORDS_ENOUGH), None);
        assert_eq!(
            check(&source, &said, WORDS_AT_LEAST).as_deref(),
            Some(together)
        );
    }

    #[test]
    fn the_first_sentences_are_the_files_own() {
        assert_eq!(
            first_sentences("# Title\n\nOne here. Two here."),
            "One here. Two here."
        );
        let long = first_sentences(&"Some words of a long text. ".repeat(100));
        assert!(words(&long) <= WORDS_AT_MOST && long.ends_with("text."));
        assert!(first_sentences(&"x".repeat(5_000)).chars().count() <= 601);
    }
}
