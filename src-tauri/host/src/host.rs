//! A running kernel behind the commands that every surface shares.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use steward_kernel::image::Image;
use steward_kernel::provider::{Files, NoWitness, Witness};
use steward_kernel::{
    Images, Kernel, KernelEvent, Pid, Program, Providers, Submission, SysError, Taken, capability,
};
use steward_store::WorkspaceFiles;
use tokio::sync::broadcast;

use crate::clock::SystemClock;
use crate::lock::{self, DataLock};
use crate::models::Models;
use crate::paths::Paths;
use crate::settings::Config;
use crate::socket::{self, Client};
use crate::surface::{
    Answer, Command, Decide, Event, LogQuery, Problem, ProcessDetail, Reply, SettingsChange,
    SignalView, Submit,
};
use crate::witness::KeyWitness;
use crate::{core, undo, view};

/// Rows of the journal told at most, and where nothing is said.
const LOG_MOST: u32 = 10_000;
const LOG_DEFAULT: u32 = 100;
/// How long a program that has the data directory may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which surface speaks. Only a surface that shows an approval may answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// The desktop's launcher or main window.
    Window,
    /// The desktop's approval dialog.
    Dialog,
    /// The terminal, in this program or over the local socket.
    Terminal,
}

impl Surface {
    fn name(self) -> &'static str {
        match self {
            Surface::Window | Surface::Dialog => "window",
            Surface::Terminal => "terminal",
        }
    }
}

/// What runs on when a host opens that had not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// Nothing: only what is asked for now runs.
    Nothing,
    /// Everything.
    All,
}

/// The way to a kernel: in this program, or in another that has the data directory.
pub enum Attached {
    /// This program is the kernel.
    Own(Arc<Host>),
    /// Another program is.
    Other(Client),
}

type Toggle = Box<dyn Fn() + Send + Sync>;

/// A running kernel with its providers, behind the commands of [`crate::surface`].
pub struct Host {
    kernel: Kernel,
    files: Arc<dyn Files>,
    paths: Paths,
    config: RwLock<Config>,
    model: String,
    models: Models,
    events: broadcast::Sender<Event>,
    toggle: Mutex<Option<Toggle>>,
    /// Whether this program is about to end. Read while another program's command is carried out.
    ending: tokio::sync::RwLock<bool>,
    _lock: DataLock,
}

impl Host {
    /// Becomes the kernel of the data directory and runs on what had not ended.
    ///
    /// # Errors
    /// Another program has the data directory, it is from a newer version, the disk is full …
    pub async fn open() -> Result<Arc<Self>, Problem> {
        match attach(Resume::All).await? {
            Attached::Own(host) => Ok(host),
            Attached::Other(_) => Err(Problem::new(
                "exists",
                "another Steward has the data directory",
            )
            .hint("use that one, or end it first")),
        }
    }

    async fn start(paths: Paths, lock: DataLock, resume: Resume) -> Result<Arc<Self>, Problem> {
        let config = Config::load(&paths)?;
        let models = Models::from_env()?;
        let (model, file) = models
            .chosen(&config)
            .map_err(|problem| problem.in_settings(&paths))?;
        let events = broadcast::channel(4096).0;
        let files: Arc<dyn Files> =
            Arc::new(WorkspaceFiles::open(paths.blobs())?.with_private(paths.data.clone()));
        let core = core::open(&model, file, config.threads, &events);
        let providers = Providers {
            witness: witness(&paths).await?,
            ..Providers::new(Arc::clone(&files), core, Arc::new(SystemClock::new()))
        };
        let kernel = Kernel::open(&paths.journal(), providers, Arc::new(images()?))
            .map_err(|error| unusable(&paths, error))?;
        let host = Arc::new(Self {
            kernel,
            files,
            paths,
            config: RwLock::new(config),
            model: model.name,
            models,
            events,
            toggle: Mutex::default(),
            ending: tokio::sync::RwLock::new(false),
            _lock: lock,
        });
        tokio::spawn(relay(
            host.kernel.clone(),
            host.kernel.subscribe(),
            host.events.clone(),
        ));
        socket::serve(&host.paths, &host).map_err(|e| {
            Problem::new("unavailable", format!("cannot open the local socket: {e}"))
                .hint("check that the data directory is on a local file system")
        })?;
        if resume == Resume::All {
            host.kernel.resume(None).await?;
        }
        Ok(host)
    }

    /// Carries out one command for a surface.
    pub async fn handle(&self, command: Command, by: Surface) -> Reply {
        self.carry_out(command, by)
            .await
            .unwrap_or_else(Reply::Error)
    }

    /// Events from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    /// What to do when a terminal asks for the launcher (`steward --toggle`).
    pub fn on_toggle(&self, toggle: impl Fn() + Send + Sync + 'static) {
        *self.toggle.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(toggle));
    }

    /// Takes no more commands over the local socket, and waits for those that are being carried out.
    pub async fn close(&self) {
        if let Ok(mut ending) = tokio::time::timeout(PATIENCE, self.ending.write()).await {
            *ending = true;
        }
    }

    /// [`Host::handle`] for another program, which gets a reply to all that is carried out.
    pub(crate) async fn serve<T>(
        &self,
        command: Command,
        reply: impl AsyncFnOnce(Reply) -> T,
    ) -> T {
        let ending = self.ending.read().await;
        if *ending {
            return reply(Reply::Error(Problem::ending())).await;
        }
        reply(self.handle(command, Surface::Terminal).await).await
    }

    /// Steward's own folders.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    async fn carry_out(&self, command: Command, by: Surface) -> Result<Reply, Problem> {
        match command {
            Command::Submit(submit) => self.submit(submit).await,
            Command::Processes => self.processes().await,
            Command::Process { pid } => self.process(pid).await,
            Command::Approvals => {
                let approvals = self.kernel.approvals().await?;
                Ok(Reply::Approvals {
                    approvals: approvals.into_iter().map(view::approval).collect(),
                })
            }
            Command::Decide(decide) => self.decide(decide, by).await,
            Command::Questions => {
                let questions = self.kernel.questions().await?;
                Ok(Reply::Questions {
                    questions: questions.into_iter().map(view::question).collect(),
                })
            }
            Command::AnswerQuestion { id, text } => self.answer_question(id, &text, by).await,
            Command::Signal { pid, signal } => self.signal(pid, signal, by).await,
            Command::Undo { run } => self.undo(run).await,
            Command::Log(query) => self.log(query).await,
            Command::Doctor => Ok(Reply::Doctor {
                checks: self.checks(),
            }),
            Command::Models => Ok(Reply::Models {
                models: self.models.list(),
            }),
            Command::Settings => Ok(self.settings()),
            Command::ChangeSettings(change) => self.change_settings(change),
            Command::Toggle => self.toggle(),
            Command::Watch => Err(Problem::new(
                "invalid",
                "`watch` is for the local socket only",
            )),
            other => Err(not_there(&other)),
        }
    }

    async fn submit(&self, submit: Submit) -> Result<Reply, Problem> {
        let Submit {
            request,
            workspace,
            after,
        } = submit;
        let folder = match workspace {
            Some(folder) => PathBuf::from(folder),
            None => self.default_workspace()?,
        };
        self.start_run("base", request, folder, after).await
    }

    async fn start_run(
        &self,
        image: &str,
        goal: String,
        folder: PathBuf,
        after: Option<u64>,
    ) -> Result<Reply, Problem> {
        let files = Arc::clone(&self.files);
        let workspace = tokio::task::spawn_blocking(move || files.workspace(&folder))
            .await
            .map_err(|e| Problem::new("internal", format!("the file provider stopped: {e}")))??;
        let grants = capability::workspace_defaults(&workspace);
        let submission = Submission {
            image: image.to_owned(),
            goal,
            workspace,
            grants,
            after,
        };
        let process = self.kernel.submit(submission).await?;
        Ok(Reply::Started {
            pid: process.pid.0,
            run: process.run,
        })
    }

    fn default_workspace(&self) -> Result<PathBuf, Problem> {
        let folder = PathBuf::from(self.config().settings(&self.paths, &self.model).workspace);
        std::fs::create_dir_all(&folder).map_err(|e| {
            let shown = steward_kernel::escape::shown(&folder.to_string_lossy());
            Problem::new(
                "unavailable",
                format!("cannot make the workspace `{shown}`: {e}"),
            )
            .hint("choose another workspace in the settings")
        })?;
        Ok(folder)
    }

    async fn processes(&self) -> Result<Reply, Problem> {
        let undoable = self.kernel.undoable_runs().await?;
        let processes = self.kernel.processes().await?;
        let processes = processes
            .iter()
            .map(|p| view::process(p, &undoable))
            .collect();
        Ok(Reply::Processes { processes })
    }

    async fn process(&self, pid: u64) -> Result<Reply, Problem> {
        let undoable = self.kernel.undoable_runs().await?;
        let process = self.kernel.process(Pid(pid)).await?;
        let steps = self.kernel.steps(Pid(pid)).await?;
        let exit = self.kernel.exit(Pid(pid)).await?;
        Ok(Reply::Process(Box::new(ProcessDetail {
            process: view::process(&process, &undoable),
            steps: steps.into_iter().map(view::step).collect(),
            ok: exit.as_ref().map(|e| e.ok),
            problem: exit
                .as_ref()
                .and_then(|e| e.error.clone())
                .map(Problem::from),
            answer: exit.map(|e| e.answer),
        })))
    }

    async fn decide(&self, decide: Decide, by: Surface) -> Result<Reply, Problem> {
        if by == Surface::Window {
            return Err(
                Problem::new("denied", "an approval is answered where it is shown")
                    .hint("open the approval and answer it there"),
            );
        }
        let Decide { id, answer, digest } = decide;
        let approve = match answer {
            Answer::Yes => true,
            Answer::No => false,
            Answer::Always { scope } => {
                let shown = steward_kernel::escape::shown(&scope);
                return Err(Problem::new(
                    "invalid",
                    format!("the scope `{shown}` was not offered for approval {id}"),
                )
                .hint("answer yes or no"));
            }
        };
        let asked = self.kernel.approvals().await?;
        let run = asked.iter().find(|asked| asked.id == id).map(|a| a.run);
        let taken = self.kernel.decide(id, approve, &digest, by.name()).await?;
        self.go_on(taken, run).await
    }

    async fn signal(&self, pid: u64, signal: SignalView, by: Surface) -> Result<Reply, Problem> {
        match signal {
            SignalView::Kill => self.kernel.kill(Pid(pid), by.name()).await?,
            SignalView::Pause | SignalView::Resume | SignalView::Interrupt => {
                return Err(not_there(&Command::Signal { pid, signal }));
            }
        }
        Ok(Reply::Done)
    }

    async fn answer_question(&self, id: u64, text: &str, by: Surface) -> Result<Reply, Problem> {
        let asked = self.kernel.questions().await?;
        let run = asked.iter().find(|asked| asked.id == id).map(|q| q.run);
        let taken = self.kernel.answer(id, text, by.name()).await?;
        self.go_on(taken, run).await
    }

    /// A run that waited since an earlier start goes on once it is answered.
    async fn go_on(&self, taken: Taken, run: Option<u64>) -> Result<Reply, Problem> {
        if taken == Taken::Counted
            && let Some(run) = run
        {
            self.kernel.resume(Some(run)).await?;
        }
        Ok(decided(taken))
    }

    async fn undo(&self, run: u64) -> Result<Reply, Problem> {
        let process = self.kernel.process(Pid(run)).await?;
        if process.run != run {
            return Err(Problem::new(
                "not_found",
                format!("`{run}` is a process of run `{}`", process.run),
            )
            .hint(format!("undo run {}", process.run)));
        }
        self.start_run(undo::IMAGE, undo::goal(run), process.workspace, None)
            .await
    }

    async fn log(&self, query: LogQuery) -> Result<Reply, Problem> {
        let limit = query.limit.unwrap_or(LOG_DEFAULT);
        if !(1..=LOG_MOST).contains(&limit) {
            return Err(Problem::new("invalid", format!("`limit` is `{limit}`"))
                .hint(format!("use a number from 1 to {LOG_MOST}")));
        }
        let query = steward_kernel::JournalQuery {
            pid: query.pid.map(Pid),
            run: query.run,
            seq: None,
            capability: query.capability,
            name: query.call,
            resource: query.resource,
            decision: query.decision,
            by: query.by,
            kind: None,
            since_ms: query.since_ms,
            until_ms: query.until_ms,
            before_id: query.before,
            text: query.text,
            limit,
        };
        let rows = self.kernel.journal(query).await?;
        Ok(Reply::Log {
            rows: rows.into_iter().map(view::row).collect(),
        })
    }

    fn settings(&self) -> Reply {
        Reply::Settings(self.config().settings(&self.paths, &self.model))
    }

    fn change_settings(&self, change: SettingsChange) -> Result<Reply, Problem> {
        let changed = self.config().changed(change)?;
        changed.save(&self.paths)?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = changed;
        Ok(self.settings())
    }

    fn config(&self) -> Config {
        self.config
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn toggle(&self) -> Result<Reply, Problem> {
        match &*self.toggle.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(toggle) => {
                toggle();
                Ok(Reply::Done)
            }
            None => Err(
                Problem::new("unavailable", "the Steward that runs has no launcher")
                    .hint("start the desktop, `steward-desktop`"),
            ),
        }
    }
}

/// Becomes the kernel of the data directory, or reaches the program that is.
///
/// # Errors
/// The data directory cannot be used, or is from a newer version.
pub async fn attach(resume: Resume) -> Result<Attached, Problem> {
    let paths = Paths::from_env()?;
    let begun = Instant::now();
    loop {
        if let Some(lock) = lock::take(&paths)? {
            return Ok(Attached::Own(Host::start(paths, lock, resume).await?));
        }
        // The other program may be about to start or to end.
        match Client::connect(&paths).await {
            Ok(client) => return Ok(Attached::Other(client)),
            Err(problem) if begun.elapsed() > PATIENCE => return Err(problem),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Why the kernel cannot start on this data directory. It is not the command's fault.
fn unusable(paths: &Paths, error: SysError) -> Problem {
    let shown = steward_kernel::escape::shown(&paths.data.to_string_lossy());
    Problem {
        code: "unavailable".to_owned(),
        message: format!("cannot use the data directory `{shown}`: {}", error.message),
        hint: error.hint,
    }
}

/// The kernel does not do this yet.
fn not_there(command: &Command) -> Problem {
    let named = serde_json::to_value(command).unwrap_or_default();
    let name = named["command"].as_str().unwrap_or("this");
    Problem::new("unavailable", format!("`{name}` is not there yet"))
}

/// Who vouches for the journal. Where nobody can, it is kept all the same, and `steward doctor` tells.
async fn witness(paths: &Paths) -> Result<Arc<dyn Witness>, Problem> {
    let paths = paths.clone();
    // The keyring may wait for the person.
    let opened = tokio::task::spawn_blocking(move || KeyWitness::open(&paths))
        .await
        .map_err(|e| Problem::new("internal", format!("the keyring's task stopped: {e}")))?;
    Ok(match opened {
        Ok(witness) => Arc::new(witness),
        Err(error) => {
            tracing::warn!(%error, "the journal is not signed");
            Arc::new(NoWitness)
        }
    })
}

fn decided(taken: Taken) -> Reply {
    match taken {
        Taken::Counted => Reply::Decided {
            counted: true,
            note: None,
        },
        Taken::TooLate(why) => Reply::Decided {
            counted: false,
            note: Some(why),
        },
    }
}

struct AllImages(steward_agents::Images);

impl Images for AllImages {
    fn program(&self, image: &str) -> Option<Arc<dyn Program>> {
        if image == undo::IMAGE {
            return Some(Arc::new(undo::Undo));
        }
        self.0.program(image)
    }

    fn built_in(&self) -> Vec<&'static str> {
        self.0.built_in()
    }

    fn tools(&self) -> Vec<String> {
        self.0.tools()
    }

    fn make(&self, image: &Image) -> Result<Arc<dyn Program>, SysError> {
        self.0.make(image)
    }
}

fn images() -> Result<AllImages, Problem> {
    steward_agents::registry()
        .map(AllImages)
        .map_err(|e| Problem::new("internal", e.to_string()).hint("this build is faulty"))
}

/// Passes kernel events on to surfaces until the kernel is gone.
async fn relay(
    kernel: Kernel,
    mut from: broadcast::Receiver<KernelEvent>,
    to: broadcast::Sender<Event>,
) {
    loop {
        match from.recv().await {
            Ok(event) => {
                let ends = matches!(&event, KernelEvent::Process(p) if p.state.is_final());
                let undoable = if ends {
                    kernel.undoable_runs().await.unwrap_or_default()
                } else {
                    Default::default()
                };
                for event in view::events(event, &undoable) {
                    let _listeners = to.send(event);
                }
            }
            Err(broadcast::error::RecvError::Lagged(count)) => {
                let _listeners = to.send(Event::Missed { count });
            }
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}
