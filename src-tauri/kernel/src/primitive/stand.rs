//! Effects that stand from before a restore: a call that would have one again is answered by it.

use super::{Ctx, StepState};
use crate::error::{Code, SysError};
use crate::journal::{CallRow, CallState, Ended, standing_result, take_standing};
use crate::primitive::step_state;
use crate::process::ProcessState;
use crate::syscall::Syscall;

impl Ctx {
    /// What this call did before its process was taken back, where it did it and that stands.
    pub(crate) fn standing(&self) -> Option<CallRow> {
        self.live.take_standing(self.name, &self.about.args)
    }

    /// Ends the call by what stands, without doing it again.
    pub(crate) async fn let_stand<S: Syscall>(
        &self,
        stands: CallRow,
    ) -> Result<S::Output, SysError> {
        self.admit::<S>().await?;
        let result = standing_result(&stands);
        let (state, detail) = match &result {
            Ok(_) => (
                CallState::Done,
                "stands from before the restore; not done again",
            ),
            Err(_) => (
                CallState::Unknown,
                "not known from before the restore; not done again",
            ),
        };
        let ended = Ended {
            state,
            result: result.clone(),
            detail: detail.to_owned(),
            record: detail.to_owned(),
            tokens: 0,
        };
        let journal = &self.inner.journal;
        journal
            .settle(self.row.id, self.at(), move |tx| {
                take_standing(tx, stands.id)?;
                Ok(((), ended))
            })
            .await?;
        self.tell_step(StepState::Running, "");
        self.tell_step(step_state(state), detail);
        self.live.update(|info| info.steps += 1);
        let info = self.live.set(ProcessState::Running, "");
        self.inner.tell_process(&info);
        result.and_then(|value| {
            serde_json::from_value(value).map_err(|e| {
                SysError::new(Code::Internal, format!("a kept result does not fit: {e}"))
            })
        })
    }
}
