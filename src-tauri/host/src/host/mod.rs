//! A running kernel behind the commands that every surface shares.

mod audit;
mod chain;
mod checkpoints;
mod doing;
mod images;
mod objects;
mod person;
mod process;
mod relay;
mod rights;
mod run;
mod scheduling;
mod settings;

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use steward_kernel::provider::{Files, NoWitness, Witness};
use steward_kernel::{Kernel, Providers};
use steward_store::WorkspaceFiles;
use tokio::sync::broadcast;

use crate::clock::SystemClock;
use crate::core;
use crate::lock::{self, DataLock};
use crate::models::Models;
use crate::paths::Paths;
use crate::settings::Config;
use crate::snapshots::FileSnapshots;
use crate::socket::{self, Client};
use crate::surface::{Command, Event, Problem, Reply};
use crate::witness::KeyWitness;

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
    doing: Arc<doing::Doing>,
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
        let model = models
            .chosen(&config)
            .map_err(|problem| problem.in_settings(&paths))?;
        let events = broadcast::channel(4096).0;
        let files: Arc<dyn Files> =
            Arc::new(WorkspaceFiles::open(paths.blobs())?.with_private(paths.data.clone()));
        let core = core::open(&model, &config, &events);
        let snapshots = FileSnapshots::open(paths.snapshots())
            .map_err(|e| unusable(&paths, Problem::new("unavailable", e.to_string())))?;
        let providers = Providers {
            snapshots: Arc::new(snapshots),
            witness: witness(&paths).await?,
            ..Providers::new(Arc::clone(&files), core, Arc::new(SystemClock::new()))
        };
        let images = Arc::new(images::AllImages::new()?);
        let kernel = Kernel::open(&paths.journal(), providers, images)
            .map_err(|error| unusable(&paths, error.into()))?;
        kernel.set_approval_lifetime(config.approval_lifetime());
        kernel.set_retention(config.retention());
        let scheduler = config.scheduler();
        scheduler
            .apply(&kernel)
            .map_err(|problem| problem.in_settings(&paths))?;
        let host = Arc::new(Self {
            kernel,
            files,
            paths,
            config: RwLock::new(config),
            model: model.name,
            models,
            events,
            doing: Arc::default(),
            toggle: Mutex::default(),
            ending: tokio::sync::RwLock::new(false),
            _lock: lock,
        });
        tokio::spawn(relay::relay(
            host.kernel.clone(),
            Arc::clone(&host.doing),
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
            Command::Run(run) => self.run(run).await,
            Command::Processes => self.processes().await,
            Command::Process { pid } => self.process(pid).await,
            Command::Approvals => self.approvals().await,
            Command::Decide(decide) => self.decide(decide, by).await,
            Command::Questions => self.questions().await,
            Command::AnswerQuestion { id, text } => self.answer_question(id, &text, by).await,
            Command::Signal { pid, signal } => self.signal(pid, signal, by).await,
            Command::SendMessage { pid, text } => self.send_message(pid, &text).await,
            Command::Undo { run } => self.undo(run).await,
            Command::Log(query) => self.log(query).await,
            Command::LogVerify => self.verify_log().await,
            Command::LogExport { form, after } => self.export_log(form, after).await,
            Command::Chain { pid, seq } => self.chain(pid, seq).await,
            Command::Capabilities { pid } => self.capabilities(pid).await,
            Command::Explain { pid, what } => self.explain(pid, what).await,
            Command::RevokeCapability { id } => self.revoke_capability(id, by).await,
            Command::Grants => self.grants().await,
            Command::RevokeGrant { id } => self.revoke_grant(id, by).await,
            Command::Policies => self.policies().await,
            Command::SetPolicy(change) => self.set_policy(change, by).await,
            Command::Checkpoints { pid } => self.checkpoints(pid).await,
            Command::Checkpoint { id } => self.checkpoint(id).await,
            Command::DiffCheckpoints { from, to } => self.diff_checkpoints(from, to).await,
            Command::CreateCheckpoint { pid, label } => {
                self.create_checkpoint(pid, &label, by).await
            }
            Command::RestoreCheckpoint { id } => self.restore_checkpoint(id, by).await,
            Command::ReplayCheckpoint { id } => self.replay_checkpoint(id).await,
            Command::ForkCheckpoint { id } => self.fork_checkpoint(id).await,
            Command::Images => self.images().await,
            Command::Image { name } => self.image(&name).await,
            Command::RegisterImage { source } => self.register_image(source).await,
            Command::ImageSchema => Ok(Self::image_schema()),
            Command::Objects { pid } => self.objects(pid).await,
            Command::Scheduling => Ok(self.scheduling()),
            Command::SetScheduling(change) => self.set_scheduling(change),
            Command::Doctor => Ok(Reply::Doctor {
                checks: self.checks(),
            }),
            Command::Models => self.list_models().await,
            Command::Settings => Ok(self.settings()),
            Command::ChangeSettings(change) => self.change_settings(change).await,
            Command::Toggle => self.toggle(),
            Command::Watch => Err(Problem::new(
                "invalid",
                "`watch` is for the local socket only",
            )),
        }
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
fn unusable(paths: &Paths, error: Problem) -> Problem {
    let shown = steward_kernel::escape::shown(&paths.data.to_string_lossy());
    Problem {
        code: "unavailable".to_owned(),
        message: format!("cannot use the data directory `{shown}`: {}", error.message),
        hint: error.hint,
    }
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
