//! Frames: how a kind of request is worded, as a small pattern language over a marked request.
//!
//! A frame is a regular expression with slots. `{name:kind}` captures an argument; a space stands
//! for white space (which Chinese frames may lack); `(` never captures; `:` and `,` also stand for
//! their full-width forms, and may be absent; `'` also stands for `’`; `<word>` is an entry of
//! [`VOCABULARY`].

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::mention::{FILES, FOLDERS, QUOTES};

/// What may fill a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A file or folder that should be there.
    Old,
    /// A path to write to: may be there or not.
    New,
    /// A file or folder named, or a bare word.
    Name,
    /// A folder.
    Folder,
    /// Text of the person's, kept to the letter.
    Text,
    /// A few words that describe something.
    Words,
    /// Words of a form that the frame itself gives.
    Form,
}

/// One wording.
pub(crate) struct Frame {
    whole: Regex,
    part: Regex,
    slots: Vec<(String, Slot)>,
}

/// A frame found in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fit {
    /// Slots in the frame's order: name, kind, what was captured (still marked).
    pub(crate) slots: Vec<(String, Slot, String)>,
    /// How much of the request the frame's own words and names explain; larger is better.
    pub(crate) weight: usize,
}

/// Words that many frames share.
const VOCABULARY: [(&str, &str); 9] = [
    (
        "and",
        r"\s*(?:,\s*(?:and\s+)?(?:then\s+)?|;\s*|\band\s+(?:then\s+)?|\bthen\s+)",
    ),
    (
        "delete",
        "delete|remove|erase|trash|discard|get rid of|throw away|throw out",
    ),
    (
        "make",
        "create|make|start|write|generate|produce|add|set up|prepare",
    ),
    (
        "show",
        "show|show me|read|read me|read out|open|print|display|view|cat|give me|let me see|see|look at|tell me",
    ),
    (
        "saying",
        "that says|which says|that reads|which reads|saying|reading|containing|that contains|which contains|that has|(?:and )?(?:write|put) in it|(?:with|and) (?:the |just |only )*(?:texts?|contents?|words?|lines?|message|sentence)(?: of)?",
    ),
    ("to", "into|in|to|inside|onto|as"),
    (
        "summarise",
        "summari[sz]e|sum up|condense|recap|outline|(?:give me |write |make |i need |i want )?(?:a |the )?(?:short |brief |quick |concise |one-paragraph )*(?:summary|overview|gist|recap|outline) (?:of|for)|tl;?dr(?: of| for)?:?",
    ),
    (
        "thing",
        "files?|documents?|notes?|letters?|texts?|papers?|pages?|recipes?|reports?",
    ),
    (
        "about",
        "about|on|for|regarding|concerning|mentioning|containing|(?:that|which)? ?(?:is|are|talks?|tells?|speaks?) (?:me )?(?:about|of)|(?:that|which) (?:mentions?|contains?|says?|has|have|describes?|explains?|covers?)|with",
    ),
];

static POLITE_START: &str = r"(?i)^\s*(?:(?:(?:please|pls|hey|hi|hello|ok|okay|steward|now|also|kindly|just|quickly|can you|could you|would you|will you|i want you to|i need you to|i'd like you to|i would like you to|i want to|i'd like to|i would like to|i need to|let's|let us|help me(?: to)?|go ahead and|first|then|and)\b[,!:]?\s*)|(?:请问|请你|请|麻烦你|麻烦|帮我|帮忙|能不能|能否|可不可以|可以|你能|我想要|我想|我要|替我|劳驾|现在|首先|先|然后|再|并且|并|接着)[,，]?\s*)*";
static POLITE_END: &str = r"(?i)(?P<_end>(?:\s*[,，]?\s*(?:please|pls|thanks|thank you|for me|now|right away|if you can|too|as well|谢谢你?|好吗|可以吗|行吗|吧))*\s*[.!?。！？]*\s*)$";

impl Frame {
    /// Compiles a frame. Frames are part of the program: an error is a fault of ours, found by the
    /// test that compiles them all.
    pub(crate) fn compile(source: &str) -> Result<Self, regex::Error> {
        let (pattern, slots) = translate(source);
        let compile = |pattern: &str| {
            regex::RegexBuilder::new(pattern)
                .case_insensitive(true)
                .dot_matches_new_line(true)
                .size_limit(4 << 20)
                .build()
        };
        let edge = |at: bool, c: Option<char>| match c {
            Some(c) if at && c.is_ascii_alphabetic() => r"\b",
            _ => "",
        };
        let start = edge(true, pattern.trim_start_matches("(?:").chars().next());
        Ok(Self {
            whole: compile(&format!("{POLITE_START}(?:{pattern}){POLITE_END}"))?,
            part: compile(&format!(
                "{start}(?:{pattern})(?P<_end>)(?:\\b|$|[[:punct:]])"
            ))?,
            slots,
        })
    }

    /// The frame as the whole of a clause.
    pub(crate) fn fit(&self, clause: &str) -> Option<Fit> {
        self.whole
            .captures(clause)
            .map(|found| self.collect(clause, &found))
    }

    /// The frame somewhere in a clause.
    pub(crate) fn fit_within(&self, clause: &str) -> Option<Fit> {
        self.part
            .captures(clause)
            .map(|found| self.collect(clause, &found))
    }

    fn collect(&self, clause: &str, found: &Captures<'_>) -> Fit {
        let whole = found.get(0).map_or("", |m| m.as_str());
        let end = found.name("_end").map_or("", |m| m.as_str());
        let mut weight = whole.chars().filter(|c| c.is_alphanumeric()).count();
        let mut slots = Vec::new();
        for (name, slot) in &self.slots {
            let Some(capture) = found.name(name) else {
                continue;
            };
            let mut text = capture.as_str().to_owned();
            let own = text.chars().filter(|c| c.is_alphanumeric()).count();
            weight = weight.saturating_sub(own);
            weight += match slot {
                Slot::Form => own,
                Slot::Old | Slot::New | Slot::Folder => 6,
                Slot::Name => 3,
                Slot::Text if is_quote(text.trim()) => 3,
                Slot::Text | Slot::Words => 0,
            };
            // A sentence's own full stop belongs to the person's text, not to the request.
            let last = clause.len() - end.len();
            if *slot == Slot::Text && capture.end() == last && end.trim_end().chars().all(is_stop) {
                text.push_str(end.trim_end());
            }
            slots.push((name.clone(), *slot, text));
        }
        Fit { slots, weight }
    }
}

fn is_stop(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '。' | '！' | '？')
}

fn is_quote(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| QUOTES.contains(&c)) && chars.next().is_none()
}

/// Whether a text has Chinese characters.
pub(crate) fn is_chinese(text: &str) -> bool {
    static HAN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\p{Han}").ok());
    HAN.as_ref().is_some_and(|han| han.is_match(text))
}

fn translate(source: &str) -> (String, Vec<(String, Slot)>) {
    let chinese = is_chinese(source);
    let mut pattern = String::with_capacity(source.len() * 4);
    let mut slots = Vec::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '{' => {
                let inside = &rest[..closing_brace(rest)];
                rest = rest.get(inside.len() + 1..).unwrap_or_default();
                let (name, kind) = inside.split_once(':').unwrap_or((inside, "words"));
                let (slot, form) = slot_of(kind);
                pattern.push_str(&format!("(?P<{name}>{form})"));
                slots.push((name.to_owned(), slot));
            }
            '<' => {
                let (word, after) = rest.split_once('>').unwrap_or((rest, ""));
                rest = after;
                let entry = VOCABULARY.iter().find(|(name, _)| *name == word);
                let words = entry.map_or(word, |(_, words)| words);
                pattern.push_str(&format!("(?:{})", words.replace('\'', "['’]")));
            }
            ' ' if rest.starts_with('?') => {
                rest = &rest[1..];
                pattern.push_str(r"\s*");
            }
            ' ' if chinese => pattern.push_str(r"\s*"),
            ' ' => pattern.push_str(r"\s+"),
            ':' if chinese => pattern.push_str(r"\s*[:：]?\s*"),
            ':' => pattern.push_str(r"(?:\s*[:：]\s*|\s+)"),
            ',' => pattern.push_str("[,，]?"),
            '\'' => pattern.push_str("['’]"),
            '(' => pattern.push_str("(?:"),
            c => pattern.push(c),
        }
    }
    (pattern, slots)
}

/// Where the brace that was opened before `rest` closes; expressions inside may have braces too.
fn closing_brace(rest: &str) -> usize {
    let mut open = 1;
    for (at, c) in rest.char_indices() {
        match c {
            '{' => open += 1,
            '}' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return at;
        }
    }
    rest.len()
}

/// The slot's kind and the expression it captures. A kind that begins with `=` is the expression
/// itself, of words.
fn slot_of(kind: &str) -> (Slot, String) {
    let span =
        |range: &std::ops::RangeInclusive<char>| format!("{}-{}", range.start(), range.end());
    let (files, folders, quotes) = (span(&FILES), span(&FOLDERS), span(&QUOTES));
    let path = format!("[{files}{folders}]");
    match kind {
        "old" => (Slot::Old, path),
        "olds" => (
            Slot::Old,
            format!(r"{path}(?:\s*(?:,\s*and\s|,|，|、|and\s|&|和|与|跟)\s*{path})*"),
        ),
        "file" => (Slot::Old, format!("[{files}]")),
        "new" => (Slot::New, path),
        "newfile" => (Slot::New, format!("[{files}]")),
        "name" => (Slot::Name, format!(r"{path}|[{quotes}]|[\w.-]+")),
        "folder" => (Slot::Folder, format!("[{folders}]")),
        "text" => (Slot::Text, ".+?".to_owned()),
        "quote" => (Slot::Text, format!("[{quotes}]")),
        "words" => (Slot::Words, ".+?".to_owned()),
        "word" => (Slot::Words, r"[^\s.!?。！？,，:：].{0,59}?".to_owned()),
        other => (Slot::Form, other.trim_start_matches('=').to_owned()),
    }
}
