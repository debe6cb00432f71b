use crate::gguf::{Gguf, GgufError};
use crate::kv::KvShape;

const ARCHITECTURE: &str = "llama";

/// Sizes beyond these are not of any model this engine could run, and keep products in range.
const MAX_LAYERS: u32 = 1024;
const MAX_WIDTH: u32 = 1 << 20;
const MAX_CONTEXT: u32 = 1 << 24;

/// The hyperparameters of a Llama model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    pub(crate) layers: usize,
    /// The model's own context length, in tokens.
    pub(crate) context: usize,
    pub(crate) width: usize,
    pub(crate) hidden: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_len: usize,
    /// Leading elements of a head that are rotated by position.
    pub(crate) rotated: usize,
    pub(crate) rope_base: f32,
    pub(crate) epsilon: f32,
    pub(crate) vocab: usize,
}

impl Config {
    pub(crate) fn read(file: &Gguf) -> Result<Self, GgufError> {
        let architecture = file.str("general.architecture")?;
        if architecture != ARCHITECTURE {
            return Err(GgufError::Architecture {
                found: architecture.to_owned(),
            });
        }
        refuse_scaled_rope(file)?;
        let size = |key: &str, limit| sized(key, file.u32(key)?, limit);
        let width = size("llama.embedding_length", MAX_WIDTH)?;
        let heads = size("llama.attention.head_count", MAX_WIDTH)?;
        let kv_heads = match file.find_u32("llama.attention.head_count_kv")? {
            None => heads,
            Some(found) => sized("llama.attention.head_count_kv", found, MAX_WIDTH)?,
        };
        if heads % kv_heads != 0 {
            let problem = format!("{heads} heads cannot share `{kv_heads}` KV heads evenly");
            return Err(GgufError::invalid(
                "`llama.attention.head_count_kv`",
                problem,
            ));
        }
        let head_len = head_len(file, width, heads)?;
        let rotated = match file.find_u32("llama.rope.dimension_count")? {
            None => head_len,
            Some(found) => found as usize,
        };
        if rotated > head_len || rotated % 16 != 0 {
            let problem = format!("`{rotated}` is not a multiple of 16 up to {head_len}");
            return Err(GgufError::invalid("`llama.rope.dimension_count`", problem));
        }
        let vocab = match file.tensor("token_embd.weight")?.dims[..] {
            [columns, rows] if columns == width => rows,
            ref dims => {
                let problem = format!("is {dims:?}, not [{width}, vocabulary]");
                return Err(GgufError::invalid("tensor `token_embd.weight`", problem));
            }
        };
        Ok(Self {
            layers: size("llama.block_count", MAX_LAYERS)?,
            context: size("llama.context_length", MAX_CONTEXT)?,
            width,
            hidden: size("llama.feed_forward_length", MAX_WIDTH)?,
            heads,
            kv_heads,
            head_len,
            rotated,
            rope_base: file.find_f32("llama.rope.freq_base")?.unwrap_or(10_000.0),
            epsilon: file.f32("llama.attention.layer_norm_rms_epsilon")?,
            vocab,
        })
    }

    pub(crate) fn kv_shape(&self) -> KvShape {
        KvShape {
            layers: self.layers,
            heads: self.kv_heads,
            head_len: self.head_len,
        }
    }

    /// Query heads that share a KV head.
    pub(crate) fn group(&self) -> usize {
        self.heads / self.kv_heads
    }
}

fn sized(key: &str, found: u32, limit: u32) -> Result<usize, GgufError> {
    match found {
        0 => Err(GgufError::invalid(format!("`{key}`"), "must not be zero")),
        found if found > limit => Err(GgufError::TooLarge {
            field: format!("`{key}`"),
            found: found.into(),
            limit: limit.into(),
        }),
        found => Ok(found as usize),
    }
}

fn head_len(file: &Gguf, width: usize, heads: usize) -> Result<usize, GgufError> {
    let key = "llama.attention.key_length";
    let head_len = match file.find_u32(key)? {
        Some(found) => found as usize,
        None if width.is_multiple_of(heads) => width / heads,
        None => {
            let problem = format!("a width of {width} cannot be split into `{heads}` heads");
            return Err(GgufError::invalid("`llama.attention.head_count`", problem));
        }
    };
    if head_len == 0 || head_len % 16 != 0 || head_len > 512 {
        let problem = format!("heads of `{head_len}`: multiples of 16 up to 512 are supported");
        return Err(GgufError::invalid("`llama.attention.head_count`", problem));
    }
    if file
        .find_u32("llama.attention.value_length")?
        .is_some_and(|v| v as usize != head_len)
    {
        let problem = format!("differs from the key length {head_len}, which is not supported");
        return Err(GgufError::invalid(
            "`llama.attention.value_length`",
            problem,
        ));
    }
    Ok(head_len)
}

fn refuse_scaled_rope(file: &Gguf) -> Result<(), GgufError> {
    match file.find_str("llama.rope.scaling.type")? {
        None | Some("none") => Ok(()),
        Some(found) => {
            let problem = format!("scaling `{found}` is not supported");
            Err(GgufError::invalid("`llama.rope.scaling.type`", problem))
        }
    }
}
