//! Decoders of the Llama, Mistral, Qwen and Gemma families: hyperparameters, packed weights and the forward pass.

mod config;
mod forward;
mod op;
mod plan;
mod product;
mod source;
mod weights;

pub(crate) use config::{
    Activation, Config, MAX_CONTEXT, MAX_LAYERS, MAX_WIDTH, Rope, check_head_len, check_shared,
    sized,
};
pub(crate) use forward::STEP_TOKENS;
pub(crate) use op::{Logits, Model, ModelOps, Rows, Run, RunLogits};
pub(crate) use product::{Scratch, Tiles, product};
pub(crate) use source::{Source, Stored};
