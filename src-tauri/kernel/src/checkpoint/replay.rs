//! Running a program on recorded answers, without any effect.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use super::CheckpointId;
use crate::Sys;
use crate::error::{Code, SysError};
use crate::journal::CallRow;
use crate::kernel::Inner;
use crate::lifecycle::TURNS;
use crate::live::Live;
use crate::syscall::{Record, Syscall};

/// How a replay went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Replayed {
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// Calls that were answered from its record.
    pub calls: u64,
    /// Whether the program went the same way.
    pub verdict: Verdict,
}

/// Whether a program went the way that was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Verdict {
    /// It made every recorded call again.
    Same,
    /// It made another call than was recorded.
    Diverged {
        /// The call's number in the record.
        seq: u64,
        /// What was recorded.
        recorded: String,
        /// What it made; the same name, where the arguments were others.
        made: String,
    },
    /// It ended with calls left in the record.
    Ended {
        /// The next call's number in the record.
        seq: u64,
        /// What was recorded.
        recorded: String,
    },
    /// It broke down.
    BrokeDown,
}

/// A record that a program is run on.
pub(crate) struct Replay {
    calls: Vec<CallRow>,
    state: watch::Sender<State>,
}

#[derive(Default)]
struct State {
    answered: usize,
    verdict: Option<Verdict>,
}

impl Replay {
    pub(crate) fn new(calls: Vec<CallRow>) -> Self {
        Self {
            calls,
            state: watch::Sender::default(),
        }
    }

    /// The recorded answer to a call. Where there is none, the program stands still and the replay
    /// has its verdict.
    pub(crate) async fn answer<S: Syscall>(&self, args: &str) -> Result<S::Output, SysError> {
        if S::RECORD == Record::Nothing {
            return fitting::<S>(Value::Null);
        }
        let next = self.calls.get(self.state.borrow().answered);
        let verdict = match next {
            Some(row) if row.name == S::NAME && row.args == args => {
                self.state.send_modify(|state| state.answered += 1);
                return match row.result.clone() {
                    Some(result) => result.and_then(fitting::<S>),
                    None => Err(SysError::new(Code::Internal, "a result is not kept")),
                };
            }
            Some(row) => Verdict::Diverged {
                seq: row.seq,
                recorded: row.name.clone(),
                made: S::NAME.to_owned(),
            },
            None => Verdict::Same,
        };
        self.state.send_modify(|state| {
            state.verdict.get_or_insert(verdict);
        });
        std::future::pending().await
    }

    /// The verdict on a program that has ended.
    fn ended(&self, broke_down: bool) -> Verdict {
        match self.calls.get(self.state.borrow().answered) {
            _ if broke_down => Verdict::BrokeDown,
            None => Verdict::Same,
            Some(row) => Verdict::Ended {
                seq: row.seq,
                recorded: row.name.clone(),
            },
        }
    }
}

fn fitting<S: Syscall>(value: Value) -> Result<S::Output, SysError> {
    serde_json::from_value(value)
        .map_err(|e| SysError::new(Code::Internal, format!("a kept result does not fit: {e}")))
}

impl Inner {
    /// Runs a checkpoint's program on what is recorded.
    pub(crate) async fn replay(self: &Arc<Self>, id: CheckpointId) -> Result<Replayed, SysError> {
        let (process, calls) = self.journal.replayable(id).await?;
        let turns = self.journal.turns(process.after, TURNS).await?;
        let program = self.program(&process.image).await?.ok_or_else(|| {
            let message = format!("there is no image `{}` any more", process.image);
            SysError::new(Code::NotFound, message)
        })?;
        let live = Arc::new(Live::replaying(process, turns, Replay::new(calls)));
        let Some(replay) = live.replay.as_ref() else {
            return Err(SysError::new(Code::Internal, "a replay has no record"));
        };
        let mut state = replay.state.subscribe();
        let sys = Sys::new(Arc::clone(self), Arc::clone(&live));
        let running = AssertUnwindSafe(async move { program.run(sys).await }).catch_unwind();
        let verdict = tokio::select! {
            biased;
            stands = state.wait_for(|state| state.verdict.is_some()) => {
                stands.ok().and_then(|state| state.verdict.clone()).unwrap_or(Verdict::BrokeDown)
            }
            ended = running => replay.ended(ended.is_err()),
        };
        Ok(Replayed {
            checkpoint: id,
            calls: replay.state.borrow().answered as u64,
            verdict,
        })
    }
}
