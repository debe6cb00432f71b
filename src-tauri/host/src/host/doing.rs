//! The step that each process is at.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use steward_kernel::{KernelEvent, StepState};

use crate::surface::ProcessView;

/// Steps that began and have not ended, by process: each with its number and its title.
#[derive(Default)]
pub(super) struct Doing(Mutex<HashMap<u64, (u64, String)>>);

impl Doing {
    /// Takes note of what happened.
    pub(super) fn note(&self, event: &KernelEvent) {
        match event {
            KernelEvent::Step { pid, step, .. } => match step.state {
                StepState::Running | StepState::Waiting => {
                    self.steps().insert(pid.0, (step.seq, step.title.clone()));
                }
                _ => {
                    let mut steps = self.steps();
                    if steps.get(&pid.0).is_some_and(|(seq, _)| *seq == step.seq) {
                        steps.remove(&pid.0);
                    }
                }
            },
            KernelEvent::Process(process) if process.state.is_final() => {
                self.steps().remove(&process.pid.0);
            }
            _ => {}
        }
    }

    /// A process with the step it is at.
    pub(super) fn told(&self, process: ProcessView) -> ProcessView {
        let step = self
            .steps()
            .get(&process.pid)
            .map(|(_, title)| title.clone());
        ProcessView { step, ..process }
    }

    fn steps(&self) -> MutexGuard<'_, HashMap<u64, (u64, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use steward_kernel::{Pid, Step};

    use super::*;

    fn step(seq: u64, state: StepState) -> KernelEvent {
        KernelEvent::Step {
            pid: Pid(3),
            run: 3,
            step: Step {
                seq,
                name: "fs.read".to_owned(),
                title: format!("step {seq}"),
                detail: String::new(),
                state,
                elapsed_ms: None,
            },
        }
    }

    #[test]
    fn it_is_the_step_that_began_last_until_that_ends() {
        let doing = Doing::default();
        let at = || doing.steps().get(&3).map(|(seq, _)| *seq);
        let table = [
            (step(1, StepState::Running), Some(1)),
            (step(1, StepState::Waiting), Some(1)),
            (step(1, StepState::Done), None),
            (step(2, StepState::Running), Some(2)),
            // Told late.
            (step(1, StepState::Done), Some(2)),
            (step(2, StepState::Failed), None),
        ];
        for (event, expected) in table {
            doing.note(&event);
            assert_eq!(at(), expected, "{event:?}");
        }
    }
}
