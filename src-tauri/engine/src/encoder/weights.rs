//! The weights of an encoder, packed for the kernels.

use super::config::EncoderConfig;
use crate::arena::{self, Arena, Order, Packing};
use crate::gguf::{GgufError, TensorType};
use crate::kernels::Matrix;
use crate::pool::Pool;

/// A tensor as a file has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored<'a> {
    pub(super) kind: TensorType,
    /// Elements in all.
    pub(super) elements: usize,
    pub(super) bytes: &'a [u8],
}

/// What a tensor is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Words,
    Positions,
    Types,
    EmbeddingNorm,
    Query(usize),
    Key(usize),
    Value(usize),
    AttentionOut(usize),
    AttentionNorm(usize),
    Up(usize),
    Down(usize),
    OutputNorm(usize),
}

/// Where tensors are read from.
pub(super) trait Tensors: Sync {
    /// A part's weight.
    fn weight(&self, part: Part) -> Result<Stored<'_>, GgufError>;

    /// A part's bias.
    fn bias(&self, part: Part) -> Result<Stored<'_>, GgufError>;
}

/// A matrix and where its bias lies among the vectors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Linear {
    pub(super) matrix: Matrix,
    pub(super) bias: usize,
}

/// Where a norm's weight and bias lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Norm {
    pub(super) weight: usize,
    pub(super) bias: usize,
}

#[derive(Debug)]
pub(super) struct Layer {
    pub(super) query: Linear,
    pub(super) key: Linear,
    pub(super) value: Linear,
    pub(super) attention_out: Linear,
    pub(super) attention_norm: Norm,
    pub(super) up: Linear,
    pub(super) down: Linear,
    pub(super) output_norm: Norm,
}

#[derive(Debug)]
pub(super) struct Layout {
    pub(super) words: Matrix,
    /// Where the positions' rows lie among the vectors; the first token's type is added to each.
    pub(super) positions: usize,
    pub(super) norm: Norm,
    pub(super) layers: Vec<Layer>,
}

pub(super) struct Weights {
    pub(super) layout: Layout,
    pub(super) arena: Arena,
    pub(super) vectors: Vec<f32>,
}

impl Weights {
    pub(super) fn read(
        tensors: &impl Tensors,
        config: &EncoderConfig,
        pool: &mut Pool,
    ) -> Result<Self, GgufError> {
        let mut plan = Plan {
            tensors,
            packing: Packing::default(),
            vectors: Vec::new(),
        };
        let (width, hidden) = (config.width, config.hidden);
        let words = plan.matrix(Part::Words, config.vocab, width)?;
        let rows = config.first_position + config.positions;
        let positions = plan.vector(
            tensors.weight(Part::Positions)?,
            Part::Positions,
            rows * width,
        )?;
        let kind = floats(tensors.weight(Part::Types)?, Part::Types)?;
        let Some(first) = kind.get(..width) else {
            return Err(wrong(Part::Types, kind.len(), width));
        };
        for row in plan.vectors[positions..].chunks_exact_mut(width) {
            for (value, first) in row.iter_mut().zip(first) {
                *value += first;
            }
        }
        let norm = plan.norm(Part::EmbeddingNorm, width)?;
        let layer = |index| {
            Ok(Layer {
                query: plan.linear(Part::Query(index), width, width)?,
                key: plan.linear(Part::Key(index), width, width)?,
                value: plan.linear(Part::Value(index), width, width)?,
                attention_out: plan.linear(Part::AttentionOut(index), width, width)?,
                attention_norm: plan.norm(Part::AttentionNorm(index), width)?,
                up: plan.linear(Part::Up(index), hidden, width)?,
                down: plan.linear(Part::Down(index), width, hidden)?,
                output_norm: plan.norm(Part::OutputNorm(index), width)?,
            })
        };
        let layers = (0..config.layers)
            .map(layer)
            .collect::<Result<_, GgufError>>()?;
        Ok(Self {
            layout: Layout {
                words,
                positions,
                norm,
                layers,
            },
            arena: plan.packing.pack(pool, &|_, _| ()),
            vectors: plan.vectors,
        })
    }
}

struct Plan<'a, T> {
    tensors: &'a T,
    packing: Packing<'a>,
    vectors: Vec<f32>,
}

impl<'a, T: Tensors> Plan<'a, T> {
    fn matrix(&mut self, part: Part, rows: usize, cols: usize) -> Result<Matrix, GgufError> {
        let stored = self.tensors.weight(part)?;
        if stored.elements != rows * cols {
            return Err(wrong(part, stored.elements, rows * cols));
        }
        if !cols.is_multiple_of(stored.kind.block_len()) {
            let problem = format!("rows of {cols} elements do not fill blocks");
            return Err(GgufError::invalid(name(part), problem));
        }
        let size = rows * cols / stored.kind.block_len() * stored.kind.block_bytes();
        let Some(bytes) = stored.bytes.get(..size) else {
            return Err(GgufError::CutShort {
                field: name(part),
                needed: size as u64,
                offset: 0,
                size: stored.bytes.len() as u64,
            });
        };
        let shape = (rows, cols);
        Ok(self.packing.add(stored.kind, shape, Order::Kept, bytes))
    }

    fn linear(&mut self, part: Part, rows: usize, cols: usize) -> Result<Linear, GgufError> {
        Ok(Linear {
            matrix: self.matrix(part, rows, cols)?,
            bias: self.vector(self.tensors.bias(part)?, part, rows)?,
        })
    }

    fn norm(&mut self, part: Part, width: usize) -> Result<Norm, GgufError> {
        Ok(Norm {
            weight: self.vector(self.tensors.weight(part)?, part, width)?,
            bias: self.vector(self.tensors.bias(part)?, part, width)?,
        })
    }

    /// Reads floats, of which there may be more; where they lie among the vectors.
    fn vector(&mut self, stored: Stored<'_>, part: Part, len: usize) -> Result<usize, GgufError> {
        let values = floats(stored, part)?;
        let Some(values) = values.get(..len) else {
            return Err(wrong(part, values.len(), len));
        };
        let at = self.vectors.len();
        self.vectors.extend_from_slice(values);
        Ok(at)
    }
}

fn name(part: Part) -> String {
    format!("tensor `{part:?}`")
}

fn wrong(part: Part, found: usize, wanted: usize) -> GgufError {
    GgufError::invalid(name(part), format!("has {found} elements, not {wanted}"))
}

fn floats(stored: Stored<'_>, part: Part) -> Result<Vec<f32>, GgufError> {
    arena::floats(stored.kind, stored.bytes)
        .ok_or_else(|| GgufError::invalid(name(part), "a vector must be of floats"))
}
