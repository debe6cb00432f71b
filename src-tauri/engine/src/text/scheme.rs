//! How a file's vocabulary cuts text: the words that merges stay within, and what token names mean.

use tokenizers::models::bpe::{BPE, BpeBuilder, Merges, Vocab};
use tokenizers::normalizers::{NFC, NormalizerWrapper, Prepend, Replace};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{SplitDelimiterBehavior, Tokenizer};

use crate::gguf::{Gguf, GgufError};

/// The kinds of token that GGUF tells apart and that matter here.
pub(super) const PLAIN: i64 = 1;
const UNKNOWN: i64 = 2;
pub(super) const CONTROL: i64 = 3;
pub(super) const USER_DEFINED: i64 = 4;
const BYTE: i64 = 6;

/// What stands for a space in names of SentencePiece.
const SPACE: char = '\u{2581}';

/// A way to tokenise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    /// GPT-2's: merges within words, bytes as characters.
    ByteLevel(Words),
    /// SentencePiece's BPE: the best score first, spaces as characters, bytes for what is not known.
    SentencePiece,
}

/// The words that merges stay within.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    /// GPT-2's.
    Gpt2,
    /// Every digit alone, then GPT-2's.
    SmolLm,
    /// Qwen 2's: as Llama 3's with every digit alone.
    Qwen2,
    /// Llama 3's: up to three digits together.
    Llama3,
}

/// Names in `tokenizer.ggml.pre`.
const WORDS: [(&str, Words); 8] = [
    ("gpt-2", Words::Gpt2),
    ("default", Words::Gpt2),
    ("smollm", Words::SmolLm),
    ("qwen2", Words::Qwen2),
    ("deepseek-r1-qwen", Words::Qwen2),
    ("llama-bpe", Words::Llama3),
    ("llama3", Words::Llama3),
    ("llama-v3", Words::Llama3),
];

impl Words {
    /// The pattern of Llama 3 and Qwen 2, which differ in how many digits go together.
    fn pattern(self) -> Option<String> {
        let digits = match self {
            Self::Gpt2 | Self::SmolLm => return None,
            Self::Qwen2 => r"\p{N}",
            Self::Llama3 => r"\p{N}{1,3}",
        };
        Some(format!(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ))
    }

    fn cut(self) -> Result<PreTokenizerWrapper, GgufError> {
        let steps: Vec<PreTokenizerWrapper> = match (self, self.pattern()) {
            (_, Some(pattern)) => {
                let isolated = SplitDelimiterBehavior::Isolated;
                let split = Split::new(SplitPattern::Regex(pattern), isolated, false)
                    .map_err(|e| GgufError::invalid("`tokenizer.ggml.pre`", e.to_string()))?;
                vec![split.into(), ByteLevel::new(false, true, false).into()]
            }
            (Self::SmolLm, None) => vec![
                Digits::new(true).into(),
                ByteLevel::new(false, true, true).into(),
            ],
            (_, None) => vec![ByteLevel::new(false, true, true).into()],
        };
        Ok(Sequence::new(steps).into())
    }
}

impl Scheme {
    pub(super) fn of(file: &Gguf) -> Result<Self, GgufError> {
        let key = "tokenizer.ggml.model";
        match file.str(key)? {
            "llama" => return Ok(Self::SentencePiece),
            "gpt2" => {}
            other => {
                let problem =
                    format!("`{other}` is not supported: this engine knows `gpt2` and `llama`");
                return Err(GgufError::invalid(format!("`{key}`"), problem));
            }
        }
        let key = "tokenizer.ggml.pre";
        let found = file.str(key)?;
        let words = WORDS.iter().find(|(name, _)| *name == found);
        words
            .map(|(_, words)| Self::ByteLevel(*words))
            .ok_or_else(|| {
                let known: Vec<String> =
                    WORDS.iter().map(|(name, _)| format!("`{name}`")).collect();
                let problem = format!(
                    "`{found}` is not supported: this engine knows {}",
                    known.join(", ")
                );
                GgufError::invalid(format!("`{key}`"), problem)
            })
    }

    /// Whether texts begin with a token of their own where the file does not say.
    pub(super) fn begins_texts(self) -> bool {
        self == Self::SentencePiece
    }

    pub(super) fn build(self, file: &Gguf, names: &[&str]) -> Result<Tokenizer, GgufError> {
        match self {
            Self::ByteLevel(words) => {
                let merges = written_merges(file)?;
                let bpe = BPE::builder().ignore_merges(words == Words::Llama3);
                let mut tokenizer = built(bpe, names, merges)?;
                tokenizer.with_pre_tokenizer(Some(words.cut()?));
                if words == Words::Qwen2 {
                    normalised(&mut tokenizer, vec![NFC.into()])?;
                }
                Ok(tokenizer)
            }
            Self::SentencePiece => {
                let mut bpe = BPE::builder().byte_fallback(true).fuse_unk(true);
                if let Some(id) = file.find_u32("tokenizer.ggml.unknown_token_id")?
                    && let Some(name) = names.get(id as usize)
                {
                    bpe = bpe.unk_token((*name).to_owned());
                }
                let mut tokenizer = built(bpe, names, scored_merges(file, names)?)?;
                let prefixed = file.find_bool("tokenizer.ggml.add_space_prefix")?;
                let mut steps: Vec<NormalizerWrapper> = Vec::new();
                if prefixed.unwrap_or(true) {
                    steps.push(Prepend::new(SPACE.to_string()).into());
                }
                let spaces = Replace::new(" ", SPACE.to_string());
                steps.push(spaces.map_err(|e| refused(&e.to_string()))?.into());
                normalised(&mut tokenizer, steps)?;
                Ok(tokenizer)
            }
        }
    }

    /// The bytes that a token's name stands for; a control token's is its name.
    pub(super) fn bytes(self, name: &str, kind: i64) -> Vec<u8> {
        match (self, kind) {
            (_, CONTROL | UNKNOWN) => name.as_bytes().to_vec(),
            (Self::ByteLevel(_), _) => printable_bytes(name),
            (Self::SentencePiece, BYTE) => byte_named(name).into_iter().collect(),
            (Self::SentencePiece, _) => name.replace(SPACE, " ").into_bytes(),
        }
    }
}

fn refused(why: &str) -> GgufError {
    GgufError::invalid("`tokenizer.ggml.tokens`", why)
}

fn normalised(tokenizer: &mut Tokenizer, steps: Vec<NormalizerWrapper>) -> Result<(), GgufError> {
    let steps = tokenizers::normalizers::Sequence::new(steps);
    tokenizer
        .with_normalizer(Some(steps))
        .map_err(|e| refused(&e.to_string()))?;
    Ok(())
}

fn built(bpe: BpeBuilder, names: &[&str], merges: Merges) -> Result<Tokenizer, GgufError> {
    let vocab: Vocab = names
        .iter()
        .enumerate()
        .map(|(id, name)| ((*name).to_owned(), id as u32))
        .collect();
    let model = bpe.vocab_and_merges(vocab, merges).build();
    let model = model.map_err(|e| GgufError::invalid("`tokenizer.ggml.merges`", e.to_string()))?;
    Ok(Tokenizer::new(model))
}

/// The file's list of merges, the first ones first.
fn written_merges(file: &Gguf) -> Result<Merges, GgufError> {
    let key = "tokenizer.ggml.merges";
    let pairs = file.strings(key)?.into_iter();
    pairs
        .map(|merge| match merge.split_once(' ') {
            Some((left, right)) => Ok((left.to_owned(), right.to_owned())),
            None => Err(GgufError::invalid(
                format!("`{key}`"),
                format!("`{merge}` is no pair"),
            )),
        })
        .collect()
}

/// Merges for a vocabulary that has scores: each way to put a token together from two others, the
/// token with the best score first.
fn scored_merges(file: &Gguf, names: &[&str]) -> Result<Merges, GgufError> {
    let key = "tokenizer.ggml.scores";
    let scores = file.floats(key)?;
    if scores.len() != names.len() {
        let problem = format!("{} scores for {} tokens", scores.len(), names.len());
        return Err(GgufError::invalid(format!("`{key}`"), problem));
    }
    let ids: std::collections::HashMap<&str, usize> = names
        .iter()
        .enumerate()
        .map(|(id, name)| (*name, id))
        .collect();
    let mut merges = Vec::new();
    for (name, score) in names.iter().zip(&scores) {
        for (at, _) in name.char_indices().skip(1) {
            let (left, right) = name.split_at(at);
            if let (Some(&left), Some(&right)) = (ids.get(left), ids.get(right)) {
                merges.push((*score, left, right));
            }
        }
    }
    merges.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    let pair =
        |(_, left, right): (f32, usize, usize)| (names[left].to_owned(), names[right].to_owned());
    Ok(merges.into_iter().map(pair).collect())
}

/// The byte of a name like `<0x0A>`.
fn byte_named(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    u8::from_str_radix(digits, 16).ok()
}

/// The bytes a token's name stands for: GPT-2 writes bytes that are not printable as characters
/// from U+0100 on.
fn printable_bytes(name: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(name.len());
    for character in name.chars() {
        match byte_of(character) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend(character.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    bytes
}

fn byte_of(character: char) -> Option<u8> {
    let code = u32::from(character);
    match code {
        // Printable in Latin-1: the byte itself.
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => u8::try_from(code).ok(),
        // The others, in order: 0..=0x20, 0x7f..=0xa0, 0xad.
        0x100..=0x120 => u8::try_from(code - 0x100).ok(),
        0x121..=0x142 => u8::try_from(code - 0x121 + 0x7f).ok(),
        0x143 => Some(0xad),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn every_byte_has_one_character() {
        let mut seen = [false; 256];
        for code in 0..0x200 {
            if let Some(byte) = byte_of(char::from_u32(code).unwrap()) {
                assert!(!seen[byte as usize], "{byte:#x} twice");
                seen[byte as usize] = true;
            }
        }
        assert_eq!(seen, [true; 256]);
    }

    #[test]
    fn names_of_sentencepiece_are_bytes_and_spaces() {
        let bytes = |name, kind| Scheme::SentencePiece.bytes(name, kind);
        assert_eq!(bytes("<0x0A>", BYTE), [10]);
        assert!(bytes("<0xzz>", BYTE).is_empty());
        assert_eq!(bytes("\u{2581}the", 1), b" the");
        assert_eq!(bytes("<0x0A>", 1), b"<0x0A>");
    }
}
