//! Carrying out an approved change: whole or not at all, durable when it returns.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Gid, Mode, Uid, XattrFlags};
use rustix::io::Errno;
use steward_kernel::provider::{Change, Digest, PathState, Plan};
use steward_kernel::{Code, SysError};

use crate::beneath::{Node, Workspace, open_file};
use crate::blobs::{Failed, digest, for_chunks};
use crate::fault::{fault, io_fault, unconfirmed};
use crate::files::WorkspaceFiles;
use crate::part::{Made, Part, rename_new};
use crate::plan::{Site, Sites};
use crate::state::{Seen, Stamp, look, mode};

/// Bytes of one extended attribute, and of the list of their names, as Linux bounds them.
const MAX_XATTR: usize = 64 * 1024;

/// New content of a file.
enum Content<'a> {
    Bytes(&'a [u8]),
    Version(&'a Digest),
}

impl WorkspaceFiles {
    pub(crate) fn apply_change(
        &self,
        workspace: &Workspace,
        change: &Change,
        plan: &Plan,
    ) -> Result<(), SysError> {
        let _changes_one_after_another = self.blobs.lock()?;
        let sites = Sites::look(self, workspace, change, None)?;
        still_as_planned(workspace, change, &sites, plan)?;
        let Sites { at, to } = sites;
        match (change, to) {
            (Change::Write { bytes, .. }, _) => {
                self.put(workspace, at, &Content::Bytes(bytes), &plan.after)
            }
            (Change::Restore { sha256, .. }, _) => {
                self.put(workspace, at, &Content::Version(sha256), &plan.after)
            }
            (Change::Mkdir { .. }, _) => make_folder(at),
            (Change::Delete { .. }, _) => self.delete(workspace, &at),
            (Change::Move { .. }, Some(to)) => rename(&at, to),
            (Change::Move { .. }, None) => {
                Err(SysError::new(Code::Internal, "a move without a target"))
            }
        }
    }

    fn put(
        &self,
        workspace: &Workspace,
        site: Site,
        content: &Content<'_>,
        after: &PathState,
    ) -> Result<(), SysError> {
        let shown = site.path.shown();
        let PathState::File { mode, .. } = after else {
            return Err(SysError::new(
                Code::Invalid,
                format!("the plan for `{shown}` is of no file"),
            ));
        };
        let failed = |errno| fault(errno, "write", &shown);
        let Site { path, place, seen } = site;
        let (made, folder) = Made::make(place.folder, &place.missing).map_err(failed)?;
        let folder = folder.as_fd();
        let part = Part::reserve(&self.blobs, workspace, &path, folder)?;
        let mut file = part.create().map_err(failed)?;
        self.fill(&mut file, content, &shown)?;
        if seen.stamp.is_some() {
            inherit(&open_file(folder, &place.name, "read", &shown)?, &file);
        }
        match rustix::fs::fchmod(&file, Mode::from_raw_mode(*mode)) {
            // The file is ours, so this is a file system without permission bits.
            Ok(()) | Err(Errno::PERM | Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(failed(errno)),
        }
        rustix::fs::fsync(&file).map_err(failed)?;
        put_in_place(part, &place.name, &seen, folder, &shown)?;
        rustix::fs::fsync(folder)
            .and_then(|()| made.settle())
            .map_err(|errno| unconfirmed(errno, &shown))
    }

    fn fill(&self, file: &mut File, content: &Content<'_>, shown: &str) -> Result<(), SysError> {
        match content {
            Content::Bytes(bytes) => file
                .write_all(bytes)
                .map_err(|e| io_fault(&e, "write", shown)),
            Content::Version(wanted) => {
                let (mut version, _) = self.blobs.version(wanted)?;
                let got =
                    for_chunks(&mut version, |chunk| file.write_all(chunk)).map_err(
                        |e| match e {
                            Failed::Read(e) => io_fault(&e, "read the kept version of", shown),
                            Failed::Sink(e) => io_fault(&e, "write", shown),
                        },
                    )?;
                if got == **wanted {
                    Ok(())
                } else {
                    Err(damaged(wanted, &got))
                }
            }
        }
    }

    /// Takes the name away first, looks at what was taken, and only then removes it.
    fn delete(&self, workspace: &Workspace, site: &Site) -> Result<(), SysError> {
        let shown = site.path.shown();
        let failed = |errno| match errno {
            Errno::NOENT | Errno::NOTEMPTY => changed(&shown),
            errno => fault(errno, "delete", &shown),
        };
        let folder = site.place.folder.as_fd();
        let name = &site.place.name;
        if site.seen.stamp.is_none() {
            rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR).map_err(failed)?;
        } else {
            let part = Part::reserve(&self.blobs, workspace, &site.path, folder)?;
            part.take(name).map_err(failed)?;
            if !is_still(folder, &part.name, &site.seen, &shown) {
                return Err(put_back(part, &shown, |part| part.rename_to(name)));
            }
            rustix::fs::unlinkat(folder, &part.name, AtFlags::empty()).map_err(failed)?;
        }
        rustix::fs::fsync(folder).map_err(|errno| unconfirmed(errno, &shown))
    }
}

/// A version whose bytes are not what its name says.
pub(crate) fn damaged(wanted: &Digest, got: &Digest) -> SysError {
    SysError::new(
        Code::Unavailable,
        format!("the kept version `{wanted}` is damaged: its bytes have the SHA-256 `{got}`"),
    )
    .hint("check the disk; nothing was changed")
}

fn still_as_planned(
    workspace: &Workspace,
    change: &Change,
    sites: &Sites,
    plan: &Plan,
) -> Result<(), SysError> {
    let same_paths = workspace.absolute(&sites.at.path) == plan.absolute
        && sites.to.as_ref().map(|to| workspace.absolute(&to.path))
            == plan.target.as_ref().map(|target| target.absolute.clone());
    let same_content = match (change, &plan.after) {
        (Change::Write { bytes, .. }, PathState::File { sha256, .. }) => *sha256 == digest(bytes),
        (
            Change::Restore {
                sha256: wanted,
                mode: bits,
                ..
            },
            PathState::File { sha256, mode, .. },
        ) => sha256 == wanted && *mode == bits & 0o7777,
        (Change::Delete { .. } | Change::Move { .. }, after) => *after == PathState::Absent,
        (Change::Mkdir { .. }, after) => matches!(after, PathState::Folder { .. }),
        (Change::Write { .. } | Change::Restore { .. }, _) => false,
    };
    if !same_paths || !same_content {
        return Err(SysError::new(
            Code::Conflict,
            format!(
                "the plan was made for another change than this one to `{}`",
                sites.at.path.shown()
            ),
        )
        .hint("plan the change anew"));
    }
    if sites.at.seen.state != plan.before {
        return Err(changed(&sites.at.path.shown()));
    }
    let to = sites.to.as_ref();
    if to.map(|to| &to.seen.state) != plan.target.as_ref().map(|target| &target.before) {
        return Err(changed(&sites.destination().path.shown()));
    }
    // Fewer folders than were shown may be made, never others.
    let destination = sites.destination();
    let makes = destination.place.makes(&destination.path);
    if !matches!(change, Change::Delete { .. }) && !makes.iter().all(|m| plan.makes.contains(m)) {
        return Err(changed(&destination.path.shown()));
    }
    Ok(())
}

fn changed(shown: &str) -> SysError {
    SysError::new(
        Code::Conflict,
        format!("`{shown}` has changed since it was looked at"),
    )
    .hint("look at it again and plan the change anew; nothing was changed")
}

/// Puts the part under `name`. What it displaces is looked at afterwards: where somebody changed it
/// at the last moment, it goes back.
fn put_in_place(
    part: Part<'_>,
    name: &str,
    seen: &Seen,
    folder: BorrowedFd<'_>,
    shown: &str,
) -> Result<(), SysError> {
    let failed = |errno| match errno {
        Errno::EXIST | Errno::NOENT => changed(shown),
        errno => fault(errno, "write", shown),
    };
    if seen.stamp.is_none() {
        return part.rename_to(name).map_err(failed);
    }
    match part.exchange(name) {
        Ok(()) if is_still(folder, &part.name, seen, shown) => Ok(()),
        Ok(()) => Err(put_back(part, shown, |part| part.exchange(name))),
        Err(Errno::INVAL | Errno::NOSYS) => part.replace(name).map_err(failed),
        Err(errno) => Err(failed(errno)),
    }
}

/// Undoes a step that displaced something unexpected.
fn put_back(
    part: Part<'_>,
    shown: &str,
    back: impl FnOnce(&Part<'_>) -> Result<(), Errno>,
) -> SysError {
    match back(&part) {
        Ok(()) => changed(shown),
        Err(errno) => {
            let name = part.abandon();
            SysError::new(
                Code::Unknown,
                format!("`{shown}` changed at the last moment and could not be put back: {errno}"),
            )
            .hint(format!("what was there is beside it, as `{name}`"))
        }
    }
}

/// Whether the file at `name` is, bytes and permission bits, what was seen.
fn is_still(folder: BorrowedFd<'_>, name: &str, seen: &Seen, shown: &str) -> bool {
    let PathState::File { mode: bits, .. } = &seen.state else {
        return false;
    };
    match Node::at(folder, name, "look at", shown) {
        Ok(Some(node)) if Some(Stamp::of(&node.stat)) == seen.stamp => mode(&node.stat) == *bits,
        Ok(Some(_)) => look(folder, name, shown, None).is_ok_and(|now| now.state == seen.state),
        _ => false,
    }
}

/// Owner, group and extended attributes go on to the new file as far as the system permits it; what
/// gives a program rights of its own does not.
fn inherit(old: &File, new: &File) {
    if let (Ok(was), Ok(is)) = (rustix::fs::fstat(old), rustix::fs::fstat(new)) {
        if was.st_gid != is.st_gid {
            let _ = rustix::fs::fchown(new, None, Some(Gid::from_raw(was.st_gid)));
        }
        if was.st_uid != is.st_uid {
            let _ = rustix::fs::fchown(new, Some(Uid::from_raw(was.st_uid)), None);
        }
    }
    let mut names = vec![0u8; MAX_XATTR];
    let Ok(length) = rustix::fs::flistxattr(old, &mut names[..]) else {
        return;
    };
    let mut value = vec![0u8; MAX_XATTR];
    for name in names[..length]
        .split(|&b| b == 0)
        .filter(|name| !name.is_empty())
    {
        if name == b"security.capability" {
            continue;
        }
        if let Ok(length) = rustix::fs::fgetxattr(old, name, &mut value[..]) {
            let _ = rustix::fs::fsetxattr(new, name, &value[..length], XattrFlags::empty());
        }
    }
}

fn make_folder(site: Site) -> Result<(), SysError> {
    let shown = site.path.shown();
    let failed = |errno| match errno {
        Errno::EXIST => changed(&shown),
        errno => fault(errno, "make the folder", &shown),
    };
    let (made, folder) = Made::make(site.place.folder, &site.place.missing).map_err(failed)?;
    rustix::fs::mkdirat(&folder, &site.place.name, Mode::from_raw_mode(0o777)).map_err(failed)?;
    rustix::fs::fsync(&folder)
        .and_then(|()| made.settle())
        .map_err(|errno| unconfirmed(errno, &shown))
}

fn rename(at: &Site, to: Site) -> Result<(), SysError> {
    let shown = to.path.shown();
    let failed = |errno| match errno {
        Errno::EXIST | Errno::NOENT | Errno::NOTEMPTY => changed(&shown),
        errno => fault(errno, "move to", &shown),
    };
    let from = at.place.folder.as_fd();
    let (made, folder) = Made::make(to.place.folder, &to.place.missing).map_err(failed)?;
    let (old, new) = (&at.place.name, &to.place.name);
    match (&at.seen.stamp, &to.seen.stamp) {
        (_, None) => rename_new(from, old, folder.as_fd(), new),
        // Two names of one file: the system's rename would leave both.
        (Some(a), Some(b)) if a.same_file(b) => rustix::fs::unlinkat(from, old, AtFlags::empty()),
        (_, Some(_)) => rustix::fs::renameat(from, old, &folder, new),
    }
    .map_err(failed)?;
    rustix::fs::fsync(&folder)
        .and_then(|()| rustix::fs::fsync(from))
        .and_then(|()| made.settle())
        .map_err(|errno| unconfirmed(errno, &shown))
}
