//! kill -9 in the middle of changes.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use steward_kernel::provider::Files;
use steward_store::WorkspaceFiles;

use crate::bed::{Bed, delete, write};

const CHILD: &str = "STEWARD_TEST_WRITER";
const KILLS: usize = 25;
const TEXT: usize = 3_000_000;

/// Overwrites, deletes and makes files for ever.
fn writer(temp: &Path) -> ! {
    let (files, root) = (
        WorkspaceFiles::open(temp.join("blobs")).unwrap(),
        temp.join("workspace"),
    );
    let texts = ["1".repeat(TEXT), "2".repeat(TEXT)];
    loop {
        for text in &texts {
            for change in [write("f", text), write("g", text), delete("g")] {
                let plan = files.plan(&root, &change).unwrap();
                files.apply(&root, &change, &plan).unwrap();
            }
        }
    }
}

fn start(temp: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "crash::after_kill_9_every_file_is_whole_and_nothing_is_left_over",
        ])
        .env(CHILD, temp)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn parts(root: &Path) -> usize {
    let names = std::fs::read_dir(root)
        .unwrap()
        .map(|e| e.unwrap().file_name());
    names
        .filter(|name| name.to_string_lossy().ends_with(".part"))
        .count()
}

#[test]
fn after_kill_9_every_file_is_whole_and_nothing_is_left_over() {
    if let Some(temp) = std::env::var_os(CHILD) {
        writer(Path::new(&temp));
    }
    let bed = Bed::with(&[("f", "first"), ("other.part", "not ours")]);
    let temp = bed.temp.path();
    let mut left_over = 0;
    for kill in 0..KILLS {
        let mut child = start(temp);
        let deadline = Instant::now() + Duration::from_secs(60);
        // In the middle of a change: its temporary file is there, beside the one that is not ours.
        while parts(&bed.root) < 2 {
            assert!(Instant::now() < deadline, "the writer does not write");
            assert_eq!(child.try_wait().unwrap(), None, "the writer failed");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        left_over += parts(&bed.root) - 1;

        WorkspaceFiles::open(temp.join("blobs")).unwrap();
        assert_eq!(parts(&bed.root), 1, "kill {kill}: a part is left over");
        assert_eq!(bed.text("other.part"), "not ours");
        assert_eq!(
            std::fs::read_dir(temp.join("blobs/pending"))
                .unwrap()
                .count(),
            0
        );
        for name in ["f", "g"] {
            if let Ok(text) = std::fs::read_to_string(bed.root.join(name)) {
                let whole = text == "first"
                    || text.len() == TEXT
                        && ["1", "2"].iter().any(|c| text.replace(c, "").is_empty());
                assert!(
                    whole,
                    "kill {kill}: {name} is half written, {} bytes",
                    text.len()
                );
            }
        }
        assert!(bed.root.join("f").exists(), "kill {kill}: the file is gone");
    }
    assert!(left_over > 0, "no kill came in the middle of a change");
}

#[test]
fn a_second_process_does_not_clear_up_what_a_living_one_makes() {
    let bed = Bed::with(&[("f", "first")]);
    let mut child = start(bed.temp.path());
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut met = 0;
    while met < 20 {
        assert!(Instant::now() < deadline);
        met += parts(&bed.root);
        let other = WorkspaceFiles::open(bed.temp.path().join("blobs")).unwrap();
        other.stat(&bed.root, "f").unwrap();
        assert_eq!(child.try_wait().unwrap(), None, "the writer failed");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
