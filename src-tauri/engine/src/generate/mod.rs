//! From a prompt to an answer: sampling, constraints, the reuse of prefixes, scoring.

mod beam;
mod branch;
mod constraint;
mod prefix;
mod request;
mod run;
mod sampler;
mod score;
mod session;
mod snapshot;

pub(crate) use constraint::Grammars;
pub(crate) use prefix::{PrefixCache, Sequence};
pub use request::{
    Constraint, Finish, GenerateRequest, Generation, MAX_BEAMS, Prompt, Sampling, Score, TokenEvent,
};
pub use session::{Progress, Session};
