//! One kernel per data directory.

use std::fs::{File, OpenOptions, TryLockError};

use crate::paths::{Paths, make_private};
use crate::surface::Problem;

/// Held while this program has the data directory; the system lets go when it ends, however it does.
pub(crate) struct DataLock {
    _file: File,
}

/// Takes the data directory; `None` where another program has it.
pub(crate) fn take(paths: &Paths) -> Result<Option<DataLock>, Problem> {
    let unusable = |e: &std::io::Error| {
        let shown = steward_kernel::escape::shown(&paths.data.to_string_lossy());
        Problem::new(
            "unavailable",
            format!("cannot use the data directory `{shown}`: {e}"),
        )
        .hint("check that it is yours to write and the disk is not full, or set XDG_DATA_HOME")
    };
    make_private(&paths.data).map_err(|e| unusable(&e))?;
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(paths.lock())
        .map_err(|e| unusable(&e))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(DataLock { _file: file })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(e)) => Err(unusable(&e)),
    }
}
