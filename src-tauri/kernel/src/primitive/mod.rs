//! The primitives: where a system call's rights are checked and its effect happens.

mod admit;
mod capability;
mod change;
mod checkpoint;
mod clock;
mod files;
mod image;
mod llm;
mod noted;
mod object;
mod outside;
mod person;
mod process;
mod rights;
mod spend;
mod stand;
mod turn;
mod undo;

pub(crate) use checkpoint::labelled;
use files::bounded;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::Value;

use crate::capability::{Resource, Verdict};
use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::event::{KernelEvent, Step, StepState};
use crate::executor;
use crate::journal::{About, At, CallRow, CallState, Ended, LastCall};
use crate::kernel::Inner;
use crate::live::Live;
use crate::process::{ProcessInfo, ProcessState, path_within};
use crate::provider::Files;
use crate::sys::is_step;
use crate::syscall::{Module, Record, Syscall};

/// A system call that the kernel can carry out. It is implemented for every call of the catalogue
/// and nothing else.
pub trait Primitive: Syscall {
    /// What it is about, for the journal: names and sizes, never contents.
    fn subject(&self) -> String;
    /// What it is done to, where that is known before its rights are checked: a path by its whole
    /// name. Else the journal has what the rights were checked for.
    fn resource(&self, _workspace: &Path) -> Option<String> {
        None
    }
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
    info: Arc<ProcessInfo>,
    row: CallRow,
    about: About,
    name: &'static str,
    module: Module,
    record: Record,
    step: bool,
    began_ms: u64,
    since_ms: u64,
    /// Milliseconds that it waited for turns of its module.
    waited_ms: AtomicU64,
    /// What its rows in the journal say.
    noted: noted::Noted,
    /// What the call takes a use of.
    taken: rights::Taken,
    /// Whether the person said yes to it as a whole.
    may: AtomicBool,
    /// Whether it was made before the kernel was started again, and is carried out now.
    again: bool,
    /// Whether the call stands in the journal.
    intended: AtomicBool,
    /// Whether the outcome stands in the journal already (irreversible calls write it together
    /// with the effect).
    recorded: AtomicBool,
}

impl Ctx {
    pub(crate) async fn enter<S: Primitive>(
        inner: &Arc<Inner>,
        live: &Arc<Live>,
        place: Option<(u64, Option<CallRow>)>,
        args: String,
        call: &S,
    ) -> Result<Self, SysError> {
        let title = shown(&call.title());
        let (seq, before) = place.unwrap_or_default();
        let stands = before.is_some();
        let row = match before {
            Some(row) if row.name == S::NAME && row.args == args => row,
            Some(row) => return Err(another_call::<S>(seq, &row.name)),
            None => CallRow::new(inner.journal.next_call(), seq, S::NAME),
        };
        let clock = &inner.providers.clock;
        let info = live.info();
        let ctx = Self {
            noted: noted::Noted::new(call.resource(&info.workspace)),
            info,
            row,
            about: About {
                args,
                title,
                subject: call.subject(),
            },
            name: S::NAME,
            module: S::MODULE,
            record: S::RECORD,
            step: S::RECORD != Record::Nothing && is_step::<S>(&call.title()),
            began_ms: clock.now_ms(),
            since_ms: clock.monotonic_ms(),
            waited_ms: AtomicU64::new(0),
            taken: rights::Taken::default(),
            may: AtomicBool::new(false),
            again: stands,
            intended: AtomicBool::new(stands),
            recorded: AtomicBool::new(false),
            inner: Arc::clone(inner),
            live: Arc::clone(live),
        };
        if matches!(S::RECORD, Record::Later | Record::Steps) {
            Box::pin(ctx.intend()).await?;
        }
        Ok(ctx)
    }

    /// Writes down that this call was made, where that does not stand yet: before the person is
    /// asked about it, or anything happens.
    async fn intend(&self) -> Result<(), SysError> {
        if self.intended.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let at = At {
            now_ms: self.began_ms,
            ..self.at()
        };
        let later = self.record == Record::Later;
        let journal = &self.inner.journal;
        journal
            .intent(self.row.id, at, self.about.clone(), later)
            .await
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
        if S::RECORD == Record::Nothing {
            self.admit::<S>().await?;
            return call.perform(self).await.map(|done| done.output);
        }
        self.enter_state(ProcessState::WaitingTool);
        self.tell_step(StepState::Running, "");
        let done = match self.admit::<S>().await {
            Ok(()) => call.perform(self).await,
            Err(refused) => Err(refused),
        };
        if let Err(error) = &done {
            self.noted.error(error);
        }
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
        let tokens = done.as_ref().map_or(0, |d| d.tokens);
        if !self.recorded.load(Ordering::Acquire) {
            let result = match &done {
                Ok(done) => Ok(json(&done.output)?),
                Err(error) => Err(error.clone()),
            };
            let ended = Ended {
                state,
                result,
                detail: detail.clone(),
                record,
                tokens,
            };
            Box::pin(self.end(ended)).await?;
        }
        self.tell_step(step_state(state), &detail);
        self.live.update(|info| {
            info.tokens += tokens;
            info.steps += 1;
        });
        let info = self.live.set(ProcessState::Running, "");
        self.inner.tell_process(&info);
        done.map(|d| d.output)
    }

    /// This call as the last of a history that another process begins with.
    fn as_last(&self, result: Value) -> LastCall {
        LastCall {
            name: self.name,
            args: self.about.args.clone(),
            title: self.about.title.clone(),
            result,
        }
    }

    /// A path from the workspace's root, as the process means it in its folder.
    fn path(&self, path: &str) -> Result<String, SysError> {
        path_within(&self.info.cwd, path)
    }

    /// Writes down how this call ended.
    async fn write_down(&self, ended: Ended) -> Result<(), SysError> {
        let (journal, call, at) = (&self.inner.journal, self.row.id, self.at());
        if self.intended.load(Ordering::Acquire) {
            let later = self.record == Record::Later;
            return journal.outcome(call, at, ended, later).await;
        }
        let about = self.about.clone();
        journal.looked(call, at, about, self.began_ms, ended).await
    }

    fn at(&self) -> At {
        At {
            pid: self.info.pid,
            run: self.info.run,
            seq: self.row.seq,
            name: self.name,
            now_ms: self.inner.providers.clock.now_ms(),
            audit: self.audit(),
        }
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

    /// Runs work on files off the kernel's threads.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Files, PathBuf) -> Result<T, SysError> + Send + 'static,
    ) -> Result<T, SysError> {
        let root = self.info.workspace.clone();
        self.inner.on_files(move |files| work(files, root)).await
    }

    fn enter_state(&self, state: ProcessState) {
        if matches!(
            state,
            ProcessState::WaitingEvent | ProcessState::WaitingHuman
        ) {
            self.live.rights.forget();
        }
        let info = self.live.set(state, &self.about.title);
        self.inner.tell_process(&info);
    }

    fn tell_step(&self, state: StepState, detail: &str) {
        if !self.step || !self.inner.is_watched() {
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
                title: self.about.title.clone(),
                detail: detail.to_owned(),
                state,
                elapsed_ms: ended.then(|| now.saturating_sub(self.since_ms)),
            },
        });
    }
}

impl Inner {
    /// Runs work on files off the kernel's threads.
    pub(crate) async fn on_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Files) -> Result<T, SysError> + Send + 'static,
    ) -> Result<T, SysError> {
        let files = Arc::clone(&self.providers.files);
        let work = move || work(files.as_ref());
        executor::blocking(&self.providers.executor, "the file provider", work).await?
    }

    /// Tells that a process changed, if anyone listens.
    pub(crate) fn tell_process(&self, info: &Arc<ProcessInfo>) {
        if self.is_watched() {
            self.tell(KernelEvent::Process(ProcessInfo::clone(info)));
        }
    }
}

/// A replay that strays from what was written down.
fn another_call<S: Syscall>(seq: u64, before: &str) -> SysError {
    SysError::new(
        Code::Internal,
        format!(
            "call {seq} was `{before}` before the restart and is `{}` now",
            S::NAME
        ),
    )
    .hint("start the request anew; what was done stands in the journal")
}

/// How a call ends by an error.
fn ended_as(code: Code) -> CallState {
    match code {
        Code::Denied | Code::Refused | Code::Expired | Code::Confined => CallState::Denied,
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

/// By which capability and standing grant, for the journal.
fn by(verdict: Verdict) -> String {
    match verdict.standing {
        Some(standing) => format!(", by capability {}, standing grant {standing}", verdict.by),
        None => format!(", by capability {}", verdict.by),
    }
}

/// The first eight digits of a digest: enough to tell versions apart in a list.
fn short(digest: &crate::provider::Digest) -> &str {
    digest.0.get(..8).unwrap_or(&digest.0)
}
