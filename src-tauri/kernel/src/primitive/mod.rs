//! The primitives: where a system call's rights are checked and its effect happens.

mod change;
mod clock;
mod files;
mod llm;
mod person;
mod process;
mod undo;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::capability::{self, Need, Resource, Right, Verdict};
use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::event::{KernelEvent, Step, StepState};
use crate::journal::{At, CallRow, CallState, Ended};
use crate::kernel::Inner;
use crate::live::Live;
use crate::process::{ProcessInfo, ProcessState};
use crate::provider::Files;
use crate::scheduler::{Caller, Slot};
use crate::sys::is_step;
use crate::syscall::{Module, Syscall};

/// A system call that the kernel can carry out. It is implemented for every call of the catalogue
/// and nothing else.
pub trait Primitive: Syscall {
    /// What it is about, for the journal: names and sizes, never contents.
    fn subject(&self) -> String;
    /// Checks the caller's rights and does it.
    fn perform(
        self,
        ctx: &Ctx,
    ) -> impl Future<Output = Result<Outcome<Self::Output>, SysError>> + Send;
}

/// How a primitive ended well.
pub struct Outcome<T> {
    output: T,
    /// For the person, in a few words.
    detail: String,
    /// What the journal is told beyond that: by which right, what digest.
    record: String,
    tokens: u64,
}

impl<T> Outcome<T> {
    fn record(self, record: String) -> Self {
        Self { record, ..self }
    }

    fn new(output: T, detail: impl Into<String>) -> Self {
        Self {
            output,
            detail: detail.into(),
            record: String::new(),
            tokens: 0,
        }
    }
}

/// One call of one process, while it is carried out.
pub struct Ctx {
    inner: Arc<Inner>,
    live: Arc<Live>,
    info: ProcessInfo,
    row: CallRow,
    name: &'static str,
    module: Module,
    title: String,
    step: bool,
    since_ms: u64,
    /// Whether the outcome stands in the journal already (irreversible calls write it together
    /// with the effect).
    recorded: AtomicBool,
}

impl Ctx {
    pub(crate) async fn enter<S: Primitive>(
        inner: &Arc<Inner>,
        live: &Arc<Live>,
        seq: u64,
        before: Option<CallRow>,
        args: String,
        call: &S,
    ) -> Result<Self, SysError> {
        let info = live.info();
        let title = shown(&call.title());
        let now_ms = inner.providers.clock.now_ms();
        let at = At {
            pid: info.pid,
            run: info.run,
            seq,
            name: S::NAME,
            now_ms,
        };
        let row = match before {
            Some(row) if row.name == S::NAME && row.args == args => row,
            Some(row) => {
                return Err(SysError::new(
                    Code::Internal,
                    format!(
                        "call {seq} was `{}` before the restart and is `{}` now",
                        row.name,
                        S::NAME
                    ),
                )
                .hint("start the request anew; what was done stands in the journal"));
            }
            None => {
                inner
                    .journal
                    .intent(at, args, title.clone(), call.subject())
                    .await?
            }
        };
        let step = is_step::<S>(&title);
        let (inner, live) = (Arc::clone(inner), Arc::clone(live));
        let recorded = AtomicBool::new(false);
        let since_ms = inner.providers.clock.monotonic_ms();
        Ok(Self {
            inner,
            live,
            info,
            row,
            name: S::NAME,
            module: S::MODULE,
            title,
            step,
            since_ms,
            recorded,
        })
    }

    /// The result this call had before the kernel was started again.
    pub(crate) fn past_result<S: Primitive>(&self) -> Option<Result<S::Output, SysError>> {
        let ended = matches!(
            self.row.state,
            CallState::Done | CallState::Denied | CallState::Failed
        );
        let Some(result) = self.row.result.clone() else {
            // What has ended is never done again, whatever became of its result.
            return ended.then(|| {
                Err(SysError::new(
                    Code::Internal,
                    format!("the result of call {} is not kept", self.row.seq),
                ))
            });
        };
        Some(result.and_then(|value| {
            serde_json::from_value(value).map_err(|e| {
                SysError::new(Code::Internal, format!("a kept result does not fit: {e}"))
            })
        }))
    }

    pub(crate) async fn carry_out<S: Primitive>(&self, call: S) -> Result<S::Output, SysError> {
        self.enter_state(ProcessState::WaitingTool);
        self.tell_step(StepState::Running, "");
        let done = call.perform(self).await;
        let (state, detail, record) = match &done {
            Ok(done) => (
                CallState::Done,
                done.detail.clone(),
                format!("{}{}", done.detail, done.record),
            ),
            Err(error) => (
                ended_as(error.code),
                shown(&error.message),
                shown(&error.message),
            ),
        };
        if !self.recorded.load(Ordering::Acquire) {
            let (result, tokens) = match &done {
                Ok(done) => (Ok(json(&done.output)?), done.tokens),
                Err(error) => (Err(error.clone()), 0),
            };
            let ended = Ended {
                state,
                result,
                detail: detail.clone(),
                record,
                tokens,
            };
            self.inner
                .journal
                .outcome(self.row.id, self.at(), ended)
                .await?;
        }
        self.tell_step(step_state(state), &detail);
        let tokens = done.as_ref().map_or(0, |d| d.tokens);
        let info = self.live.update(|info| {
            info.tokens += tokens;
            info.steps += 1;
            info.state = ProcessState::Running;
            info.status.clear();
        });
        self.inner.tell(KernelEvent::Process(info));
        done.map(|d| d.output)
    }

    fn at(&self) -> At {
        At {
            pid: self.info.pid,
            run: self.info.run,
            seq: self.row.seq,
            name: self.name,
            now_ms: self.inner.providers.clock.now_ms(),
        }
    }

    /// What the caller's capabilities say to a need, now.
    async fn check(&self, resource: Resource, right: Right) -> Result<Verdict, SysError> {
        let held = self.inner.journal.held(self.info.pid).await?;
        capability::decide(&held, &Need { resource, right })
    }

    /// What this call was told to remember under a name before the kernel was started again.
    fn memo(&self, name: &str) -> Option<&Value> {
        self.row.memo.as_ref()?.get(name)
    }

    /// What this call remembers, with one thing more.
    fn memo_with(&self, name: &str, value: Value) -> Value {
        let mut memo = self.row.memo.clone().unwrap_or(Value::Null);
        if !memo.is_object() {
            memo = serde_json::json!({});
        }
        memo[name] = value;
        memo
    }

    fn workspace(&self) -> Resource {
        Resource::Workspace {
            root: self.info.workspace.clone(),
        }
    }

    /// Waits for this module's turn.
    async fn turn(&self) -> Result<Slot, SysError> {
        let caller = Caller::new(self.info.pid, self.info.run);
        self.inner.scheduler.enter(self.module, caller).await
    }

    /// Runs work on files off the kernel's threads.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Files, PathBuf) -> Result<T, SysError> + Send + 'static,
    ) -> Result<T, SysError> {
        let files = Arc::clone(&self.inner.providers.files);
        let root = self.info.workspace.clone();
        tokio::task::spawn_blocking(move || work(files.as_ref(), root))
            .await
            .map_err(|e| SysError::new(Code::Internal, format!("the file provider stopped: {e}")))?
    }

    fn enter_state(&self, state: ProcessState) {
        let info = self.live.set(state, &self.title);
        self.inner.tell(KernelEvent::Process(info));
    }

    fn tell_step(&self, state: StepState, detail: &str) {
        if !self.step {
            return;
        }
        let ended = !matches!(state, StepState::Running | StepState::Waiting);
        let now = self.inner.providers.clock.monotonic_ms();
        self.inner.tell(KernelEvent::Step {
            pid: self.info.pid,
            run: self.info.run,
            step: Step {
                seq: self.row.seq,
                name: self.name.to_owned(),
                title: self.title.clone(),
                detail: detail.to_owned(),
                state,
                elapsed_ms: ended.then(|| now.saturating_sub(self.since_ms)),
            },
        });
    }
}

/// How a call ends by an error.
fn ended_as(code: Code) -> CallState {
    match code {
        Code::Denied | Code::Refused | Code::Confined => CallState::Denied,
        Code::Unknown => CallState::Unknown,
        _ => CallState::Failed,
    }
}

pub(crate) fn step_state(state: CallState) -> StepState {
    match state {
        CallState::Intent | CallState::Executing => StepState::Running,
        CallState::Waiting => StepState::Waiting,
        CallState::Done => StepState::Done,
        CallState::Denied => StepState::Denied,
        CallState::Failed => StepState::Failed,
        CallState::Unknown => StepState::Unknown,
    }
}

fn json<T: serde::Serialize>(value: &T) -> Result<Value, SysError> {
    serde_json::to_value(value).map_err(|e| SysError::new(Code::Internal, e.to_string()))
}

/// By which capability, for the journal.
fn by(verdict: Verdict) -> String {
    format!(", by capability {}", verdict.by)
}

/// The first eight digits of a digest: enough to tell versions apart in a list.
fn short(digest: &crate::provider::Digest) -> &str {
    digest.0.get(..8).unwrap_or(&digest.0)
}
