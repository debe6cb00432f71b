//! How an encoder cuts up text.

use std::collections::HashMap;

use tokenizers::Tokenizer;
use tokenizers::models::unigram::Unigram;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};

use super::Purpose;
use crate::error::EngineError;
use crate::gguf::GgufError;

/// Text that is cut up at once at most, in bytes: far beyond what any encoder looks at.
const MAX_TEXT: usize = 4 << 20;

/// A SentencePiece vocabulary.
pub(super) struct Pieces {
    /// Each piece and its log-probability.
    pub(super) pieces: Vec<(String, f64)>,
    pub(super) begin: u32,
    pub(super) end: u32,
    pub(super) unknown: u32,
    /// What single characters become first.
    pub(super) characters: HashMap<char, String>,
}

pub(super) struct Vocabulary {
    tokenizer: Tokenizer,
    /// The marks at both ends, where the tokenizer does not put them.
    ends: Option<[u32; 2]>,
    characters: Option<HashMap<char, String>>,
    /// Whether a text says what it is for.
    marked: bool,
}

impl Vocabulary {
    /// From a `tokenizer.json`, whose own cutting off and filling up are left out.
    pub(super) fn from_json(json: &[u8], marked: bool) -> Result<Self, GgufError> {
        let refused = |e: tokenizers::Error| GgufError::invalid("`tokenizer.json`", e.to_string());
        let mut tokenizer = Tokenizer::from_bytes(json).map_err(refused)?;
        tokenizer.with_truncation(None).map_err(refused)?;
        tokenizer.with_padding(None);
        Ok(Self {
            tokenizer,
            ends: None,
            characters: None,
            marked,
        })
    }

    /// Of SentencePiece's unigram model, as E5 has it.
    pub(super) fn of_pieces(pieces: Pieces) -> Result<Self, GgufError> {
        let Pieces {
            pieces,
            begin,
            end,
            unknown,
            characters,
        } = pieces;
        let model = Unigram::from(pieces, Some(unknown as usize), false)
            .map_err(|e| GgufError::invalid("the pieces", e.to_string()))?;
        let mut tokenizer = Tokenizer::new(model);
        let spaces = Metaspace::new('\u{2581}', PrependScheme::Always, false);
        tokenizer.with_pre_tokenizer(Some(spaces));
        Ok(Self {
            tokenizer,
            ends: Some([begin, end]),
            characters: Some(characters),
            marked: true,
        })
    }

    /// Tokens there are.
    pub(super) fn len(&self) -> usize {
        self.tokenizer.get_vocab_size(true)
    }

    /// The tokens of a text, with the marks at its ends.
    pub(super) fn encode(&self, text: &str, purpose: Purpose) -> Result<Vec<u32>, EngineError> {
        if text.len() > MAX_TEXT {
            return Err(EngineError::Tokenizer(format!(
                "{} bytes are more than the {MAX_TEXT} that are taken at once; give it in pieces",
                text.len()
            )));
        }
        let mark = match (self.marked, purpose) {
            (false, _) => "",
            (true, Purpose::Query) => "query: ",
            (true, Purpose::Passage) => "passage: ",
        };
        let text = self.normalised(&format!("{mark}{text}"));
        let encoding = self.tokenizer.encode_fast(text, self.ends.is_none());
        let encoding = encoding.map_err(|e| EngineError::Tokenizer(e.to_string()))?;
        let ids = encoding.get_ids();
        Ok(match self.ends {
            None => ids.to_vec(),
            Some([begin, end]) => {
                let mut marked = vec![begin];
                marked.extend_from_slice(ids);
                marked.push(end);
                marked
            }
        })
    }

    /// Maps characters, and makes one of several spaces.
    fn normalised(&self, text: &str) -> String {
        let Some(characters) = &self.characters else {
            return text.to_owned();
        };
        let mut out = String::with_capacity(text.len());
        let mut push = |character| {
            if character != ' ' || !out.ends_with(' ') {
                out.push(character);
            }
        };
        for character in text.chars() {
            match characters.get(&character) {
                None => push(character),
                Some(mapped) => mapped.chars().for_each(&mut push),
            }
        }
        out
    }
}
