//! From a prompt to an answer: sampling, constraints, the reuse of prefixes, scoring.

mod constraint;
mod prefix;
mod request;
mod run;
mod sampler;
mod score;

pub(crate) use constraint::Grammars;
pub(crate) use prefix::{PrefixCache, Sequence};
pub use request::{
    Constraint, Finish, GenerateRequest, Generation, Prompt, Sampling, Score, TokenEvent,
};
