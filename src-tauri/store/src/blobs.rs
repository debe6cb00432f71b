//! The version store: bytes by their SHA-256, written once, never changed.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use steward_kernel::provider::Digest;
use steward_kernel::{Code, SysError};

use crate::fault::io_fault;
use crate::path::shown;
use crate::pending::Pending;

/// Bytes read at a time: what a call needs of memory, however large the file.
const CHUNK: usize = 256 * 1024;
static ZEROS: [u8; CHUNK] = [0; CHUNK];

/// Versions under `ab/cdef…`, the two parts of the digest.
pub(crate) struct Blobs {
    root: PathBuf,
    pub(crate) pending: Pending,
}

impl Blobs {
    /// Opens the store, making its folder where it is not there, for this user only.
    pub(crate) fn open(root: PathBuf) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&root)?;
        let root = std::fs::canonicalize(root)?;
        let pending = Pending::open(root.join("pending"))?;
        Ok(Self { root, pending })
    }

    /// Where the store is, links resolved.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Holds off every other change, of this and of other processes, until dropped.
    pub(crate) fn lock(&self) -> Result<File, SysError> {
        let path = self.root.join("lock");
        File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .and_then(|file| file.lock().map(|()| file))
            .map_err(|e| self.fault(&e, "lock"))
    }

    /// Keeps all that `from` (called `name` in errors) has to give; its digest and size. Durable
    /// when it returns. Holes stay holes.
    pub(crate) fn keep(&self, from: &mut File, name: &str) -> Result<(Digest, u64), SysError> {
        let mut claim = self
            .pending
            .claim("blob")
            .map_err(|e| self.fault(&e, "make"))?;
        let mut bytes = 0u64;
        let digest = for_chunks(from, |chunk| {
            bytes += chunk.len() as u64;
            if chunk == &ZEROS[..chunk.len()] {
                claim
                    .file
                    .seek(SeekFrom::Current(chunk.len() as i64))
                    .map(drop)
            } else {
                claim.file.write_all(chunk)
            }
        })
        .map_err(|e| match e {
            Failed::Read(e) => io_fault(&e, "read", name),
            Failed::Sink(e) => self.fault(&e, "keep the old version in"),
        })?;
        let place = self.path(&digest)?;
        if std::fs::metadata(&place).is_ok_and(|there| there.len() == bytes) {
            return Ok((digest, bytes));
        }
        self.settle(&claim.file, &claim.path, &place, bytes)
            .map_err(|e| self.fault(&e, "keep the old version in"))?;
        Ok((digest, bytes))
    }

    fn settle(&self, file: &File, from: &Path, place: &Path, bytes: u64) -> io::Result<()> {
        file.set_len(bytes)?;
        file.sync_all()?;
        if let Some(folder) = place.parent() {
            match DirBuilder::new().mode(0o700).create(folder) {
                Ok(()) => File::open(&self.root)?.sync_all()?,
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
            std::fs::rename(from, place)?;
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }

    /// A kept version, opened for reading, and its size.
    pub(crate) fn version(&self, digest: &Digest) -> Result<(File, u64), SysError> {
        let path = self.path(digest)?;
        let file = File::open(path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => {
                SysError::new(Code::NotFound, format!("no version `{digest}` is kept"))
                    .hint("look in the journal for the versions of a file")
            }
            _ => self.fault(&e, "open a version in"),
        })?;
        let bytes = file
            .metadata()
            .map_err(|e| self.fault(&e, "open a version in"))?
            .len();
        Ok((file, bytes))
    }

    fn path(&self, digest: &Digest) -> Result<PathBuf, SysError> {
        let text = digest.0.as_str();
        let form = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        if text.len() != 64 || !text.bytes().all(form) {
            return Err(SysError::new(
                Code::Invalid,
                format!(
                    "`{}` is not a SHA-256 in 64 lower-case hexadecimal digits",
                    shown(text)
                ),
            ));
        }
        let (folder, name) = text.split_at(2);
        Ok(self.root.join(folder).join(name))
    }

    fn fault(&self, error: &io::Error, doing: &str) -> SysError {
        io_fault(error, doing, &shown(&self.root.to_string_lossy()))
    }
}

/// Which side of a copy failed.
pub(crate) enum Failed {
    /// The source.
    Read(io::Error),
    /// What takes the chunks.
    Sink(io::Error),
}

/// Gives all of `from` to `sink` in chunks; the SHA-256 of it.
pub(crate) fn for_chunks(
    from: &mut impl Read,
    mut sink: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<Digest, Failed> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(Digest(hex::encode(hash.finalize()))),
            Ok(n) => {
                hash.update(&chunk[..n]);
                sink(&chunk[..n]).map_err(Failed::Sink)?;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Failed::Read(e)),
        }
    }
}

/// SHA-256 of bytes at hand.
pub(crate) fn digest(bytes: &[u8]) -> Digest {
    Digest(hex::encode(Sha256::digest(bytes)))
}
