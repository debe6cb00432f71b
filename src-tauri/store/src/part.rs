//! New content beside the file it will replace.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use steward_kernel::SysError;
use steward_kernel::provider::FileKind;

use crate::beneath::{Node, Workspace, open_file, open_folder};
use crate::blobs::Blobs;
use crate::fault::{fault, io_fault};
use crate::path::WorkspacePath;
use crate::pending::{Claim, unique};

const PREFIX: &str = ".steward-";
const SUFFIX: &str = ".part";

/// A name of our own in a person's folder, written down beforehand so that a crash leaves nothing
/// behind for good. Dropping removes what stands under it.
pub(crate) struct Part<'a> {
    folder: BorrowedFd<'a>,
    /// The name.
    pub(crate) name: String,
    abandoned: bool,
    _claim: Claim,
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        if !self.abandoned {
            // Most often gone already; what cannot be removed is an old version that is kept.
            let _ = rustix::fs::unlinkat(self.folder, &self.name, AtFlags::empty());
        }
    }
}

impl<'a> Part<'a> {
    /// Takes a name beside `path`, whose folder is `folder`.
    pub(crate) fn reserve(
        blobs: &Blobs,
        workspace: &Workspace,
        path: &WorkspacePath,
        folder: BorrowedFd<'a>,
    ) -> Result<Self, SysError> {
        let name = format!("{PREFIX}{}{SUFFIX}", unique());
        let entry = format!(
            "{}\0{}\0{name}",
            workspace.root_path().display(),
            path.split().0
        );
        let written = blobs.pending.claim("path").and_then(|mut claim| {
            claim.file.write_all(entry.as_bytes())?;
            Ok(claim)
        });
        let claim = written.map_err(|e| io_fault(&e, "prepare to change", &path.shown()))?;
        Ok(Self {
            folder,
            name,
            abandoned: false,
            _claim: claim,
        })
    }

    /// Makes an empty file under the name.
    pub(crate) fn create(&self) -> Result<File, Errno> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(self.folder, &self.name, flags, Mode::RUSR | Mode::WUSR).map(File::from)
    }

    /// Gives what stands under the name another one, where nothing stands there.
    pub(crate) fn rename_to(&self, name: &str) -> Result<(), Errno> {
        rename_new(self.folder, &self.name, self.folder, name)
    }

    /// Takes `name` away: it stands under this name afterwards.
    pub(crate) fn take(&self, name: &str) -> Result<(), Errno> {
        rename_new(self.folder, name, self.folder, &self.name)
    }

    /// Exchanges with `name`, in one step.
    pub(crate) fn exchange(&self, name: &str) -> Result<(), Errno> {
        let flags = RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(self.folder, &self.name, self.folder, name, flags)
    }

    /// Takes the place of `name`, whatever it is: for file systems that cannot exchange.
    pub(crate) fn replace(&self, name: &str) -> Result<(), Errno> {
        rustix::fs::renameat(self.folder, &self.name, self.folder, name)
    }

    /// Leaves what stands under the name where it is.
    pub(crate) fn abandon(mut self) -> String {
        self.abandoned = true;
        std::mem::take(&mut self.name)
    }
}

/// Renames where nothing stands at the new name.
pub(crate) fn rename_new(
    from: BorrowedFd<'_>,
    old: &str,
    to: BorrowedFd<'_>,
    new: &str,
) -> Result<(), Errno> {
    match rustix::fs::renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
        // The file system does not know the flag: look, then rename.
        Err(Errno::INVAL | Errno::NOSYS) => {
            match rustix::fs::statat(to, new, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => rustix::fs::renameat(from, old, to, new),
                Ok(_) => Err(Errno::EXIST),
                Err(errno) => Err(errno),
            }
        }
        done => done,
    }
}

/// Removes the part that a dead process wrote down in `ledger`. It may be an old version that was
/// changed at the last moment, so its bytes are kept first.
pub(crate) fn recover(blobs: &Blobs, ledger: &Path) -> Result<(), SysError> {
    let doing = "clear up after a crash";
    let mut entry = String::new();
    File::open(ledger)
        .and_then(|file| file.take(16 * 1024).read_to_string(&mut entry))
        .map_err(|e| io_fault(&e, doing, &ledger.to_string_lossy()))?;
    let mut parts = entry.split('\0');
    let (Some(root), Some(parent), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
        return Ok(());
    };
    if !(name.starts_with(PREFIX) && name.ends_with(SUFFIX)) || name.contains('/') {
        return Ok(());
    }
    let workspace = Workspace::open(Path::new(root))?;
    let parent = workspace.folder(&WorkspacePath::parse(parent)?, doing)?;
    if let Some(Node {
        kind: FileKind::File,
        ..
    }) = Node::at(&parent, name, doing, name)?
    {
        blobs.keep(&mut open_file(&parent, name, doing, name)?, name)?;
        rustix::fs::unlinkat(&parent, name, AtFlags::empty()).map_err(|e| fault(e, doing, name))?;
    }
    Ok(())
}

/// Folders that were made on the way to a path; dropping removes them again.
pub(crate) struct Made {
    folders: Vec<(std::os::fd::OwnedFd, String)>,
}

impl Made {
    /// Makes `missing` one beneath the other, from `folder`; the innermost, opened.
    pub(crate) fn make(
        folder: std::os::fd::OwnedFd,
        missing: &[String],
    ) -> Result<(Self, std::os::fd::OwnedFd), Errno> {
        let mut made = Self {
            folders: Vec::new(),
        };
        let mut folder = folder;
        for name in missing {
            let fresh = match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(errno) => return Err(errno),
            };
            let next = open_folder(&folder, name);
            if fresh {
                made.folders.push((folder, name.clone()));
            }
            folder = next?;
        }
        Ok((made, folder))
    }

    /// They stay, durably.
    pub(crate) fn settle(mut self) -> Result<(), Errno> {
        std::mem::take(&mut self.folders)
            .iter()
            .try_for_each(|(parent, _)| rustix::fs::fsync(parent))
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for (parent, name) in self.folders.iter().rev() {
            // Not ours any more where somebody has put something into it.
            let _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
    }
}
