//! The model behind Burn: weights are tensors on a Burn device, and a step of the model is one
//! custom operation of the backend, coarse enough that the dispatch around it does not count.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Dispatch, backend_extension};
use burn::tensor::{DType, Device, Int, Shape, Tensor, TensorData};
use burn_flex::{Flex, FlexTensor};
use sha2::{Digest, Sha256};

use super::Config;
use super::forward::{Outcome, Runtime, Step};
use super::source::Source;
use super::weights::{Layout, Weights};
use crate::arena::Arena;
use crate::encoder::Encoding;
use crate::error::{EngineError, guard};
use crate::gguf::GgufError;
use crate::kv::KvCache;
use crate::pool::Pool;

/// What a step does for one sequence.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    /// The tokens that come next.
    pub(crate) tokens: &'a [u32],
    /// The keys and values of those before, and then of these.
    pub(crate) cache: &'a mut KvCache,
    pub(crate) rows: Rows,
    /// The only tokens whose logits are wanted, in rising order; those of others may come as
    /// negative infinity.
    pub(crate) among: Option<&'a [u32]>,
}

/// Which positions of a run logits are wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// The last position only.
    Last,
    /// Every position of the run.
    All,
    /// None: the run only fills the KV cache.
    None,
}

impl Rows {
    /// Rows of a run of `tokens`.
    fn count(self, tokens: usize) -> usize {
        match self {
            Self::Last => tokens.min(1),
            Self::All => tokens,
            Self::None => 0,
        }
    }
}

/// The operations that a backend must have to run models.
#[backend_extension(Flex)]
pub(crate) trait ModelOps: Backend {
    /// Runs `tokens` (`[n]`, i32), those of all the step's runs one after another, through the
    /// model and appends to the runs' KV caches.
    ///
    /// `weights` is the packed arena (`[bytes]`, u8), `vectors` the norms and biases (`[n]`, f32), both
    /// as the step's layout tells. Gives logits (`[rows, vocab]`, f32).
    fn model_step(
        tokens: IntTensor<Self>,
        weights: IntTensor<Self>,
        vectors: FloatTensor<Self>,
        step: &mut Step<'_, '_>,
    ) -> FloatTensor<Self>;

    /// Runs `tokens` (`[n]`, i32), those of all texts one after another, through an encoder. Gives a
    /// vector of length one for each text (`[texts, width]`, f32).
    fn encode(
        tokens: IntTensor<Self>,
        weights: IntTensor<Self>,
        vectors: FloatTensor<Self>,
        encoding: &mut Encoding<'_>,
    ) -> FloatTensor<Self>;

    /// SHA-256 (`[32]`, u8) of `len` bytes of the arena from `start`, and of the vectors.
    fn model_digest(
        weights: IntTensor<Self>,
        vectors: FloatTensor<Self>,
        start: usize,
        len: usize,
    ) -> IntTensor<Self>;
}

impl ModelOps for Flex {
    fn model_step(
        tokens: FlexTensor,
        weights: FlexTensor,
        vectors: FlexTensor,
        step: &mut Step<'_, '_>,
    ) -> FlexTensor {
        let logits = step.run(
            tokens.storage::<i32>(),
            weights.bytes(),
            vectors.storage::<f32>(),
        );
        let vocab = step.config.vocab;
        let shape = Shape::from(vec![logits.len() / vocab, vocab]);
        FlexTensor::from_data(TensorData::new(logits, shape))
    }

    fn encode(
        tokens: FlexTensor,
        weights: FlexTensor,
        vectors: FlexTensor,
        encoding: &mut Encoding<'_>,
    ) -> FlexTensor {
        let (tokens, weights) = (tokens.storage::<i32>(), weights.bytes());
        let out = encoding.run(tokens, weights, vectors.storage::<f32>());
        let shape = Shape::from(vec![out.len() / encoding.width(), encoding.width()]);
        FlexTensor::from_data(TensorData::new(out, shape))
    }

    fn model_digest(
        weights: FlexTensor,
        vectors: FlexTensor,
        start: usize,
        len: usize,
    ) -> FlexTensor {
        let mut hash = Sha256::new();
        hash.update(&weights.bytes()[start..start + len]);
        hash.update(bytemuck::cast_slice(vectors.storage::<f32>()));
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
    vectors: Tensor<1>,
    device: Device,
    runtime: Mutex<Runtime>,
}

/// The logits that a step was asked for, by run.
pub(crate) struct Logits {
    data: TensorData,
    vocab: usize,
    /// Where the rows of each run begin, or the layer after which its values were not finite.
    runs: Vec<Result<Range<usize>, usize>>,
}

impl Logits {
    /// The rows of one run.
    ///
    /// # Errors
    /// [`EngineError::NotFinite`] where the run's values overflowed on their way.
    pub(crate) fn of(&self, run: usize) -> Result<RunLogits<'_>, EngineError> {
        let data = self.data.as_slice::<f32>();
        let data = data.map_err(|e| EngineError::Internal(e.to_string()))?;
        match &self.runs[run] {
            Ok(rows) => Ok(RunLogits {
                data: &data[rows.start * self.vocab..rows.end * self.vocab],
                vocab: self.vocab,
            }),
            Err(layer) => Err(EngineError::NotFinite { layer: *layer }),
        }
    }
}

/// The logits of some positions of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunLogits<'a> {
    data: &'a [f32],
    vocab: usize,
}

impl<'a> RunLogits<'a> {
    /// The rows, in the order of their positions.
    pub(crate) fn rows(self) -> std::slice::ChunksExact<'a, f32> {
        self.data.chunks_exact(self.vocab)
    }

    /// The row of one position.
    pub(crate) fn row(self, index: usize) -> Result<&'a [f32], EngineError> {
        let row = self.rows().nth(index);
        row.ok_or_else(|| EngineError::Internal(format!("no logits for row {index}")))
    }

    /// The last row, if any was asked for.
    pub(crate) fn last(self) -> Option<&'a [f32]> {
        self.rows().next_back()
    }
}

impl Model {
    /// Packs the file's tensors and puts them on the CPU device.
    pub(crate) fn load(
        file: &dyn Source,
        config: Config,
        mut pool: Pool,
        told: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Self, GgufError> {
        let Weights {
            layout,
            arena: Arena { bytes, start, len },
            vectors,
            rope_factors,
        } = Weights::read(file, &config, &mut pool, told)?;
        let device = Device::flex();
        let size = bytes.len();
        let arena = TensorData::from_bytes_vec(bytes, [size], DType::U8);
        let count = vectors.len();
        let vectors = TensorData::new(vectors, [count]);
        Ok(Self {
            weights: Tensor::from_data(arena, (&device, DType::U8)),
            vectors: Tensor::from_data(vectors, &device),
            runtime: Mutex::new(Runtime::new(pool)),
            config,
            layout,
            start,
            len,
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
        let mut hash = Sha256::new();
        hash.update(format!("{:?}", self.config));
        let factors = self.rope_factors.as_deref().unwrap_or_default();
        hash.update(bytemuck::cast_slice(factors));
        let weights = guard(|| {
            Ok(Dispatch::model_digest(
                self.weights.clone().into_dispatch(),
                self.vectors.clone().into_dispatch(),
                self.start,
                self.len,
            ))
        })?;
        let weights = Tensor::<1, Int>::from_dispatch(weights).into_data();
        let weights = weights.as_slice::<u8>();
        hash.update(weights.map_err(|e| EngineError::Internal(e.to_string()))?);
        Ok(hash.finalize().into())
    }

    /// Does some work on the threads that compute.
    pub(crate) fn on_threads<T: Send>(&self, of: &mut [T], work: impl Fn(&mut T) + Sync) {
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = runtime.pool();
        pool.pieces(of, 1, || (), |(), _, of| of.iter_mut().for_each(&work));
    }

    /// Runs the tokens of all `runs`, at most [`STEP_TOKENS`](super::STEP_TOKENS) in all, each
    /// after what its cache holds. What a run gives does not depend on the others.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`] once `cancelled` says so, which leaves the caches as they were.
    pub(crate) fn step(
        &self,
        runs: &mut [Run<'_>],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Logits, EngineError> {
        let tokens = runs.iter().flat_map(|run| run.tokens);
        if let Some(bad) = tokens.clone().find(|&&id| id as usize >= self.config.vocab) {
            return Err(EngineError::InvalidRequest(format!(
                "token `{bad}` is not one of the {} of the vocabulary",
                self.config.vocab
            )));
        }
        let ids: Vec<i32> = tokens.map(|&token| token as i32).collect();
        let shape = [ids.len()];
        let ids =
            Tensor::<1, Int>::from_data(TensorData::new(ids, shape), (&self.device, DType::I32));
        let mut first = 0;
        let rows = runs.iter().map(|run| {
            let rows = first..first + run.rows.count(run.tokens.len());
            first = rows.end;
            rows
        });
        let rows: Vec<_> = rows.collect();
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        let mut step = Step {
            config: &self.config,
            layout: &self.layout,
            start: self.start,
            rope_factors: self.rope_factors.as_deref(),
            runtime: &mut runtime,
            runs,
            cancelled,
            outcome: Outcome::default(),
        };
        let logits = guard(|| {
            Ok(Dispatch::model_step(
                ids.into_dispatch(),
                self.weights.clone().into_dispatch(),
                self.vectors.clone().into_dispatch(),
                &mut step,
            ))
        })?;
        let Outcome { cancelled, broken } = step.outcome;
        if cancelled {
            return Err(EngineError::Cancelled);
        }
        let runs = rows.into_iter().zip(broken);
        Ok(Logits {
            data: Tensor::<2>::from_dispatch(logits).into_data(),
            vocab: self.config.vocab,
            runs: runs
                .map(|(rows, broken)| broken.map_or(Ok(rows), Err))
                .collect(),
        })
    }
}
