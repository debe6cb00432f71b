//! The local socket: how a second program (a terminal beside the desktop) reaches the one kernel.
//!
//! It lies in the data directory, which only its owner may enter, and it answers only programs of
//! the same user. JSON, one [`Command`] or [`Reply`] a line; after [`Command::Watch`] every further
//! line is an [`Event`].

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::broadcast;

use crate::host::Host;
use crate::paths::Paths;
use crate::surface::{Command, Event, Problem, Reply};

/// Bytes of a command at most.
const COMMAND_MOST: u64 = 1024 * 1024;
const NAME: &str = "kernel.sock";
/// How long a reply may take; a program that was stopped gives none.
const REPLY_MOST: Duration = Duration::from_secs(10);

/// The data directory by a short path: a socket's path has 107 bytes at most.
struct Short {
    _folder: OwnedFd,
    path: PathBuf,
}

fn short(paths: &Paths) -> std::io::Result<Short> {
    let folder = OwnedFd::from(std::fs::File::open(&paths.data)?);
    let path = PathBuf::from(format!(
        "/proc/self/fd/{}/{NAME}",
        folder.as_fd().as_raw_fd()
    ));
    Ok(Short {
        _folder: folder,
        path,
    })
}

/// Serves the socket until the program ends. The caller holds the data directory's lock, so a
/// socket that is there is left over.
pub(crate) fn serve(paths: &Paths, host: &Arc<Host>) -> std::io::Result<()> {
    let short = short(paths)?;
    match std::fs::remove_file(&short.path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let listener = UnixListener::bind(&short.path)?;
    std::fs::set_permissions(&short.path, std::fs::Permissions::from_mode(0o600))?;
    let host = Arc::downgrade(host);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Some(host) = host.upgrade() else { return };
            let same_user = stream
                .peer_cred()
                .is_ok_and(|peer| peer.uid() == rustix::process::getuid().as_raw());
            if same_user {
                tokio::spawn(async move {
                    if let Err(error) = converse(stream, host).await {
                        tracing::debug!(%error, "a local connection ended");
                    }
                });
            }
        }
    });
    Ok(())
}

async fn converse(stream: UnixStream, host: Arc<Host>) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read);
    loop {
        let mut line = Vec::new();
        let mut bounded = (&mut lines).take(COMMAND_MOST);
        if bounded.read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        if line.last() != Some(&b'\n') {
            let message = format!("a command has `{COMMAND_MOST}` bytes at most, on one line");
            send(&mut write, &Reply::Error(Problem::new("invalid", message))).await?;
            return Ok(());
        }
        match serde_json::from_slice(&line) {
            Ok(Command::Watch) => {
                let events = host.subscribe();
                send(&mut write, &Reply::Done).await?;
                drop(host);
                return watch(write, events).await;
            }
            Ok(command) => {
                let write = &mut write;
                host.serve(command, async |reply| send(write, &reply).await)
                    .await?;
            }
            Err(e) => {
                let message = format!("a command does not fit: {e}");
                send(&mut write, &Reply::Error(Problem::new("invalid", message))).await?;
            }
        }
    }
}

async fn watch(
    mut write: impl AsyncWriteExt + Unpin,
    mut events: broadcast::Receiver<Event>,
) -> std::io::Result<()> {
    loop {
        match events.recv().await {
            Ok(event) => send(&mut write, &event).await?,
            Err(broadcast::error::RecvError::Lagged(count)) => {
                send(&mut write, &Event::Missed { count }).await?;
            }
            Err(broadcast::error::RecvError::Closed) => return Ok(()),
        }
    }
}

async fn send(
    write: &mut (impl AsyncWriteExt + Unpin),
    value: &impl serde::Serialize,
) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    write.write_all(&line).await
}

/// A connection to the kernel of another program.
pub struct Client {
    paths: Paths,
    stream: tokio::sync::Mutex<BufReader<UnixStream>>,
}

impl Client {
    /// Connects to the program that has the data directory.
    pub(crate) async fn connect(paths: &Paths) -> Result<Self, Problem> {
        let stream = open(paths).await?;
        Ok(Self {
            paths: paths.clone(),
            stream: tokio::sync::Mutex::new(BufReader::new(stream)),
        })
    }

    /// Sends one command and waits for its reply.
    pub async fn request(&self, command: &Command) -> Reply {
        let mut stream = self.stream.lock().await;
        match tokio::time::timeout(REPLY_MOST, exchange(&mut stream, command)).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(e)) => Reply::Error(gone(&e.to_string())),
            Err(_) => Reply::Error(silent()),
        }
    }

    /// Events from now on, until the other program ends.
    ///
    /// # Errors
    /// The other program has ended.
    pub async fn events(&self) -> Result<tokio::sync::mpsc::Receiver<Event>, Problem> {
        let mut stream = BufReader::new(open(&self.paths).await?);
        tokio::time::timeout(REPLY_MOST, exchange(&mut stream, &Command::Watch))
            .await
            .map_err(|_| silent())?
            .map_err(|e| gone(&e.to_string()))?;
        let (sender, receiver) = tokio::sync::mpsc::channel(1024);
        tokio::spawn(async move {
            let mut lines = stream.lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let Ok(event) = serde_json::from_str(&line) else {
                    return;
                };
                if sender.send(event).await.is_err() {
                    return;
                }
            }
        });
        Ok(receiver)
    }
}

async fn open(paths: &Paths) -> Result<UnixStream, Problem> {
    let path = short(paths).map_err(|e| gone(&e.to_string()))?;
    UnixStream::connect(&path.path)
        .await
        .map_err(|e| gone(&e.to_string()))
}

async fn exchange(stream: &mut BufReader<UnixStream>, command: &Command) -> std::io::Result<Reply> {
    send(stream.get_mut(), command).await?;
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Err(std::io::Error::other("the connection was closed"));
    }
    Ok(serde_json::from_str(&line)?)
}

const ENDING: &str = "ending";
const GONE: &str = "gone";

impl Problem {
    /// The program that has the data directory is about to end and did not take the command.
    pub(crate) fn ending() -> Self {
        Self::new(ENDING, "the Steward that has the data directory is ending")
            .hint("send it again to the next one")
    }

    /// Whether it is [`Problem::ending`].
    pub fn is_ending(&self) -> bool {
        self.code == ENDING
    }

    /// Whether there was no reply: the command may have been carried out or not.
    pub fn is_gone(&self) -> bool {
        self.code == GONE
    }
}

fn silent() -> Problem {
    let seconds = REPLY_MOST.as_secs();
    let message =
        format!("the Steward that has the data directory does not answer within {seconds} s");
    Problem::new("unavailable", message)
        .hint("end the other Steward, or wake it where it is stopped")
}

fn gone(why: &str) -> Problem {
    Problem::new(
        GONE,
        format!("the Steward that has the data directory does not answer: {why}"),
    )
    .hint("wait a moment and try again, or end the other Steward")
}
