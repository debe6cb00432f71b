//! Opening beneath a workspace, and nowhere else.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use steward_kernel::provider::FileKind;
use steward_kernel::{Code, SysError};

use crate::fault::{fault, io_fault};
use crate::path::{WorkspacePath, shown};

const NO_LINKS: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);
const CONFINED: ResolveFlags = NO_LINKS.union(ResolveFlags::BENEATH);
/// `openat2` answers EAGAIN where a rename ran beside it; so often is it tried again.
const TRIES: usize = 64;

/// An opened workspace.
pub(crate) struct Workspace {
    root: OwnedFd,
    absolute: String,
}

impl Workspace {
    /// Opens the folder at `root`, links in its own path resolved.
    pub(crate) fn open(root: &Path) -> Result<Self, SysError> {
        let name = shown(&root.to_string_lossy());
        let doing = "open the workspace";
        let choose = "choose a folder that is there and that you may read";
        let absolute =
            std::fs::canonicalize(root).map_err(|e| io_fault(&e, doing, &name).hint(choose))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open_at(CWD, &absolute, flags, NO_LINKS).map_err(|errno| match errno {
            Errno::NOTDIR => SysError::new(
                Code::Invalid,
                format!("the workspace `{name}` is not a folder"),
            )
            .hint(choose),
            errno => fault(errno, doing, &name).hint(choose),
        })?;
        rustix::fs::accessat(
            &root,
            ".",
            Access::READ_OK | Access::EXEC_OK,
            AtFlags::EACCESS,
        )
        .map_err(|errno| fault(errno, doing, &name).hint(choose))?;
        let absolute = absolute.into_os_string().into_string().map_err(|_| {
            SysError::new(
                Code::Invalid,
                format!("the path of the workspace `{name}` is not UTF-8"),
            )
            .hint("rename the folder")
        })?;
        Ok(Self { root, absolute })
    }

    /// The workspace's own absolute path.
    pub(crate) fn root_path(&self) -> PathBuf {
        PathBuf::from(&self.absolute)
    }

    /// Absolute path of `path`.
    pub(crate) fn absolute(&self, path: &WorkspacePath) -> String {
        match (path.is_root(), self.absolute.as_str()) {
            (true, root) => root.to_owned(),
            (false, "/") => format!("/{}", path.as_str()),
            (false, root) => format!("{root}/{}", path.as_str()),
        }
    }

    /// What stands at `path`.
    pub(crate) fn node(&self, path: &WorkspacePath, doing: &str) -> Result<Node, SysError> {
        Node::at(&self.root, path.to_open(), doing, &path.shown())?
            .ok_or_else(|| fault(Errno::NOENT, doing, &path.shown()))
    }

    /// A folder, opened for reading.
    pub(crate) fn folder(&self, path: &WorkspacePath, doing: &str) -> Result<OwnedFd, SysError> {
        open_folder(&self.root, path.to_open()).map_err(|e| fault(e, doing, &path.shown()))
    }

    /// A regular file, opened for reading.
    pub(crate) fn file(&self, path: &WorkspacePath, doing: &str) -> Result<File, SysError> {
        match self.node(path, doing)?.kind {
            FileKind::Folder => Err(SysError::new(
                Code::Invalid,
                format!("cannot {doing} `{}`: it is a folder", path.shown()),
            )
            .hint("name a file")),
            FileKind::File => open_file(&self.root, path.to_open(), doing, &path.shown()),
        }
    }

    /// The nearest folder above `path` that is there, and what lies between.
    pub(crate) fn place(&self, path: &WorkspacePath, doing: &str) -> Result<Place, SysError> {
        let (parent, name) = path.split();
        let mut folder =
            open_folder(&self.root, ".").map_err(|e| fault(e, doing, &path.shown()))?;
        let mut missing = Vec::new();
        for name in parent.split('/').filter(|name| !name.is_empty()) {
            if !missing.is_empty() {
                missing.push(name.to_owned());
                continue;
            }
            match open_folder(&folder, name) {
                Ok(next) => folder = next,
                Err(Errno::NOENT) => missing.push(name.to_owned()),
                Err(errno) => return Err(fault(errno, doing, &path.shown())),
            }
        }
        Ok(Place {
            folder,
            missing,
            name: name.to_owned(),
        })
    }
}

/// Where a path's last name belongs.
pub(crate) struct Place {
    /// The nearest folder that is there.
    pub(crate) folder: OwnedFd,
    /// Names of the folders between it and the path's name, outermost first.
    pub(crate) missing: Vec<String>,
    /// The path's last name.
    pub(crate) name: String,
}

impl Place {
    /// Paths within the workspace of the folders that would have to be made.
    pub(crate) fn makes(&self, path: &WorkspacePath) -> Vec<String> {
        let (parent, _) = path.split();
        let names: Vec<&str> = parent.split('/').filter(|name| !name.is_empty()).collect();
        let there = names.len() - self.missing.len();
        (there..names.len())
            .map(|last| names[..=last].join("/"))
            .collect()
    }
}

/// A regular file or folder, looked at without opening it.
pub(crate) struct Node {
    /// What it is.
    pub(crate) kind: FileKind,
    /// What the system tells of it.
    pub(crate) stat: Stat,
}

impl Node {
    /// What stands at `path` beneath `folder`; [`Code::Confined`] where it is neither a regular file
    /// nor a folder.
    pub(crate) fn at(
        folder: impl AsFd,
        path: &str,
        doing: &str,
        shown: &str,
    ) -> Result<Option<Self>, SysError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let node = match open_at(folder, path, flags, CONFINED) {
            Ok(node) => node,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(fault(errno, doing, shown)),
        };
        let stat = rustix::fs::fstat(&node).map_err(|errno| fault(errno, doing, shown))?;
        let confined = |what: &str| {
            SysError::new(
                Code::Confined,
                format!("cannot {doing} `{shown}`: it is {what}"),
            )
            .hint("only regular files and folders can be used")
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Some(Self {
                kind: FileKind::File,
                stat,
            })),
            FileType::Directory => Ok(Some(Self {
                kind: FileKind::Folder,
                stat,
            })),
            FileType::Symlink => Err(confined("a symbolic link")),
            FileType::Fifo => Err(confined("a named pipe")),
            FileType::Socket => Err(confined("a socket")),
            FileType::CharacterDevice | FileType::BlockDevice => Err(confined("a device")),
            FileType::Unknown => Err(confined("not a regular file")),
        }
    }
}

/// Opens a folder beneath `folder` for listing and for `fsync`.
pub(crate) fn open_folder(folder: impl AsFd, path: &str) -> Result<OwnedFd, Errno> {
    open_at(
        folder,
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        CONFINED,
    )
}

/// Opens a regular file beneath `folder` for reading. Look at it with [`Node::at`] first: opening a
/// device has effects. Its time of last access stays as it is where the system permits that.
pub(crate) fn open_file(
    folder: impl AsFd,
    path: &str,
    doing: &str,
    shown: &str,
) -> Result<File, SysError> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match open_at(&folder, path, flags | OFlags::NOATIME, CONFINED) {
        Err(Errno::PERM) => open_at(&folder, path, flags, CONFINED),
        opened => opened,
    }
    .map_err(|errno| fault(errno, doing, shown))?;
    let stat = rustix::fs::fstat(&file).map_err(|errno| fault(errno, doing, shown))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(File::from(file)),
        _ => Err(fault(Errno::NXIO, doing, shown)),
    }
}

fn open_at(
    folder: impl AsFd,
    path: impl rustix::path::Arg + Copy,
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(&folder, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) if tries < TRIES => tries += 1,
            opened => return opened,
        }
    }
}
