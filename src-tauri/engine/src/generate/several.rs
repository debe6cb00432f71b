use super::sampler::seed_of;
use super::{GenerateRequest, Generation, Session, TokenEvent};
use crate::cancel::Cancel;
use crate::engine::Engine;
use crate::error::EngineError;

/// Most answers to one request.
pub const MAX_ANSWERS: usize = 64;

impl Engine {
    /// Begins several answers to one request, 1 to [`MAX_ANSWERS`]. Each is a session of its own, and
    /// goes its own way by a seed that follows from the request's: the first has that itself. Run
    /// side by side they share the prompt's keys and values.
    ///
    /// # Errors
    /// As for [`Engine::begin`]; also for several answers that would all be the same.
    pub fn begin_several(
        &self,
        request: &GenerateRequest,
        count: usize,
    ) -> Result<Vec<Session>, EngineError> {
        if !(1..=MAX_ANSWERS).contains(&count) {
            return Err(EngineError::InvalidRequest(format!(
                "`{count}` answers: choose 1 to {MAX_ANSWERS}"
            )));
        }
        if count > 1 && request.sampling.temperature == 0.0 {
            return Err(EngineError::InvalidRequest(format!(
                "`{count}` answers at temperature `0` would all be the same; set a temperature above \
                 0, or ask for one"
            )));
        }
        (0..count)
            .map(|answer| {
                let mut request = request.clone();
                request.sampling.seed = seed_of(request.sampling.seed, answer);
                self.begin(request)
            })
            .collect()
    }

    /// Generates several answers to one request, as [`Engine::begin_several`] begins them. `on_token`
    /// is told which answer goes on.
    ///
    /// # Errors
    /// As for [`Engine::begin_several`] and [`Engine::generate`].
    pub fn generate_several(
        &self,
        request: &GenerateRequest,
        count: usize,
        cancel: &Cancel,
        on_token: &(dyn Fn(usize, &TokenEvent<'_>) + Sync),
    ) -> Result<Vec<Generation>, EngineError> {
        let sessions = self.begin_several(request, count)?;
        std::thread::scope(|scope| {
            let sessions = sessions.into_iter().enumerate();
            let threads: Vec<_> = sessions
                .map(|(answer, session)| {
                    let run = move || session.finish(cancel, &mut |event| on_token(answer, event));
                    std::thread::Builder::new().spawn_scoped(scope, run)
                })
                .collect();
            let answers = threads.into_iter().map(|thread| {
                let internal = |problem: String| EngineError::Internal(problem);
                let thread = thread.map_err(|error| internal(error.to_string()))?;
                let ended = thread.join();
                ended.unwrap_or_else(|_| Err(internal("an answer panicked".to_owned())))
            });
            answers.collect()
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_answer_has_a_seed_of_its_own() {
        let mut seen = BTreeSet::new();
        for seed in 0..50 {
            assert_eq!(seed_of(seed, 0), seed);
            seen.extend((0..MAX_ANSWERS).map(|answer| seed_of(seed, answer)));
        }
        assert_eq!(seen.len(), 50 * MAX_ANSWERS);
    }
}
