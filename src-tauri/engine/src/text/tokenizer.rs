mod json;

use aho_corasick::{AhoCorasick, MatchKind};

use super::Piece;
use super::scheme::{CONTROL, Scheme, USER_DEFINED};
use crate::error::EngineError;
use crate::gguf::{Gguf, GgufError};

/// Text that is tokenised at once at most, in bytes: far beyond any context.
const MAX_TEXT: usize = 64 << 20;

/// Control tokens that end an answer, in the families that GGUF files are made of.
const END_NAMES: [&str; 8] = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<end_of_turn>",
    "</s>",
];

/// A BPE tokenizer built from a file's vocabulary.
pub(crate) struct Tokenizer {
    bpe: tokenizers::Tokenizer,
    /// Each token's bytes; a control token's name.
    bytes: Vec<Vec<u8>>,
    control: Vec<bool>,
    /// Tokens that are found in any text.
    user_defined: Markers,
    /// Tokens that are found where special tokens are asked for.
    special: Markers,
    bos: Option<u32>,
    add_bos: bool,
    stops: Vec<u32>,
}

impl Tokenizer {
    pub(crate) fn read(file: &Gguf) -> Result<Self, GgufError> {
        let scheme = Scheme::of(file)?;
        let names = file.strings("tokenizer.ggml.tokens")?;
        let kinds = match file.get("tokenizer.ggml.token_type") {
            None => vec![1; names.len()],
            Some(_) => file.integers("tokenizer.ggml.token_type")?,
        };
        if kinds.len() != names.len() {
            let problem = format!("{} types for {} tokens", kinds.len(), names.len());
            return Err(GgufError::invalid("`tokenizer.ggml.token_type`", problem));
        }
        let of_kind = |wanted: &[i64]| {
            let tokens = names.iter().zip(&kinds).enumerate();
            tokens
                .filter(|(_, (name, kind))| wanted.contains(kind) && !name.is_empty())
                .map(|(id, (name, _))| (*name, id as u32))
                .collect::<Vec<_>>()
        };
        let control = kinds
            .iter()
            .map(|&kind| kind == CONTROL)
            .collect::<Vec<_>>();
        let token_id = |key: &str| -> Result<Option<u32>, GgufError> {
            match file.find_u32(key)? {
                Some(id) if id as usize >= names.len() => {
                    let problem = format!("`{id}` is not one of the {} tokens", names.len());
                    Err(GgufError::invalid(format!("`{key}`"), problem))
                }
                found => Ok(found),
            }
        };
        let mut stops = Vec::new();
        for key in ["eos", "eot", "eom"] {
            stops.extend(token_id(&format!("tokenizer.ggml.{key}_token_id"))?);
        }
        for (name, id) in of_kind(&[CONTROL]) {
            if END_NAMES.contains(&name) && !stops.contains(&id) {
                stops.push(id);
            }
        }
        if stops.is_empty() {
            return Err(GgufError::Missing {
                field: "`tokenizer.ggml.eos_token_id`".to_owned(),
            });
        }
        Ok(Self {
            bpe: scheme.build(file, &names)?,
            bytes: names
                .iter()
                .zip(&kinds)
                .map(|(name, &kind)| scheme.bytes(name, kind))
                .collect(),
            user_defined: Markers::new(&of_kind(&[USER_DEFINED]))?,
            special: Markers::new(&of_kind(&[CONTROL, USER_DEFINED]))?,
            bos: token_id("tokenizer.ggml.bos_token_id")?,
            add_bos: file
                .find_bool("tokenizer.ggml.add_bos_token")?
                .unwrap_or(scheme.begins_texts()),
            control,
            stops,
        })
    }

    /// Tokens in the vocabulary.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Tokens that end an answer, the end-of-text token first.
    pub(crate) fn stops(&self) -> &[u32] {
        &self.stops
    }

    pub(crate) fn is_control(&self, id: u32) -> bool {
        self.control.get(id as usize).copied().unwrap_or(false)
    }

    /// A token's bytes; a control token's name.
    pub(crate) fn bytes(&self, id: u32) -> &[u8] {
        self.bytes.get(id as usize).map_or(&[], Vec::as_slice)
    }

    /// The name of the token that begins a text, if there is one.
    pub(crate) fn bos_name(&self) -> Option<String> {
        self.bos
            .map(|id| String::from_utf8_lossy(self.bytes(id)).into_owned())
    }

    /// The name of the token that ends a text.
    pub(crate) fn eos_name(&self) -> String {
        self.stops.first().map_or_else(String::new, |&id| {
            String::from_utf8_lossy(self.bytes(id)).into_owned()
        })
    }

    /// Tokenises a text. With `special`, the names of control tokens in it become these tokens.
    pub(crate) fn encode(&self, text: &str, special: bool) -> Result<Vec<u32>, EngineError> {
        if special {
            self.encode_template(&[Piece::Template(text)])
        } else {
            self.encode_plain(text)
        }
    }

    /// Tokenises a rendered chat: special tokens are those of the template's own text alone,
    /// whatever the contents hold.
    pub(crate) fn encode_template(&self, pieces: &[Piece<'_>]) -> Result<Vec<u32>, EngineError> {
        let mut ids = Vec::new();
        let mut plain = String::new();
        for piece in pieces {
            match piece {
                Piece::Content(text) => plain.push_str(text),
                Piece::Template(text) => {
                    let mut rest = 0;
                    for (range, id) in self.special.find(text) {
                        plain.push_str(&text[rest..range.start]);
                        ids.extend(self.encode_plain(&plain)?);
                        ids.push(id);
                        plain.clear();
                        rest = range.end;
                    }
                    plain.push_str(&text[rest..]);
                }
            }
        }
        ids.extend(self.encode_plain(&plain)?);
        Ok(ids)
    }

    /// Puts the beginning-of-text token in front where the model wants one.
    pub(crate) fn with_bos(&self, mut ids: Vec<u32>) -> Vec<u32> {
        if let (true, Some(bos)) = (self.add_bos, self.bos)
            && ids.first() != Some(&bos)
        {
            ids.insert(0, bos);
        }
        ids
    }

    /// The text of some tokens, without control tokens; bytes that are not UTF-8 become U+FFFD.
    pub(crate) fn decode(&self, ids: &[u32]) -> String {
        let text = ids.iter().filter(|&&id| !self.is_control(id));
        let bytes: Vec<u8> = text.flat_map(|&id| self.bytes(id)).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn encode_plain(&self, text: &str) -> Result<Vec<u32>, EngineError> {
        if text.len() > MAX_TEXT {
            return Err(EngineError::Tokenizer(format!(
                "{} bytes are more than the {MAX_TEXT} that are taken at once",
                text.len()
            )));
        }
        let mut ids = Vec::new();
        let mut rest = 0;
        for (range, id) in self.user_defined.find(text) {
            self.encode_words(&text[rest..range.start], &mut ids)?;
            ids.push(id);
            rest = range.end;
        }
        self.encode_words(&text[rest..], &mut ids)?;
        Ok(ids)
    }

    fn encode_words(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), EngineError> {
        if !text.is_empty() {
            let encoding = self.bpe.encode_fast(text, false);
            let encoding = encoding.map_err(|error| EngineError::Tokenizer(error.to_string()))?;
            ids.extend_from_slice(encoding.get_ids());
        }
        Ok(())
    }
}

/// Finds the names of tokens in a text: leftmost first, the longest of those that start together.
struct Markers {
    finder: AhoCorasick,
    ids: Vec<u32>,
}

impl Markers {
    fn new(tokens: &[(&str, u32)]) -> Result<Self, GgufError> {
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(tokens.iter().map(|(name, _)| name))
            .map_err(|e| GgufError::invalid("`tokenizer.ggml.tokens`", e.to_string()))?;
        Ok(Self {
            finder,
            ids: tokens.iter().map(|(_, id)| *id).collect(),
        })
    }

    fn find<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (std::ops::Range<usize>, u32)> {
        self.finder
            .find_iter(text)
            .map(|found| (found.range(), self.ids[found.pattern().as_usize()]))
    }
}
