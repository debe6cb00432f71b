//! The model behind Burn: weights are tensors on a Burn device, and a step of the model is one
//! custom operation of the backend, coarse enough that the dispatch around it does not count.

use std::sync::Mutex;
use std::sync::PoisonError;

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Dispatch, backend_extension};
use burn::tensor::{DType, Device, Int, Shape, Tensor, TensorData};
use burn_flex::{Flex, FlexTensor};
use sha2::{Digest, Sha256};

use super::Config;
use super::forward::{Runtime, Step};
use super::weights::{Layout, Weights};
use crate::cancel::Cancel;
use crate::error::{EngineError, guard};
use crate::gguf::{Gguf, GgufError};
use crate::kv::KvCache;
use crate::pool::Pool;

/// Which positions of a step logits are wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// The last position only.
    Last,
    /// Every position of the step.
    All,
    /// None: the step only fills the KV cache.
    None,
}

/// The operations that a backend must have to run Llama models.
#[backend_extension(Flex)]
pub(crate) trait LlamaOps: Backend {
    /// Runs `tokens` (`[n]`, i32) through the model and appends to the step's KV cache.
    ///
    /// `weights` is the packed arena (`[bytes]`, u8), `norms` the norm vectors
    /// (`[2 * layers + 1, width]`, f32). Gives logits (`[rows, vocab]`, f32).
    fn llama_step(
        tokens: IntTensor<Self>,
        weights: IntTensor<Self>,
        norms: FloatTensor<Self>,
        step: &mut Step<'_>,
    ) -> FloatTensor<Self>;

    /// SHA-256 (`[32]`, u8) of `len` bytes of the arena from `start`, and of the norms.
    fn llama_digest(
        weights: IntTensor<Self>,
        norms: FloatTensor<Self>,
        start: usize,
        len: usize,
    ) -> IntTensor<Self>;
}

impl LlamaOps for Flex {
    fn llama_step(
        tokens: FlexTensor,
        weights: FlexTensor,
        norms: FlexTensor,
        step: &mut Step<'_>,
    ) -> FlexTensor {
        let logits = step.run(
            tokens.storage::<i32>(),
            weights.bytes(),
            norms.storage::<f32>(),
        );
        let vocab = step.config.vocab;
        let shape = Shape::from(vec![logits.len() / vocab, vocab]);
        FlexTensor::from_data(TensorData::new(logits, shape))
    }

    fn llama_digest(
        weights: FlexTensor,
        norms: FlexTensor,
        start: usize,
        len: usize,
    ) -> FlexTensor {
        let mut hash = Sha256::new();
        hash.update(&weights.bytes()[start..start + len]);
        hash.update(bytemuck::cast_slice(norms.storage::<f32>()));
        FlexTensor::from_data(TensorData::new(hash.finalize().to_vec(), [32]))
    }
}

/// A loaded model on a device.
pub(crate) struct Model {
    pub(crate) config: Config,
    layout: Layout,
    start: usize,
    len: usize,
    rope_factors: Option<Vec<f32>>,
    weights: Tensor<1, Int>,
    norms: Tensor<2>,
    device: Device,
    runtime: Mutex<Runtime>,
}

/// Logits of some positions: `rows` times the vocabulary.
pub(crate) struct Logits {
    data: TensorData,
    vocab: usize,
}

impl Logits {
    /// The logits of one row.
    pub(crate) fn row(&self, index: usize) -> Result<&[f32], EngineError> {
        let data = self
            .data
            .as_slice::<f32>()
            .map_err(|e| EngineError::Internal(e.to_string()))?;
        data.chunks_exact(self.vocab)
            .nth(index)
            .ok_or_else(|| EngineError::Internal(format!("no logits for row {index}")))
    }

    /// Rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.data.shape().num_elements() / self.vocab
    }
}

impl Model {
    /// Packs the file's tensors and puts them on the CPU device.
    pub(crate) fn load(file: &Gguf, config: Config, mut pool: Pool) -> Result<Self, GgufError> {
        let Weights {
            layout,
            arena,
            start,
            len: packed,
            norms,
            rope_factors,
        } = Weights::read(file, &config, &mut pool)?;
        let device = Device::flex();
        let len = arena.len();
        let arena = TensorData::from_bytes_vec(arena, [len], DType::U8);
        let norms = TensorData::new(norms, [2 * config.layers + 1, config.width]);
        Ok(Self {
            weights: Tensor::from_data(arena, (&device, DType::U8)),
            norms: Tensor::from_data(norms, &device),
            runtime: Mutex::new(Runtime::new(pool)),
            config,
            layout,
            start,
            len: packed,
            rope_factors,
            device,
        })
    }

    /// The name of the instruction set that the kernels use.
    pub(crate) fn instructions(&self) -> &'static str {
        self.runtime
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .isa()
            .name()
    }

    /// SHA-256 of the sizes and the weights.
    pub(crate) fn digest(&self) -> Result<[u8; 32], EngineError> {
        let config = &self.config;
        let mut hash = Sha256::new();
        for size in [
            config.layers,
            config.width,
            config.hidden,
            config.heads,
            config.kv_heads,
            config.head_len,
            config.rotated,
            config.vocab,
        ] {
            hash.update((size as u64).to_le_bytes());
        }
        let factors = self.rope_factors.as_deref().unwrap_or_default();
        for value in [config.rope_base, config.epsilon].iter().chain(factors) {
            hash.update(value.to_le_bytes());
        }
        let weights = guard(|| {
            Ok(Dispatch::llama_digest(
                self.weights.clone().into_dispatch(),
                self.norms.clone().into_dispatch(),
                self.start,
                self.len,
            ))
        })?;
        let weights = Tensor::<1, Int>::from_dispatch(weights).into_data();
        let weights = weights.as_slice::<u8>();
        hash.update(weights.map_err(|e| EngineError::Internal(e.to_string()))?);
        Ok(hash.finalize().into())
    }

    /// Runs `tokens`, at most [`STEP_TOKENS`](super::STEP_TOKENS), after what `cache` holds.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`] leaves the cache as it was.
    pub(crate) fn step(
        &self,
        tokens: &[u32],
        cache: &mut KvCache,
        rows: Rows,
        cancel: &Cancel,
    ) -> Result<Logits, EngineError> {
        if let Some(bad) = tokens
            .iter()
            .find(|&&token| token as usize >= self.config.vocab)
        {
            return Err(EngineError::InvalidRequest(format!(
                "token `{bad}` is not one of the {} of the vocabulary",
                self.config.vocab
            )));
        }
        let ids: Vec<i32> = tokens.iter().map(|&token| token as i32).collect();
        let ids = Tensor::<1, Int>::from_data(
            TensorData::new(ids, [tokens.len()]),
            (&self.device, DType::I32),
        );
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        let mut step = Step {
            config: &self.config,
            layout: &self.layout,
            start: self.start,
            rope_factors: self.rope_factors.as_deref(),
            runtime: &mut runtime,
            cache,
            rows,
            cancel,
            cancelled: false,
        };
        let logits = guard(|| {
            Ok(Dispatch::llama_step(
                ids.into_dispatch(),
                self.weights.clone().into_dispatch(),
                self.norms.clone().into_dispatch(),
                &mut step,
            ))
        })?;
        if step.cancelled {
            return Err(EngineError::Cancelled);
        }
        let data = Tensor::<2>::from_dispatch(logits).into_data();
        Ok(Logits {
            data,
            vocab: self.config.vocab,
        })
    }
}
