//! What the loop and its tools ask of a model.

use steward_kernel::SysError;
use steward_kernel::provider::{ChatReply, ChatRequest, Finish, Message, Role, Sampling};
use steward_kernel::syscall::LlmChat;

use crate::tools::Desk;

pub(crate) fn message(role: Role, content: impl Into<String>) -> Message {
    Message {
        role,
        content: content.into(),
    }
}

/// The model's answer to one request in words, shown as it comes.
pub(crate) async fn say(desk: &Desk<'_>, ask: &str, purpose: &str) -> Result<String, SysError> {
    let request = ChatRequest {
        messages: vec![
            message(Role::System, desk.system_prompt),
            message(Role::User, ask),
        ],
        prefix: String::new(),
        max_tokens: desk.bounds.answer_tokens,
        sampling: Sampling::default(),
        stop: Vec::new(),
        constraint: None,
        beams: 1,
    };
    let call = LlmChat {
        request,
        visible: true,
        purpose: purpose.to_owned(),
    };
    Ok(tidy(&desk.sys.call(call).await?))
}

/// A reply as a text: without a sentence that was cut or said before.
pub(crate) fn tidy(reply: &ChatReply) -> String {
    let text = reply.text.trim();
    let mut said: Vec<String> = Vec::new();
    let mut kept = String::new();
    for sentence in sentences(text) {
        let plain = sentence.trim().to_lowercase();
        if plain.chars().count() > 12 && said.contains(&plain) {
            break;
        }
        said.push(plain);
        kept.push_str(sentence);
    }
    if reply.finish == Finish::Length {
        let whole = sentences(&kept)
            .into_iter()
            .filter(|s| ends_whole(s))
            .map(str::len)
            .sum::<usize>();
        if whole > 0 {
            kept.truncate(whole);
        }
    }
    kept.trim().to_owned()
}

fn ends_whole(sentence: &str) -> bool {
    sentence
        .trim_end()
        .ends_with(['.', '!', '?', '。', '！', '？', '”', '"', ')', ':'])
}

/// A text cut into sentences and lines, with the white space that follows each.
pub(crate) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        let ends = match c {
            '\n' | '。' | '！' | '？' => true,
            '.' | '!' | '?' => {
                next.is_none_or(char::is_whitespace) && !abbreviated(&text[start..at])
            }
            _ => false,
        };
        if !ends {
            continue;
        }
        let mut end = at + c.len_utf8();
        while let Some((space_at, space)) = chars.peek().copied() {
            if !space.is_whitespace() {
                break;
            }
            end = space_at + space.len_utf8();
            chars.next();
        }
        found.push(&text[start..end]);
        start = end;
    }
    if start < text.len() {
        found.push(&text[start..]);
    }
    found
}

fn abbreviated(before: &str) -> bool {
    let word = before
        .rsplit(|c: char| !c.is_alphanumeric() && c != '.')
        .next()
        .unwrap_or_default();
    let known = [
        "Mr", "Mrs", "Ms", "Dr", "St", "No", "vs", "etc", "e.g", "i.e", "approx",
    ];
    known.contains(&word) || (word.len() == 1 && word.chars().all(|c| c.is_ascii_uppercase()))
}

/// Tokens of a text, by an estimate that errs high: a small vocabulary has few words of Chinese.
pub(crate) fn estimate_tokens(text: &str) -> usize {
    let wide = text.chars().filter(|c| !c.is_ascii()).count();
    let digits = text.chars().filter(|c| c.is_ascii_digit()).count();
    let other = text.len()
        - text
            .chars()
            .filter(|c| !c.is_ascii())
            .map(char::len_utf8)
            .sum::<usize>();
    (other - digits).div_ceil(3) + digits + wide * 3
}

/// The beginning of a text that fits a bound of tokens, and whether that is less than all.
pub(crate) fn fitting(text: &str, tokens: usize) -> (&str, bool) {
    if estimate_tokens(text) <= tokens {
        return (text, false);
    }
    let (mut low, mut high) = (0, text.len());
    while low < high {
        let mut middle = (low + high).div_ceil(2);
        while !text.is_char_boundary(middle) {
            middle += 1;
        }
        if middle > high {
            break;
        }
        if estimate_tokens(&text[..middle]) <= tokens {
            low = middle;
        } else {
            high = middle - 1;
            while !text.is_char_boundary(high) {
                high -= 1;
            }
        }
    }
    let cut = text[..low]
        .rfind(['.', '\n', '。'])
        .map_or(low, |at| at + 1);
    let mut cut = if cut * 2 > low { cut } else { low };
    while !text.is_char_boundary(cut) {
        cut += 1;
    }
    (&text[..cut], true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_sentences_end() {
        for (text, expected) in [
            ("One. Two.", vec!["One. ", "Two."]),
            (
                "At 9:40. By Dr. Who? Yes",
                vec!["At 9:40. ", "By Dr. Who? ", "Yes"],
            ),
            ("a 3.5 kg\n\nb", vec!["a 3.5 kg\n\n", "b"]),
            ("一。二！", vec!["一。", "二！"]),
        ] {
            assert_eq!(sentences(text), expected);
        }
    }

    #[test]
    fn a_long_text_is_cut_at_a_sentence_within_the_bound() {
        let text = "Words of a sentence. ".repeat(200);
        let (cut, less) = fitting(&text, 300);
        assert!(
            less && cut.ends_with('.') && estimate_tokens(cut) <= 300,
            "{}",
            cut.len()
        );
        assert_eq!(fitting("short", 300), ("short", false));
        let chinese = "汉字。".repeat(500);
        let (cut, less) = fitting(&chinese, 90);
        assert!(less && cut.ends_with('。') && estimate_tokens(cut) <= 90);
    }
}
