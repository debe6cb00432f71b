//! Files of our own that are being made: locked while their maker lives, swept after a crash.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

static COUNT: AtomicU64 = AtomicU64::new(0);

/// The folder of files that are being made.
pub(crate) struct Pending {
    folder: PathBuf,
}

/// A new, empty file that is ours as long as this lives. Dropping removes it where it still stands
/// under its first name.
pub(crate) struct Claim {
    /// The file.
    pub(crate) file: File,
    /// Where it is.
    pub(crate) path: PathBuf,
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Not there any more where it was put in place; else the sweep at the next start gets it.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Pending {
    /// The folder is made where it is not there.
    pub(crate) fn open(folder: PathBuf) -> io::Result<Self> {
        std::fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    /// A new file; `kind` is its name's extension.
    pub(crate) fn claim(&self, kind: &str) -> io::Result<Claim> {
        loop {
            let path = self.folder.join(format!("{}.{kind}", unique()));
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            file.lock()?;
            // A sweep may have come between making and locking.
            if file.metadata()?.nlink() > 0 {
                return Ok(Claim { file, path });
            }
        }
    }

    /// Hands over and removes what a dead process left.
    pub(crate) fn sweep(&self, mut each: impl FnMut(&Path)) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let file = match OpenOptions::new().read(true).write(true).open(&path) {
                Ok(file) => file,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(e),
            };
            match file.try_lock() {
                Ok(()) => {
                    each(&path);
                    let _ = std::fs::remove_file(&path);
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(e)) => return Err(e),
            }
        }
        Ok(())
    }
}

/// A name no other process and no other call has, as far as pid, count and clock can tell.
pub(crate) fn unique() -> String {
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let nanos = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos());
    format!("{}-{count}-{nanos:x}", std::process::id())
}
