//! `steward models`.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use steward_host::{Models, Progress};

use crate::Ended;
use crate::args::ModelVerb;
use crate::print::{Printer, aside};

pub(crate) fn run(verb: Option<ModelVerb>, printer: &Printer) -> Ended {
    let models = Models::from_env()?;
    match verb.unwrap_or(ModelVerb::List) {
        ModelVerb::List => list(&models, printer),
        ModelVerb::Get { name } => {
            let mut bar = Bar::new();
            let path = models.get(name.as_deref(), &AtomicBool::new(false), &mut |p| {
                bar.show(p);
            });
            bar.end();
            tell(printer, &path?);
        }
        ModelVerb::Verify { name } => tell(printer, &models.verify(name.as_deref())?),
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(printer: &Printer, path: &std::path::Path) {
    let path = path.to_string_lossy();
    if printer.is_json() {
        printer.json(&serde_json::json!({ "type": "model", "path": path, "verified": true }));
    } else {
        printer.line(&format!("{path} is there and right"));
    }
}

fn list(models: &Models, printer: &Printer) {
    for model in models.list() {
        if printer.is_json() {
            printer.json(&model);
            continue;
        }
        let here = model
            .path
            .as_deref()
            .unwrap_or("not here; fetch it with `steward models get`");
        let default = if model.is_default { " (default)" } else { "" };
        printer.line(&format!("{}{default}", model.name));
        printer.line(&format!(
            "  {} MB, needs {} MiB of memory, context {}, {}",
            model.bytes / 1_000_000,
            model.memory_mib,
            model.context,
            model.licence
        ));
        printer.line(&format!("  {}", model.good_for));
        printer.line(&format!("  {here}"));
    }
}

/// Progress of a download: one line that is drawn anew, or a line every ten seconds where nobody
/// looks.
struct Bar {
    live: bool,
    last: Option<Instant>,
    word: &'static str,
}

impl Bar {
    fn new() -> Self {
        Self {
            live: std::io::stderr().is_terminal(),
            last: None,
            word: "",
        }
    }

    fn show(&mut self, progress: Progress) {
        let (word, done, total) = match progress {
            Progress::Looking => ("looking the model up", 0, None),
            Progress::Fetching { done, total } => ("fetching", done, total),
            Progress::Checking { done, total } => ("checking", done, Some(total)),
            Progress::Unpacking { done, total } => ("unpacking", done, Some(total)),
        };
        let pause = if self.live {
            Duration::from_millis(100)
        } else {
            Duration::from_secs(10)
        };
        let due = self.last.is_none_or(|last| last.elapsed() >= pause);
        if !due && word == self.word {
            return;
        }
        self.last = Some(Instant::now());
        self.word = word;
        let size = match total {
            Some(total) if total > 0 => {
                format!(
                    " {} of {} MB, {} %",
                    done / 1_000_000,
                    total / 1_000_000,
                    done * 100 / total
                )
            }
            _ if done > 0 => format!(" {} MB", done / 1_000_000),
            _ => String::new(),
        };
        if self.live {
            aside(&format!("\r\x1b[K{word}{size}"));
        } else {
            aside(&format!("{word}{size}\n"));
        }
    }

    fn end(&self) {
        if self.live && self.last.is_some() {
            aside("\n");
        }
    }
}
