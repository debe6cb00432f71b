use std::collections::BTreeSet;

use super::Config;
use super::source::Source;
use crate::arena::{Arena, Order, Packing, floats};
use crate::gguf::GgufError;
use crate::kernels::Matrix;
use crate::pool::Pool;

/// Where each matrix of the model lies in the arena of packed weights.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) embedding: Matrix,
    pub(crate) output: Matrix,
    /// Where the output norm lies among the vectors.
    pub(crate) output_norm: usize,
    pub(crate) layers: Vec<Layer>,
}

/// The matrices of one layer, and where its vectors lie among all.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) query: Matrix,
    pub(crate) key: Matrix,
    pub(crate) value: Matrix,
    pub(crate) attention_out: Matrix,
    pub(crate) gate: Matrix,
    pub(crate) up: Matrix,
    pub(crate) down: Matrix,
    pub(crate) attention_norm: usize,
    pub(crate) feed_forward_norm: usize,
    /// Norms of what attention and feed-forward network give.
    pub(crate) post_norms: Option<[usize; 2]>,
    /// Norms of each head's query and key.
    pub(crate) head_norms: Option<[usize; 2]>,
    /// What is added to queries, keys and values.
    pub(crate) biases: Option<[usize; 3]>,
}

/// Packed weights as they are read from the file.
pub(crate) struct Weights {
    pub(crate) layout: Layout,
    pub(crate) arena: Arena,
    /// Norms and biases, one after another.
    pub(crate) vectors: Vec<f32>,
    /// What the rotation of each pair is divided by, if the file says so.
    pub(crate) rope_factors: Option<Vec<f32>>,
}

impl Weights {
    /// Reads and packs all tensors of the model.
    pub(crate) fn read(
        file: &dyn Source,
        config: &Config,
        pool: &mut Pool,
        told: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Self, GgufError> {
        let mut plan = Plan {
            file,
            packing: Packing::default(),
            vectors: Vec::new(),
            used: BTreeSet::new(),
        };
        let width = config.width;
        let layers = (0..config.layers).map(|index| plan.layer(config, index));
        let layers = layers.collect::<Result<Vec<_>, _>>()?;
        let output_norm = plan.vector("output_norm.weight", width, Order::Kept)?;
        let embedding = plan.matrix("token_embd.weight", config.vocab, width, Order::Kept)?;
        // Without an output matrix of its own the model uses the embedding's.
        let output = match file.find("output.weight")? {
            Some(_) => plan.matrix("output.weight", config.vocab, width, Order::Kept)?,
            None => embedding,
        };
        let rope_factors = match file.find("rope_freqs.weight")? {
            Some(_) => Some(vector(file, "rope_freqs.weight", config.rotated / 2)?),
            None => file.rope_factors(),
        };
        plan.used.insert("rope_freqs.weight".to_owned());
        // A weight that is not used would be a model that is not the file's.
        if let Some(field) = file.unused(&plan.used) {
            let problem = "is of a kind of model that this engine does not run";
            return Err(GgufError::invalid(field, problem));
        }
        let layout = Layout {
            embedding,
            output,
            output_norm,
            layers,
        };
        Ok(Self {
            layout,
            arena: plan.packing.pack(pool, told),
            vectors: plan.vectors,
            rope_factors,
        })
    }
}

struct Plan<'a> {
    file: &'a dyn Source,
    packing: Packing<'a>,
    vectors: Vec<f32>,
    used: BTreeSet<String>,
}

impl Plan<'_> {
    fn layer(&mut self, config: &Config, index: usize) -> Result<Layer, GgufError> {
        let name = |part: &str| format!("blk.{index}.{part}.weight");
        let (width, hidden, head_len) = (config.width, config.hidden, config.head_len);
        let queries = config.heads * head_len;
        let keys = config.kv_heads * head_len;
        let heads = if config.rope.halves {
            Order::Paired {
                head_len,
                rotated: config.rotated,
            }
        } else {
            Order::Kept
        };
        let post = ["post_attention_norm", "post_ffw_norm"].map(name);
        let normed = ["attn_q_norm", "attn_k_norm"].map(name);
        let biased = ["attn_q", "attn_k", "attn_v"].map(|part| format!("blk.{index}.{part}.bias"));
        let biased_as = [(queries, heads), (keys, heads), (keys, Order::Kept)];
        Ok(Layer {
            query: self.matrix(&name("attn_q"), queries, width, heads)?,
            key: self.matrix(&name("attn_k"), keys, width, heads)?,
            value: self.matrix(&name("attn_v"), keys, width, Order::Kept)?,
            attention_out: self.matrix(&name("attn_output"), width, queries, Order::Kept)?,
            gate: self.matrix(&name("ffn_gate"), hidden, width, Order::Kept)?,
            up: self.matrix(&name("ffn_up"), hidden, width, Order::Kept)?,
            down: self.matrix(&name("ffn_down"), width, hidden, Order::Kept)?,
            attention_norm: self.vector(&name("attn_norm"), width, Order::Kept)?,
            feed_forward_norm: self.vector(&name("ffn_norm"), width, Order::Kept)?,
            post_norms: self.vectors(&post, &[(width, Order::Kept); 2])?,
            head_norms: self.vectors(&normed, &[(head_len, heads); 2])?,
            biases: self.vectors(&biased, &biased_as)?,
        })
    }

    /// Reads a vector; where it lies among all.
    fn vector(&mut self, name: &str, len: usize, order: Order) -> Result<usize, GgufError> {
        let values = vector(self.file, name, len)?;
        let at = self.vectors.len();
        self.vectors
            .extend((0..len).map(|index| values[order.source(index)]));
        self.used.insert(name.to_owned());
        Ok(at)
    }

    /// Vectors that a file has all or none of.
    fn vectors<const N: usize>(
        &mut self,
        names: &[String; N],
        shapes: &[(usize, Order); N],
    ) -> Result<Option<[usize; N]>, GgufError> {
        let mut found = false;
        for name in names {
            found |= self.file.find(name)?.is_some();
        }
        if !found {
            return Ok(None);
        }
        let mut at = [0; N];
        for ((at, name), &(len, order)) in at.iter_mut().zip(names).zip(shapes) {
            *at = self.vector(name, len, order)?;
        }
        Ok(Some(at))
    }

    /// Plans a matrix of `rows` outputs and `cols` inputs.
    fn matrix(
        &mut self,
        name: &str,
        rows: usize,
        cols: usize,
        order: Order,
    ) -> Result<Matrix, GgufError> {
        let stored = self.file.shaped(name, &[cols, rows])?;
        let matrix = self
            .packing
            .add(stored.kind, (rows, cols), order, stored.bytes);
        self.used.insert(name.to_owned());
        Ok(matrix)
    }
}

/// A vector of floats, which norms are in every file.
fn vector(file: &dyn Source, name: &str, len: usize) -> Result<Vec<f32>, GgufError> {
    let stored = file.shaped(name, &[len])?;
    floats(stored.kind, stored.bytes)
        .ok_or_else(|| GgufError::invalid(file.field(name), "a vector must be F32, F16 or BF16"))
}
