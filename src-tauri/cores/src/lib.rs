//! LLM cores behind the kernel's `LlmCore` trait.

mod generation;
mod local;

pub use local::{LoadState, LocalCore, Source};
