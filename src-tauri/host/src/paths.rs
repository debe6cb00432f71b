//! Where Steward keeps its own things, by the XDG base directories.

use std::path::{Path, PathBuf};

use crate::surface::Problem;

/// Steward's own folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// `$XDG_DATA_HOME/steward`: journal, versions, models.
    pub data: PathBuf,
    /// `$XDG_CONFIG_HOME/steward/config.toml`.
    pub config: PathBuf,
    /// The person's home.
    pub home: PathBuf,
}

impl Paths {
    /// The folders of the person who runs this.
    ///
    /// # Errors
    /// There is no `HOME`.
    pub fn from_env() -> Result<Self, Problem> {
        let home = std::env::var_os("HOME")
            .map(PathBuf::from)
            .filter(|h| h.is_absolute());
        let Some(home) = home else {
            return Err(Problem::new("unavailable", "`HOME` names no folder")
                .hint("set HOME to your home folder"));
        };
        let xdg = |name: &str, fallback: &str| {
            // The specification says that a relative path is to be ignored.
            let set = std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|p| p.is_absolute());
            set.unwrap_or_else(|| home.join(fallback)).join("steward")
        };
        Ok(Self {
            data: xdg("XDG_DATA_HOME", ".local/share"),
            config: xdg("XDG_CONFIG_HOME", ".config").join("config.toml"),
            home,
        })
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.data.join("journal.db")
    }

    /// Old versions of files.
    pub fn blobs(&self) -> PathBuf {
        self.data.join("blobs")
    }

    /// Generations that wait, where memory is short.
    pub fn snapshots(&self) -> PathBuf {
        self.data.join("snapshots")
    }

    /// The lock that says which program has the data directory.
    pub fn lock(&self) -> PathBuf {
        self.data.join("kernel.lock")
    }

    /// The desktop's default workspace where none is set.
    pub fn default_workspace(&self) -> PathBuf {
        self.home.join("Steward")
    }
}

/// Makes a folder that only its owner may enter.
pub(crate) fn make_private(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
}
