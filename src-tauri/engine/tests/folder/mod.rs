//! Writes folders of safetensors.

use std::collections::BTreeMap;

use burn::tensor::{bf16, f16};
use serde_json::{Value, json};
use steward_engine::{Engine, EngineError, LoadOptions};

use crate::tiny::{Field, File};

const HEAD_LEN: usize = 16;

/// How the weights of a folder are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dtype {
    F32,
    F16,
    Bf16,
}

/// A tensor of a file of weights: its type, its sizes and its bytes.
#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    pub(crate) dtype: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<u8>,
}

/// The content of a folder.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    pub(crate) texts: BTreeMap<String, Value>,
    pub(crate) tensors: BTreeMap<String, Tensor>,
    /// What stands beside them, and instead of what was written.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl Folder {
    /// The model of `file`, which has F32 tensors.
    pub(crate) fn of(file: &File, dtype: Dtype) -> Self {
        let mut tensors = BTreeMap::new();
        for tensor in &file.tensors {
            let shape: Vec<_> = tensor.dims.iter().rev().map(|&dim| dim as usize).collect();
            let floats = tensor.data.as_chunks::<4>().0;
            let floats: Vec<_> = floats
                .iter()
                .map(|bytes| f32::from_le_bytes(*bytes))
                .collect();
            let rotated = tensor.name.contains("attn_q") || tensor.name.contains("attn_k");
            let cols = floats.len() / shape[0];
            let rows = (0..shape[0]).map(|row| match rotated {
                true => row / HEAD_LEN * HEAD_LEN + row % 8 * 2 + row % HEAD_LEN / 8,
                false => row,
            });
            let data = rows.flat_map(|row| &floats[row * cols..][..cols]);
            let data = data.flat_map(|&value| match dtype {
                Dtype::F32 => value.to_le_bytes().to_vec(),
                Dtype::F16 => f16::from_f32(value).to_le_bytes().to_vec(),
                Dtype::Bf16 => bf16::from_f32(value).to_le_bytes().to_vec(),
            });
            let stored = Tensor {
                dtype: format!("{dtype:?}").to_uppercase(),
                shape,
                data: data.collect(),
            };
            tensors.insert(name(&tensor.name), stored);
        }
        Self {
            texts: texts(file),
            tensors,
            files: BTreeMap::new(),
        }
    }

    /// A text file to be changed.
    pub(crate) fn text(&mut self, file: &str) -> &mut Value {
        self.texts.get_mut(file).unwrap()
    }

    /// Sets a field of the configuration.
    pub(crate) fn config(&mut self, key: &str, value: Value) {
        self.text("config.json")[key] = value;
    }

    /// A tensor to be changed.
    pub(crate) fn tensor(&mut self, name: &str) -> &mut Tensor {
        self.tensors.get_mut(name).unwrap()
    }

    /// Cuts the weights into two files with an index.
    pub(crate) fn cut(&mut self) {
        let mut parts = [BTreeMap::new(), BTreeMap::new()];
        let mut places = serde_json::Map::new();
        for (index, (name, tensor)) in self.tensors.iter().enumerate() {
            let part = index % 2;
            places.insert(name.clone(), json!(part_name(part)));
            parts[part].insert(name.clone(), tensor.clone());
        }
        for (part, tensors) in parts.iter().enumerate() {
            self.files.insert(part_name(part), weights(tensors));
        }
        let index = json!({ "metadata": {}, "weight_map": places });
        self.texts
            .insert("model.safetensors.index.json".to_owned(), index);
        self.tensors.clear();
    }

    /// Writes the folder and loads it.
    pub(crate) fn load(&self) -> Result<Engine, EngineError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tiny-folder");
        std::fs::create_dir(&path).unwrap();
        for (name, value) in &self.texts {
            std::fs::write(path.join(name), value.to_string()).unwrap();
        }
        if !self.tensors.is_empty() {
            std::fs::write(path.join("model.safetensors"), weights(&self.tensors)).unwrap();
        }
        for (name, bytes) in &self.files {
            std::fs::write(path.join(name), bytes).unwrap();
        }
        let options = LoadOptions {
            threads: Some(1),
            ..LoadOptions::default()
        };
        Engine::load(&path, &options)
    }
}

/// The name of one of two files of weights.
pub(crate) fn part_name(part: usize) -> String {
    format!("model-0000{}-of-00002.safetensors", part + 1)
}

/// A file of weights.
pub(crate) fn weights(tensors: &BTreeMap<String, Tensor>) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut data = Vec::new();
    for (name, tensor) in tensors {
        let start = data.len();
        data.extend(&tensor.data);
        let entry = json!({
            "dtype": tensor.dtype,
            "shape": tensor.shape,
            "data_offsets": [start, data.len()],
        });
        header.insert(name.clone(), entry);
    }
    with_header(&Value::Object(header).to_string(), &data)
}

/// A file of weights with any header.
pub(crate) fn with_header(header: &str, data: &[u8]) -> Vec<u8> {
    let mut out = (header.len() as u64).to_le_bytes().to_vec();
    out.extend(header.bytes());
    out.extend(data);
    out
}

/// What transformers calls a tensor of a GGUF file.
fn name(gguf: &str) -> String {
    let mut name = format!("model.{gguf}");
    for (from, to) in [
        ("token_embd", "embed_tokens"),
        ("output_norm", "norm"),
        ("blk.", "layers."),
        ("attn_norm", "input_layernorm"),
        ("ffn_norm", "post_attention_layernorm"),
        ("attn_q", "self_attn.q_proj"),
        ("attn_k", "self_attn.k_proj"),
        ("attn_v", "self_attn.v_proj"),
        ("attn_output", "self_attn.o_proj"),
        ("ffn_gate", "mlp.gate_proj"),
        ("ffn_up", "mlp.up_proj"),
        ("ffn_down", "mlp.down_proj"),
    ] {
        name = name.replace(from, to);
    }
    name
}

fn texts(file: &File) -> BTreeMap<String, Value> {
    let config = json!({
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "rope_scaling": null,
        "attention_bias": false,
        "tie_word_embeddings": true,
        "vocab_size": 258,
        "eos_token_id": 257,
    });
    let names = file.metadata.iter().find_map(|(key, field)| match field {
        Field::Texts(names) if key == "tokenizer.ggml.tokens" => Some(names),
        _ => None,
    });
    let names = names.unwrap();
    let vocab: serde_json::Map<_, _> = (0..256).map(|id| (names[id].clone(), json!(id))).collect();
    let special = |id: usize| {
        json!({
            "id": id, "content": names[id], "special": true, "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false,
        })
    };
    let tokenizer = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [special(256), special(257)],
        "normalizer": null,
        "pre_tokenizer": { "type": "Sequence", "pretokenizers": [
            { "type": "Digits", "individual_digits": true },
            { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
        ] },
        "post_processor": null,
        "decoder": { "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true },
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "vocab": vocab, "merges": [],
        },
    });
    BTreeMap::from([
        ("config.json".to_owned(), config),
        ("tokenizer.json".to_owned(), tokenizer),
    ])
}
