//! Generations that wait, kept as files of the data directory.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use steward_kernel::provider::Snapshots;
use steward_kernel::{Code, SysError};

use crate::paths::make_private;

/// A folder with one file a snapshot, which only its owner may enter.
pub(crate) struct FileSnapshots {
    folder: PathBuf,
}

impl FileSnapshots {
    /// Opens the folder, and empties it: what an earlier start left is of no use.
    pub(crate) fn open(folder: PathBuf) -> std::io::Result<Self> {
        match std::fs::remove_dir_all(&folder) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        make_private(&folder)?;
        Ok(Self { folder })
    }

    fn file(&self, number: u64) -> PathBuf {
        self.folder.join(number.to_string())
    }
}

impl Snapshots for FileSnapshots {
    fn put(&self, number: u64, snapshot: Vec<u8>) -> Result<(), SysError> {
        let path = self.file(number);
        let write = || {
            let mut options = std::fs::OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            file.write_all(&snapshot)
        };
        write().map_err(|e| {
            // A part of it is of no use to anyone.
            let _gone = std::fs::remove_file(&path);
            let why = format!("a generation that waits cannot be put on disk: `{e}`");
            SysError::new(Code::Unavailable, why).hint("make room where the data directory is")
        })
    }

    fn take(&self, number: u64) -> Result<Vec<u8>, SysError> {
        let path = self.file(number);
        let taken = std::fs::read(&path).map_err(|e| {
            let why = format!("a generation that waits cannot be read from disk: `{e}`");
            SysError::new(Code::Unavailable, why).hint("ask for it again")
        })?;
        self.remove(number);
        Ok(taken)
    }

    fn remove(&self, number: u64) {
        // What stays is emptied at the next start.
        let _gone = std::fs::remove_file(self.file(number));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_was_put_is_taken_once_and_only_its_owner_may_read_it() {
        let room = tempfile::tempdir().unwrap();
        let folder = room.path().join("snapshots");
        let kept = FileSnapshots::open(folder.clone()).unwrap();
        let bytes: Vec<u8> = (0..=255).cycle().take(70_000).collect();
        kept.put(7, bytes.clone()).unwrap();
        let mode = |path: &PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&kept.file(7))), (0o700, 0o600));
        assert_eq!(kept.take(7).unwrap(), bytes);
        assert_eq!(kept.take(7).unwrap_err().code, Code::Unavailable);
        assert_eq!(folder.read_dir().unwrap().count(), 0);
    }

    #[test]
    fn it_begins_empty() {
        let room = tempfile::tempdir().unwrap();
        let folder = room.path().join("snapshots");
        FileSnapshots::open(folder.clone())
            .unwrap()
            .put(1, vec![1])
            .unwrap();
        let again = FileSnapshots::open(folder).unwrap();
        assert!(again.take(1).is_err());
    }
}
