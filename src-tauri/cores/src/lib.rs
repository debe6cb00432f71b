//! LLM cores behind the kernel's `LlmCore` trait.

mod local;

pub use local::{LoadState, LocalCore, Source};
