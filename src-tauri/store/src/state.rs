//! What stands at a path now, exactly.

use std::fs::File;
use std::os::fd::BorrowedFd;

use rustix::fs::Stat;
use steward_kernel::provider::{Digest, FileKind, PathState};
use steward_kernel::{Code, SysError};

use crate::beneath::{Node, open_file};
use crate::blobs::{Blobs, Failed, for_chunks};
use crate::fault::{fault, io_fault};

/// How often a file that changes while it is read is read anew.
const TRIES: usize = 3;

/// A state, and by what to know the file again.
pub(crate) struct Seen {
    /// The state.
    pub(crate) state: PathState,
    /// Of a file.
    pub(crate) stamp: Option<Stamp>,
}

/// Tells, without reading a file again, whether it is still what was read. The inode's change time
/// is left out: a rename sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    bytes: i64,
    seconds: i64,
    nanos: i64,
}

impl Stamp {
    #[allow(
        clippy::unnecessary_cast,
        reason = "the fields' types differ between architectures"
    )]
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            bytes: stat.st_size as i64,
            seconds: stat.st_mtime as i64,
            nanos: stat.st_mtime_nsec as i64,
        }
    }

    /// Whether both are names of one file.
    pub(crate) fn same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// Permission bits.
pub(crate) fn mode(stat: &Stat) -> u32 {
    stat.st_mode & 0o7777
}

/// Looks at `name` in `folder`; with `keep`, a file's bytes go into the version store.
pub(crate) fn look(
    folder: BorrowedFd<'_>,
    name: &str,
    shown: &str,
    keep: Option<&Blobs>,
) -> Result<Seen, SysError> {
    for _ in 0..TRIES {
        let Some(node) = Node::at(folder, name, "look at", shown)? else {
            return Ok(Seen {
                state: PathState::Absent,
                stamp: None,
            });
        };
        if node.kind == FileKind::Folder {
            let state = PathState::Folder {
                mode: mode(&node.stat),
            };
            return Ok(Seen { state, stamp: None });
        }
        let mut file = open_file(folder, name, "read", shown)?;
        let before = stat(&file, shown)?;
        let (sha256, bytes) = match keep {
            Some(blobs) => blobs.keep(&mut file, shown)?,
            None => hash(&mut file, shown)?,
        };
        let after = stat(&file, shown)?;
        if Stamp::of(&before) == Stamp::of(&after) {
            let state = PathState::File {
                sha256,
                bytes,
                mode: mode(&after),
            };
            return Ok(Seen {
                state,
                stamp: Some(Stamp::of(&after)),
            });
        }
    }
    Err(SysError::new(
        Code::Conflict,
        format!("`{shown}` changes while it is read"),
    )
    .hint("wait until the program that writes it is done, and try again"))
}

fn hash(file: &mut File, shown: &str) -> Result<(Digest, u64), SysError> {
    let mut bytes = 0;
    let digest = for_chunks(file, |chunk| {
        bytes += chunk.len() as u64;
        Ok(())
    });
    match digest {
        Ok(digest) => Ok((digest, bytes)),
        Err(Failed::Read(e) | Failed::Sink(e)) => Err(io_fault(&e, "read", shown)),
    }
}

fn stat(file: &File, shown: &str) -> Result<Stat, SysError> {
    rustix::fs::fstat(file).map_err(|errno| fault(errno, "look at", shown))
}
