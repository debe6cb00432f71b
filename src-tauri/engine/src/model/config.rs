use crate::gguf::{Gguf, GgufError};
use crate::kv::{KvFormat, KvShape};

/// Sizes beyond these are not of any model this engine could run, and keep products in range.
pub(crate) const MAX_LAYERS: u32 = 1024;
pub(crate) const MAX_WIDTH: u32 = 1 << 20;
pub(crate) const MAX_CONTEXT: u32 = 1 << 24;

/// Gemma 3's layers that see a window: all but each sixth.
const WINDOW_PERIOD: usize = 6;
/// Layers of the one Gemma 3 that scales its queries otherwise.
const GEMMA_27B_LAYERS: usize = 62;

/// The hyperparameters of a decoder.
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
    pub(crate) rope: Rope,
    pub(crate) epsilon: f32,
    pub(crate) vocab: usize,
    /// What queries are multiplied by.
    pub(crate) query_scale: f32,
    /// What embeddings are multiplied by.
    pub(crate) embedding_scale: Option<f32>,
    pub(crate) activation: Activation,
    pub(crate) window: Option<Window>,
}

/// How positions rotate the elements of a head.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rope {
    pub(crate) base: f32,
    /// What positions are divided by ("position interpolation", Chen et al. 2023).
    pub(crate) factor: f32,
    /// Whether the file has the elements of a pair half the rotated ones apart ("NeoX"), and not
    /// side by side.
    pub(crate) halves: bool,
}

/// What gates a feed-forward network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    /// `x * sigmoid(x)`.
    Silu,
    /// GELU in its approximation by a hyperbolic tangent.
    Gelu,
}

/// Layers that see only the last positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Window {
    /// Positions they see, the token's own included.
    pub(crate) positions: usize,
    /// One layer of so many sees all, the last of each.
    pub(crate) period: usize,
    /// The base of their rotations, which are not stretched.
    pub(crate) rope_base: f32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    /// Llama and Mistral.
    Llama,
    Qwen,
    Gemma3,
}

impl Family {
    fn of(architecture: &str) -> Result<Self, GgufError> {
        match architecture {
            "llama" => Ok(Self::Llama),
            "qwen2" | "qwen3" => Ok(Self::Qwen),
            "gemma3" => Ok(Self::Gemma3),
            _ => Err(GgufError::Architecture {
                found: architecture.to_owned(),
            }),
        }
    }
}

/// A file's metadata under the architecture's name.
struct Keys<'a> {
    file: &'a Gguf,
    architecture: &'a str,
}

impl Keys<'_> {
    fn name(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    fn invalid(&self, key: &str, problem: impl Into<String>) -> GgufError {
        GgufError::invalid(format!("`{}`", self.name(key)), problem)
    }

    fn find(&self, key: &str) -> Result<Option<u32>, GgufError> {
        self.file.find_u32(&self.name(key))
    }

    fn size(&self, key: &str, limit: u32) -> Result<usize, GgufError> {
        self.sized(key, self.file.u32(&self.name(key))?, limit)
    }

    fn sized(&self, key: &str, found: u32, limit: u32) -> Result<usize, GgufError> {
        sized(&self.name(key), found, limit)
    }

    /// A number above zero.
    fn positive(&self, key: &str) -> Result<Option<f32>, GgufError> {
        match self.file.find_f32(&self.name(key))? {
            Some(found) if found <= 0.0 => {
                Err(self.invalid(key, format!("`{found}` is not above zero")))
            }
            found => Ok(found),
        }
    }

    fn head_len(&self, width: usize, heads: usize) -> Result<usize, GgufError> {
        let head_len = match self.find("attention.key_length")? {
            Some(found) => found as usize,
            None if width.is_multiple_of(heads) => width / heads,
            None => {
                let problem = format!("a width of {width} cannot be split into `{heads}` heads");
                return Err(self.invalid("attention.head_count", problem));
            }
        };
        check_head_len(head_len, &self.name("attention.head_count"))?;
        if self
            .find("attention.value_length")?
            .is_some_and(|found| found as usize != head_len)
        {
            let problem = format!("differs from the key length {head_len}, which is not supported");
            return Err(self.invalid("attention.value_length", problem));
        }
        Ok(head_len)
    }

    fn rope(&self, halves: bool) -> Result<Rope, GgufError> {
        let factor = match self.file.find_str(&self.name("rope.scaling.type"))? {
            None | Some("none") => 1.0,
            Some("linear") => self.positive("rope.scaling.factor")?.unwrap_or(1.0),
            Some(found) => {
                let problem = format!("scaling `{found}` is not supported");
                return Err(self.invalid("rope.scaling.type", problem));
            }
        };
        Ok(Rope {
            base: self.positive("rope.freq_base")?.unwrap_or(10_000.0),
            factor,
            halves,
        })
    }
}

impl Config {
    pub(crate) fn read(file: &Gguf) -> Result<Self, GgufError> {
        let architecture = file.str("general.architecture")?;
        let family = Family::of(architecture)?;
        let keys = Keys { file, architecture };
        let width = keys.size("embedding_length", MAX_WIDTH)?;
        let layers = keys.size("block_count", MAX_LAYERS)?;
        let heads = keys.size("attention.head_count", MAX_WIDTH)?;
        let kv_heads = match keys.find("attention.head_count_kv")? {
            None => heads,
            Some(found) => keys.sized("attention.head_count_kv", found, MAX_WIDTH)?,
        };
        check_shared(heads, kv_heads, &keys.name("attention.head_count_kv"))?;
        let head_len = keys.head_len(width, heads)?;
        let rotated = match keys.find("rope.dimension_count")? {
            None => head_len,
            Some(found) => found as usize,
        };
        if rotated > head_len || rotated % 16 != 0 {
            let problem = format!("`{rotated}` is not a multiple of 16 up to {head_len}");
            return Err(keys.invalid("rope.dimension_count", problem));
        }
        let vocab = match file.tensor("token_embd.weight")?.dims[..] {
            [columns, rows] if columns == width => rows,
            ref dims => {
                let problem = format!("is {dims:?}, not [{width}, vocabulary]");
                return Err(GgufError::invalid("tensor `token_embd.weight`", problem));
            }
        };
        let gemma = family == Family::Gemma3;
        let query_len = if gemma && layers == GEMMA_27B_LAYERS {
            width / heads
        } else {
            head_len
        };
        Ok(Self {
            layers,
            context: keys.size("context_length", MAX_CONTEXT)?,
            width,
            hidden: keys.size("feed_forward_length", MAX_WIDTH)?,
            heads,
            kv_heads,
            head_len,
            rotated,
            rope: keys.rope(family != Family::Llama)?,
            epsilon: file.f32(&keys.name("attention.layer_norm_rms_epsilon"))?,
            vocab,
            query_scale: 1.0 / (query_len as f32).sqrt(),
            embedding_scale: gemma.then(|| (width as f32).sqrt()),
            activation: if gemma {
                Activation::Gelu
            } else {
                Activation::Silu
            },
            window: match keys.find("attention.sliding_window")? {
                Some(found) if gemma => Some(Window {
                    positions: keys.sized("attention.sliding_window", found, MAX_CONTEXT)?,
                    period: WINDOW_PERIOD,
                    rope_base: 10_000.0,
                }),
                _ => None,
            },
        })
    }

    pub(crate) fn kv_shape(&self, format: KvFormat) -> KvShape {
        KvShape {
            layers: self.layers,
            heads: self.kv_heads,
            head_len: self.head_len,
            format,
        }
    }

    /// Query heads that share a KV head.
    pub(crate) fn group(&self) -> usize {
        self.heads / self.kv_heads
    }

    /// What a layer sees besides all, if it does not see all.
    pub(crate) fn window_of(&self, layer: usize) -> Option<Window> {
        self.window
            .filter(|window| !(layer + 1).is_multiple_of(window.period))
    }
}

/// A size that is neither zero nor beyond `limit`.
pub(crate) fn sized(key: &str, found: u32, limit: u32) -> Result<usize, GgufError> {
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

/// Each KV head must serve as many heads as the others.
pub(crate) fn check_shared(heads: usize, kv_heads: usize, key: &str) -> Result<(), GgufError> {
    if heads.is_multiple_of(kv_heads) {
        return Ok(());
    }
    let problem = format!("{heads} heads cannot share `{kv_heads}` KV heads evenly");
    Err(GgufError::invalid(format!("`{key}`"), problem))
}

/// The kernels take heads of whole tiles.
pub(crate) fn check_head_len(head_len: usize, key: &str) -> Result<(), GgufError> {
    if head_len != 0 && head_len.is_multiple_of(16) && head_len <= 512 {
        return Ok(());
    }
    let problem = format!("heads of `{head_len}`: multiples of 16 up to 512 are supported");
    Err(GgufError::invalid(format!("`{key}`"), problem))
}
