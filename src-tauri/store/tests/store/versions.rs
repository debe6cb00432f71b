//! Old bytes are kept before anything happens, once each, and come back.

use std::path::PathBuf;

use steward_kernel::Code;
use steward_kernel::provider::{Change, Digest, Files};

use crate::bed::{Bed, delete, rename, restore, sha256, write};

fn blobs(bed: &Bed) -> Vec<PathBuf> {
    let mut all: Vec<_> = crate::bed::fingerprint(&bed.temp.path().join("blobs"))
        .into_keys()
        .filter(|path| path.is_file() && !path.ends_with("lock"))
        .collect();
    all.sort();
    all
}

#[test]
fn bytes_that_a_change_would_remove_are_kept_by_its_plan() {
    let rows: &[(Change, Option<&[u8]>)] = &[
        (write("a", "new"), Some(b"a")),
        (delete("a"), Some(b"a")),
        (rename("a", "b"), Some(b"b")),
        (rename("a", "c"), None),
        (write("new", "new"), None),
    ];
    for (change, kept) in rows {
        let bed = Bed::with(&[("a", "a"), ("b", "b")]);
        bed.files.plan(&bed.root, change).unwrap();
        match kept {
            Some(bytes) => {
                let digest = sha256(bytes);
                let (folder, name) = digest.0.split_at(2);
                let place = bed.temp.path().join("blobs").join(folder).join(name);
                assert_eq!(blobs(&bed), [place], "{change:?}");
                assert_eq!(bed.files.version(&sha256(bytes), 100).unwrap(), *bytes);
                bed.files.plan(&bed.root, change).unwrap();
                assert_eq!(blobs(&bed).len(), 1, "{change:?}: kept once");
            }
            None => assert_eq!(blobs(&bed), [] as [PathBuf; 0], "{change:?}"),
        }
    }
}

#[test]
fn what_was_deleted_or_overwritten_comes_back_and_that_can_be_undone_too() {
    let bed = Bed::with(&[("a", "first")]);
    bed.change(&write("a", "second")).unwrap();
    bed.change(&delete("a")).unwrap();
    for (version, mode) in [("first", 0o600), ("second", 0o755), ("first", 0o444)] {
        bed.change(&restore("a", version.as_bytes(), mode)).unwrap();
        assert_eq!(bed.text("a"), version);
        match bed.state("a") {
            steward_kernel::provider::PathState::File { mode: got, .. } => assert_eq!(got, mode),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_version_is_asked_for_by_a_digest_only() {
    let bed = Bed::with(&[("a", "bytes")]);
    bed.change(&delete("a")).unwrap();
    let good = sha256(b"bytes");
    let rows = [
        (good.0.clone(), 100, Ok("bytes")),
        (good.0.clone(), 3, Ok("byt")),
        (good.0.clone(), 0, Ok("")),
        (sha256(b"never").0, 100, Err(Code::NotFound)),
        (good.0.to_uppercase(), 100, Err(Code::Invalid)),
        (good.0[..63].to_owned(), 100, Err(Code::Invalid)),
        (
            "../../../outside/secret".to_owned(),
            100,
            Err(Code::Invalid),
        ),
        (
            format!("ab/{}", "../".repeat(20)) + "x",
            100,
            Err(Code::Invalid),
        ),
        (String::new(), 100, Err(Code::Invalid)),
    ];
    for (digest, limit, outcome) in rows {
        let got = bed.files.version(&Digest(digest.clone()), limit);
        let got = got
            .map(|bytes| String::from_utf8(bytes).unwrap())
            .map_err(|e| e.code);
        assert_eq!(got, outcome.map(str::to_owned), "{digest}");
    }
}

#[test]
fn a_damaged_version_is_told_and_not_put_back() {
    let bed = Bed::with(&[("a", "bytes")]);
    bed.change(&write("a", "new")).unwrap();
    std::fs::write(&blobs(&bed)[0], "BYTES").unwrap();
    let error = bed.files.version(&sha256(b"bytes"), 100).unwrap_err();
    assert!(error.message.contains("is damaged"), "{error}");
    let before = bed.workspace_now();
    let error = bed.change(&restore("a", b"bytes", 0o644)).unwrap_err();
    assert!(error.message.contains("is damaged"), "{error}");
    assert_eq!(bed.text("a"), "new");
    assert_eq!(bed.workspace_now().len(), before.len());
}
