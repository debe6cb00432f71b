//! Large files, large folders, full disks.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags};
use steward_kernel::Code;
use steward_kernel::provider::{Change, FileKind, Files, PathState};
use steward_store::{MAX_READ, WorkspaceFiles};

use crate::bed::{Bed, delete, state, write};

/// What the process's memory may grow by, most of it the read that is asked for.
const MEMORY: u64 = 96 * 1024 * 1024;

/// The most memory the process ever had, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        * 1024
}

#[test]
fn a_file_of_2_gib_needs_no_memory_to_be_looked_at_kept_and_deleted() {
    const SIZE: u64 = 2 << 30;
    let bed = Bed::new();
    let path = bed.root.join("big");
    std::fs::File::create(&path).unwrap().set_len(SIZE).unwrap();
    let before = peak_memory();

    assert_eq!(bed.files.stat(&bed.root, "big").unwrap().bytes, SIZE);
    let tail = bed.files.read(&bed.root, "big", SIZE - 3, 100).unwrap();
    assert_eq!((tail.bytes.len(), tail.total, tail.sha256), (3, SIZE, None));
    let most = bed.files.read(&bed.root, "big", 0, u64::MAX).unwrap();
    assert_eq!((most.bytes.len() as u64, &most.sha256), (MAX_READ, &None));
    drop(most);

    let plan = bed.files.plan(&bed.root, &delete("big")).unwrap();
    let PathState::File {
        sha256,
        bytes: SIZE,
        ..
    } = &plan.before
    else {
        panic!("{plan:?}")
    };
    bed.files.apply(&bed.root, &delete("big"), &plan).unwrap();
    assert!(!path.exists());
    let (folder, name) = sha256.0.split_at(2);
    let kept = std::fs::metadata(bed.temp.path().join("blobs").join(folder).join(name)).unwrap();
    assert_eq!(kept.len(), SIZE);
    assert!(kept.blocks() * 512 < 1 << 20, "holes stay holes");
    let grown = peak_memory() - before;
    assert!(grown < MEMORY, "memory grew by {grown} bytes");
}

#[test]
fn a_folder_of_100_000_files_is_listed_within_the_limit() {
    const FILES: usize = 100_000;
    let bed = Bed::new();
    // Made from the end, so that order of making is not order of names.
    for n in (0..FILES).rev() {
        std::fs::File::create(bed.root.join(format!("{n:06}"))).unwrap();
    }
    let before = peak_memory();
    for limit in [0, 1, 1000] {
        let listing = bed.files.list(&bed.root, "", limit).unwrap();
        let names: Vec<_> = listing
            .entries
            .iter()
            .map(|entry| entry.name.clone())
            .collect();
        let expected: Vec<_> = (0..limit).map(|n| format!("{n:06}")).collect();
        assert_eq!(names, expected);
        assert_eq!(listing.left_out, (FILES - limit) as u64);
    }
    let grown = peak_memory() - before;
    assert!(grown < 4 << 20, "memory grew by {grown} bytes");
    let all = bed.files.list(&bed.root, "", usize::MAX).unwrap();
    assert_eq!((all.entries.len(), all.left_out), (FILES, 0));
    assert!(
        all.entries
            .iter()
            .all(|entry| entry.kind == Some(FileKind::File))
    );
}

/// A file system of one MiB in memory.
struct Small(PathBuf);

impl Small {
    fn mount(at: &Path) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let options = c"size=1m,mode=755";
        match rustix::mount::mount("none", at, "tmpfs", MountFlags::empty(), options) {
            Ok(()) => Some(Self(at.to_owned())),
            Err(_) => None,
        }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        rustix::mount::unmount(&self.0, UnmountFlags::DETACH).unwrap();
    }
}

/// Runs a test's body where a file system may be mounted: here, or in a namespace of its own.
fn where_mounting_is_permitted(test: &str, body: impl FnOnce(&Path)) {
    const CHILD: &str = "STEWARD_TEST_IN_NAMESPACE";
    let temp = tempfile::TempDir::new().unwrap();
    if let Some(_small) = Small::mount(&temp.path().join("small")) {
        body(temp.path());
        return;
    }
    assert!(
        std::env::var_os(CHILD).is_none(),
        "a namespace of its own, and still no mount"
    );
    let permitted = std::process::Command::new("unshare")
        .args(["-Urm", "true"])
        .output();
    if !permitted.is_ok_and(|output| output.status.success()) {
        eprintln!("no right to mount and none to make a namespace: a full disk is not shown here");
        return;
    }
    let output = std::process::Command::new("unshare")
        .arg("-Urm")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && told.contains("1 passed"),
        "{told}"
    );
}

#[test]
fn a_full_disk_leaves_the_old_version_whole() {
    where_mounting_is_permitted("bounds::a_full_disk_leaves_the_old_version_whole", |temp| {
        let root = temp.join("small");
        let files = WorkspaceFiles::open(temp.join("blobs")).unwrap();
        std::fs::write(root.join("old"), "old").unwrap();
        let big = |path: &str, bytes: usize| Change::Write {
            path: path.to_owned(),
            bytes: vec![b'x'; bytes].into(),
        };
        let rows = [
            big("old", 2 << 20),
            big("new", 2 << 20),
            big("p/q/new", (1 << 20) + 1),
        ];
        for change in rows {
            let plan = files.plan(&root, &change).unwrap();
            let error = files.apply(&root, &change, &plan).unwrap_err();
            assert_eq!(error.code, Code::Unavailable, "{error}");
            assert!(
                error.message.contains("the disk is full") && error.hint.is_some(),
                "{error:?}"
            );
            let names: Vec<_> = std::fs::read_dir(&root)
                .unwrap()
                .map(|e| e.unwrap().file_name())
                .collect();
            assert_eq!(names, ["old"], "{}", plan.path);
            assert_eq!(std::fs::read(root.join("old")).unwrap(), b"old");
        }
        // With room again, it works.
        let change = big("old", 1 << 10);
        let plan = files.plan(&root, &change).unwrap();
        files.apply(&root, &change, &plan).unwrap();
        assert_eq!(state(&root.join("old")), plan.after);
    });
}

#[test]
fn where_the_old_version_cannot_be_kept_nothing_is_planned() {
    where_mounting_is_permitted(
        "bounds::where_the_old_version_cannot_be_kept_nothing_is_planned",
        |temp| {
            let root = temp.join("workspace");
            std::fs::create_dir(&root).unwrap();
            std::fs::write(root.join("old"), vec![b'x'; 2 << 20]).unwrap();
            let files = WorkspaceFiles::open(temp.join("small/blobs")).unwrap();
            let before = crate::bed::fingerprint(&root);
            for change in [write("old", "new"), delete("old")] {
                let error = files.plan(&root, &change).unwrap_err();
                assert_eq!(error.code, Code::Unavailable, "{error}");
                assert!(error.message.contains("the disk is full"), "{error}");
            }
            assert_eq!(crate::bed::fingerprint(&root), before);
            assert_eq!(
                std::fs::read_dir(temp.join("small/blobs/pending"))
                    .unwrap()
                    .count(),
                0
            );
        },
    );
}
