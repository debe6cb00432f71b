//! The kernel's `Files` provider.

use std::collections::BinaryHeap;
use std::ffi::{CStr, CString};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Stat};
use steward_kernel::provider::{
    Change, Digest, Entry, FileBytes, FileKind, FileStat, Files, Listing, PathState, Plan,
};
use steward_kernel::{Code, SysError};

use crate::apply::damaged;
use crate::beneath::Workspace;
use crate::blobs::{Blobs, digest};
use crate::fault::{fault, io_fault};
use crate::part::recover;
use crate::path::{WorkspacePath, shown};
use crate::state::{look, mode};

/// Bytes that one read returns at most, whatever is asked for.
pub const MAX_READ: u64 = 64 * 1024 * 1024;

/// A person's files beneath their workspaces, and the store of old versions.
///
/// The `after` of a plan for a move is of the path that is left: absent.
/// New files and folders get the permission bits of the process's umask; an overwritten file keeps
/// its bits, and its owner, group and extended attributes as far as the system permits. A file that
/// may not be written is not replaced either. Changes of all processes that share the store run one
/// after another.
pub struct WorkspaceFiles {
    pub(crate) blobs: Blobs,
    pub(crate) umask: u32,
    private: Vec<PathBuf>,
}

impl WorkspaceFiles {
    /// Opens the version store at `blobs`, making it where it is not there, and clears up what a
    /// crash left half done. The store itself is out of reach of every workspace.
    pub fn open(blobs: PathBuf) -> Result<Self, SysError> {
        let name = shown(&blobs.to_string_lossy());
        let blobs =
            Blobs::open(blobs).map_err(|e| io_fault(&e, "open the version store", &name))?;
        let files = Self {
            private: vec![blobs.root().to_owned()],
            blobs,
            umask: umask(),
        };
        files
            .clear_up()
            .map_err(|e| io_fault(&e, "clear up in the version store", &name))?;
        Ok(files)
    }

    /// Puts one more folder or file out of reach of every workspace, such as the journal.
    #[must_use]
    pub fn with_private(mut self, path: PathBuf) -> Self {
        self.private
            .push(std::fs::canonicalize(&path).unwrap_or(path));
        self
    }

    fn clear_up(&self) -> std::io::Result<()> {
        self.blobs.pending.sweep(|left| {
            if left.extension().is_some_and(|kind| kind == "path")
                && let Err(error) = recover(&self.blobs, left)
            {
                tracing::warn!(%error, "a file half written before a crash stays where it is");
            }
        })
    }

    /// Whether a process may look at a path at all.
    pub(crate) fn admit(
        &self,
        workspace: &Workspace,
        path: &WorkspacePath,
    ) -> Result<(), SysError> {
        let absolute = PathBuf::from(workspace.absolute(path));
        match self
            .private
            .iter()
            .any(|private| absolute.starts_with(private))
        {
            true => Err(own_data(path)),
            false => Ok(()),
        }
    }

    /// Whether a process may change a path: not a folder around the program's own data either.
    pub(crate) fn admit_around(
        &self,
        workspace: &Workspace,
        path: &WorkspacePath,
    ) -> Result<(), SysError> {
        let absolute = PathBuf::from(workspace.absolute(path));
        match self
            .private
            .iter()
            .any(|private| private.starts_with(&absolute))
        {
            true => Err(own_data(path)),
            false => Ok(()),
        }
    }

    fn enter(&self, root: &Path, path: &str) -> Result<(Workspace, WorkspacePath), SysError> {
        let path = WorkspacePath::parse(path)?;
        let workspace = Workspace::open(root)?;
        self.admit(&workspace, &path)?;
        Ok((workspace, path))
    }
}

impl Files for WorkspaceFiles {
    fn workspace(&self, root: &Path) -> Result<PathBuf, SysError> {
        Ok(Workspace::open(root)?.root_path())
    }

    fn stat(&self, root: &Path, path: &str) -> Result<FileStat, SysError> {
        let (workspace, path) = self.enter(root, path)?;
        let node = workspace.node(&path, "look at")?;
        Ok(FileStat {
            path: path.as_str().to_owned(),
            kind: node.kind,
            bytes: if node.kind == FileKind::File {
                size(&node.stat)
            } else {
                0
            },
            modified_ms: modified_ms(&node.stat),
            mode: mode(&node.stat),
        })
    }

    fn state(&self, root: &Path, path: &str) -> Result<PathState, SysError> {
        let (workspace, path) = self.enter(root, path)?;
        if path.is_root() {
            let node = workspace.node(&path, "look at")?;
            return Ok(PathState::Folder {
                mode: mode(&node.stat),
            });
        }
        let place = workspace.place(&path, "look at")?;
        if !place.missing.is_empty() {
            return Ok(PathState::Absent);
        }
        Ok(look(place.folder.as_fd(), &place.name, &path.shown(), None)?.state)
    }

    fn read(
        &self,
        root: &Path,
        path: &str,
        offset: u64,
        limit: u64,
    ) -> Result<FileBytes, SysError> {
        let (workspace, path) = self.enter(root, path)?;
        let mut file = workspace.file(&path, "read")?;
        let failed = |e: &std::io::Error| io_fault(e, "read", &path.shown());
        let limit = limit.min(MAX_READ);
        let expected = file
            .metadata()
            .map_err(|e| failed(&e))?
            .len()
            .saturating_sub(offset);
        let mut bytes = Vec::with_capacity(usize::try_from(expected.min(limit)).unwrap_or(0));
        if offset > 0 {
            // Offsets beyond what a file can have are beyond its end too.
            file.seek(SeekFrom::Start(offset.min(i64::MAX as u64)))
                .map_err(|e| failed(&e))?;
        }
        (&file)
            .take(limit)
            .read_to_end(&mut bytes)
            .map_err(|e| failed(&e))?;
        let total = file.metadata().map_err(|e| failed(&e))?.len();
        let whole = offset == 0 && bytes.len() as u64 == total;
        Ok(FileBytes {
            sha256: whole.then(|| digest(&bytes)),
            bytes,
            total,
        })
    }

    fn list(&self, root: &Path, path: &str, limit: usize) -> Result<Listing, SysError> {
        let (workspace, path) = self.enter(root, path)?;
        let folder = workspace.folder(&path, "list")?;
        let (names, left_out) =
            first_names(&folder, limit).map_err(|e| fault(e, "list", &path.shown()))?;
        let mut entries: Vec<Entry> = names
            .into_iter()
            .filter_map(|name| entry(&folder, &name))
            .collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Listing {
            path: path.as_str().to_owned(),
            entries,
            left_out,
        })
    }

    fn plan(&self, root: &Path, change: &Change) -> Result<Plan, SysError> {
        self.plan_change(&Workspace::open(root)?, change)
    }

    fn apply(&self, root: &Path, change: &Change, plan: &Plan) -> Result<(), SysError> {
        self.apply_change(&Workspace::open(root)?, change, plan)
    }

    fn version(&self, sha256: &Digest, limit: u64) -> Result<Vec<u8>, SysError> {
        let (file, total) = self.blobs.version(sha256)?;
        let mut bytes = Vec::new();
        file.take(limit.min(MAX_READ))
            .read_to_end(&mut bytes)
            .map_err(|e| io_fault(&e, "read the version", &sha256.0))?;
        if bytes.len() as u64 == total {
            let got = digest(&bytes);
            if got != *sha256 {
                return Err(damaged(sha256, &got));
            }
        }
        Ok(bytes)
    }
}

fn own_data(path: &WorkspacePath) -> SysError {
    SysError::new(
        Code::Confined,
        format!(
            "`{}` is of Steward's own data, which no process may touch",
            path.shown()
        ),
    )
    .hint("choose another path")
}

/// The first `limit` names of a folder in byte order, and how many there are besides. Memory is
/// bounded by the limit, not by the folder.
fn first_names(folder: &OwnedFd, limit: usize) -> Result<(Vec<CString>, u64), rustix::io::Errno> {
    let mut first: BinaryHeap<CString> = BinaryHeap::new();
    let mut left_out = 0;
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if first.len() < limit {
            first.push(name.to_owned());
            continue;
        }
        left_out += 1;
        if let Some(mut last) = first.peek_mut()
            && name < last.as_c_str()
        {
            *last = name.to_owned();
        }
    }
    Ok((first.into_vec(), left_out))
}

/// Absent where the name went away between listing and looking.
fn entry(folder: &OwnedFd, name: &CStr) -> Option<Entry> {
    let stat = rustix::fs::statat(folder.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Some(FileKind::File),
        FileType::Directory => Some(FileKind::Folder),
        _ => None,
    };
    Some(Entry {
        name: String::from_utf8_lossy(name.to_bytes()).into_owned(),
        kind,
        bytes: if kind == Some(FileKind::File) {
            size(&stat)
        } else {
            0
        },
    })
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

#[allow(
    clippy::unnecessary_cast,
    clippy::unnecessary_fallible_conversions,
    reason = "the fields' types differ between architectures"
)]
fn modified_ms(stat: &Stat) -> u64 {
    let seconds = u64::try_from(stat.st_mtime as i64).unwrap_or(0);
    seconds
        .saturating_mul(1000)
        .saturating_add(stat.st_mtime_nsec as u64 / 1_000_000)
}

/// The process's umask. Asking the system call for it would set it for a moment.
fn umask() -> u32 {
    const USUAL: u32 = 0o022;
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return USUAL;
    };
    status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))
        .and_then(|text| u32::from_str_radix(text.trim(), 8).ok())
        .unwrap_or(USUAL)
}
