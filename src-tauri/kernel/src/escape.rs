//! Untrusted text made fit to be shown.
//!
//! What an agent, a file or a model wrote may hold characters that move the cursor, turn the
//! reading direction or cannot be seen. They are shown as what they are, so that the eye reads what
//! the digest covers.

/// One line: every character that is not plainly visible becomes an escape (`\n`, `\u{202e}`).
pub fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        push(&mut out, c, false);
    }
    out
}

/// Several lines: line feeds and tabs stay, all else as in [`shown`].
pub fn shown_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        push(&mut out, c, true);
    }
    out
}

/// Whether [`shown_lines`] would show the text otherwise than it is.
pub fn has_invisible(text: &str) -> bool {
    text.chars()
        .any(|c| !matches!(c, '\n' | '\t' | '\r') && is_invisible(c))
}

fn push(out: &mut String, c: char, lines: bool) {
    match c {
        '\n' | '\t' if lines => out.push(c),
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        '\r' => out.push_str("\\r"),
        c if is_invisible(c) => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
        c => out.push(c),
    }
}

fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0x00AD // soft hyphen
            | 0x034F // combining grapheme joiner
            | 0x061C // Arabic letter mark
            | 0x115F..=0x1160 | 0x3164 | 0xFFA0 // Hangul fillers
            | 0x17B4..=0x17B5
            | 0x180B..=0x180F
            | 0x200B..=0x200F // zero width, direction marks
            | 0x2028..=0x202E // separators, direction overrides
            | 0x2060..=0x206F
            | 0xFE00..=0xFE0F // variation selectors
            | 0xFEFF
            | 0xFFF0..=0xFFFB
            | 0x1BCA0..=0x1BCA3
            | 0x1D173..=0x1D17A
            | 0xE000..=0xF8FF // private use
            | 0xE0000..=0xE0FFF // tags, variation selectors
            | 0xF0000..=0x10FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_is_shown_as_what_it_is() {
        for (input, line, lines) in [
            ("plain 文字", "plain 文字", "plain 文字"),
            ("a\nb\tc", "a\\nb\\tc", "a\nb\tc"),
            ("\u{1b}[2J", "\\u{1b}[2J", "\\u{1b}[2J"),
            ("safe\rrm", "safe\\rrm", "safe\\rrm"),
            ("gpj.\u{202e}exe", "gpj.\\u{202e}exe", "gpj.\\u{202e}exe"),
            ("a\u{200b}b", "a\\u{200b}b", "a\\u{200b}b"),
            ("\u{e0041}", "\\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(shown(input), line, "{input:?}");
            assert_eq!(shown_lines(input), lines, "{input:?}");
        }
    }

    #[test]
    fn invisible_characters_are_told() {
        assert!(!has_invisible("two\nlines\twith tab\r\n"));
        assert!(has_invisible("a\u{2066}b"));
    }
}
