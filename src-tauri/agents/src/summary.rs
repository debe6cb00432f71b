//! Whether a summary keeps to its text: what can be checked exactly is not taken on trust.

use std::collections::BTreeSet;

use crate::model::sentences;
use crate::search::terms;

const WORDS_AT_MOST: usize = 75;
const WORDS_AT_LEAST: usize = 8;
/// Share of a sentence's meaning-carrying words that must stand in the text.
const GROUNDED: f64 = 0.6;

/// What a summary is held against.
pub(crate) struct Source {
    terms: BTreeSet<String>,
    numbers: BTreeSet<String>,
    words: usize,
}

impl Source {
    pub(crate) fn of(text: &str) -> Self {
        Self { terms: terms(text).into_iter().collect(), numbers: numbers(text), words: words(text) }
    }

    /// Whether a sentence has no number, and few words, that the text has not.
    fn holds(&self, sentence: &str) -> bool {
        let said = terms(sentence);
        let known = said.iter().filter(|term| self.terms.contains(*term)).count();
        numbers(sentence).is_subset(&self.numbers)
            && known as f64 >= said.len() as f64 * GROUNDED
            && known > 0
    }
}

/// The sentences of a summary that keep to the text, each once, within the bound of words; `None`
/// where too little is left.
pub(crate) fn check(source: &Source, summary: &str) -> Option<String> {
    let mut kept = String::new();
    let mut said: Vec<BTreeSet<String>> = Vec::new();
    for sentence in sentences(summary) {
        let sentence = sentence.trim().trim_start_matches(['#', '*', '-', ' ']);
        let own: BTreeSet<String> = terms(sentence).into_iter().collect();
        let new = said.iter().all(|earlier| own.intersection(earlier).count() * 10 < own.len() * 8);
        if !source.holds(sentence) || !new || sentence.ends_with(':') {
            continue;
        }
        if words(&kept) + words(sentence) > WORDS_AT_MOST {
            break;
        }
        if !kept.is_empty() {
            kept.push(' ');
        }
        kept.push_str(sentence);
        said.push(own);
    }
    let least = WORDS_AT_LEAST.min(source.words / 2).max(1);
    let short_enough = source.words < 2 * WORDS_AT_LEAST || words(&kept) < source.words;
    (words(&kept) >= least && short_enough).then_some(kept)
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
    let han = text.chars().filter(|c| ('\u{4E00}'..='\u{9FFF}').contains(c)).count();
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
                "The hut was built in 1987 by brothers. Repairs of the roof cost 1200 euros since March.",
                Some("Repairs of the roof cost 1200 euros since March."),
            ),
            (
                "Anna asks for help with the roof on Saturday. Anna asks for help on Saturday with the roof.",
                Some("Anna asks for help with the roof on Saturday."),
            ),
            ("A wonderful story of courage, hope and friendship for everyone.", None),
            ("The hut.", None),
            ("", None),
            (TEXT, None),
        ] {
            assert_eq!(check(&source, summary).as_deref(), expected, "{summary}");
        }
    }

    #[test]
    fn the_first_sentences_are_the_files_own() {
        assert_eq!(first_sentences("# Title\n\nOne here. Two here."), "One here. Two here.");
        let long = first_sentences(&"Some words of a long text. ".repeat(100));
        assert!(words(&long) <= WORDS_AT_MOST && long.ends_with("text."));
        assert!(first_sentences(&"x".repeat(5_000)).chars().count() <= 601);
    }
}
