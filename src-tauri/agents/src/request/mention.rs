//! Mentions: the paths and quoted texts in a request, found exactly and replaced by marks, so that
//! neither a file's name nor a quoted text can be read as words of the request.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use regex::Regex;

use super::span::Spans;
use crate::survey::Survey;

/// Marks of files and of paths of unknown kind.
pub(crate) const FILES: RangeInclusive<char> = '\u{E000}'..='\u{E03F}';
/// Marks of folders.
pub(crate) const FOLDERS: RangeInclusive<char> = '\u{E040}'..='\u{E07F}';
/// Marks of quoted texts.
pub(crate) const QUOTES: RangeInclusive<char> = '\u{E080}'..='\u{E0BF}';

pub(super) const MENTIONS_AT_MOST: usize = 64;

/// What a mark stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mention {
    /// The request's words that the mark replaces.
    pub(crate) raw: String,
    /// The path or the quoted text.
    pub(crate) value: String,
    pub(crate) kind: MentionKind,
    pub(crate) quoted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MentionKind {
    File,
    Folder,
    Quote,
}

/// How much a word must look like a name to be taken for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Only what can hardly be anything else: paths, extensions, quoted names, "the … folder".
    Strict,
    /// Also words that are the stem of a file or the name of a folder in the workspace.
    Loose,
}

/// A request with marks in place of its mentions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Marked {
    pub(crate) text: String,
    pub(crate) mentions: Vec<Mention>,
}

impl Marked {
    pub(crate) fn read(request: &str, survey: &Survey, reach: Reach) -> Self {
        // Characters of the marks' range in the request itself would be taken for marks.
        let clean: String = request
            .chars()
            .filter(|c| !('\u{E000}'..='\u{F8FF}').contains(c))
            .collect();
        let mut marked = Spans::find(&clean, survey, reach).mark();
        marked.join_places(survey);
        marked
    }

    /// The mention a mark stands for.
    pub(crate) fn mention(&self, mark: char) -> Option<&Mention> {
        if !(*FILES.start()..=*QUOTES.end()).contains(&mark) {
            return None;
        }
        self.mentions
            .get((mark as usize - *FILES.start() as usize) % MENTIONS_AT_MOST)
    }

    /// Marked text as the person wrote it.
    pub(crate) fn restore(&self, marked: &str) -> String {
        marked
            .chars()
            .map(|c| {
                self.mention(c)
                    .map_or_else(|| c.to_string(), |m| m.raw.clone())
            })
            .collect()
    }

    /// Marked text as a value: a single quoted text without its quotes, else as it was written.
    pub(crate) fn value(&self, marked: &str) -> String {
        let trimmed = marked.trim();
        let mut chars = trimmed.chars();
        match (chars.next().and_then(|c| self.mention(c)), chars.next()) {
            (Some(mention), None) if mention.quoted => mention.value.clone(),
            _ => self.restore(trimmed).trim().to_owned(),
        }
    }

    /// The path that a clause is about, which "it" means in the next: the first one.
    pub(crate) fn subject(&self, clause: &str) -> Option<Mention> {
        let mut mentions = clause.chars().filter_map(|c| self.mention(c));
        mentions
            .find(|mention| mention.kind != MentionKind::Quote)
            .cloned()
    }

    /// Adds a mention from elsewhere; its mark.
    pub(crate) fn adopt(&mut self, mention: &Mention) -> Option<char> {
        let index = self.mentions.len();
        (index < MENTIONS_AT_MOST).then(|| {
            self.mentions.push(mention.clone());
            mark_of(mention.kind, index)
        })
    }

    /// "x.txt in the letters folder" is one place where `letters/x.txt` is there, or `x.txt` is
    /// nowhere else.
    fn join_places(&mut self, survey: &Survey) {
        static PLACE: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(
                "([\u{E000}-\u{E03F}])\\s+(?:in|inside|from|under|of)\\s+([\u{E040}-\u{E07F}])",
            )
            .ok()
        });
        static PLACE_ZH: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(
                "([\u{E040}-\u{E07F}])\\s*(?:里面|里|中|下|内)?\\s*的?\\s*([\u{E000}-\u{E03F}])",
            )
            .ok()
        });
        for (place, file_first) in [(&PLACE, true), (&PLACE_ZH, false)] {
            let Some(place) = place.as_ref() else {
                continue;
            };
            while let Some(found) = place.captures(&self.text) {
                let mark = |i| found.get(i).and_then(|m| m.as_str().chars().next());
                let (first, second) = (mark(1), mark(2));
                let (file, folder) = if file_first {
                    (first, second)
                } else {
                    (second, first)
                };
                let whole = found.get(0).map_or(0..0, |m| m.range());
                let Some((file, folder)) = file.zip(folder) else {
                    break;
                };
                let (Some(name), Some(at)) = (self.mention(file), self.mention(folder)) else {
                    break;
                };
                let joined = format!("{}/{}", at.value.trim_end_matches('/'), name.value);
                let there = survey.at(&joined).is_some();
                if name.value.contains('/') || (!there && !survey.meant(&name.value).is_empty()) {
                    break;
                }
                let mention = Mention {
                    raw: self.restore(&self.text[whole.clone()]),
                    value: joined,
                    kind: MentionKind::File,
                    quoted: false,
                };
                let Some(joined) = self.adopt(&mention) else {
                    break;
                };
                self.text.replace_range(whole, &joined.to_string());
            }
        }
    }
}

pub(super) fn mark_of(kind: MentionKind, index: usize) -> char {
    let base = match kind {
        MentionKind::File => FILES.start(),
        MentionKind::Folder => FOLDERS.start(),
        MentionKind::Quote => QUOTES.start(),
    };
    char::from_u32(*base as u32 + index as u32).unwrap_or(*base)
}
