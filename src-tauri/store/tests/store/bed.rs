//! A workspace, a folder outside it and a version store, all in one temporary folder.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steward_kernel::provider::{Change, Files, PathState};
use steward_kernel::{Code, SysError};
use steward_store::WorkspaceFiles;
use tempfile::TempDir;

pub(crate) struct Bed {
    pub(crate) files: WorkspaceFiles,
    pub(crate) root: PathBuf,
    pub(crate) outside: PathBuf,
    pub(crate) temp: TempDir,
}

/// Everything that a deny must leave as it was: kind, bytes, mode, owner, times of access and
/// change of every file and folder, by path. (A folder's access time is of its listing.)
pub(crate) type Fingerprint = BTreeMap<PathBuf, (Option<Vec<u8>>, u32, u64, i64, i64, i64, i64)>;

impl Bed {
    pub(crate) fn new() -> Self {
        let temp = TempDir::new().unwrap();
        let root = temp.path().join("workspace");
        let outside = temp.path().join("outside");
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("secret"), "outside").unwrap();
        let files = WorkspaceFiles::open(temp.path().join("blobs")).unwrap();
        Self {
            files,
            root: root.canonicalize().unwrap(),
            outside,
            temp,
        }
    }

    /// With files of the workspace; a path that ends in `/` is a folder.
    pub(crate) fn with(entries: &[(&str, &str)]) -> Self {
        let bed = Self::new();
        for (path, text) in entries {
            bed.fill(path, text);
        }
        bed
    }

    pub(crate) fn fill(&self, path: &str, text: &str) {
        let at = self.root.join(path);
        if path.ends_with('/') {
            std::fs::create_dir_all(at).unwrap();
        } else {
            std::fs::create_dir_all(at.parent().unwrap()).unwrap();
            std::fs::write(at, text).unwrap();
        }
    }

    pub(crate) fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).unwrap()
    }

    /// Plans and applies at once.
    pub(crate) fn change(&self, change: &Change) -> Result<(), SysError> {
        let plan = self.files.plan(&self.root, change)?;
        self.files.apply(&self.root, change, &plan)
    }

    pub(crate) fn code(&self, change: &Change) -> Result<(), Code> {
        self.change(change).map_err(|error| error.code)
    }

    pub(crate) fn workspace_now(&self) -> Fingerprint {
        fingerprint(&self.root)
    }

    pub(crate) fn outside_now(&self) -> Fingerprint {
        fingerprint(&self.outside)
    }

    pub(crate) fn state(&self, path: &str) -> PathState {
        state(&self.root.join(path))
    }
}

pub(crate) fn fingerprint(folder: &Path) -> Fingerprint {
    let mut all = Fingerprint::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let meta = std::fs::symlink_metadata(&path).unwrap();
        let access = if meta.is_dir() {
            0
        } else {
            meta.atime_nsec() ^ meta.atime()
        };
        let print = (
            None,
            meta.mode(),
            meta.ino(),
            meta.mtime(),
            meta.mtime_nsec(),
            access,
            meta.ctime_nsec(),
        );
        if meta.is_dir() {
            open.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        all.insert(path, print);
    }
    for (path, print) in &mut all {
        if std::fs::symlink_metadata(path).unwrap().is_file() {
            print.0 = Some(read_unseen(path));
        }
    }
    all
}

/// Reads without setting the time of access.
fn read_unseen(path: &Path) -> Vec<u8> {
    let flags = rustix::fs::OFlags::NOATIME.bits().cast_signed();
    let mut file = std::fs::File::options()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

/// What stands at an absolute path, found without the provider.
pub(crate) fn state(path: &Path) -> PathState {
    match std::fs::symlink_metadata(path) {
        Err(_) => PathState::Absent,
        Ok(meta) if meta.is_dir() => PathState::Folder {
            mode: meta.permissions().mode() & 0o7777,
        },
        Ok(meta) => PathState::File {
            sha256: sha256(&std::fs::read(path).unwrap()),
            bytes: meta.len(),
            mode: meta.permissions().mode() & 0o7777,
        },
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> steward_kernel::provider::Digest {
    use sha2::Digest as _;
    steward_kernel::provider::Digest(hex::encode(sha2::Sha256::digest(bytes)))
}

pub(crate) fn write(path: &str, text: &str) -> Change {
    Change::Write {
        path: path.to_owned(),
        bytes: Arc::new(text.as_bytes().to_vec()),
    }
}

pub(crate) fn mkdir(path: &str) -> Change {
    Change::Mkdir {
        path: path.to_owned(),
    }
}

pub(crate) fn rename(from: &str, to: &str) -> Change {
    Change::Move {
        from: from.to_owned(),
        to: to.to_owned(),
    }
}

pub(crate) fn delete(path: &str) -> Change {
    Change::Delete {
        path: path.to_owned(),
    }
}

pub(crate) fn restore(path: &str, version: &[u8], mode: u32) -> Change {
    Change::Restore {
        path: path.to_owned(),
        sha256: sha256(version),
        mode,
    }
}
