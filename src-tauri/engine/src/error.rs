use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use crate::gguf::GgufError;

/// What can go wrong when a model is loaded or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The model file could not be opened or mapped.
    #[error("cannot open the model `{}`: {source}", path.display())]
    Open {
        /// The file that was asked for.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The model's weights take more memory than there is.
    #[error(
        "the model `{}` takes {} MiB of memory and {} MiB are left",
        path.display(), needed >> 20, available >> 20
    )]
    DoesNotFit {
        /// The file that was asked for.
        path: PathBuf,
        /// Bytes that its weights take.
        needed: u64,
        /// Bytes that are left.
        available: u64,
    },
    /// The model file is damaged or of a kind this engine cannot run.
    #[error("cannot load the model `{}`: {source}", path.display())]
    Model {
        /// The file that was asked for.
        path: PathBuf,
        /// What is wrong with it, by field.
        source: GgufError,
    },
    /// The prompt leaves no room in the model's context.
    #[error(
        "the prompt has {prompt} tokens and the context holds {context}, of which one must be left \
         for the answer; shorten the prompt"
    )]
    ContextOverflow {
        /// Tokens in the prompt.
        prompt: usize,
        /// Tokens that fit the context.
        context: usize,
    },
    /// A field of the request cannot be used.
    #[error("{0}")]
    InvalidRequest(String),
    /// The grammar, schema or regular expression cannot be used.
    #[error("cannot use the constraint: {0}")]
    Constraint(String),
    /// The file's chat template failed.
    #[error("cannot render the chat template: {0}")]
    Template(String),
    /// The text could not be tokenised.
    #[error("cannot tokenise the text: {0}")]
    Tokenizer(String),
    /// The snapshot of a session is broken, or of another request or model.
    #[error("cannot use the snapshot: {0}")]
    Snapshot(String),
    /// The model gave no logits to choose by.
    #[error("cannot choose a token: {0}; check the model's file, or use another one")]
    Logits(String),
    /// The model's values overflowed, or were not numbers: the weights are at fault.
    #[error(
        "the values after layer `{layer}` are not finite, so that no token can be chosen; check the \
         model's file, or use another one"
    )]
    NotFinite {
        /// The first layer after which they were not, from 0.
        layer: usize,
    },
    /// The request may come to need more memory for keys and values than the engine may use.
    #[error(
        "the request may come to hold `{needed_mib}` MiB of keys and values and the engine holds at \
         most {most_mib}; ask for fewer tokens, or give the engine more memory"
    )]
    Memory {
        /// What it may need, in MiB.
        needed_mib: usize,
        /// What there is, in MiB.
        most_mib: usize,
    },
    /// `cancel` was set before the work was done.
    #[error("cancelled")]
    Cancelled,
    /// A defect of the engine itself.
    #[error("the engine failed inside: {0}; please report this")]
    Internal(String),
}

impl EngineError {
    /// The error of a run once more, for its work.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::NotFinite { layer } => Self::NotFinite { layer: *layer },
            other => Self::Internal(other.to_string()),
        }
    }
}

/// Runs `work`; a panic in it becomes an error, and what it worked on is not used again.
pub(crate) fn guard<T>(work: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        Err(EngineError::Internal(
            said.unwrap_or("a panic without a message").to_owned(),
        ))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn a_panic_becomes_an_error_that_says_it() {
        assert_eq!(guard(|| Ok(1)).unwrap(), 1);
        let number = 7;
        for error in [
            guard::<()>(|| panic!("plain")).unwrap_err(),
            guard::<()>(|| panic!("plain {number}")).unwrap_err(),
        ] {
            assert!(error.to_string().contains("inside: plain"), "{error}");
        }
    }
}
