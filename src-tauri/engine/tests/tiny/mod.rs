//! Writes small GGUF files: a Llama of two layers over a vocabulary of bytes.

use burn::tensor::f16;

/// A metadata value.
#[derive(Debug, Clone)]
pub(crate) enum Field {
    U32(u32),
    F32(f32),
    Text(String),
    Texts(Vec<String>),
    I32s(Vec<i32>),
}

/// How a tensor's elements are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    F32 = 0,
    F16 = 1,
    Q4_0 = 2,
    Q4_1 = 3,
    Q8_0 = 8,
}

/// A tensor: its sizes, the fastest-running first, its type number and its bytes.
#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) dims: Vec<u64>,
    pub(crate) kind: u32,
    pub(crate) data: Vec<u8>,
}

/// The content of a file.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) version: u32,
    pub(crate) metadata: Vec<(String, Field)>,
    pub(crate) tensors: Vec<Tensor>,
}

const WIDTH: u64 = 64;
const HIDDEN: u64 = 96;
const VOCAB: u64 = 258;

impl File {
    /// A valid model whose matrices are stored as `kind`. `grain` rounds all weights first, so that
    /// kinds which can hold the rounded values exactly make equal models.
    pub(crate) fn new(kind: Kind, grain: Grain) -> Self {
        let mut names: Vec<String> = (0..=255u8).map(character).collect();
        names.extend(["<|im_start|>".to_owned(), "<|im_end|>".to_owned()]);
        let mut kinds = vec![1; 256];
        kinds.extend([3, 3]);
        let text = |value: &str| Field::Text(value.to_owned());
        let metadata = [
            ("general.architecture", text("llama")),
            ("general.name", text("tiny")),
            ("llama.block_count", Field::U32(2)),
            ("llama.context_length", Field::U32(256)),
            ("llama.embedding_length", Field::U32(WIDTH as u32)),
            ("llama.feed_forward_length", Field::U32(HIDDEN as u32)),
            ("llama.attention.head_count", Field::U32(4)),
            ("llama.attention.head_count_kv", Field::U32(2)),
            ("llama.attention.layer_norm_rms_epsilon", Field::F32(1e-5)),
            ("tokenizer.ggml.model", text("gpt2")),
            ("tokenizer.ggml.pre", text("smollm")),
            ("tokenizer.ggml.tokens", Field::Texts(names)),
            ("tokenizer.ggml.token_type", Field::I32s(kinds)),
            ("tokenizer.ggml.merges", Field::Texts(Vec::new())),
            ("tokenizer.ggml.eos_token_id", Field::U32(257)),
        ];
        let mut random = 1u64;
        let mut matrix = |name: &str, cols: u64, rows: u64| Tensor {
            name: format!("{name}.weight"),
            dims: vec![cols, rows],
            kind: kind as u32,
            data: store(kind, grain, &weights(&mut random, (cols * rows) as usize)),
        };
        let mut tensors = vec![matrix("token_embd", WIDTH, VOCAB)];
        for layer in 0..2 {
            for (part, cols, rows) in [
                ("attn_q", WIDTH, WIDTH),
                ("attn_k", WIDTH, WIDTH / 2),
                ("attn_v", WIDTH, WIDTH / 2),
                ("attn_output", WIDTH, WIDTH),
                ("ffn_gate", WIDTH, HIDDEN),
                ("ffn_up", WIDTH, HIDDEN),
                ("ffn_down", HIDDEN, WIDTH),
            ] {
                tensors.push(matrix(&format!("blk.{layer}.{part}"), cols, rows));
            }
        }
        let norms = [
            "blk.0.attn_norm",
            "blk.0.ffn_norm",
            "blk.1.attn_norm",
            "blk.1.ffn_norm",
        ];
        for name in norms.into_iter().chain(["output_norm"]) {
            tensors.push(Tensor {
                name: format!("{name}.weight"),
                dims: vec![WIDTH],
                kind: Kind::F32 as u32,
                data: (0..WIDTH).flat_map(|_| 1f32.to_le_bytes()).collect(),
            });
        }
        let metadata = metadata
            .map(|(key, field)| (key.to_owned(), field))
            .to_vec();
        Self {
            version: 3,
            metadata,
            tensors,
        }
    }

    /// Sets or adds a metadata field.
    pub(crate) fn set(&mut self, key: &str, field: Field) -> &mut Self {
        self.remove(key);
        self.metadata.push((key.to_owned(), field));
        self
    }

    /// Takes a metadata field away.
    pub(crate) fn remove(&mut self, key: &str) -> &mut Self {
        self.metadata.retain(|(other, _)| other != key);
        self
    }

    /// A tensor to be changed.
    pub(crate) fn tensor(&mut self, name: &str) -> &mut Tensor {
        self.tensors
            .iter_mut()
            .find(|tensor| tensor.name == name)
            .expect("the tensor is there")
    }

    /// The file's bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, field) in &self.metadata {
            put_text(&mut out, key);
            put_field(&mut out, field);
        }
        let mut data = Vec::new();
        for tensor in &self.tensors {
            put_text(&mut out, &tensor.name);
            out.extend((tensor.dims.len() as u32).to_le_bytes());
            tensor
                .dims
                .iter()
                .for_each(|dim| out.extend(dim.to_le_bytes()));
            out.extend(tensor.kind.to_le_bytes());
            out.extend((data.len() as u64).to_le_bytes());
            data.extend(&tensor.data);
            data.resize(data.len().next_multiple_of(32), 0);
        }
        out.resize(out.len().next_multiple_of(32), 0);
        out.extend(data);
        out
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.bytes());
}

fn put_field(out: &mut Vec<u8>, field: &Field) {
    let mut kind = |number: u32| out.extend(number.to_le_bytes());
    match field {
        Field::U32(value) => {
            kind(4);
            out.extend(value.to_le_bytes());
        }
        Field::F32(value) => {
            kind(6);
            out.extend(value.to_le_bytes());
        }
        Field::Text(text) => {
            kind(8);
            put_text(out, text);
        }
        Field::Texts(texts) => {
            kind(9);
            kind(8);
            out.extend((texts.len() as u64).to_le_bytes());
            texts.iter().for_each(|text| put_text(out, text));
        }
        Field::I32s(values) => {
            kind(9);
            kind(5);
            out.extend((values.len() as u64).to_le_bytes());
            values
                .iter()
                .for_each(|value| out.extend(value.to_le_bytes()));
        }
    }
}

/// The character that a byte is written as in a byte-level vocabulary.
fn character(byte: u8) -> String {
    let code = match byte {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => u32::from(byte),
        0..=0x20 => 0x100 + u32::from(byte),
        0x7f..=0xa0 => 0x121 + u32::from(byte) - 0x7f,
        0xad => 0x143,
    };
    char::from_u32(code).expect("a character").to_string()
}

fn weights(random: &mut u64, count: usize) -> Vec<f32> {
    noise(random, count)
        .iter()
        .map(|value| value * 0.6)
        .collect()
}

/// Numbers between -0.5 and 0.5.
pub(crate) fn noise(random: &mut u64, count: usize) -> Vec<f32> {
    (0..count)
        .map(|_| {
            *random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (*random >> 33) as f32 / 2f32.powi(31) - 0.5
        })
        .collect()
}

/// What weights are rounded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grain {
    /// Sixteen levels, which Q4_0 and everything finer hold exactly.
    Four,
    /// 255 levels, which Q8_0 and everything finer hold exactly.
    Eight,
}

/// Writes weights as blocks of 32 with a fixed scale, or as floats.
fn store(kind: Kind, grain: Grain, weights: &[f32]) -> Vec<u8> {
    // Powers of two, so that products with small integers are exact in half precision.
    let (scale, limit) = match grain {
        Grain::Four => (1.0 / 16.0, 7.0),
        Grain::Eight => (1.0 / 256.0, 127.0),
    };
    let levels: Vec<f32> = weights
        .iter()
        .map(|weight| (weight / scale).round().clamp(-limit, limit))
        .collect();
    let half = |value: f32| f16::from_f32(value).to_le_bytes();
    let mut out = Vec::new();
    for block in levels.chunks(32) {
        let nibbles =
            || (0..16).map(|i| (block[i] as i8 + 8) as u8 | ((block[i + 16] as i8 + 8) as u8) << 4);
        match kind {
            Kind::F32 => out.extend(block.iter().flat_map(|level| (level * scale).to_le_bytes())),
            Kind::F16 => out.extend(block.iter().flat_map(|level| half(level * scale))),
            Kind::Q8_0 => {
                out.extend(half(scale));
                out.extend(block.iter().map(|level| *level as i8 as u8));
            }
            Kind::Q4_0 => {
                out.extend(half(scale));
                out.extend(nibbles());
            }
            Kind::Q4_1 => {
                out.extend(half(scale));
                out.extend(half(-8.0 * scale));
                out.extend(nibbles());
            }
        }
    }
    out
}
