//! Reading a model's folder as Hugging Face has them: `config.json`, `*.safetensors` and
//! `tokenizer.json`.
//!
//! A folder is untrusted input like any file: nothing is opened but by a plain name in it, every
//! file has a limit, every range is checked before use, and an error names file or field.

mod config;
mod names;
mod shard;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::EngineError;
use crate::gguf::GgufError;
use crate::info::ModelInfo;
use crate::kv::KvFormat;
use crate::model::{Config, Source, Stored};
use crate::text::ChatTemplate;
use crate::text::Tokenizer;
use names::stored_name;
pub(crate) use shard::{Entry, Shard};

const CONFIG: &str = "config.json";
const GENERATION_CONFIG: &str = "generation_config.json";
const TOKENIZER: &str = "tokenizer.json";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const TEMPLATE: &str = "chat_template.jinja";
const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Bytes of a text file at most: the largest are vocabularies, of about 35 MB.
const MAX_TEXT: u64 = 128 << 20;

/// Files that the weights of a model may be cut into.
const MAX_SHARDS: usize = 1024;

/// A model's folder with its directories read and its weights mapped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    config: Value,
    shards: Vec<Shard>,
    tensors: BTreeMap<String, Entry>,
    tied: bool,
    rope_factors: Option<Vec<f32>>,
}

impl Folder {
    /// Reads the folder's configuration and the directories of its weights.
    ///
    /// # Errors
    /// [`EngineError::Open`] for a file that cannot be read, [`EngineError::Model`] for one that
    /// cannot be used.
    pub(crate) fn open(path: &Path) -> Result<Self, EngineError> {
        let model = |source| EngineError::Model {
            path: path.to_owned(),
            source,
        };
        let mut folder = Self {
            path: path.to_owned(),
            config: json(path, CONFIG)?,
            shards: Vec::new(),
            tensors: BTreeMap::new(),
            tied: false,
            rope_factors: None,
        };
        config::refuse_other_models(&folder.config).map_err(model)?;
        folder.tied = config::is_tied(&folder.config).map_err(model)?;
        if path.join(INDEX).exists() {
            let places = places(&json(path, INDEX)?).map_err(model)?;
            let mut files: Vec<_> = places.values().collect();
            files.sort_unstable();
            files.dedup();
            if files.len() > MAX_SHARDS {
                return Err(model(GgufError::TooLarge {
                    field: format!("the count of files in `{INDEX}`"),
                    found: files.len() as u64,
                    limit: MAX_SHARDS as u64,
                }));
            }
            for file in files {
                folder.add_shard(file, |name| places.get(name) == Some(file))?;
            }
            if let Some((name, file)) = places
                .iter()
                .find(|(name, _)| !folder.tensors.contains_key(*name))
            {
                let problem = format!("is not in `{file}`, where `{INDEX}` has it");
                return Err(model(GgufError::invalid(
                    format!("tensor `{name}`"),
                    problem,
                )));
            }
        } else {
            folder.add_shard(WEIGHTS, |_| true)?;
        }
        Ok(folder)
    }

    /// Maps a file of weights and takes the tensors of it that are `wanted`.
    fn add_shard(&mut self, file: &str, wanted: impl Fn(&str) -> bool) -> Result<(), EngineError> {
        let path = self.path.join(file);
        let map = crate::gguf::Gguf::map(&path).map_err(|source| EngineError::Open {
            path: path.clone(),
            source,
        })?;
        let (shard, entries) = Shard::read(map, file, self.shards.len())
            .map_err(|source| EngineError::Model { path, source })?;
        let wanted = entries.into_iter().filter(|(name, _)| wanted(name));
        self.tensors.extend(wanted);
        self.shards.push(shard);
        Ok(())
    }

    /// The sizes of the model, which the tensors are then checked by.
    pub(crate) fn config(&mut self) -> Result<Config, GgufError> {
        let config = config::read(&self.config)?;
        self.rope_factors = config::rope_factors(&self.config, &config)?;
        let bias = self.tensors.keys().find(|name| name.ends_with(".bias"));
        if let Some(bias) = bias {
            return Err(GgufError::invalid(
                format!("tensor `{bias}`"),
                "biases are not supported; use a model without them",
            ));
        }
        Ok(config)
    }

    pub(crate) fn info(&self, config: &Config, fallback_name: &str) -> ModelInfo {
        let tensors = self.tensors.values();
        let parameters = tensors.clone().map(Entry::elements);
        let largest = tensors.clone().max_by_key(|entry| entry.elements());
        ModelInfo {
            architecture: "llama".to_owned(),
            name: fallback_name.to_owned(),
            license: None,
            file_type: largest.map_or("unknown", Entry::dtype).to_owned(),
            context: config.context,
            vocab: config.vocab,
            parameters: parameters.fold(0, u64::saturating_add),
            layers: config.layers,
            width: config.width,
            token_bytes: config.kv_shape(KvFormat::F16).token_bytes(),
            bytes: self.shards.iter().map(|shard| shard.size() as u64).sum(),
            chat: false,
            threads: 0,
            instructions: "",
        }
    }

    /// The tokenizer, for an embedding of `vocab` rows.
    pub(crate) fn tokenizer(&self, vocab: usize) -> Result<Tokenizer, EngineError> {
        let mut ends = Vec::new();
        let generation = match self.path.join(GENERATION_CONFIG).exists() {
            true => json(&self.path, GENERATION_CONFIG)?,
            false => Value::Null,
        };
        for (file, value) in [(GENERATION_CONFIG, &generation), (CONFIG, &self.config)] {
            ends = config::end_tokens(value, file).map_err(|source| self.wrong(source))?;
            if !ends.is_empty() {
                break;
            }
        }
        let tokenizer = json(&self.path, TOKENIZER)?;
        Tokenizer::of_json(tokenizer, &ends, vocab).map_err(|source| EngineError::Model {
            path: self.path.join(TOKENIZER),
            source,
        })
    }

    /// The chat template, from a file of its own or from the tokenizer's configuration.
    pub(crate) fn template(
        &self,
        tokenizer: &Tokenizer,
    ) -> Result<Option<ChatTemplate>, EngineError> {
        let source = if self.path.join(TEMPLATE).exists() {
            let bytes = read(&self.path, TEMPLATE)?;
            let text = String::from_utf8(bytes).map_err(|_| GgufError::Utf8 {
                field: format!("`{TEMPLATE}`"),
            });
            Some(text.map_err(|source| self.wrong(source))?)
        } else if self.path.join(TOKENIZER_CONFIG).exists() {
            config::template(&json(&self.path, TOKENIZER_CONFIG)?)
                .map_err(|source| self.wrong(source))?
        } else {
            None
        };
        let Some(source) = source else {
            return Ok(None);
        };
        ChatTemplate::new(&source, tokenizer.bos_name(), tokenizer.eos_name())
            .map(Some)
            .map_err(|error| self.wrong(GgufError::invalid("the chat template", error.to_string())))
    }

    fn wrong(&self, source: GgufError) -> EngineError {
        EngineError::Model {
            path: self.path.clone(),
            source,
        }
    }
}

impl Source for Folder {
    fn find(&self, name: &str) -> Result<Option<Stored<'_>>, GgufError> {
        if name == "output.weight" {
            // A tied model may have the output matrix stored all the same; it is not used.
            if self.tied {
                return Ok(None);
            }
            if !self.tensors.contains_key("lm_head.weight") {
                return Err(GgufError::invalid(
                    "tensor `lm_head.weight`",
                    "is missing, and `tie_word_embeddings` is not true; download the folder again",
                ));
            }
        }
        let Some(entry) = stored_name(name).and_then(|name| self.tensors.get(&name)) else {
            return Ok(None);
        };
        let kind = entry
            .kind()
            .map_err(|problem| GgufError::invalid(self.field(name), problem))?;
        Ok(Some(Stored {
            kind,
            dims: entry.dims(),
            bytes: self.shards[entry.shard].bytes(entry),
        }))
    }

    fn field(&self, name: &str) -> String {
        let stored = stored_name(name);
        format!("tensor `{}`", stored.as_deref().unwrap_or(name))
    }

    fn rope_factors(&self) -> Option<Vec<f32>> {
        self.rope_factors.clone()
    }

    fn unused(&self, used: &BTreeSet<String>) -> Option<String> {
        let used: BTreeSet<String> = used.iter().filter_map(|name| stored_name(name)).collect();
        let known = |name: &String| {
            // What follows from the sizes, and an output matrix that a tied model stores all the
            // same.
            name.ends_with(".rotary_emb.inv_freq") || (self.tied && name == "lm_head.weight")
        };
        let mut names = self.tensors.keys();
        let found = names.find(|name| !used.contains(*name) && !known(name));
        found.map(|name| format!("tensor `{name}`"))
    }
}

/// Which file each tensor is in, after the index: plain names of files in the folder only.
fn places(index: &Value) -> Result<BTreeMap<String, String>, GgufError> {
    let Some(Value::Object(map)) = index.get("weight_map") else {
        return Err(GgufError::invalid(
            format!("`weight_map` in `{INDEX}`"),
            "not a map of tensors to files; download the folder again",
        ));
    };
    let place = |(tensor, file): (&String, &Value)| match file.as_str() {
        Some(file) if is_plain_name(file) => Ok((tensor.clone(), file.to_owned())),
        _ => {
            let problem = format!(
                "`{}` is not the name of a .safetensors file in the folder",
                file.as_str().unwrap_or("what stands there").escape_debug()
            );
            Err(GgufError::invalid(
                format!("`{}` in `{INDEX}`", tensor.escape_debug()),
                problem,
            ))
        }
    };
    map.iter().map(place).collect()
}

/// Whether a name is one of a file in the folder itself, on any system.
fn is_plain_name(name: &str) -> bool {
    let odd = |character: char| character.is_control() || "/\\:*?\"<>|".contains(character);
    name.ends_with(".safetensors") && !name.starts_with('.') && !name.contains(odd)
}

/// Reads a text file of the folder.
pub(crate) fn read(folder: &Path, name: &str) -> Result<Vec<u8>, EngineError> {
    let path = folder.join(name);
    let open = |source| EngineError::Open {
        path: path.clone(),
        source,
    };
    // A device or a pipe could give bytes for ever.
    if !std::fs::metadata(&path).map_err(open)?.is_file() {
        let problem = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
        return Err(open(problem));
    }
    #[expect(clippy::disallowed_methods, reason = "a model, not a person's file")]
    let file = std::fs::File::open(&path).map_err(open)?;
    let mut bytes = Vec::new();
    file.take(MAX_TEXT + 1)
        .read_to_end(&mut bytes)
        .map_err(open)?;
    if bytes.len() as u64 > MAX_TEXT {
        return Err(EngineError::Model {
            source: GgufError::TooLarge {
                field: format!("the size of `{name}`"),
                found: bytes.len() as u64,
                limit: MAX_TEXT,
            },
            path,
        });
    }
    Ok(bytes)
}

fn json(folder: &Path, name: &str) -> Result<Value, EngineError> {
    let bytes = read(folder, name)?;
    serde_json::from_slice(&bytes).map_err(|error| EngineError::Model {
        path: folder.join(name),
        source: GgufError::invalid(
            format!("`{name}`"),
            format!("not valid JSON: {error}; download it again"),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_in_the_folder_are_plain() {
        for (name, plain) in [
            ("model.safetensors", true),
            ("model-00001-of-00002.safetensors", true),
            ("../model.safetensors", false),
            ("/etc/model.safetensors", false),
            ("a/model.safetensors", false),
            ("a\\model.safetensors", false),
            ("C:model.safetensors", false),
            ("..safetensors", false),
            (".safetensors", false),
            ("a\0.safetensors", false),
            ("model.bin", false),
            ("", false),
        ] {
            assert_eq!(is_plain_name(name), plain, "{name:?}");
        }
    }
}
