//! How a process starts, runs and ends.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;

use crate::Sys;
use crate::budget::{Opening, Used, What, used_up};
use crate::error::{Code, SysError};
use crate::event::KernelEvent;
use crate::kernel::Inner;
use crate::live::{Anew, Live, Stop};
use crate::process::{Pid, ProcessInfo, ProcessState, Signal};
use crate::program::Program;
use crate::syscall::Exit;

/// Turns of the conversation before a run that its process sees.
pub(crate) const TURNS: usize = 6;
/// How often it is written down how long a process ran, where that is limited.
const TICK_MS: u64 = 5_000;
/// How long a process has to end by itself once its time is up.
const GRACE_MS: u64 = 5_000;

impl Inner {
    /// Runs a process that does not run yet.
    pub(crate) async fn start(self: Arc<Self>, process: ProcessInfo) -> Result<(), SysError> {
        let pid = process.pid;
        let past = self.journal.history(pid).await?;
        self.open_account(&process).await?;
        let history = self.journal.turns(process.after, TURNS).await?;
        let live = {
            let mut all = self.lock_live();
            if all.contains_key(&pid) {
                return Ok(());
            }
            let now = self.providers.clock.monotonic_ms();
            let live = Arc::new(Live::new(process, history, past, now));
            all.insert(pid, Arc::clone(&live));
            live
        };
        // It may have ended since it was listed; what has ended never runs again.
        // Its rights are read with that, so that its first call finds them.
        let version = self.rights_version(&live);
        let now = self.journal.process_and_rights(pid).await;
        if !matches!(&now, Ok(Some((process, _))) if !process.state.is_final()) {
            self.lock_live().remove(&pid);
            live.ended.send_replace(self.journal.exit_of(pid).await?);
            return now.map(drop);
        }
        if let Ok(Some((process, held))) = now {
            live.pause(process.paused, self.providers.clock.monotonic_ms());
            live.rights.keep(version, Arc::new(held));
        }
        if live.info().state == ProcessState::Created {
            self.tell_process(&live.info());
        }
        let program = match self.program(&live.info().image).await {
            Ok(program) => program,
            Err(error) => {
                // It can be tried again.
                self.lock_live().remove(&pid);
                return Err(error);
            }
        };
        let info = live.set(ProcessState::Running, "");
        self.tell_process(&info);
        let executor = Arc::clone(&self.providers.executor);
        executor.spawn(Box::pin(async move { self.run(live, program).await }));
        Ok(())
    }

    async fn run(self: Arc<Self>, live: Arc<Live>, program: Option<Arc<dyn Program>>) {
        let (state, exit) = match program {
            Some(program) => self.execute(&live, program).await,
            None => {
                let message = format!("there is no image `{}` any more", live.info().image);
                (
                    ProcessState::Failed,
                    failure(SysError::new(Code::NotFound, message)),
                )
            }
        };
        // What comes at the end, once, takes no room while the process lives.
        Box::pin(self.ended(&live, state, exit)).await;
    }

    /// Writes down and tells that a process has ended.
    async fn ended(&self, live: &Live, state: ProcessState, exit: Exit) {
        // An effect that has begun is finished and written down first.
        let _between_effects = live.acting.lock().await;
        let now = self.providers.clock.now_ms();
        // Told as ended only once that is written down.
        let ran_ms = live.ran_ms(self.providers.clock.monotonic_ms());
        self.ledger.set_seconds(live.pid, ran_ms / 1000);
        let info = ProcessInfo {
            state,
            ended_ms: Some(now),
            status: String::new(),
            paused: false,
            used: self.ledger.close(live.pid),
            ..ProcessInfo::clone(&live.info())
        };
        if let Err(error) = self.end(&info, &exit).await {
            tracing::error!(pid = info.pid.0, %error, "a process's end was not written down");
        }
        if state == ProcessState::Killed
            && let Err(error) = self.kill(info.pid, "the end of its parent").await
        {
            // A child that was made just then; the others were killed before it.
            tracing::error!(pid = info.pid.0, %error, "a killed process's child was not stopped");
        }
        self.lock_live().remove(&info.pid);
        live.ended.send_replace(Some(exit.clone()));
        self.tell(KernelEvent::Process(info.clone()));
        self.tell(KernelEvent::Ended {
            process: info,
            exit,
        });
    }

    /// Runs a process's program, and each that it becomes, until the process ends.
    async fn execute(
        self: &Arc<Self>,
        live: &Arc<Live>,
        mut program: Arc<dyn Program>,
    ) -> (ProcessState, Exit) {
        loop {
            match self.run_program(live, program).await {
                Ended::Process(state, exit) => return (state, exit),
                Ended::Program(anew) => match Box::pin(self.begin_anew(live, anew)).await {
                    Ok(next) => program = next,
                    Err(error) => return (ProcessState::Failed, failure(error)),
                },
            }
        }
    }

    async fn run_program(self: &Arc<Self>, live: &Arc<Live>, program: Arc<dyn Program>) -> Ended {
        let sys = Sys::new(Arc::clone(self), Arc::clone(live));
        let mut stop = live.stop.subscribe();
        // A program that breaks down takes nothing with it.
        let running = AssertUnwindSafe(async move { program.run(sys).await }).catch_unwind();
        let out_of_time = async {
            match live.info().budget.seconds {
                Some(limit) => Box::pin(self.run_out_of_time(live, limit)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            why = stop.wait_for(Option::is_some) => {
                stopped(why.ok().and_then(|why| why.clone()))
            }
            ended = running => match ended {
                Ok(Ok(exit)) => Ended::Process(ProcessState::Exited, exit),
                Ok(Err(error)) => Ended::Process(ProcessState::Failed, failure(error)),
                Err(_panic) => {
                    let error = SysError::new(Code::Internal, "the agent's program broke down")
                        .hint("this is a fault of Steward; what was done stands in the journal");
                    Ended::Process(ProcessState::Failed, failure(error))
                }
            },
            error = out_of_time => {
                Ended::Process(ProcessState::Failed, failure(error))
            }
        }
    }

    /// What a process runs next.
    async fn begin_anew(&self, live: &Arc<Live>, anew: Anew) -> Result<Arc<dyn Program>, SysError> {
        let mut restored = None;
        if let Anew::Restore(restoring) = &anew {
            // An effect that has begun is finished and written down first.
            let _between_effects = live.acting.lock().await;
            restored = Some(self.take_back(restoring.id, &restoring.by).await);
            live.become_of(self.journal.process(live.pid).await?);
        }
        live.begin_anew(self.journal.history(live.pid).await?);
        let info = live.set(ProcessState::Running, "");
        self.tell_process(&info);
        if let (Anew::Restore(restoring), Some(restored)) = (anew, restored) {
            restoring.finish(restored)?;
        }
        self.program(&info.image).await?.ok_or_else(|| {
            let message = format!("there is no image `{}` any more", info.image);
            SysError::new(Code::NotFound, message)
        })
    }

    /// Ends once a process has run as long as it may, and had its time to end by itself.
    async fn run_out_of_time(&self, live: &Live, limit: u64) -> SysError {
        let clock = &self.providers.clock;
        loop {
            let ran = live.ran_ms(clock.monotonic_ms());
            self.ledger.set_seconds(live.pid, ran / 1000);
            let left = limit.saturating_mul(1000).saturating_sub(ran);
            if left == 0 {
                break;
            }
            if live.attention.is_paused() {
                live.attention.resumed().await;
                continue;
            }
            tokio::select! {
                () = clock.sleep_ms(left.min(TICK_MS)) => {}
                () = live.attention.pausing() => {}
            }
            let ran = live.ran_ms(clock.monotonic_ms());
            if let Err(error) = self.journal.ran(live.pid, ran).await {
                tracing::error!(pid = live.pid.0, %error, "how long it ran was not written down");
            }
        }
        let error = used_up(live.pid, What::Seconds, limit);
        live.spend(error.clone());
        live.attention.interrupt(error.clone());
        clock.sleep_ms(GRACE_MS).await;
        error
    }

    /// Opens a process's account, and those above it that are not open.
    async fn open_account(&self, process: &ProcessInfo) -> Result<(), SysError> {
        let known = process
            .parent
            .is_none_or(|parent| self.ledger.knows(parent));
        let fresh = process.state == ProcessState::Created && process.steps == 0;
        if fresh && known {
            self.ledger.open(&[Opening {
                pid: process.pid,
                parent: process.parent,
                limits: process.budget,
                used: Used::default(),
                lives: true,
            }]);
            return Ok(());
        }
        self.ledger.open(&self.journal.accounts(process.pid).await?);
        Ok(())
    }

    pub(crate) async fn exit_of(&self, pid: Pid) -> Result<Exit, SysError> {
        if let Some(live) = self.find(pid) {
            let mut ended = live.ended.subscribe();
            if let Ok(exit) = ended.wait_for(Option::is_some).await
                && let Some(exit) = exit.clone()
            {
                return Ok(exit);
            }
        }
        self.journal.exit_of(pid).await?.ok_or_else(|| {
            SysError::new(Code::NotFound, format!("process `{pid}` does not run here"))
                .hint("list processes with `steward ps`")
        })
    }

    /// Sends a signal. Pause and resume reach a process that does not run here as well.
    pub(crate) async fn signal(&self, pid: Pid, signal: Signal, by: &str) -> Result<(), SysError> {
        match signal {
            Signal::Kill => self.kill(pid, by).await,
            Signal::Pause | Signal::Resume => {
                let paused = signal == Signal::Pause;
                let now = self.providers.clock.now_ms();
                let changed = self.journal.pause(pid, paused, by.to_owned(), now).await?;
                if !changed {
                    return Ok(());
                }
                match self.find(pid) {
                    Some(live) => {
                        let now = self.providers.clock.monotonic_ms();
                        self.tell_process(&live.pause(paused, now));
                        self.journal.ran(pid, live.ran_ms(now)).await?;
                    }
                    None => self.tell(KernelEvent::Process(self.told(pid).await?)),
                }
                Ok(())
            }
            Signal::Interrupt => {
                let Some(live) = self.find(pid) else {
                    let process = self.told(pid).await?;
                    let message = format!("process `{pid}` is {}", process.state.as_str());
                    return Err(SysError::new(Code::Conflict, message)
                        .hint("interrupt a process that runs"));
                };
                let now = self.providers.clock.now_ms();
                self.journal.interrupt(pid, by.to_owned(), now).await?;
                let message = format!("interrupted by {by}");
                let why = SysError::new(Code::Interrupted, message)
                    .hint("go on without it, or end with what is done");
                live.attention.interrupt(why);
                Ok(())
            }
        }
    }

    /// A process as it stands.
    pub(crate) async fn told(&self, pid: Pid) -> Result<ProcessInfo, SysError> {
        let found = self.journal.process(pid).await?;
        found.map(|p| self.as_it_stands(p)).ok_or_else(|| {
            SysError::new(Code::NotFound, format!("there is no process `{pid}`"))
                .hint("list processes with `steward ps`")
        })
    }

    /// Ends a process and its descendants, children first.
    pub(crate) async fn kill(&self, pid: Pid, by: &str) -> Result<(), SysError> {
        let process = self.journal.process(pid).await?.ok_or_else(|| {
            SysError::new(Code::NotFound, format!("there is no process `{pid}`"))
                .hint("list processes with `steward ps`")
        })?;
        let family = self.journal.processes_of_run(process.run).await?;
        let mut doomed = vec![pid];
        for process in &family {
            if process
                .parent
                .is_some_and(|parent| doomed.contains(&parent))
            {
                doomed.push(process.pid);
            }
        }
        for pid in doomed.into_iter().rev() {
            let Some(process) = family.iter().find(|p| p.pid == pid) else {
                continue;
            };
            if process.state.is_final() {
                continue;
            }
            match self.find(pid) {
                Some(live) => live.stop(Stop::Killed(by.to_owned())),
                None => self.end_suspended(process, by).await?,
            }
        }
        Ok(())
    }

    /// Writes a process's end down and tells which of its approvals lapsed with it.
    async fn end(&self, info: &ProcessInfo, exit: &Exit) -> Result<(), SysError> {
        let lapsed = self.journal.end_process(info.clone(), exit.clone()).await?;
        for id in lapsed {
            self.tell(KernelEvent::Decided {
                id,
                approved: false,
                by: "process ended".to_owned(),
            });
        }
        Ok(())
    }

    async fn end_suspended(&self, process: &ProcessInfo, by: &str) -> Result<(), SysError> {
        let now = self.providers.clock.now_ms();
        let info = ProcessInfo {
            state: ProcessState::Killed,
            ended_ms: Some(now),
            ..process.clone()
        };
        let exit = failure(SysError::new(Code::Interrupted, format!("stopped by {by}")));
        self.end(&info, &exit).await?;
        // It may have been started just then.
        if let Some(live) = self.find(info.pid) {
            live.stop(Stop::Killed(by.to_owned()));
        }
        self.tell(KernelEvent::Process(info.clone()));
        self.tell(KernelEvent::Ended {
            process: info,
            exit,
        });
        Ok(())
    }
}

/// What ended when a program did.
enum Ended {
    Process(ProcessState, Exit),
    /// The program only: the process goes on.
    Program(Anew),
}

fn stopped(why: Option<Stop>) -> Ended {
    let killed = |message: String| {
        let error = SysError::new(Code::Interrupted, message);
        Ended::Process(ProcessState::Killed, failure(error))
    };
    match why {
        Some(Stop::Exit(exit)) => Ended::Process(ProcessState::Exited, exit),
        Some(Stop::Killed(by)) => killed(format!("stopped by {by}")),
        Some(Stop::Spent(error)) => Ended::Process(ProcessState::Failed, failure(error)),
        Some(Stop::Anew(anew)) => Ended::Program(anew),
        None => killed("stopped".to_owned()),
    }
}

fn failure(error: SysError) -> Exit {
    Exit {
        ok: false,
        answer: String::new(),
        error: Some(error),
    }
}
