//! Paths that lead out, and things that are not files.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, RenameFlags};
use steward_kernel::Code;
use steward_kernel::provider::{Change, Files};

use crate::bed::{Bed, delete, mkdir, rename, restore, write};

/// Every call, with the path in every place that takes one; the codes of those that worked or
/// failed.
fn every_call(bed: &Bed, path: &str) -> Vec<(&'static str, Result<(), Code>)> {
    let (files, root) = (&bed.files, &bed.root);
    let code = |result: Result<(), steward_kernel::SysError>| result.map_err(|e| e.code);
    vec![
        ("stat", code(files.stat(root, path).map(drop))),
        ("state", code(files.state(root, path).map(drop))),
        ("read", code(files.read(root, path, 0, 100).map(drop))),
        ("list", code(files.list(root, path, 100).map(drop))),
        ("write", bed.code(&write(path, "new"))),
        ("mkdir", bed.code(&mkdir(path))),
        ("move from", bed.code(&rename(path, "free"))),
        ("move to", bed.code(&rename("inside", path))),
        ("delete", bed.code(&delete(path))),
        ("restore", bed.code(&restore(path, b"kept", 0o644))),
    ]
}

fn bed() -> Bed {
    let bed = Bed::with(&[("inside", "inside"), ("d/f", "f"), ("once", "kept")]);
    bed.change(&write("once", "over")).unwrap();
    bed
}

#[test]
fn paths_that_lead_out_are_denied_by_every_call() {
    type Setup = fn(&Bed);
    let absolute = "/etc/hostname";
    let rows: &[(&str, &str, Setup)] = &[
        ("upwards", "../outside/secret", |_| {}),
        ("upwards, by a folder", "d/../../outside/secret", |_| {}),
        ("upwards and back in", "../workspace/inside", |_| {}),
        ("absolute", absolute, |_| {}),
        ("a link as the file", "link", |b| {
            symlink(b.outside.join("secret"), b.root.join("link")).unwrap();
        }),
        ("a link as a parent", "link/secret", |b| {
            symlink(&b.outside, b.root.join("link")).unwrap();
        }),
        ("a relative link as a parent", "d/link/secret", |b| {
            symlink("../../outside", b.root.join("d/link")).unwrap();
        }),
        ("a dangling link", "link", |b| {
            symlink(b.outside.join("none"), b.root.join("link")).unwrap();
        }),
        ("a link that stays inside", "link", |b| {
            symlink("inside", b.root.join("link")).unwrap();
        }),
        ("a link to itself", "link", |b| {
            symlink("link", b.root.join("link")).unwrap();
        }),
    ];
    for (name, path, setup) in rows {
        let bed = bed();
        setup(&bed);
        let outside = bed.outside_now();
        let inside = bed.workspace_now();
        for (call, outcome) in every_call(&bed, path) {
            assert_eq!(outcome, Err(Code::Confined), "{name}: {call}");
        }
        assert_eq!(bed.outside_now(), outside, "{name}");
        assert_eq!(bed.workspace_now(), inside, "{name}");
    }
}

#[test]
fn what_is_no_regular_file_is_denied_without_a_hang() {
    type Setup = fn(&Path);
    let rows: &[(&str, Setup)] = &[
        ("a FIFO", |at| {
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(CWD, at, kind, Mode::from_raw_mode(0o600), 0).unwrap();
        }),
        ("a socket", |at| drop(UnixListener::bind(at).unwrap())),
    ];
    for (name, setup) in rows {
        let bed = bed();
        setup(&bed.root.join("odd"));
        let (told, heard) = mpsc::channel();
        std::thread::spawn(move || {
            let outcomes = every_call(&bed, "odd");
            let listing = bed.files.list(&bed.root, "", 100).unwrap();
            told.send((outcomes, listing)).unwrap();
        });
        let (outcomes, listing) = heard
            .recv_timeout(Duration::from_secs(60))
            .unwrap_or_else(|_| panic!("{name} hangs"));
        for (call, outcome) in outcomes {
            // A folder is wanted: the system says that it is none before it is looked at.
            let expected = if call == "list" {
                Code::NotFound
            } else {
                Code::Confined
            };
            assert_eq!(outcome, Err(expected), "{name}: {call}");
        }
        let entry = listing
            .entries
            .iter()
            .find(|entry| entry.name == "odd")
            .unwrap();
        assert_eq!(entry.kind, None, "{name}");
    }
    // Devices are there without a right to make them.
    let bed = bed();
    let error = bed.files.read(Path::new("/dev"), "null", 0, 1).unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (Code::Confined, "cannot read `null`: it is a device")
    );
}

#[test]
fn a_link_swapped_in_after_the_plan_is_not_followed() {
    type Swap = fn(&Bed);
    let rows: &[(&str, Change, Swap)] = &[
        ("the file, to a write", write("d/f", "new"), |b| {
            std::fs::remove_file(b.root.join("d/f")).unwrap();
            symlink(b.outside.join("secret"), b.root.join("d/f")).unwrap();
        }),
        (
            "the folder, to a write",
            write("d/secret", "new"),
            swap_folder,
        ),
        ("the folder, to a delete", delete("d/f"), swap_folder),
        ("the folder, to a move", rename("d/f", "g"), swap_folder),
        (
            "the target's folder, to a move",
            rename("inside", "d/g"),
            swap_folder,
        ),
        ("the folder, to a new folder", mkdir("d/new"), swap_folder),
    ];
    for (name, change, swap) in rows {
        let bed = bed();
        let plan = bed.files.plan(&bed.root, change).unwrap();
        swap(&bed);
        let outside = bed.outside_now();
        let error = bed.files.apply(&bed.root, change, &plan).unwrap_err();
        assert_eq!(error.code, Code::Confined, "{name}: {error}");
        assert_eq!(bed.outside_now(), outside, "{name}");
    }
}

fn swap_folder(bed: &Bed) {
    std::fs::rename(bed.root.join("d"), bed.root.join("was-d")).unwrap();
    symlink(&bed.outside, bed.root.join("d")).unwrap();
}

#[test]
fn a_link_swapped_in_and_out_all_the_time_never_leads_out() {
    const EACH: u32 = 30;
    let bed = Bed::with(&[("d/secret", "inside")]);
    symlink(&bed.outside, bed.root.join("link")).unwrap();
    let outside = bed.outside_now();
    let done = AtomicBool::new(false);
    let deadline = Instant::now() + Duration::from_secs(60);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (a, b) = (bed.root.join("d"), bed.root.join("link"));
            while !done.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
            }
        });
        // Until the folder and the link were each met often enough.
        let (mut through, mut denied, mut leaked) = (0, 0, false);
        while (through < EACH || denied < EACH) && Instant::now() < deadline {
            match bed.files.read(&bed.root, "d/secret", 0, 100) {
                Ok(got) => {
                    through += 1;
                    leaked |= got.bytes == b"outside";
                }
                Err(_) => denied += 1,
            }
            let _ = bed.change(&write("d/secret", &format!("inside {through}")));
            let _ = bed.change(&write("d/new", "new"));
            let _ = bed.change(&delete("d/new"));
        }
        done.store(true, Ordering::Relaxed);
        assert!(!leaked, "a read led out");
        assert!(
            through >= EACH && denied >= EACH,
            "{through} came through, {denied} were denied"
        );
    });
    assert_eq!(bed.outside_now(), outside);
}

#[test]
fn a_hard_link_is_broken_not_written_through() {
    for change in [
        write("hard", "new"),
        delete("hard"),
        rename("inside", "hard"),
        rename("hard", "to"),
    ] {
        let bed = bed();
        let secret = bed.outside.join("secret");
        std::fs::hard_link(&secret, bed.root.join("hard")).unwrap();
        bed.change(&change).unwrap();
        assert_eq!(
            std::fs::read_to_string(&secret).unwrap(),
            "outside",
            "{change:?}"
        );
    }
}

#[test]
fn a_file_moved_onto_another_name_of_itself_loses_one_name() {
    let bed = bed();
    std::fs::hard_link(bed.root.join("inside"), bed.root.join("hard")).unwrap();
    bed.change(&rename("inside", "hard")).unwrap();
    assert_eq!(bed.text("hard"), "inside");
    assert!(!bed.root.join("inside").exists());
}

#[test]
fn the_programs_own_data_is_out_of_reach() {
    let bed = Bed::new();
    let root = bed.temp.path();
    let journal = root.join("journal.db");
    std::fs::write(&journal, "rows").unwrap();
    let files = steward_store::WorkspaceFiles::open(root.join("blobs"))
        .unwrap()
        .with_private(journal);
    for path in ["journal.db", "blobs", "blobs/pending", "blobs/ab/cd"] {
        assert_eq!(
            files.stat(root, path).unwrap_err().code,
            Code::Confined,
            "{path}"
        );
        assert_eq!(
            files.plan(root, &delete(path)).unwrap_err().code,
            Code::Confined,
            "{path}"
        );
        assert_eq!(
            files.plan(root, &write(path, "")).unwrap_err().code,
            Code::Confined,
            "{path}"
        );
    }
    let above = root.parent().unwrap();
    let name = root.file_name().unwrap().to_str().unwrap();
    assert!(files.list(above, name, 10).is_ok());
    assert_eq!(
        files.plan(above, &rename(name, "x")).unwrap_err().code,
        Code::Confined
    );
}

#[test]
fn a_workspace_that_cannot_be_used_is_told_so() {
    let bed = Bed::with(&[("file", ""), ("real/f", "f")]);
    symlink(bed.root.join("real"), bed.root.join("link")).unwrap();
    let rows = [
        ("none", Err((Code::NotFound, "it is not there"))),
        ("file", Err((Code::Invalid, "is not a folder"))),
        ("link", Ok(bed.root.join("real"))),
        ("real/../real", Ok(bed.root.join("real"))),
    ];
    for (path, outcome) in rows {
        match (bed.files.workspace(&bed.root.join(path)), outcome) {
            (Ok(got), Ok(expected)) => assert_eq!(got, expected, "{path}"),
            (Err(error), Err((code, words))) => {
                assert_eq!(error.code, code, "{path}");
                assert!(
                    error.message.contains(words) && error.hint.is_some(),
                    "{error:?}"
                );
            }
            (got, expected) => panic!("{path}: {got:?}, not {expected:?}"),
        }
    }
}

/// Root may read everything, so the row runs as nobody in a process of its own where this is root.
#[test]
fn a_workspace_that_cannot_be_read_is_told_so() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;

    const CHILD: &str = "STEWARD_TEST_UNREADABLE";
    if let Some(root) = std::env::var_os(CHILD) {
        let files = steward_store::WorkspaceFiles::open(Path::new(&root).join("blobs")).unwrap();
        let error = files
            .workspace(&Path::new(&root).join("closed"))
            .unwrap_err();
        assert_eq!(error.code, Code::Unavailable, "{error}");
        assert!(
            error.message.contains("does not permit") && error.hint.is_some(),
            "{error:?}"
        );
        return;
    }
    let temp = tempfile::TempDir::new().unwrap();
    for (name, mode) in [("", 0o777), ("closed", 0o000)] {
        let path = temp.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    // Nobody may not be let into the folder that this test's binary is in.
    let program = temp.path().join("test");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut child = std::process::Command::new(program);
    child.args([
        "--exact",
        "confined::a_workspace_that_cannot_be_read_is_told_so",
    ]);
    child.env(CHILD, temp.path());
    if rustix::process::geteuid().is_root() {
        child.uid(65534).gid(65534);
    }
    let output = child.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}
