//! What a change would do.

use std::os::fd::AsFd;

use rustix::fs::{Access, AtFlags, Dir};
use rustix::io::Errno;
use steward_kernel::provider::{Change, PathState, Plan, Target};
use steward_kernel::{Code, SysError};

use crate::beneath::{Place, Workspace, open_folder};
use crate::blobs::{Blobs, digest};
use crate::fault::fault;
use crate::files::WorkspaceFiles;
use crate::path::WorkspacePath;
use crate::state::{Seen, look};

/// A path that a change touches, and what stands there.
pub(crate) struct Site {
    pub(crate) path: WorkspacePath,
    pub(crate) place: Place,
    pub(crate) seen: Seen,
}

/// The paths that a change touches.
pub(crate) struct Sites {
    /// The path itself.
    pub(crate) at: Site,
    /// Where it goes, for a move.
    pub(crate) to: Option<Site>,
}

impl Sites {
    /// Looks; with `keep`, bytes that the change would remove go into the version store.
    pub(crate) fn look(
        files: &WorkspaceFiles,
        workspace: &Workspace,
        change: &Change,
        keep: Option<&Blobs>,
    ) -> Result<Self, SysError> {
        let site = |path: &str, keep| Site::look(files, workspace, path, keep);
        Ok(match change {
            Change::Write { path, .. } | Change::Delete { path } | Change::Restore { path, .. } => {
                Self {
                    at: site(path, keep)?,
                    to: None,
                }
            }
            Change::Mkdir { path } => Self {
                at: site(path, None)?,
                to: None,
            },
            Change::Move { from, to } => Self {
                at: site(from, None)?,
                to: Some(site(to, keep)?),
            },
        })
    }

    /// The site whose folders would have to be made.
    pub(crate) fn destination(&self) -> &Site {
        self.to.as_ref().unwrap_or(&self.at)
    }
}

impl Site {
    fn look(
        files: &WorkspaceFiles,
        workspace: &Workspace,
        path: &str,
        keep: Option<&Blobs>,
    ) -> Result<Self, SysError> {
        let path = WorkspacePath::parse_entry(path)?;
        files.admit(workspace, &path)?;
        files.admit_around(workspace, &path)?;
        let place = workspace.place(&path, "reach")?;
        let seen = if place.missing.is_empty() {
            look(place.folder.as_fd(), &place.name, &path.shown(), keep)?
        } else {
            Seen {
                state: PathState::Absent,
                stamp: None,
            }
        };
        Ok(Self { path, place, seen })
    }

    /// Names in the folder can be made, taken away and exchanged.
    fn folder_is_writable(&self) -> Result<(), SysError> {
        rustix::fs::accessat(
            &self.place.folder,
            ".",
            Access::WRITE_OK | Access::EXEC_OK,
            AtFlags::EACCESS,
        )
        .map_err(|errno| fault(errno, "change", &self.path.shown()))
    }

    /// A file that may be read only is not replaced, though its folder would permit that.
    fn file_is_writable(&self) -> Result<(), SysError> {
        rustix::fs::accessat(
            &self.place.folder,
            &self.place.name,
            Access::WRITE_OK,
            AtFlags::EACCESS,
        )
        .map_err(|errno| fault(errno, "replace", &self.path.shown()))
    }

    fn is_empty_folder(&self) -> Result<bool, SysError> {
        let empty = || -> Result<bool, Errno> {
            let folder = open_folder(&self.place.folder, &self.place.name)?;
            for entry in Dir::read_from(folder)? {
                if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        empty().map_err(|errno| fault(errno, "list", &self.path.shown()))
    }
}

impl WorkspaceFiles {
    pub(crate) fn plan_change(
        &self,
        workspace: &Workspace,
        change: &Change,
    ) -> Result<Plan, SysError> {
        let sites = Sites::look(self, workspace, change, Some(&self.blobs))?;
        let after = self.after(change, &sites)?;
        let makes = match change {
            Change::Delete { .. } => Vec::new(),
            _ => sites.destination().place.makes(&sites.destination().path),
        };
        Ok(Plan {
            absolute: workspace.absolute(&sites.at.path),
            path: sites.at.path.as_str().to_owned(),
            before: sites.at.seen.state,
            after,
            target: sites.to.map(|to| Target {
                absolute: workspace.absolute(&to.path),
                path: to.path.as_str().to_owned(),
                before: to.seen.state,
            }),
            makes,
        })
    }

    /// What would stand at the path afterwards, or why the change cannot be.
    fn after(&self, change: &Change, sites: &Sites) -> Result<PathState, SysError> {
        let at = &sites.at;
        let doing = match change {
            Change::Write { .. } => "write",
            Change::Mkdir { .. } => "make the folder",
            Change::Move { .. } => "move",
            Change::Delete { .. } => "delete",
            Change::Restore { .. } => "restore",
        };
        let refuse = |errno| Err(fault(errno, doing, &at.path.shown()));
        at.folder_is_writable()?;
        match (change, &at.seen.state) {
            (Change::Write { .. } | Change::Restore { .. }, PathState::Folder { .. }) => {
                refuse(Errno::ISDIR)
            }
            (Change::Write { bytes, .. }, before) => {
                // The bits that lend the owner's rights do not pass to new content.
                let mode = match before {
                    PathState::File { mode, .. } => mode & 0o777,
                    _ => 0o666 & !self.umask,
                };
                if at.seen.stamp.is_some() {
                    at.file_is_writable()?;
                }
                Ok(PathState::File {
                    sha256: digest(bytes),
                    bytes: bytes.len() as u64,
                    mode,
                })
            }
            (Change::Restore { sha256, mode, .. }, _) => {
                let (_, bytes) = self.blobs.version(sha256)?;
                Ok(PathState::File {
                    sha256: sha256.clone(),
                    bytes,
                    mode: mode & 0o7777,
                })
            }
            (Change::Mkdir { .. }, PathState::Absent) => {
                let parent = rustix::fs::fstat(&at.place.folder)
                    .map_err(|errno| fault(errno, doing, &at.path.shown()))?;
                let inherited = parent.st_mode & 0o2000;
                Ok(PathState::Folder {
                    mode: 0o777 & !self.umask | inherited,
                })
            }
            (Change::Mkdir { .. }, _) => refuse(Errno::EXIST),
            (Change::Delete { .. } | Change::Move { .. }, PathState::Absent) => {
                refuse(Errno::NOENT)
            }
            (Change::Delete { .. }, PathState::Folder { .. }) if !at.is_empty_folder()? => {
                refuse(Errno::NOTEMPTY)
            }
            (Change::Delete { .. }, _) => Ok(PathState::Absent),
            (Change::Move { .. }, _) => {
                if let Some(to) = &sites.to {
                    check_move(at, to)?;
                }
                Ok(PathState::Absent)
            }
        }
    }
}

fn check_move(at: &Site, to: &Site) -> Result<(), SysError> {
    let error = |code, why: &str| {
        SysError::new(
            code,
            format!(
                "cannot move `{}` to `{}`: {why}",
                at.path.shown(),
                to.path.shown()
            ),
        )
    };
    to.folder_is_writable()?;
    if at.path == to.path {
        return Err(error(Code::Invalid, "they are the same").hint("choose another target"));
    }
    if at.path.holds(&to.path) {
        return Err(
            error(Code::Invalid, "a folder cannot go into itself").hint("choose another target")
        );
    }
    match (&at.seen.state, &to.seen.state) {
        (_, PathState::Absent) => Ok(()),
        (PathState::File { .. }, PathState::File { .. }) => to.file_is_writable(),
        (_, PathState::Folder { .. }) => {
            Err(error(Code::Exists, "the target is a folder").hint(format!(
                "give the whole new path, such as `{}/{}`",
                to.path.shown(),
                at.place.name
            )))
        }
        _ => Err(error(Code::Exists, "the target is a file").hint("choose another target")),
    }
}
