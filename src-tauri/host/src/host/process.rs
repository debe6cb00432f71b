//! Commands about processes.

use steward_kernel::{Pid, Signal};

use super::{Host, Surface};
use crate::surface::{Problem, ProcessDetail, Reply, SignalView};
use crate::view;

impl Host {
    pub(super) async fn processes(&self) -> Result<Reply, Problem> {
        let undoable = self.kernel.undoable_runs().await?;
        let processes = self.kernel.processes().await?;
        let processes = processes
            .iter()
            .map(|p| self.doing.told(view::process(p, &undoable)))
            .collect();
        Ok(Reply::Processes { processes })
    }

    pub(super) async fn process(&self, pid: u64) -> Result<Reply, Problem> {
        let undoable = self.kernel.undoable_runs().await?;
        let process = self.kernel.process(Pid(pid)).await?;
        let steps = self.kernel.steps(Pid(pid)).await?;
        let exit = self.kernel.exit(Pid(pid)).await?;
        Ok(Reply::Process(Box::new(ProcessDetail {
            process: self.doing.told(view::process(&process, &undoable)),
            steps: steps.into_iter().map(view::step).collect(),
            ok: exit.as_ref().map(|e| e.ok),
            problem: exit
                .as_ref()
                .and_then(|e| e.error.clone())
                .map(Problem::from),
            answer: exit.map(|e| e.answer),
        })))
    }

    pub(super) async fn signal(
        &self,
        pid: u64,
        signal: SignalView,
        by: Surface,
    ) -> Result<Reply, Problem> {
        let signal = match signal {
            SignalView::Pause => Signal::Pause,
            SignalView::Resume => Signal::Resume,
            SignalView::Interrupt => Signal::Interrupt,
            SignalView::Kill => Signal::Kill,
        };
        self.kernel.signal(Pid(pid), signal, by.name()).await?;
        if signal == Signal::Resume {
            // It may stand still since an earlier start.
            let run = self.kernel.process(Pid(pid)).await?.run;
            self.kernel.resume(Some(run)).await?;
        }
        Ok(Reply::Done)
    }

    pub(super) async fn send_message(&self, pid: u64, text: &str) -> Result<Reply, Problem> {
        self.kernel.send(Pid(pid), text).await?;
        Ok(Reply::Done)
    }
}
