/// Turns tokens' bytes into text as it grows: never half a character, and nothing of a stop string.
#[derive(Debug, Clone)]
pub(crate) struct TextStream {
    stops: Vec<String>,
    /// Bytes that do not make a character yet.
    bytes: Vec<u8>,
    /// Text that may be the beginning of a stop string.
    held: String,
    stopped: bool,
}

impl TextStream {
    /// `stops` must not be empty strings.
    pub(crate) fn new(stops: Vec<String>) -> Self {
        Self {
            stops,
            bytes: Vec::new(),
            held: String::new(),
            stopped: false,
        }
    }

    /// Whether a stop string has been found; everything after it is dropped.
    pub(crate) fn stopped(&self) -> bool {
        self.stopped
    }

    /// Takes a token's bytes; gives the text that can be shown.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        if self.stopped {
            return String::new();
        }
        self.bytes.extend_from_slice(bytes);
        let complete = complete_len(&self.bytes);
        self.held
            .push_str(&String::from_utf8_lossy(&self.bytes[..complete]));
        self.bytes.drain(..complete);
        if let Some(at) = self.stop() {
            self.stopped = true;
            self.held.truncate(at);
            return std::mem::take(&mut self.held);
        }
        let kept = self.held.len() - self.possible_stop();
        let rest = self.held.split_off(kept);
        std::mem::replace(&mut self.held, rest)
    }

    /// What was held back, when no more will come.
    pub(crate) fn finish(&mut self) -> String {
        if self.stopped {
            return String::new();
        }
        let mut text = std::mem::take(&mut self.held);
        text.push_str(&String::from_utf8_lossy(&std::mem::take(&mut self.bytes)));
        text
    }

    /// Where the stop string begins that is complete first, the longest of those: so that it does
    /// not matter where tokens begin and end.
    fn stop(&self) -> Option<usize> {
        let found = self.stops.iter().filter_map(|stop| {
            let at = self.held.find(stop)?;
            Some((at + stop.len(), at))
        });
        found.min().map(|(_, at)| at)
    }

    /// Length of the longest end of the held text that begins a stop string.
    fn possible_stop(&self) -> usize {
        let ends = self.stops.iter().filter_map(|stop| {
            let cuts = stop.char_indices().map(|(at, _)| at).rev();
            cuts.into_iter()
                .find(|&cut| self.held.ends_with(&stop[..cut]))
        });
        ends.max().unwrap_or(0)
    }
}

/// Bytes up to the last character that could still grow.
fn complete_len(bytes: &[u8]) -> usize {
    match bytes.utf8_chunks().last() {
        Some(chunk) if could_grow(chunk.invalid()) => bytes.len() - chunk.invalid().len(),
        _ => bytes.len(),
    }
}

/// Whether an invalid sequence at the end is only the beginning of a character.
fn could_grow(bytes: &[u8]) -> bool {
    !bytes.is_empty() && std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    fn stream(stops: &[&str], tokens: &[&[u8]]) -> (Vec<String>, bool) {
        let mut stream = TextStream::new(stops.iter().map(|stop| (*stop).to_owned()).collect());
        let mut out: Vec<_> = tokens.iter().map(|token| stream.push(token)).collect();
        out.push(stream.finish());
        (out, stream.stopped())
    }

    #[test]
    fn characters_are_not_split() {
        let rows: &[(&[&[u8]], &[&str])] = &[
            (&[b"a", "é".as_bytes()], &["a", "é", ""]),
            (&[b"\xe4", b"\xb8", b"\xad!"], &["", "", "中!", ""]),
            (&[b"\xf0\x9f\x87", b"\xa8x"], &["", "🇨x", ""]),
            (&[b"\xff", b"a"], &["\u{fffd}", "a", ""]),
            (&[b"\xe4", b"a"], &["", "\u{fffd}a", ""]),
            (&[b"ok\xe4\xb8"], &["ok", "\u{fffd}"]),
        ];
        for (tokens, expected) in rows {
            assert_eq!(
                stream(&[], tokens),
                (to_owned(expected), false),
                "{tokens:?}"
            );
        }
    }

    #[test]
    fn stop_strings_end_the_text() {
        type Row<'a> = (&'a [&'a str], &'a [&'a [u8]], &'a [&'a str], bool);
        let rows: &[Row<'_>] = &[
            (&["END"], &[b"a E", b"N", b"D b"], &["a ", "", "", ""], true),
            (
                &["END"],
                &[b"a E", b"N", b"x"],
                &["a ", "", "ENx", ""],
                false,
            ),
            (&["END"], &[b"aEN"], &["a", "EN"], false),
            (
                &["\n\n", "。"],
                &[b"a\n", b"b\n", b"\nc"],
                &["a", "\nb", "", ""],
                true,
            ),
            (
                &["aab"],
                &[b"a", b"a", b"a", b"b"],
                &["", "", "a", "", ""],
                true,
            ),
            (&["。"], &[b"x\xe3\x80", b"\x82y"], &["x", "", ""], true),
            (&["longer", "on"], &[b"l", b"on"], &["", "l", ""], true),
            (&["longer", "on"], &[b"longer"], &["l", ""], true),
            (&["bc", "abc"], &[b"xabcd"], &["x", ""], true),
        ];
        for (stops, tokens, expected, stopped) in rows {
            assert_eq!(
                stream(stops, tokens),
                (to_owned(expected), *stopped),
                "{tokens:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn the_text_does_not_depend_on_where_tokens_begin(
            bytes in proptest::collection::vec(prop_oneof![
                4 => 97u8..100, 1 => Just(0xe4), 1 => Just(0xb8), 1 => Just(0xad), 1 => 0u8..=255
            ], 0..40),
            cuts in proptest::collection::vec(0usize..40, 0..12),
            stops in proptest::collection::vec("[a-c\u{4e2d}]{1,4}", 0..4),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let tokens: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            let stops: Vec<&str> = stops.iter().map(String::as_str).collect();
            let (texts, stopped) = stream(&stops, &tokens);

            // Character by character: the text ends where the first stop string is complete.
            let whole = String::from_utf8_lossy(&bytes).into_owned();
            let ends = whole.char_indices().map(|(at, character)| at + character.len_utf8());
            let cut = ends.into_iter().find_map(|end| {
                let complete = stops.iter().filter(|stop| whole[..end].ends_with(**stop));
                complete.map(|stop| end - stop.len()).min()
            });
            prop_assert_eq!(texts.concat(), &whole[..cut.unwrap_or(whole.len())]);
            prop_assert_eq!(stopped, cut.is_some());
        }
    }

    fn to_owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }
}
