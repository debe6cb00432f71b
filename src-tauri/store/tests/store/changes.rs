//! Every change: what is planned, that planning touches nothing, that applying does exactly that.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use steward_kernel::Code;
use steward_kernel::provider::{Change, FileKind, Files, PathState};

use crate::bed::{Bed, delete, mkdir, rename, restore, sha256, write};

const ENTRIES: &[(&str, &str)] = &[
    ("a", "a"),
    ("b", "b"),
    ("d/f", "f"),
    ("d/e/g", "g"),
    ("empty/", ""),
    ("once", "kept"),
];

fn bed() -> Bed {
    let bed = Bed::with(ENTRIES);
    for name in ["a", "b", "d/f", "d/e/g", "once"] {
        let mode = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(bed.root.join(name), mode).unwrap();
    }
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(bed.root.join("empty"), mode).unwrap();
    bed.change(&write("once", "over")).unwrap();
    bed
}

fn file(text: &str, mode: u32) -> PathState {
    PathState::File {
        sha256: sha256(text.as_bytes()),
        bytes: text.len() as u64,
        mode,
    }
}

#[test]
fn a_change_does_what_its_plan_says_and_nothing_before() {
    let absent = PathState::Absent;
    let rows: &[(Change, PathState, PathState, &[&str])] = &[
        (
            write("new", "text"),
            absent.clone(),
            file("text", 0o644),
            &[],
        ),
        (
            write("./d//x/y/new", ""),
            absent.clone(),
            file("", 0o644),
            &["d/x", "d/x/y"],
        ),
        (write("a", "new"), file("a", 0o640), file("new", 0o640), &[]),
        (write("a", "a"), file("a", 0o640), file("a", 0o640), &[]),
        (
            mkdir("new"),
            absent.clone(),
            PathState::Folder { mode: 0o755 },
            &[],
        ),
        (
            mkdir("p/q/r"),
            absent.clone(),
            PathState::Folder { mode: 0o755 },
            &["p", "p/q"],
        ),
        (rename("a", "c"), file("a", 0o640), absent.clone(), &[]),
        (
            rename("a", "p/q/c"),
            file("a", 0o640),
            absent.clone(),
            &["p", "p/q"],
        ),
        (rename("a", "b"), file("a", 0o640), absent.clone(), &[]),
        (
            rename("empty", "d/moved"),
            PathState::Folder { mode: 0o755 },
            absent.clone(),
            &[],
        ),
        (delete("a"), file("a", 0o640), absent.clone(), &[]),
        (
            delete("empty"),
            PathState::Folder { mode: 0o755 },
            absent.clone(),
            &[],
        ),
        (
            restore("once", b"kept", 0o600),
            file("over", 0o640),
            file("kept", 0o600),
            &[],
        ),
        (
            restore("p/back", b"kept", 0o755),
            absent,
            file("kept", 0o755),
            &["p"],
        ),
    ];
    for (change, before, after, makes) in rows {
        let bed = bed();
        let untouched = bed.workspace_now();
        let plan = bed.files.plan(&bed.root, change).unwrap();
        assert_eq!(bed.workspace_now(), untouched, "planning {change:?}");
        assert_eq!((&plan.before, &plan.after), (before, after), "{change:?}");
        assert_eq!(plan.makes, *makes, "{change:?}");
        assert_eq!(plan.absolute, bed.root.join(&plan.path).to_str().unwrap());

        bed.files.apply(&bed.root, change, &plan).unwrap();
        assert_eq!(bed.state(&plan.path), *after, "{change:?}");
        assert_eq!(bed.files.state(&bed.root, &plan.path), Ok(after.clone()));
        if let Some(target) = &plan.target {
            assert_eq!(bed.state(&target.path), *before, "{change:?}");
            assert_eq!(
                target.absolute,
                bed.root.join(&target.path).to_str().unwrap()
            );
        }
        let touched = [
            Some(&plan.path),
            plan.target.as_ref().map(|target| &target.path),
        ];
        for (path, print) in &untouched {
            let name = path
                .strip_prefix(&bed.root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            if path.is_file() && !touched.contains(&Some(&name)) {
                assert_eq!(
                    bed.workspace_now()[path].0,
                    print.0,
                    "{change:?} touched {name}"
                );
            }
        }
        let parts = bed
            .workspace_now()
            .into_keys()
            .filter(|path| path.extension().is_some());
        assert_eq!(parts.count(), 0, "{change:?} leaves a temporary file");
        let error = bed.files.apply(&bed.root, change, &plan);
        if plan.before != plan.after || plan.target.is_some() {
            assert_eq!(
                error.unwrap_err().code,
                Code::Conflict,
                "{change:?} a second time"
            );
        }
    }
}

#[test]
fn what_cannot_be_done_is_said_before_the_question() {
    let long = "n".repeat(256);
    let rows: &[(Change, Code, &str)] = &[
        (write("", "x"), Code::Invalid, "names the workspace itself"),
        (delete("."), Code::Invalid, "names the workspace itself"),
        (write("a\0b", "x"), Code::Invalid, "`a\\0b` contains a NUL"),
        (write(&long, "x"), Code::Invalid, "longer than 255 bytes"),
        (write("d", "x"), Code::Exists, "it is a folder"),
        (write("a/x", "x"), Code::NotFound, "not a folder"),
        (mkdir("d"), Code::Exists, "there already"),
        (mkdir("a"), Code::Exists, "there already"),
        (delete("none"), Code::NotFound, "it is not there"),
        (delete("none/none"), Code::NotFound, "it is not there"),
        (delete("d"), Code::Invalid, "the folder is not empty"),
        (rename("none", "x"), Code::NotFound, "it is not there"),
        (rename("a", "a"), Code::Invalid, "they are the same"),
        (rename("a", "./d/../a"), Code::Confined, "leads upwards"),
        (rename("a", "empty"), Code::Exists, "the target is a folder"),
        (rename("d", "a"), Code::Exists, "the target is a file"),
        (rename("d", "d/e/d"), Code::Invalid, "cannot go into itself"),
        (
            restore("a", b"never seen", 0o644),
            Code::NotFound,
            "no version",
        ),
        (restore("d", b"kept", 0o644), Code::Exists, "it is a folder"),
    ];
    let bed = bed();
    let untouched = bed.workspace_now();
    for (change, code, words) in rows {
        let error = bed.files.plan(&bed.root, change).unwrap_err();
        assert_eq!(error.code, *code, "{change:?}: {error}");
        assert!(error.message.contains(words), "{change:?}: {error}");
    }
    assert_eq!(bed.workspace_now(), untouched);
}

#[test]
fn bytes_go_in_and_come_out_as_they_are() {
    let rows: &[&[u8]] = &[
        b"",
        b"\xef\xbb\xbfone\r\ntwo\r\n",
        b"no end of line",
        b"\0\xff\xfe binary",
        "管家\n".as_bytes(),
        &[b'x'; 300_000],
    ];
    let bed = Bed::new();
    for bytes in rows {
        let path = "f".to_owned();
        bed.change(&Change::Write {
            path,
            bytes: bytes.to_vec().into(),
        })
        .unwrap();
        let got = bed.files.read(&bed.root, "f", 0, 1 << 20).unwrap();
        assert_eq!(
            (got.bytes.as_slice(), got.total),
            (*bytes, bytes.len() as u64)
        );
        assert_eq!(got.sha256, Some(sha256(bytes)));
    }
    let parts: &[(u64, u64, &str, bool)] = &[
        (0, 4, "text", true),
        (0, 9, "text", true),
        (0, 3, "tex", false),
        (1, 9, "ext", false),
        (9, 9, "", false),
    ];
    bed.change(&write("f", "text")).unwrap();
    for (offset, limit, text, whole) in parts {
        let got = bed.files.read(&bed.root, "f", *offset, *limit).unwrap();
        assert_eq!(
            (got.bytes.as_slice(), got.total),
            (text.as_bytes(), 4),
            "{offset} {limit}"
        );
        assert_eq!(got.sha256.is_some(), *whole, "{offset} {limit}");
    }
    assert_eq!(
        bed.files.read(&bed.root, "", 0, 9).unwrap_err().code,
        Code::Invalid
    );
    assert_eq!(
        bed.files.read(&bed.root, "none", 0, 9).unwrap_err().code,
        Code::NotFound
    );
}

#[test]
fn odd_names_are_listed_and_come_back() {
    let bed = Bed::new();
    let names = [
        "a\nb",
        "\u{1b}[2J",
        "管家.md",
        "-rf",
        " ",
        "…",
        &"n".repeat(255),
    ];
    for name in names {
        bed.change(&write(name, name)).unwrap();
        assert_eq!(
            bed.files.read(&bed.root, name, 0, 999).unwrap().bytes,
            name.as_bytes()
        );
        assert_eq!(bed.files.stat(&bed.root, name).unwrap().path, name);
    }
    let broken = bed.root.join(std::ffi::OsStr::from_bytes(b"bro\xffken"));
    std::fs::write(&broken, "1234").unwrap();
    bed.fill("folder/x", "");
    let mut expected: Vec<(String, Option<FileKind>, u64)> = names
        .iter()
        .map(|name| ((*name).to_owned(), Some(FileKind::File), name.len() as u64))
        .chain([
            ("bro\u{fffd}ken".to_owned(), Some(FileKind::File), 4),
            ("folder".to_owned(), Some(FileKind::Folder), 0),
        ])
        .collect();
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    let listing = bed.files.list(&bed.root, ".", 100).unwrap();
    let got: Vec<_> = listing
        .entries
        .iter()
        .map(|e| (e.name.clone(), e.kind, e.bytes))
        .collect();
    assert_eq!((got, listing.left_out), (expected, 0));
    let error = bed.files.read(&bed.root, "x\n\u{202e}", 0, 1).unwrap_err();
    assert_eq!(
        error.message,
        "cannot read `x\\n\\u{202e}`: it is not there"
    );
}

#[test]
fn an_overwritten_file_keeps_what_belongs_to_it_but_no_rights_of_its_own() {
    let bed = Bed::with(&[("f", "old")]);
    let path = bed.root.join("f");
    let attribute = ("user.origin", b"somewhere");
    let flags = rustix::fs::XattrFlags::empty();
    let has_attributes = rustix::fs::setxattr(&path, attribute.0, attribute.1, flags).is_ok();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4751)).unwrap();
    bed.change(&write("f", "new")).unwrap();
    assert_eq!(bed.state("f"), file("new", 0o751));
    if has_attributes {
        let mut value = [0u8; 64];
        let length = rustix::fs::getxattr(&path, attribute.0, &mut value[..]).unwrap();
        assert_eq!(&value[..length], attribute.1);
    } else {
        eprintln!("the file system has no extended attributes: that they are kept is not shown");
    }
}
