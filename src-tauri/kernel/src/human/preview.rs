//! What would change, line by line, bounded and escaped.

use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};

use crate::escape::shown;

/// Lines shown at most.
const MAX_LINES: usize = 400;
/// Characters of a line shown at most.
const MAX_COLUMNS: usize = 500;
/// Unchanged lines kept around a change.
const CONTEXT: usize = 3;
/// Texts longer than this are not compared line by line.
pub(crate) const PREVIEW_MOST: u64 = 1024 * 1024;

/// One line of a preview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffLine {
    /// What happens to it.
    pub kind: LineKind,
    /// The line, escaped; for a gap, the number of lines left out.
    pub text: String,
}

/// What happens to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// Stands before and after.
    Same,
    /// Goes.
    Removed,
    /// Comes.
    Added,
    /// Unchanged lines left out.
    Gap,
}

/// What would change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preview {
    /// The lines.
    pub lines: Vec<DiffLine>,
    /// Whether lines were left out because of the bound.
    pub cut: bool,
    /// Lines that come or go.
    pub changed: u32,
    /// Lines in all, before or after, whichever is more.
    pub total: u32,
}

impl Preview {
    /// The difference between two texts. `None` is no file; bytes that are not text are told by
    /// their number.
    pub(crate) fn between(before: Option<&[u8]>, after: Option<&[u8]>) -> Self {
        let text = |bytes: Option<&[u8]>| bytes.map(|b| std::str::from_utf8(b).map(str::to_owned));
        match (text(before), text(after)) {
            (None, None) => Self::default(),
            (Some(Err(_)), _) | (_, Some(Err(_))) => Self::binary(before, after),
            (before, after) => {
                let plain =
                    |t: Option<Result<String, _>>| t.and_then(Result::ok).unwrap_or_default();
                Self::text(&plain(before), &plain(after))
            }
        }
    }

    fn binary(before: Option<&[u8]>, after: Option<&[u8]>) -> Self {
        let line = |kind, bytes: &[u8]| DiffLine {
            kind,
            text: format!("binary, {} bytes", bytes.len()),
        };
        let removed = before.map(|b| line(LineKind::Removed, b));
        let added = after.map(|b| line(LineKind::Added, b));
        let lines: Vec<_> = removed.into_iter().chain(added).collect();
        let changed = u32::try_from(lines.len()).unwrap_or(u32::MAX);
        Self {
            lines,
            cut: false,
            changed,
            total: changed,
        }
    }

    /// A file too long to be compared.
    pub(crate) fn too_long(bytes: u64) -> Self {
        let text = format!("{bytes} bytes, too long to be shown");
        Self {
            lines: vec![DiffLine {
                kind: LineKind::Gap,
                text,
            }],
            cut: true,
            changed: 0,
            total: 0,
        }
    }

    fn text(before: &str, after: &str) -> Self {
        let diff = TextDiff::from_lines(before, after);
        let all: Vec<(ChangeTag, &str)> = diff
            .iter_all_changes()
            .map(|c| (c.tag(), c.value()))
            .collect();
        let changed = all
            .iter()
            .filter(|(tag, _)| *tag != ChangeTag::Equal)
            .count();
        let near: Vec<bool> = (0..all.len())
            .map(|i| {
                let window = i.saturating_sub(CONTEXT)..(i + CONTEXT + 1).min(all.len());
                all[window].iter().any(|(tag, _)| *tag != ChangeTag::Equal)
            })
            .collect();
        let mut out = Self {
            changed: u32::try_from(changed).unwrap_or(u32::MAX),
            total: u32::try_from(before.lines().count().max(after.lines().count()))
                .unwrap_or(u32::MAX),
            ..Self::default()
        };
        let mut skipped = 0_usize;
        for ((tag, line), near) in all.iter().zip(near) {
            if !near {
                skipped += 1;
                continue;
            }
            out.gap(&mut skipped);
            if out.lines.len() >= MAX_LINES {
                out.cut = true;
                break;
            }
            let kind = match tag {
                ChangeTag::Equal => LineKind::Same,
                ChangeTag::Delete => LineKind::Removed,
                ChangeTag::Insert => LineKind::Added,
            };
            let (text, cut) = bounded(line);
            out.cut |= cut;
            out.lines.push(DiffLine { kind, text });
        }
        out.gap(&mut skipped);
        out
    }

    fn gap(&mut self, skipped: &mut usize) {
        if *skipped > 0 {
            self.lines.push(DiffLine {
                kind: LineKind::Gap,
                text: skipped.to_string(),
            });
            *skipped = 0;
        }
    }
}

fn bounded(line: &str) -> (String, bool) {
    let line = line.strip_suffix('\n').unwrap_or(line);
    match line.char_indices().nth(MAX_COLUMNS) {
        Some((end, _)) => (format!("{}…", shown(&line[..end])), true),
        None => (shown(line), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(preview: &Preview) -> Vec<String> {
        let sign = |kind| match kind {
            LineKind::Same => ' ',
            LineKind::Removed => '-',
            LineKind::Added => '+',
            LineKind::Gap => '~',
        };
        preview
            .lines
            .iter()
            .map(|l| format!("{}{}", sign(l.kind), l.text))
            .collect()
    }

    #[test]
    fn previews_tell_what_comes_and_goes() {
        type Text = Option<&'static [u8]>;
        let rows: [(Text, Text, &[&str]); 6] = [
            (None, Some(b"a\nb\n"), &["+a", "+b"]),
            (Some(b"a\nb\n"), None, &["-a", "-b"]),
            (
                Some(b"a\nb\nc\n"),
                Some(b"a\nB\nc\n"),
                &[" a", "-b", "+B", " c"],
            ),
            (
                Some(b"\xff\xfe"),
                Some(b"x"),
                &["-binary, 2 bytes", "+binary, 1 bytes"],
            ),
            (
                None,
                Some("a\u{202e}b\r\n".as_bytes()),
                &["+a\\u{202e}b\\r"],
            ),
            (
                Some(b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"),
                Some(b"1\n2\n3\n4\n5\n6\n7\n8\nnine\n"),
                &["~5", " 6", " 7", " 8", "-9", "+nine"],
            ),
        ];
        for (before, after, expected) in rows {
            assert_eq!(drawn(&Preview::between(before, after)), expected);
        }
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let long = "x\n".repeat(MAX_LINES * 2);
        let preview = Preview::between(None, Some(long.as_bytes()));
        assert!(preview.cut);
        assert_eq!(preview.lines.len(), MAX_LINES);
        assert_eq!(preview.changed as usize, MAX_LINES * 2);
        let wide = "y".repeat(MAX_COLUMNS * 2);
        let preview = Preview::between(None, Some(wide.as_bytes()));
        assert!(preview.cut && preview.lines[0].text.chars().count() == MAX_COLUMNS + 1);
    }
}
