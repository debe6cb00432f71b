//! Agent images and the agent loop: ordinary programs of the kernel.
//!
//! A small model is not asked what can be found exactly. A request is read by the wordings of the
//! tools ([`Reader`]): paths, quoted texts and clauses are found in it, and become calls with their
//! arguments. The model weighs calls where more than one stays plausible, writes a call under a
//! grammar where only a file is to be chosen, and writes the texts that no rule can: summaries,
//! drafts, answers. What comes from files is data: a tool is chosen by the person's words only.
//!
//! The tools are wrappers over system calls; whether an effect may happen is decided in the kernel.

mod agent;
mod call;
mod choose;
mod image;
mod model;
mod request;
mod search;
mod summary;
mod survey;
mod tools;
mod wording;

pub use agent::Agent;
pub use call::Call;
pub use image::{BUILT_IN, ImageError, Images};
pub use request::{Candidate, Evidence, Hint, Part, Reader, Reading};
pub use survey::{Found, Survey};
pub use tools::{Card, Desk, Example, Need, Outcome, Tool, all as tools};
pub use wording::Language;

/// The images built in.
///
/// # Errors
/// A fault in an image or tool of ours, which a test would have found.
pub fn registry() -> Result<Images, ImageError> {
    let mut images = Images::default();
    for yaml in BUILT_IN {
        images.register(steward_kernel::image::read(yaml)?)?;
    }
    Ok(images)
}
