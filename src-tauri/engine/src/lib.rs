//! The inference engine: GGUF files, quantised kernels, decoders, KV cache, sampling, constrained
//! decoding; and encoders, which turn texts into vectors.
//!
//! ```no_run
//! use std::path::Path;
//! use steward_engine::{Cancel, Engine, GenerateRequest, LoadOptions, Prompt};
//!
//! # fn main() -> Result<(), steward_engine::EngineError> {
//! let engine = Engine::load(Path::new("model.gguf"), &LoadOptions::default())?;
//! let request = GenerateRequest::new(Prompt::Text("Once upon a time".to_owned()), 64);
//! engine.generate(&request, &Cancel::new(), &mut |event| print!("{}", event.text))?;
//! # Ok(())
//! # }
//! ```

mod arena;
mod attention;
mod cancel;
mod encoder;
mod engine;
mod error;
mod folder;
mod generate;
mod gguf;
mod info;
mod kernels;
mod kv;
mod memory;
mod model;
mod open;
mod pool;
mod text;

pub use cancel::Cancel;
pub use encoder::{Embedding, Encoder, EncoderInfo, Purpose};
pub use engine::{Engine, LoadOptions};
pub use error::EngineError;
pub use generate::{
    Constraint, Finish, GenerateRequest, Generation, MAX_ANSWERS, MAX_BEAMS, MAX_TOP_LOGPROBS,
    Progress, Prompt, Sampling, Score, Session, TokenEvent, TokenLogprob,
};
pub use gguf::GgufError;
pub use info::ModelInfo;
pub use kv::KvFormat;
pub use memory::available_memory;
pub use text::{Message, Role};
