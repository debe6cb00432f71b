//! A generation that can stand still between any two tokens, and between two steps of its prompt.

use std::sync::mpsc::{Sender, channel};

use super::batch::{Leave, Work};
use super::branch::Branch;
use super::pace::Took;
use super::state::{Stage, State};
use super::{Finish, GenerateRequest, Generation, Sequence, TokenEvent, TokenLogprob};
use crate::cancel::Cancel;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::model::{Run, RunLogits};
use crate::text::TextStream;

/// How far a [`Session`] came.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// It stands still; [`Session::run`] goes on.
    Paused,
    /// It has ended.
    Done(Generation),
}

/// A generation on its way. It can stand still for any time while others run; going on costs
/// little and changes no token.
///
/// Sessions that are run from several threads at once take their steps together.
///
/// It takes what it can from the engine's cache of prefixes, and leaves there what it computed:
/// the prompt once that is read, and all of it where it stands still or ends. Where that made room
/// for others meanwhile, it is computed again.
pub struct Session {
    pub(super) engine: Engine,
    /// Absent once it has ended.
    pub(super) state: Option<Box<State>>,
}

impl Engine {
    /// A generation that runs piece by piece. Nothing is computed yet.
    ///
    /// # Errors
    /// A request that cannot be met: a prompt beyond the context, a bad constraint, a bad figure,
    /// more keys and values than may be held.
    pub fn begin(&self, request: GenerateRequest) -> Result<Session, EngineError> {
        request.check(self.info().vocab)?;
        let prompt = self.prompt_tokens(&request.prompt)?;
        let grammar = match &request.constraint {
            Some(constraint) => Some(self.grammars()?.compile(constraint)?),
            None => None,
        };
        let branch = Branch {
            sequence: Sequence::new(self.pages()),
            pending: Vec::new(),
            forced: 0,
            guessed: 0,
            ahead: None,
            ids: Vec::new(),
            logprobs: Vec::new(),
            top_logprobs: Vec::new(),
            grammar,
            text: TextStream::new(request.stop.clone()),
        };
        let state = State::new(self.clone(), request, prompt, branch);
        self.check_pages(state.pages())?;
        Ok(Session {
            engine: self.clone(),
            state: Some(Box::new(state)),
        })
    }
}

impl Session {
    /// Generates until `quantum` more tokens (`None`: to the end), the end, `pause` or `cancel`.
    /// A step of the prompt, up to 128 tokens, counts as one token of the quantum, and so does one
    /// token of each text of a search; both flags are looked at before each. The tokens are the same
    /// however the session is paused and whatever runs beside it.
    ///
    /// # Errors
    /// [`EngineError::InvalidRequest`] for a session that has ended, [`EngineError::Constraint`]
    /// where the constraint's limits are reached. It has then ended.
    pub fn run(
        &mut self,
        quantum: Option<u32>,
        pause: &Cancel,
        cancel: &Cancel,
        on_token: &mut dyn FnMut(&TokenEvent<'_>),
    ) -> Result<Progress, EngineError> {
        let state = self.state.take().ok_or_else(has_ended)?;
        let (told, heard) = channel();
        let stay = Stay {
            state,
            quantum,
            pause: pause.clone(),
            cancel: cancel.clone(),
            ended: None,
            told,
        };
        self.engine.batch().submit(Box::new(stay))?;
        for said in heard {
            match said {
                Said::Token(token, text, logprob, top) => on_token(&TokenEvent {
                    token,
                    text: &text,
                    logprob,
                    top_logprobs: &top,
                }),
                Said::Paused(state) => {
                    self.state = Some(state);
                    return Ok(Progress::Paused);
                }
                Said::Ended(outcome) => return outcome.map(|done| Progress::Done(*done)),
            }
        }
        Err(EngineError::Internal(
            "the thread that computes has given the generation up".to_owned(),
        ))
    }

    /// Bytes of memory that it needs so as to go on at once. What it shares with others is counted.
    pub fn resident_bytes(&self) -> u64 {
        let state = self
            .state
            .as_ref()
            .map_or(0, |state| state.resident_bytes());
        size_of::<Self>() as u64 + state
    }
}

pub(super) fn has_ended() -> EngineError {
    EngineError::InvalidRequest("the generation has ended; begin another".to_owned())
}

/// What the batch tells a session of itself.
enum Said {
    Token(Option<u32>, String, Option<f32>, Vec<TokenLogprob>),
    Paused(Box<State>),
    Ended(Result<Box<Generation>, EngineError>),
}

/// A session in the batch, until it stands still or ends.
struct Stay {
    state: Box<State>,
    quantum: Option<u32>,
    pause: Cancel,
    cancel: Cancel,
    ended: Option<Result<Finish, EngineError>>,
    told: Sender<Said>,
}

/// Hands tokens to whoever runs the session. Nobody hears them where that one has gone; it has
/// cancelled the session then, or does not mind.
fn tell(told: &Sender<Said>) -> impl FnMut(&TokenEvent<'_>) {
    move |event| {
        let TokenEvent {
            token,
            text,
            logprob,
            top_logprobs,
        } = *event;
        let said = Said::Token(token, text.to_owned(), logprob, top_logprobs.to_vec());
        let _ = told.send(said);
    }
}

impl Work for Stay {
    fn engine(&self) -> &Engine {
        &self.state.engine
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    fn stands_still(&self) -> bool {
        self.quantum == Some(0) || self.pause.is_cancelled()
    }

    fn pending(&self) -> usize {
        self.state.pending()
    }

    fn reads(&self) -> Option<&[u32]> {
        (self.state.stage == Stage::Prefill).then_some(&self.state.prompt)
    }

    fn begins_with(&self) -> &[u32] {
        match self.state.stage {
            Stage::New => &self.state.prompt,
            Stage::Prefill | Stage::Decode => &[],
        }
    }

    fn growth(&self) -> usize {
        self.state.pages().saturating_sub(self.state.held())
    }

    fn start(&mut self) {
        self.state.start();
    }

    fn runs(&mut self, most: usize) -> Vec<Run<'_>> {
        self.state.runs(most)
    }

    fn fed(&mut self, given: &[Result<RunLogits<'_>, EngineError>], took: Took<'_>) -> bool {
        let before = self.state.written();
        let finish = self
            .state
            .fed(given, took, self.quantum, &mut tell(&self.told));
        let gone = self.state.written().saturating_sub(before).max(1);
        self.quantum = self.quantum.map(|left| left.saturating_sub(gone as u32));
        self.ended = finish.transpose();
        self.ended.is_some()
    }

    fn leave(self: Box<Self>, why: Leave) {
        let Self {
            mut state,
            ended,
            told,
            ..
        } = *self;
        let mut end = |finish| Box::new(state.end(finish, &mut tell(&told)));
        let said = match (why, ended) {
            (Leave::Done, Some(Ok(finish))) => Said::Ended(Ok(end(finish))),
            (Leave::Done, Some(Err(error))) | (Leave::Failed(error), _) => {
                end(Finish::Cancelled);
                Said::Ended(Err(error))
            }
            (Leave::Cancelled, _) => Said::Ended(Ok(end(Finish::Cancelled))),
            (Leave::Done | Leave::Paused, _) => {
                state.put_down();
                Said::Paused(state)
            }
        };
        // Whoever ran it may have gone.
        let _ = told.send(said);
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state.as_ref();
        f.debug_struct("Session")
            .field("request", &state.map(|state| &state.request))
            .field("stage", &state.map(|state| state.stage))
            .finish_non_exhaustive()
    }
}
