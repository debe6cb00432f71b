//! The materializer: from the objects of a view to a text for a model, never over its budget.
//!
//! What does not fit is dropped in the order that the policy states, whole objects at a time; only
//! the last one that stays may be cut, at its end. What was dropped or cut stands in the text
//! itself, so that a model knows what it does not see. Each object stands under a heading that its
//! content cannot imitate.
//!
//! Counting is the core's work and may take a while, so that this is a conversation: a [`Fitting`]
//! makes a draft, its caller counts the draft's tokens, and the fitting takes it or makes a shorter
//! one. Tokenizers do not add up, and so the whole text is what is counted.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ContextPolicy, ObjectId, ObjectKind};
use crate::escape::shown;

/// Marks of a heading at least, and at most: text files have six in a row, rarely more.
const MARKS_LEAST: usize = 3;
const MARKS_MOST: usize = 9;

/// An object of a view with its content and what that costs.
#[derive(Debug, Clone)]
pub struct Piece {
    /// Its handle.
    pub object: ObjectId,
    /// What it is.
    pub kind: ObjectKind,
    /// Its name, where it has one.
    pub name: Option<String>,
    /// The version that is shown.
    pub version: u32,
    /// Its content.
    pub text: String,
    /// Tokens of the content.
    pub tokens: u32,
    /// Tokens of its [heading](Piece::heading).
    pub heading_tokens: u32,
}

impl Piece {
    /// The line it stands under.
    pub fn heading(&self) -> String {
        heading(MARKS_LEAST, self)
    }

    fn cost(&self) -> u64 {
        u64::from(self.tokens) + u64::from(self.heading_tokens)
    }
}

/// An object that a context shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shown {
    /// The object.
    pub object: ObjectId,
    /// Its version.
    pub version: u32,
    /// Whether only its beginning is shown.
    pub cut: bool,
}

/// Objects of one kind that a context leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// The kind.
    pub kind: ObjectKind,
    /// How many.
    pub count: u32,
    /// Their tokens.
    pub tokens: u64,
    /// Whether newer ones of the kind are shown.
    pub older: bool,
}

/// What a model is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Context {
    /// The text.
    pub text: String,
    /// Its tokens, by the core's own tokenizer.
    pub tokens: u32,
    /// The most it could have had.
    pub budget: u32,
    /// What it shows, in its order.
    pub shown: Vec<Shown>,
    /// What it leaves out, in the order in which that was dropped.
    pub left_out: Vec<LeftOut>,
    /// The order in which objects are dropped, in words.
    pub order: String,
}

/// A context that has not been counted yet.
#[derive(Debug, Clone)]
pub struct Draft {
    text: String,
    shown: Vec<Shown>,
    left_out: Vec<LeftOut>,
    cost: u64,
}

impl Draft {
    /// The text to be counted.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Objects of a view on their way into a budget.
#[derive(Debug)]
pub struct Fitting<'a> {
    pieces: &'a [Piece],
    /// Indices of the pieces, first to be dropped first.
    order: Vec<usize>,
    order_in_words: String,
    budget: u32,
    /// What pieces may cost together; none: not even a note of what is left out fits.
    allowance: Option<u64>,
}

impl<'a> Fitting<'a> {
    /// The pieces are in the view's order, oldest first.
    pub fn new(pieces: &'a [Piece], policy: &ContextPolicy, budget: u32) -> Self {
        let kinds = policy.order();
        let rank = |piece: &Piece| kinds.iter().position(|kind| *kind == piece.kind);
        let mut order: Vec<usize> = (0..pieces.len()).collect();
        order.sort_by_key(|at| (rank(&pieces[*at]), *at));
        Self {
            pieces,
            order,
            order_in_words: policy.in_words(),
            budget,
            allowance: Some(budget.into()),
        }
    }

    /// The context as it would be.
    pub fn draft(&self) -> Draft {
        let Some(allowance) = self.allowance else {
            let left_out = self.left_out(self.order.len());
            return Draft {
                text: String::new(),
                shown: Vec::new(),
                left_out,
                cost: 0,
            };
        };
        let mut cost: u64 = self.pieces.iter().map(Piece::cost).sum();
        let mut dropped = 0;
        while cost > allowance && dropped + 1 < self.order.len() {
            cost -= self.pieces[self.order[dropped]].cost();
            dropped += 1;
        }
        let mut cut = None;
        if cost > allowance {
            // One is left, and too long by itself.
            let text = &self.pieces[self.order[dropped]].text;
            let bytes = (text.len() as u128 * u128::from(allowance) / u128::from(cost)) as usize;
            cost = allowance;
            match text.floor_char_boundary(bytes) {
                0 => dropped += 1,
                end => cut = Some(end),
            }
        }
        self.render(dropped, cut, cost)
    }

    /// Takes the draft if its tokens are within the budget; the next draft is shorter otherwise.
    pub fn settle(&mut self, draft: Draft, tokens: u32) -> Result<Context, Shorter> {
        let over = u64::from(tokens).saturating_sub(self.budget.into());
        if over == 0 || draft.text.is_empty() {
            return Ok(Context {
                text: draft.text,
                tokens,
                budget: self.budget,
                shown: draft.shown,
                left_out: draft.left_out,
                order: std::mem::take(&mut self.order_in_words),
            });
        }
        let bound = self.allowance.unwrap_or(0).min(draft.cost);
        let goes_on = !draft.shown.is_empty() && bound > 0;
        self.allowance = goes_on.then(|| bound.saturating_sub(over));
        Err(Shorter)
    }

    fn left_out(&self, dropped: usize) -> Vec<LeftOut> {
        let (gone, stays) = self.order.split_at(dropped);
        let mut all: Vec<LeftOut> = Vec::new();
        for piece in gone.iter().map(|at| &self.pieces[*at]) {
            match all.last_mut() {
                Some(last) if last.kind == piece.kind => {
                    last.count += 1;
                    last.tokens += u64::from(piece.tokens);
                }
                _ => all.push(LeftOut {
                    kind: piece.kind,
                    count: 1,
                    tokens: piece.tokens.into(),
                    older: stays.iter().any(|at| self.pieces[*at].kind == piece.kind),
                }),
            }
        }
        all
    }

    fn render(&self, dropped: usize, cut: Option<usize>, cost: u64) -> Draft {
        let mut stays = self.order[dropped..].to_vec();
        stays.sort_unstable();
        let texts: Vec<Cow<'_, str>> = stays
            .iter()
            .map(|at| quiet(&self.pieces[*at].text[..cut.unwrap_or(self.pieces[*at].text.len())]))
            .collect();
        let longest = texts.iter().map(|text| longest_run(text)).max();
        let marks = (longest.unwrap_or(0) + 1).clamp(MARKS_LEAST, MARKS_MOST);
        let left_out = self.left_out(dropped);
        let mut lines: Vec<String> = Vec::with_capacity(stays.len() * 2 + 2);
        if !left_out.is_empty() {
            let all: Vec<String> = left_out.iter().map(in_words).collect();
            lines.push(format!("{} {}", "#".repeat(marks), all.join("; ")));
        }
        for (at, text) in stays.iter().zip(texts) {
            lines.push(heading(marks, &self.pieces[*at]));
            lines.push(text.into_owned());
        }
        if let (Some(end), Some(at)) = (cut, stays.first()) {
            let whole = self.pieces[*at].text.len();
            let note = format!("cut here: {end} of {whole} bytes are shown");
            lines.push(format!("{} {note}", "#".repeat(marks)));
        }
        let shown = stays.iter().map(|at| Shown {
            object: self.pieces[*at].object,
            version: self.pieces[*at].version,
            cut: cut.is_some(),
        });
        Draft {
            text: lines.join("\n"),
            shown: shown.collect(),
            left_out,
            cost,
        }
    }
}

/// The draft was over the budget; the fitting makes a shorter one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shorter;

fn heading(marks: usize, piece: &Piece) -> String {
    let name = piece.name.as_ref();
    let name = name.map_or(String::new(), |name| format!(" “{}”", shown(name)));
    let version = match piece.version {
        1 => String::new(),
        n => format!(", version {n}"),
    };
    let (kind, object) = (piece.kind.counted(1), piece.object);
    format!("{} {kind} {object}{name}{version}", "#".repeat(marks))
}

/// Such as `3 older observations left out: 1,240 tokens`.
fn in_words(left_out: &LeftOut) -> String {
    let LeftOut {
        kind,
        count,
        tokens,
        older,
    } = left_out;
    let older = if *older { "older " } else { "" };
    let kind = kind.counted(*count as usize);
    format!(
        "{count} {older}{kind} left out: {} tokens",
        grouped(*tokens)
    )
}

/// With commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn ends_line(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

fn marks_before(line: &str) -> usize {
    line.bytes().take_while(|byte| *byte == b'#').count()
}

/// The most marks that a line of this text begins with.
fn longest_run(text: &str) -> usize {
    text.split(ends_line).map(marks_before).max().unwrap_or(0)
}

/// The text, with a space before the marks of lines that begin with more than any heading has.
fn quiet(text: &str) -> Cow<'_, str> {
    if longest_run(text) < MARKS_MOST {
        return text.into();
    }
    let lines = text
        .split_inclusive(ends_line)
        .map(|line| match marks_before(line) {
            MARKS_MOST.. => format!(" {line}"),
            _ => line.to_owned(),
        });
    lines.collect::<String>().into()
}

#[cfg(test)]
#[path = "compose_tests.rs"]
mod tests;
