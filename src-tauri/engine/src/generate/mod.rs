//! From a prompt to an answer: sampling, constraints, the reuse of prefixes, scoring.

mod batch;
mod beam;
mod branch;
mod constraint;
mod digest;
mod logprob;
mod pace;
mod penalty;
mod prefix;
mod rank;
mod request;
mod run;
mod sampler;
mod sampling;
mod score;
mod session;
mod several;
mod snapshot;
mod speculate;
mod state;

pub(crate) use batch::Batch;
pub(crate) use constraint::Grammars;
pub use logprob::TokenLogprob;
pub(crate) use prefix::{PrefixCache, Sequence};
pub use request::{
    Constraint, Finish, GenerateRequest, Generation, MAX_BEAMS, MAX_TOP_LOGPROBS, Prompt, Score,
    TokenEvent,
};
pub use sampling::Sampling;
pub use session::{Progress, Session};
pub use several::MAX_ANSWERS;
