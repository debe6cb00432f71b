//! From the operating system's errors to the kernel's.

use rustix::io::Errno;
use steward_kernel::{Code, SysError};

/// What `errno` means for `doing` something to `path` (already escaped for showing).
pub(crate) fn fault(errno: Errno, doing: &str, path: &str) -> SysError {
    let error = |code, why: &str| SysError::new(code, format!("cannot {doing} `{path}`: {why}"));
    match errno {
        Errno::LOOP => error(
            Code::Confined,
            "it is, or its path goes through, a symbolic link",
        )
        .hint("name the file itself; links are not followed"),
        Errno::XDEV => error(
            Code::Confined,
            "the path leads out of the workspace or onto another disk",
        )
        .hint("use a path inside the workspace, on one disk"),
        Errno::NXIO | Errno::NODEV => error(Code::Confined, "it is not a regular file")
            .hint("only regular files and folders can be used"),
        Errno::NOENT => {
            error(Code::NotFound, "it is not there").hint("list its folder to see what is there")
        }
        Errno::NOTDIR => error(Code::NotFound, "a part of the path is a file, not a folder")
            .hint("list the folder above to see what is there"),
        Errno::EXIST => error(Code::Exists, "it is there already").hint("choose another name"),
        Errno::ISDIR => error(Code::Exists, "it is a folder").hint("name a file"),
        Errno::NOTEMPTY => {
            error(Code::Invalid, "the folder is not empty").hint("delete what is in it first")
        }
        Errno::NAMETOOLONG => {
            error(Code::Invalid, "the name is too long").hint("choose a shorter name")
        }
        Errno::ACCESS | Errno::PERM => error(Code::Unavailable, "the system does not permit it")
            .hint("change the permissions of the file or its folder, or choose another place"),
        Errno::ROFS => {
            error(Code::Unavailable, "the disk is read-only").hint("choose another place")
        }
        Errno::NOSPC | Errno::DQUOT => error(Code::Unavailable, "the disk is full")
            .hint("free some space and try again; nothing was changed"),
        Errno::FBIG => error(
            Code::Unavailable,
            "the file would be larger than the system permits",
        )
        .hint("nothing was changed"),
        Errno::IO => {
            error(Code::Unavailable, "the disk failed").hint("check the disk; nothing was changed")
        }
        Errno::NOSYS => error(
            Code::Unavailable,
            "the system has no confined opening (openat2)",
        )
        .hint("use Linux 5.6 or newer, and permit openat2 in the container's seccomp profile"),
        other => error(Code::Unavailable, &other.to_string()),
    }
}

/// [`fault`] for an error of the standard library.
pub(crate) fn io_fault(error: &std::io::Error, doing: &str, path: &str) -> SysError {
    match Errno::from_io_error(error) {
        Some(errno) => fault(errno, doing, path),
        None => SysError::new(
            Code::Unavailable,
            format!("cannot {doing} `{path}`: {error}"),
        ),
    }
}

/// The change took place, but the disk would not confirm it.
pub(crate) fn unconfirmed(errno: Errno, path: &str) -> SysError {
    SysError::new(
        Code::Unknown,
        format!("`{path}` was changed, but the disk did not confirm it: {errno}"),
    )
    .hint("check the disk, then look at the file")
}
