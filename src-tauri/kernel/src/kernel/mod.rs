//! The kernel: starts processes, hands them their door, and serves the surfaces.

mod inner;
mod setup;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, broadcast};

use crate::audit::verify::Verification;
use crate::audit::{self, Format, JournalQuery, JournalRow, Retention, Span};
use crate::budget::Ledger;
use crate::context::{ContextLoad, Contexts};
use crate::error::{Code, SysError};
use crate::event::{KernelEvent, Step};
use crate::executor;
use crate::human::{Question, Standing};
use crate::journal::{CallId, CommitHook, Journal, NewProcess};
use crate::live::Live;
use crate::primitive::step_state;
use crate::process::{Pid, ProcessInfo, RunId};
use crate::scheduler::{ModuleLoad, PolicyChoice, Scheduler};
use crate::syscall::{Exit, Module};

pub(crate) use inner::Waiter;
pub use setup::{Images, Providers, Submission};

/// Bytes of a request at most.
const REQUEST_MOST: usize = 64 * 1024;

/// How an answer to an approval or question was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// It counts.
    Counted,
    /// It came too late; what was decided, in words.
    TooLate(String),
}

/// The operating system for agents. Cheap to clone.
#[derive(Clone)]
pub struct Kernel {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) journal: Journal,
    pub(crate) providers: Providers,
    pub(crate) images: Arc<dyn Images>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) contexts: Arc<Contexts>,
    pub(crate) ledger: Ledger,
    events: broadcast::Sender<KernelEvent>,
    live: Mutex<HashMap<Pid, Arc<Live>>>,
    waiters: Mutex<HashMap<CallId, Arc<Notify>>>,
    /// What the steady clock counts from.
    pub(crate) boot: String,
    /// Counts the changes to policies.
    pub(crate) policies: AtomicU64,
    /// Policies as last read, under that count.
    pub(crate) standing: Mutex<Option<(u64, Arc<Vec<Standing>>)>>,
    /// Milliseconds that an approval waits; for ever where zero.
    pub(crate) approvals_wait: AtomicU64,
    /// Counts the changes to capabilities that may reach any process.
    rights: AtomicU64,
}

impl Kernel {
    /// Opens the journal of a data directory; nothing runs yet (see [`Kernel::resume`]). One kernel
    /// at a time may have a journal: whoever calls holds the directory's lock.
    ///
    /// # Errors
    /// The journal cannot be opened, is damaged, or is from a newer program.
    pub fn open(
        journal: &Path,
        providers: Providers,
        images: Arc<dyn Images>,
    ) -> Result<Self, SysError> {
        Self::open_observed(journal, providers, images, None)
    }

    /// As [`Kernel::open`], with a function called after every commit of the journal: for tests
    /// that end the program between two commits.
    ///
    /// # Errors
    /// As [`Kernel::open`].
    pub fn open_observed(
        journal: &Path,
        providers: Providers,
        images: Arc<dyn Images>,
        hook: Option<CommitHook>,
    ) -> Result<Self, SysError> {
        let scheduler = Scheduler::new(&PolicyChoice::default(), Arc::clone(&providers.clock))?;
        scheduler.set_limit(Module::Llm, providers.core.at_once())?;
        let contexts = Contexts::new(
            Arc::clone(&providers.snapshots),
            Arc::clone(&providers.executor),
        );
        let journal = Journal::open(
            journal,
            Arc::clone(&providers.executor),
            Arc::clone(&providers.witness),
            providers.clock.now_ms(),
            hook,
        )?;
        let opening = || format!("opening {}", journal.opening());
        let inner = Inner {
            boot: providers.clock.boot().unwrap_or_else(opening),
            policies: AtomicU64::new(0),
            standing: Mutex::default(),
            approvals_wait: AtomicU64::new(0),
            journal,
            providers,
            images,
            scheduler,
            contexts,
            ledger: Ledger::default(),
            events: broadcast::channel(4096).0,
            live: Mutex::default(),
            waiters: Mutex::default(),
            rights: AtomicU64::new(0),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Runs processes on that had not ended when the program did: all, or those of one run. Each is
    /// run again from its start, with the results that its calls had, until it stands where it
    /// stood.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn resume(&self, only: Option<RunId>) -> Result<usize, SysError> {
        let mut count = 0;
        // Children first: a parent that runs on may wait for one, and then finds it running.
        for process in self.inner.journal.unfinished().await?.into_iter().rev() {
            if only.is_none_or(|run| run == process.run) {
                Arc::clone(&self.inner).start(process).await?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Starts a run.
    ///
    /// # Errors
    /// The workspace is not there or not readable, the image does not exist, the request is empty
    /// or too long, a grant says nothing.
    pub async fn submit(&self, submission: Submission) -> Result<ProcessInfo, SysError> {
        self.submit_in(submission, "").await
    }

    /// Starts a run in a folder of the workspace.
    ///
    /// # Errors
    /// As [`Kernel::submit`]; [`Code::Confined`] for a folder that leads out,
    /// [`Code::NotFound`] for one that is not there.
    pub async fn submit_in(
        &self,
        submission: Submission,
        folder: &str,
    ) -> Result<ProcessInfo, SysError> {
        let Submission {
            image,
            goal,
            workspace,
            grants,
            after,
            budget,
        } = submission;
        if goal.trim().is_empty() {
            return Err(SysError::new(Code::Invalid, "the request is empty")
                .hint("say in a few words what is to be done"));
        }
        if goal.len() > REQUEST_MOST {
            let message = format!(
                "the request has `{}` bytes, `{REQUEST_MOST}` is the most",
                goal.len()
            );
            return Err(
                SysError::new(Code::Limit, message).hint("put the text into a file and name it")
            );
        }
        let image = self.inner.exact_image(&image).await?;
        Inner::check_grants(&grants)?;
        let (workspace, grants) = self.inner.settled(workspace, grants).await?;
        let cwd = self.inner.folder_of(&workspace, folder).await?;
        let new = NewProcess {
            parent: None,
            after,
            call: None,
            image,
            goal,
            workspace,
            cwd,
            mode: None,
            budget,
            history: None,
            grants: grants.into_iter().map(|grant| (grant, None)).collect(),
            issuer: "person".to_owned(),
            now_ms: self.inner.providers.clock.now_ms(),
            steady: self.inner.now().steady,
        };
        let (process, _) = self.inner.journal.create_process(new).await?;
        Arc::clone(&self.inner).start(process.clone()).await?;
        Ok(process)
    }

    /// Events from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<KernelEvent> {
        self.inner.events.subscribe()
    }

    /// The latest thousand processes, newest first. One that has not ended and does not run here is
    /// told as suspended, or as waiting for the person.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn processes(&self) -> Result<Vec<ProcessInfo>, SysError> {
        let all = self.inner.journal.processes().await?;
        Ok(all
            .into_iter()
            .map(|p| self.inner.as_it_stands(p))
            .collect())
    }

    /// One process.
    ///
    /// # Errors
    /// [`Code::NotFound`] where there is none of that number.
    pub async fn process(&self, pid: Pid) -> Result<ProcessInfo, SysError> {
        self.inner.told(pid).await
    }

    /// Steps of a process, in order.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn steps(&self, pid: Pid) -> Result<Vec<Step>, SysError> {
        let rows = self.inner.journal.steps(pid).await?;
        let shown = rows.into_iter().filter(|row| {
            !row.title.is_empty()
                && !matches!(
                    row.name.as_str(),
                    "clock.now" | "process.list" | "process.exit"
                )
        });
        Ok(shown
            .map(|row| Step {
                seq: row.seq,
                name: row.name,
                title: row.title,
                detail: row.detail,
                state: step_state(row.state),
                elapsed_ms: row.ended_ms.map(|end| end.saturating_sub(row.created_ms)),
            })
            .collect())
    }

    /// How a process ended, once it has.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn exit(&self, pid: Pid) -> Result<Option<Exit>, SysError> {
        self.inner.journal.exit_of(pid).await
    }

    /// Waits until a process has ended.
    ///
    /// # Errors
    /// [`Code::NotFound`] where it neither runs here nor has ended.
    pub async fn wait(&self, pid: Pid) -> Result<Exit, SysError> {
        self.inner.exit_of(pid).await
    }

    /// Questions that wait, oldest first.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn questions(&self) -> Result<Vec<Question>, SysError> {
        self.inner.journal.questions().await
    }

    /// Answers a question. The first answer counts.
    ///
    /// # Errors
    /// [`Code::NotFound`] for a number that is none.
    pub async fn answer(&self, id: u64, text: &str, by: &str) -> Result<Taken, SysError> {
        if text.len() > REQUEST_MOST {
            return Err(SysError::new(
                Code::Limit,
                format!("the answer has `{}` bytes", text.len()),
            )
            .hint("say it shorter"));
        }
        let now = self.inner.providers.clock.now_ms();
        match self
            .inner
            .journal
            .reply(id, text.to_owned(), by.to_owned(), now)
            .await?
        {
            Some(call) => {
                self.inner.wake(call);
                Ok(Taken::Counted)
            }
            None => Ok(Taken::TooLate("it was answered already".to_owned())),
        }
    }

    /// Ends a process and its children.
    ///
    /// # Errors
    /// [`Code::NotFound`] for a number that is none.
    pub async fn kill(&self, pid: Pid, by: &str) -> Result<(), SysError> {
        self.inner.kill(pid, by).await
    }

    /// Rows of the journal, newest first.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn journal(&self, query: JournalQuery) -> Result<Vec<JournalRow>, SysError> {
        self.inner.journal.rows(query).await
    }

    /// When older rows of the journal go to an archive beside it, and which stay.
    pub fn set_retention(&self, retention: Retention) {
        self.inner.journal.set_retention(retention);
    }

    /// Checks every row of the journal, and its end against what the witness signed.
    ///
    /// # Errors
    /// The journal cannot be opened. What is wrong with its rows is no error but what is told.
    pub async fn verify(&self) -> Result<Verification, SysError> {
        self.inner.journal.settled().await?;
        let path = self.inner.journal.path().to_owned();
        let witness = Arc::clone(&self.inner.providers.witness);
        let executor = &self.inner.providers.executor;
        let verify = move || audit::verify_journal(&path, witness.as_ref());
        executor::blocking(executor, "the check of the journal", verify).await?
    }

    /// Writes the journal's rows out, oldest first, those of archives before; how many there were.
    ///
    /// # Errors
    /// The journal cannot be read, or what is written cannot be.
    pub async fn export(
        &self,
        format: Format,
        span: Span,
        mut out: Box<dyn std::io::Write + Send>,
    ) -> Result<u64, SysError> {
        self.inner.journal.settled().await?;
        let path = self.inner.journal.path().to_owned();
        let executor = &self.inner.providers.executor;
        let export = move || audit::export_journal(&path, format, span, out.as_mut());
        executor::blocking(executor, "the export of the journal", export).await?
    }

    /// A piece of [`Kernel::export`] as lines, and where the next one goes on; the first from 0.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn export_piece(
        &self,
        format: Format,
        after: u64,
    ) -> Result<(Vec<String>, Option<u64>), SysError> {
        self.inner.journal.settled().await?;
        let path = self.inner.journal.path().to_owned();
        let executor = &self.inner.providers.executor;
        let export = move || audit::export_piece(&path, format, after);
        executor::blocking(executor, "the export of the journal", export).await?
    }

    /// Runs that changed files and were not undone.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn undoable_runs(&self) -> Result<std::collections::HashSet<RunId>, SysError> {
        self.inner.journal.undoable_runs().await
    }

    /// How many calls wait in a module's queue, and how many run.
    pub fn load(&self, module: Module) -> (usize, usize) {
        self.inner.scheduler.load(module)
    }

    /// How every module's queue stands: policy, limit, who waits and runs, how long they waited.
    pub fn scheduling(&self) -> Vec<ModuleLoad> {
        self.inner.scheduler.loads()
    }

    /// Takes another scheduling policy, for one module or for all. Nothing that waits or runs is
    /// lost.
    ///
    /// # Errors
    /// None for a choice that was read.
    pub fn set_policy(
        &self,
        module: Option<Module>,
        policy: &PolicyChoice,
    ) -> Result<(), SysError> {
        self.inner.scheduler.set_policy(module, policy)
    }

    /// Sets how many calls of a module may run at once.
    ///
    /// # Errors
    /// [`Code::Invalid`] for a number that cannot be.
    pub fn set_limit(&self, module: Module, limit: usize) -> Result<(), SysError> {
        self.inner.scheduler.set_limit(module, limit)
    }

    /// How the generations that wait for a slice stand.
    pub fn contexts(&self) -> ContextLoad {
        self.inner.contexts.load()
    }

    /// Sets how much memory generations may hold that wait; above it, those that have waited
    /// longest go to the snapshots until their turn.
    pub fn set_context_limit(&self, bytes: u64) {
        self.inner.contexts.set_limit(bytes);
    }

    /// Waits until all that happened so far is on disk.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub async fn flush(&self) -> Result<(), SysError> {
        self.inner.journal.write(|_| Ok(())).await
    }
}
