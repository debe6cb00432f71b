use super::{GenerateRequest, Generation, Progress, Sequence, Session, TokenEvent};
use crate::cancel::Cancel;
use crate::engine::Engine;
use crate::error::EngineError;

/// Answers that are remembered, and how many tokens of one: at least what can be found again.
const ANSWERS: usize = 8;
const SHORTEST_ANSWER: usize = 8;
const LONGEST_ANSWER: usize = 1024;

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
        self.begin(request.clone())?.finish(cancel, on_token)
    }

    /// A sequence with as much of the prompt as is known, but for its last token, whose logits
    /// have to be computed.
    pub(super) fn recall(&self, prompt: &[u32]) -> Sequence {
        let known = prompt.len().saturating_sub(1);
        self.prefixes().recall(&prompt[..known])
    }

    /// Remembers an answer, from which others may be guessed.
    pub(super) fn remember(&self, ids: &[u32]) {
        let mut answers = self.answers();
        if ids.len() >= SHORTEST_ANSWER {
            answers.push_back(ids[..ids.len().min(LONGEST_ANSWER)].to_vec());
        }
        if answers.len() > ANSWERS {
            answers.pop_front();
        }
    }

    /// The answers that are remembered, the oldest first.
    pub(super) fn earlier(&self, each: impl FnMut(&Vec<u32>)) {
        self.answers().iter().for_each(each);
    }

    /// Lets go of what is only kept, so that `pages` more can be held.
    pub(super) fn make_room(&self, pages: usize) {
        let most = self.pages().most().saturating_sub(pages);
        self.prefixes().make_room(most);
    }

    /// Refuses what needs more pages than there are.
    pub(super) fn check_pages(&self, pages: usize) -> Result<(), EngineError> {
        let most = self.pages().most();
        if pages <= most {
            return Ok(());
        }
        let mib = |pages: usize| (pages * self.pages().shape().page_bytes()).div_ceil(1 << 20);
        Err(EngineError::Memory {
            needed_mib: mib(pages),
            most_mib: mib(most),
        })
    }
}

impl Session {
    /// Runs to the end.
    pub(super) fn finish(
        mut self,
        cancel: &Cancel,
        on_token: &mut dyn FnMut(&TokenEvent<'_>),
    ) -> Result<Generation, EngineError> {
        let never = Cancel::new();
        loop {
            if let Progress::Done(generation) = self.run(None, &never, cancel, on_token)? {
                return Ok(generation);
            }
        }
    }
}
