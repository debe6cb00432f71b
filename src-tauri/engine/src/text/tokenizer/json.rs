//! A tokenizer from `tokenizer.json`, the format of Hugging Face's tokenizers.

use serde_json::Value;

use super::super::scheme::{CONTROL, PLAIN, Scheme, Words};
use super::{END_NAMES, Markers, Tokenizer};
use crate::error::guard;
use crate::gguf::GgufError;

/// A token beside those of the merges.
struct Added<'a> {
    name: &'a str,
    id: u32,
    special: bool,
}

impl Tokenizer {
    /// A byte-level BPE tokenizer from its JSON, for an embedding of `vocab` rows. `ends` are the
    /// tokens that end an answer, as far as the model's configuration names them.
    pub(crate) fn of_json(mut json: Value, ends: &[u32], vocab: usize) -> Result<Self, GgufError> {
        refuse_other_kinds(&json)?;
        let (names, kinds) = {
            let added = added_tokens(&json)?;
            names(&json, &added, vocab)?
        };
        let of_kind = |wanted: &[Kind]| -> Vec<(&str, u32)> {
            let tokens = names.iter().zip(&kinds).enumerate();
            tokens
                .filter(|(_, (name, kind))| wanted.contains(kind) && !name.is_empty())
                .map(|(id, (name, _))| (name.as_str(), id as u32))
                .collect()
        };
        let controls = of_kind(&[Kind::Control]);
        let mut stops = Vec::new();
        for &id in ends {
            if id as usize >= names.len() {
                let problem = format!("`{id}` is not one of the {} tokens", names.len());
                return Err(GgufError::invalid("`eos_token_id`", problem));
            }
            stops.push(id);
        }
        for (name, id) in &controls {
            if END_NAMES.contains(name) && !stops.contains(id) {
                stops.push(*id);
            }
        }
        if stops.is_empty() {
            return Err(GgufError::Missing {
                field: "`eos_token_id`".to_owned(),
            });
        }
        let first = first_token(&json);
        let bos = first.and_then(|first| {
            let found = controls.iter().find(|(name, _)| *name == first);
            found.map(|(_, id)| *id)
        });
        // Special tokens are found by us alone, where they are asked for: a text that imitates
        // one must stay a text.
        let user_defined = Markers::new(&of_kind(&[Kind::UserDefined]))?;
        let special = Markers::new(&of_kind(&[Kind::Control, Kind::UserDefined]))?;
        for (key, empty) in [
            ("added_tokens", Value::Array(Vec::new())),
            ("post_processor", Value::Null),
            ("truncation", Value::Null),
            ("padding", Value::Null),
        ] {
            json[key] = empty;
        }
        let scheme = Scheme::ByteLevel(Words::Gpt2);
        Ok(Self {
            bpe: build(json)?,
            bytes: names
                .iter()
                .zip(&kinds)
                .map(|(name, &kind)| {
                    scheme.bytes(name, if kind == Kind::Plain { PLAIN } else { CONTROL })
                })
                .collect(),
            user_defined,
            special,
            bos,
            add_bos: bos.is_some(),
            control: kinds.iter().map(|&kind| kind == Kind::Control).collect(),
            stops,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Control,
    UserDefined,
}

/// Refuses what is not byte-level BPE.
fn refuse_other_kinds(json: &Value) -> Result<(), GgufError> {
    let model = &json["model"];
    let kind = model["type"].as_str().unwrap_or("BPE");
    if kind != "BPE" || model["byte_fallback"].as_bool() == Some(true) {
        let problem = format!(
            "`{}` without byte-level words is not supported; use a model with a byte-level BPE \
             tokenizer, or a GGUF file",
            kind.escape_debug()
        );
        return Err(GgufError::invalid("`model.type`", problem));
    }
    let is_byte_level = |step: &Value| step["type"].as_str() == Some("ByteLevel");
    let steps = &json["pre_tokenizer"];
    let mut among = steps["pretokenizers"].as_array().into_iter().flatten();
    if is_byte_level(steps) || among.any(is_byte_level) {
        return Ok(());
    }
    Err(GgufError::invalid(
        "`pre_tokenizer`",
        "has no `ByteLevel` step; use a model with a byte-level BPE tokenizer, or a GGUF file",
    ))
}

fn added_tokens(json: &Value) -> Result<Vec<Added<'_>>, GgufError> {
    let wrong = |index: usize| {
        GgufError::invalid(
            format!("`added_tokens[{index}]`"),
            "not a token with `content` and `id`",
        )
    };
    let tokens = json["added_tokens"].as_array().into_iter().flatten();
    tokens
        .enumerate()
        .map(|(index, token)| {
            let name = token["content"].as_str().ok_or_else(|| wrong(index))?;
            let id = token["id"].as_u64().and_then(|id| u32::try_from(id).ok());
            Ok(Added {
                name,
                id: id.ok_or_else(|| wrong(index))?,
                special: token["special"].as_bool().unwrap_or(false),
            })
        })
        .collect()
}

/// The tokens by number, those that are missing in between as empty.
fn names(
    json: &Value,
    added: &[Added<'_>],
    vocab: usize,
) -> Result<(Vec<String>, Vec<Kind>), GgufError> {
    let Some(words) = json["model"]["vocab"].as_object() else {
        return Err(GgufError::invalid(
            "`model.vocab`",
            "not a map of tokens to numbers",
        ));
    };
    let mut tokens = Vec::with_capacity(words.len() + added.len());
    for (name, id) in words {
        let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
        let id = id.ok_or_else(|| {
            let field = format!("`model.vocab` of `{}`", name.escape_debug());
            GgufError::invalid(field, "not a token's number")
        })?;
        tokens.push((name.as_str(), id, Kind::Plain));
    }
    for token in added {
        let kind = match token.special {
            true => Kind::Control,
            false => Kind::UserDefined,
        };
        tokens.push((token.name, token.id, kind));
    }
    let len = tokens
        .iter()
        .map(|token| token.1 as usize + 1)
        .max()
        .unwrap_or(0);
    if len > vocab {
        let problem = format!("{len} tokens for an embedding of {vocab} rows");
        return Err(GgufError::invalid("`model.vocab`", problem));
    }
    let mut names = vec![String::new(); len];
    let mut kinds = vec![Kind::Plain; len];
    for (name, id, kind) in tokens {
        let at = id as usize;
        // An added token may be a word of the vocabulary once more.
        if !names[at].is_empty() && names[at] != name {
            let (one, other) = (names[at].escape_debug(), name.escape_debug());
            let problem = format!("`{one}` and `{other}` have one number, `{id}`");
            return Err(GgufError::invalid("`model.vocab`", problem));
        }
        names[at] = name.to_owned();
        kinds[at] = kind;
    }
    Ok((names, kinds))
}

/// The special token that the tokenizer puts in front of a text, if any.
fn first_token(json: &Value) -> Option<&str> {
    let processor = &json["post_processor"];
    let several = processor["processors"].as_array().into_iter().flatten();
    let template = std::iter::once(processor)
        .chain(several)
        .find(|step| step["type"].as_str() == Some("TemplateProcessing"))?;
    template["single"][0]["SpecialToken"]["id"].as_str()
}

fn build(json: Value) -> Result<tokenizers::Tokenizer, GgufError> {
    let built = guard(|| Ok(serde_json::from_value(json).map_err(|error| error.to_string())));
    built
        .unwrap_or_else(|error| Err(error.to_string()))
        .map_err(|error| GgufError::invalid("the tokenizer", format!("{error}; download it again")))
}
