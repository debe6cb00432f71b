//! LLM cores behind the kernel's `LlmCore` trait.

mod bench;
mod fitness;
mod generation;
mod local;

pub use bench::{Row, measure};
pub use fitness::{Fitness, Fits, fitness};
pub use steward_engine::KvFormat;

pub use local::{LoadState, LocalCore, Source};
