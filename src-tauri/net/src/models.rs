//! Models that are there.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::catalogue::Model;
use crate::error::Error;

const CHUNK: usize = 256 * 1024;

/// Where models are: `STEWARD_MODELS`, else `$XDG_DATA_HOME/steward/models`, else
/// `~/.local/share/steward/models`.
pub fn models_dir() -> Result<PathBuf, Error> {
    models_dir_of(|name| std::env::var_os(name))
}

/// The model's file where it is there with the right size. Cheap: [`verify`] looks at all its bytes.
pub fn locate(models: &Path, model: &Model) -> Result<PathBuf, Error> {
    let path = models.join(&model.file);
    let meta = match std::fs::metadata(&path) {
        Ok(meta) if meta.is_file() => meta,
        Ok(_) => {
            return Err(Error::Missing {
                path,
                model: model.name.clone(),
            });
        }
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Err(Error::Missing {
                path,
                model: model.name.clone(),
            });
        }
        Err(e) => return Err(Error::disk("open", path)(e)),
    };
    if meta.len() == model.bytes {
        return Ok(path);
    }
    Err(Error::Size {
        expected: model.bytes,
        got: meta.len(),
        path,
        model: model.name.clone(),
    })
}

/// Reads the whole model file and compares its size and SHA-256 with the catalogue's; its path.
pub fn verify(models: &Path, model: &Model) -> Result<PathBuf, Error> {
    let path = locate(models, model)?;
    let file = File::open(&path).map_err(Error::disk("open", &path))?;
    let got = sha256(file, |_| {}).map_err(Error::disk("read", &path))?;
    if got == model.sha256 {
        return Ok(path);
    }
    Err(Error::Hash {
        what: format!("`{}`", path.display()),
        expected: model.sha256.clone(),
        got,
        hint: format!("run `steward models get {}` to fetch it anew", model.name),
    })
}

/// SHA-256 of all that `from` has; `each` is told of the bytes read so far.
pub(crate) fn sha256(mut from: impl Read, mut each: impl FnMut(u64)) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    let mut done = 0;
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(hex::encode(hash.finalize())),
            Ok(n) => {
                hash.update(&chunk[..n]);
                done += n as u64;
                each(done);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

fn models_dir_of(var: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, Error> {
    let var = |name| {
        var(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    if let Some(models) = var("STEWARD_MODELS") {
        return Ok(models);
    }
    // The XDG specification has relative paths ignored.
    let data = var("XDG_DATA_HOME").filter(|path| path.is_absolute());
    let data = data.or_else(|| var("HOME").map(|home| home.join(".local/share")));
    data.map(|data| data.join("steward/models"))
        .ok_or(Error::NoHome)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn the_models_folder_is_where_the_environment_says() {
        type Environment = &'static [(&'static str, &'static str)];
        let rows: &[(Environment, Option<&str>)] = &[
            (
                &[
                    ("STEWARD_MODELS", "/m"),
                    ("XDG_DATA_HOME", "/x"),
                    ("HOME", "/h"),
                ],
                Some("/m"),
            ),
            (
                &[("XDG_DATA_HOME", "/x"), ("HOME", "/h")],
                Some("/x/steward/models"),
            ),
            (&[("HOME", "/h")], Some("/h/.local/share/steward/models")),
            (
                &[
                    ("STEWARD_MODELS", ""),
                    ("XDG_DATA_HOME", "rel"),
                    ("HOME", "/h"),
                ],
                Some("/h/.local/share/steward/models"),
            ),
            (&[], None),
        ];
        for (environment, outcome) in rows {
            let var = |name: &str| {
                environment
                    .iter()
                    .find(|(n, _)| *n == name)
                    .map(|(_, value)| OsString::from(value))
            };
            assert_eq!(
                models_dir_of(var).ok(),
                outcome.map(PathBuf::from),
                "{environment:?}"
            );
        }
    }
}
