//! One file on its way here: in pieces, resumed, checked.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use ureq::Body;
use ureq::http::{Response, header};
use url::Url;

use crate::download::Progress;
use crate::error::Error;
use crate::http::{Client, Failed, shown, unexpected};
use crate::models::sha256;

const CHUNK: usize = 64 * 1024;
/// How often a connection that broke off is taken up again, as long as each brought something.
const RESUMES: u32 = 5;

/// A file on a server, as its index tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remote {
    /// The model's name, for errors.
    pub(crate) model: String,
    /// The file's name on the server.
    pub(crate) filename: String,
    pub(crate) url: Url,
    pub(crate) bytes: Option<u64>,
    pub(crate) sha256: Option<String>,
    /// Bytes it can have at most.
    pub(crate) most: u64,
    /// The model's file, and where it can be put by hand.
    pub(crate) by_hand: (String, PathBuf),
}

/// What fetches a file, who may end it and who is told.
pub(crate) struct Transfer<'a> {
    pub(crate) client: &'a Client,
    pub(crate) remote: &'a Remote,
    pub(crate) cancel: &'a AtomicBool,
}

impl Transfer<'_> {
    /// Fetches what the part lacks.
    pub(crate) fn complete(
        &self,
        part: &mut Part,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), Error> {
        let remote = self.remote;
        let mut resumes = 0;
        loop {
            let before = part.bytes;
            if remote.bytes == Some(before) {
                return Ok(());
            }
            if remote.bytes.is_some_and(|total| before > total) {
                part.restart()?;
            }
            match self.receive(part, progress) {
                Ok(()) => return Ok(()),
                Err(Failed::Offline(why)) if part.bytes > before && resumes < RESUMES => {
                    tracing::info!(
                        why,
                        at = part.bytes,
                        "the connection broke off; it is taken up again"
                    );
                    resumes += 1;
                }
                Err(failed) => return Err(remote.failed(failed, &remote.url)),
            }
        }
    }

    /// One connection.
    fn receive(&self, part: &mut Part, progress: &mut dyn FnMut(Progress)) -> Result<(), Failed> {
        let remote = self.remote;
        let response = self.client.get(&remote.url, "*/*", part.bytes)?;
        match response.status().as_u16() {
            200 => part.restart().map_err(Failed::Error)?,
            206 if range_start(&response) == Some(part.bytes) => {}
            // The part is not of this remote.
            206 | 416 if part.bytes > 0 => {
                part.restart().map_err(Failed::Error)?;
                return self.receive(part, progress);
            }
            _ => return Err(Failed::Error(unexpected(&remote.url, &response))),
        }
        let length = response
            .body()
            .content_length()
            .map(|rest| part.bytes.saturating_add(rest));
        let total = remote.bytes.or(length);
        let most = remote.most;
        let too_large = || {
            Failed::Error(Error::Answer {
                url: shown(&remote.url),
                answer: format!("more than the {most} bytes that it can have"),
            })
        };
        if total.is_some_and(|total| total > most) {
            return Err(too_large());
        }
        let most = total.unwrap_or(most);
        let mut body = response.into_body().into_reader();
        let mut chunk = vec![0; CHUNK];
        progress(Progress::Fetching {
            done: part.bytes,
            total,
        });
        loop {
            let n = match body.read(&mut chunk) {
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Failed::Offline(e.to_string())),
            };
            if self.cancel.load(Ordering::Relaxed) {
                return Err(Failed::Error(Error::Cancelled {
                    model: remote.model.clone(),
                }));
            }
            match (n, total) {
                (0, Some(total)) if part.bytes < total => {
                    return Err(Failed::Offline(format!(
                        "it ended after {} of {total} bytes",
                        part.bytes
                    )));
                }
                (0, _) => return Ok(()),
                (n, _) if part.bytes + n as u64 > most => return Err(too_large()),
                (n, _) => part.append(&chunk[..n]).map_err(Failed::Error)?,
            }
            progress(Progress::Fetching {
                done: part.bytes,
                total,
            });
        }
    }
}

impl Remote {
    pub(crate) fn failed(&self, failed: Failed, url: &Url) -> Error {
        match failed {
            Failed::Error(error) => error,
            Failed::Offline(why) => Error::Offline {
                url: shown(url),
                why,
                by_hand: self.by_hand.clone(),
            },
        }
    }
}

/// Where the bytes of a partial answer begin.
fn range_start(response: &Response<Body>) -> Option<u64> {
    let range = response
        .headers()
        .get(header::CONTENT_RANGE)?
        .to_str()
        .ok()?;
    range
        .strip_prefix("bytes ")?
        .split('-')
        .next()?
        .trim()
        .parse()
        .ok()
}

/// What has come of a file, locked against other processes.
pub(crate) struct Part {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Part {
    pub(crate) fn open(path: PathBuf, model: &str) -> Result<Self, Error> {
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(Error::disk("write", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Busy {
                    model: model.to_owned(),
                });
            }
            Err(TryLockError::Error(e)) => return Err(Error::disk("lock", path)(e)),
        }
        let bytes = file
            .seek(SeekFrom::End(0))
            .map_err(Error::disk("read", &path))?;
        Ok(Self { path, file, bytes })
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self
            .file
            .write_all(bytes)
            .map_err(Error::disk("write", &self.path));
        match &written {
            Ok(()) => self.bytes += bytes.len() as u64,
            // On a full disk some of it may be there; the next start goes on from a whole chunk.
            Err(_) => drop(self.file.set_len(self.bytes)),
        }
        written
    }

    fn restart(&mut self) -> Result<(), Error> {
        if self.bytes == 0 {
            return Ok(());
        }
        self.file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)))
            .map_err(Error::disk("write", &self.path))?;
        self.bytes = 0;
        Ok(())
    }

    pub(crate) fn reader(&self) -> Result<File, Error> {
        let failed = |e| Error::disk("read", &self.path)(e);
        let mut file = self.file.try_clone().map_err(failed)?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        Ok(file)
    }

    /// Compares with what the index says, where it does. What is wrong is deleted.
    pub(crate) fn check(
        &self,
        remote: &Remote,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), Error> {
        let Some(expected) = &remote.sha256 else {
            return Ok(());
        };
        let total = self.bytes;
        let got = sha256(self.reader()?, |done| {
            progress(Progress::Checking { done, total });
        })
        .map_err(Error::disk("read", &self.path))?;
        if got == *expected {
            return Ok(());
        }
        self.remove();
        Err(Error::Hash {
            what: format!("the file that came as `{}`", remote.filename),
            expected: expected.clone(),
            got,
            hint: "it was deleted; run it again".to_owned(),
        })
    }

    pub(crate) fn remove(&self) {
        remove(&self.path);
    }
}

fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "a file that is not needed any more stays");
    }
}
