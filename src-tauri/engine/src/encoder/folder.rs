//! An encoder as Hugging Face's programs keep it: a folder with `config.json`, `tokenizer.json` and
//! `model.safetensors`.

use std::collections::BTreeMap;
use std::path::Path;

use memmap2::Mmap;
use serde::Deserialize;

use super::config::EncoderConfig;
use super::weights::{Part, Stored};
use crate::folder::{Entry, Shard};
use crate::gguf::GgufError;

#[derive(Deserialize)]
struct Json {
    model_type: String,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    max_position_embeddings: usize,
    vocab_size: usize,
    layer_norm_eps: f32,
    #[serde(default)]
    pad_token_id: Option<usize>,
    #[serde(default)]
    hidden_act: Option<String>,
    #[serde(default)]
    position_embedding_type: Option<String>,
}

/// The sizes of a model, after its `config.json`.
pub(super) fn config(bytes: &[u8]) -> Result<EncoderConfig, GgufError> {
    let json: Json = serde_json::from_slice(bytes)
        .map_err(|e| GgufError::invalid("`config.json`", e.to_string()))?;
    let refuse = |field: &str, found: &str, known: &str| {
        let problem = format!("`{found}` is not supported: this engine knows {known}");
        Err(GgufError::invalid(
            format!("`{field}` in `config.json`"),
            problem,
        ))
    };
    let first_position = match json.model_type.as_str() {
        "bert" => 0,
        // Positions count from after the padding's.
        "roberta" | "xlm-roberta" => json.pad_token_id.unwrap_or(1) + 1,
        other => return refuse("model_type", other, "`bert`, `roberta` and `xlm-roberta`"),
    };
    match json.hidden_act.as_deref() {
        None | Some("gelu") => {}
        Some(other) => return refuse("hidden_act", other, "`gelu`"),
    }
    match json.position_embedding_type.as_deref() {
        None | Some("absolute") => {}
        Some(other) => return refuse("position_embedding_type", other, "`absolute`"),
    }
    EncoderConfig {
        layers: json.num_hidden_layers,
        width: json.hidden_size,
        hidden: json.intermediate_size,
        heads: json.num_attention_heads,
        vocab: json.vocab_size,
        positions: json.max_position_embeddings.saturating_sub(first_position),
        first_position,
        epsilon: json.layer_norm_eps,
    }
    .check()
}

/// Whether texts begin with what they are for: the models of the E5 family were trained so.
pub(super) fn is_marked(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.to_lowercase().contains("e5")
}

pub(super) struct Tensors {
    shard: Shard,
    entries: BTreeMap<String, Entry>,
    /// What all names begin with.
    prefix: String,
}

impl Tensors {
    pub(super) fn read(map: Mmap) -> Result<Self, GgufError> {
        let (shard, entries) = Shard::read(map, "model.safetensors", 0)?;
        let entries: BTreeMap<String, Entry> = entries.into_iter().collect();
        let words = "embeddings.word_embeddings.weight";
        let prefix = entries.keys().find_map(|name| name.strip_suffix(words));
        let Some(prefix) = prefix.map(str::to_owned) else {
            return Err(GgufError::Missing {
                field: format!("tensor `{words}`"),
            });
        };
        Ok(Self {
            shard,
            entries,
            prefix,
        })
    }

    fn get(&self, part: Part, end: &str) -> Result<Stored<'_>, GgufError> {
        let name = format!("{}{}.{end}", self.prefix, named(part));
        let field = || format!("tensor `{name}`");
        let entry = self
            .entries
            .get(&name)
            .ok_or_else(|| GgufError::Missing { field: field() })?;
        Ok(Stored {
            kind: entry
                .kind()
                .map_err(|problem| GgufError::invalid(field(), problem))?,
            elements: usize::try_from(entry.elements()).unwrap_or(usize::MAX),
            bytes: self.shard.bytes(entry),
        })
    }
}

fn named(part: Part) -> String {
    let layer = |index: usize, rest: &str| format!("encoder.layer.{index}.{rest}");
    match part {
        Part::Words => "embeddings.word_embeddings".to_owned(),
        Part::Positions => "embeddings.position_embeddings".to_owned(),
        Part::Types => "embeddings.token_type_embeddings".to_owned(),
        Part::EmbeddingNorm => "embeddings.LayerNorm".to_owned(),
        Part::Query(index) => layer(index, "attention.self.query"),
        Part::Key(index) => layer(index, "attention.self.key"),
        Part::Value(index) => layer(index, "attention.self.value"),
        Part::AttentionOut(index) => layer(index, "attention.output.dense"),
        Part::AttentionNorm(index) => layer(index, "attention.output.LayerNorm"),
        Part::Up(index) => layer(index, "intermediate.dense"),
        Part::Down(index) => layer(index, "output.dense"),
        Part::OutputNorm(index) => layer(index, "output.LayerNorm"),
    }
}

impl super::weights::Tensors for Tensors {
    fn weight(&self, part: Part) -> Result<Stored<'_>, GgufError> {
        self.get(part, "weight")
    }

    fn bias(&self, part: Part) -> Result<Stored<'_>, GgufError> {
        self.get(part, "bias")
    }
}
