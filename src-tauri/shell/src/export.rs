//! A copy of the journal for the person, in their folder for downloads: a new file beside theirs, never
//! one of them.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use steward_host::surface::ExportForm;
use steward_host::{Command, Problem, Reply, Surface};
use tauri::{AppHandle, Emitter, Manager, State};
use tempfile::NamedTempFile;

use crate::app::Desktop;
use crate::window;

/// Copies of one name that may lie beside each other.
const MAX_COPIES: u32 = 1000;

/// The export that runs, if one does.
#[derive(Default)]
pub(crate) struct Exporting {
    running: AtomicBool,
    stop: AtomicBool,
}

/// How an export ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Exported {
    /// The file's path; absent where it was stopped, and nothing is left of it.
    file: Option<PathBuf>,
    /// Lines that were written.
    lines: u64,
}

/// Lines written so far.
#[derive(Debug, Clone, Serialize)]
struct Progress {
    lines: u64,
}

/// Writes the whole journal to a new file in the folder for downloads. The main window is told how
/// far it is.
#[tauri::command]
pub(crate) async fn export_journal(
    app: AppHandle,
    desktop: State<'_, Desktop>,
    form: ExportForm,
) -> Result<Exported, Problem> {
    let exporting = &desktop.exporting;
    if exporting.running.swap(true, Ordering::SeqCst) {
        return Err(Problem {
            code: "busy".to_owned(),
            message: "an export of the journal is under way".to_owned(),
            hint: Some("wait until it is done, or cancel it".to_owned()),
        });
    }
    exporting.stop.store(false, Ordering::SeqCst);
    let result = export(&app, &desktop, form).await;
    exporting.running.store(false, Ordering::SeqCst);
    result
}

/// Stops the export that runs; nothing is left of it.
#[tauri::command]
pub(crate) fn export_stop(desktop: State<'_, Desktop>) {
    desktop.exporting.stop.store(true, Ordering::SeqCst);
}

async fn export(app: &AppHandle, desktop: &Desktop, form: ExportForm) -> Result<Exported, Problem> {
    let folder = app.path().download_dir().map_err(|e| Problem {
        code: "unavailable".to_owned(),
        message: format!("this account has no folder for downloads: {e}"),
        hint: Some("write it in a terminal: `steward log export`".to_owned()),
    })?;
    let name = match form {
        ExportForm::Jsonl => "steward-journal.jsonl",
        ExportForm::Otel => "steward-journal.otel.jsonl",
    };
    let mut copy = Copy::begin(&folder, name).map_err(|e| unwritten(&folder, &e))?;
    let mut after = None;
    loop {
        if desktop.exporting.stop.load(Ordering::SeqCst) {
            let lines = copy.lines;
            return Ok(Exported { file: None, lines });
        }
        let command = Command::LogExport { form, after };
        match desktop.host.handle(command, Surface::Window).await {
            Reply::Exported { lines, after: next } => {
                copy.add(&lines).map_err(|e| unwritten(&folder, &e))?;
                let lines = copy.lines;
                let _ = app.emit_to(window::LABEL, "export-progress", Progress { lines });
                after = next;
            }
            Reply::Error(problem) => return Err(problem),
            _ => return Err(no_piece()),
        }
        if after.is_none() {
            let lines = copy.lines;
            let file = copy.finish().map_err(|e| unwritten(&folder, &e))?;
            return Ok(Exported {
                file: Some(file),
                lines,
            });
        }
    }
}

/// A file that has its name only once it is whole; what is dropped before is gone.
struct Copy {
    out: BufWriter<NamedTempFile>,
    folder: PathBuf,
    name: String,
    lines: u64,
}

impl Copy {
    /// Begins a copy that will be called `name`, or like it where that is taken. Nobody else may
    /// read it.
    fn begin(folder: &Path, name: &str) -> io::Result<Self> {
        Ok(Self {
            out: BufWriter::new(NamedTempFile::with_prefix_in(".steward-", folder)?),
            folder: folder.to_owned(),
            name: name.to_owned(),
            lines: 0,
        })
    }

    fn add(&mut self, lines: &[String]) -> io::Result<()> {
        for line in lines {
            writeln!(self.out, "{line}")?;
            self.lines += 1;
        }
        Ok(())
    }

    /// Makes it durable and gives it its name; a file that has that name stays as it is.
    fn finish(self) -> io::Result<PathBuf> {
        let mut part = self
            .out
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        part.as_file().sync_all()?;
        for number in 1..=MAX_COPIES {
            let path = self.folder.join(numbered(&self.name, number));
            match part.persist_noclobber(&path) {
                Ok(_) => return Ok(path),
                Err(taken) if taken.error.kind() == io::ErrorKind::AlreadyExists => {
                    part = taken.file;
                }
                Err(failed) => return Err(failed.error),
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("there are {MAX_COPIES} files of the name `{}`", self.name),
        ))
    }
}

/// `journal.otel.jsonl`, `journal-2.otel.jsonl`, …
fn numbered(name: &str, number: u32) -> String {
    match name.split_once('.') {
        Some((stem, end)) if number > 1 => format!("{stem}-{number}.{end}"),
        _ => name.to_owned(),
    }
}

fn unwritten(folder: &Path, error: &io::Error) -> Problem {
    Problem {
        code: "io".to_owned(),
        message: format!(
            "the journal could not be written to `{}`: {error}",
            folder.display()
        ),
        hint: Some("make room there, or write it in a terminal: `steward log export`".to_owned()),
    }
}

fn no_piece() -> Problem {
    Problem {
        code: "unexpected".to_owned(),
        message: "the host gave no piece of the journal".to_owned(),
        hint: None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    #![allow(clippy::disallowed_methods, reason = "a test's own files")]

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_copy_has_its_name_once_it_is_whole_and_takes_nobody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for expected in ["journal.otel.jsonl", "journal-2.otel.jsonl"] {
            let mut copy = Copy::begin(folder, "journal.otel.jsonl").unwrap();
            copy.add(&["a".to_owned(), "b".to_owned()]).unwrap();
            copy.add(&["c".to_owned()]).unwrap();
            assert!(!folder.join(expected).exists());
            assert_eq!(copy.lines, 3);
            let path = copy.finish().unwrap();
            assert_eq!(path, folder.join(expected));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\nb\nc\n");
        }
        assert_eq!(
            names(folder),
            ["journal-2.otel.jsonl", "journal.otel.jsonl"]
        );
    }

    #[test]
    fn what_is_not_finished_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut copy = Copy::begin(folder.path(), "journal.jsonl").unwrap();
        copy.add(&["a".to_owned()]).unwrap();
        drop(copy);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        assert!(Copy::begin(Path::new("/nowhere/at all"), "journal.jsonl").is_err());
    }
}
