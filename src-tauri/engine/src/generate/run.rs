use std::sync::PoisonError;

use super::{GenerateRequest, Generation, Progress, Sequence, TokenEvent};
use crate::cancel::Cancel;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::model::{Logits, Rows, STEP_TOKENS};

impl Engine {
    /// Generates an answer, handing each token to `on_token` as it comes.
    ///
    /// A cancelled generation is not an error: it gives what there is, with
    /// [`Finish::Cancelled`](super::Finish::Cancelled).
    ///
    /// # Errors
    /// A request that cannot be met: a prompt beyond the context, a bad constraint, a bad figure.
    pub fn generate(
        &self,
        request: &GenerateRequest,
        cancel: &Cancel,
        on_token: &mut dyn FnMut(&TokenEvent<'_>),
    ) -> Result<Generation, EngineError> {
        let mut session = self.begin(request.clone())?;
        let never = Cancel::new();
        loop {
            if let Progress::Done(generation) = session.run(None, &never, cancel, on_token)? {
                return Ok(generation);
            }
        }
    }

    /// Runs tokens through the model, in steps; gives the logits of the last step's wanted rows.
    pub(crate) fn extend(
        &self,
        sequence: &mut Sequence,
        tokens: &[u32],
        rows: Rows,
        cancel: &Cancel,
        mut each: impl FnMut(usize, &Logits) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let steps = tokens.chunks(STEP_TOKENS);
        let last = steps.len().saturating_sub(1);
        for (index, tokens) in steps.enumerate() {
            if cancel.is_cancelled() {
                return Err(EngineError::Cancelled);
            }
            let rows = if rows == Rows::Last && index < last {
                Rows::None
            } else {
                rows
            };
            let logits = self
                .model()
                .step(tokens, &mut sequence.cache, rows, cancel)?;
            sequence.tokens.extend_from_slice(tokens);
            each(index * STEP_TOKENS, &logits)?;
        }
        Ok(())
    }

    /// A sequence with as much of the prompt as is known.
    pub(super) fn recall(&self, prompt: &[u32]) -> Sequence {
        self.prefixes()
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .begin(prompt)
    }

    pub(super) fn keep(&self, sequence: Sequence) {
        self.prefixes()
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .keep(sequence);
    }
}
