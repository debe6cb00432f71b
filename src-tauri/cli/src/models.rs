//! `steward models`.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use steward_host::surface::{FitnessView, FoundModel, SettingsChange};
use steward_host::{Command, Models, Paths, Problem, Progress, Resume, Row, escape_line};

use crate::Ended;
use crate::args::ModelVerb;
use crate::link::Link;
use crate::print::{Printer, aside};

pub(crate) async fn run(verb: Option<ModelVerb>, printer: &Printer) -> Ended {
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
        ModelVerb::Use { name } => {
            let fitness = choose(&models, &name).await?;
            if printer.is_json() {
                printer.json(
                    &serde_json::json!({ "type": "model", "name": name, "fitness": fitness }),
                );
            } else {
                printer.line(&format!(
                    "{} is used from the next start on; {}",
                    escape_line(&name),
                    fitness.why
                ));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes a model the one that is used from the next start on, in the settings of the program that
/// has them open.
async fn choose(models: &Models, name: &str) -> Result<FitnessView, Problem> {
    let fits = models.check(name)?;
    let mut link = Link::open(Resume::Nothing).await?;
    let change = SettingsChange {
        model: Some(name.to_owned()),
        ..SettingsChange::default()
    };
    let changed = link.request(Command::ChangeSettings(change)).await;
    link.close().await;
    changed.map(|_| fits)
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
        if let Some(fitness) = model.fitness {
            printer.line(&format!("  {}", fitness.why));
        }
    }
    for model in models.found() {
        if printer.is_json() {
            printer.json(&model);
            continue;
        }
        let FoundModel {
            name,
            path,
            bytes,
            keeper,
            licence,
            fitness,
        } = model;
        printer.line(&name);
        let size = format!("{} MB", bytes / 1_000_000);
        let known = [size, fitness.kind, licence.unwrap_or_default()];
        let known: Vec<_> = known.into_iter().filter(|part| !part.is_empty()).collect();
        printer.line(&format!("  {}", known.join(", ")));
        printer.line(&format!("  {path} ({keeper})"));
        printer.line(&format!("  {}", fitness.why));
    }
}

/// `steward bench`.
pub(crate) fn bench(model: Option<&str>, threads: Option<u64>, printer: &Printer) -> Ended {
    let models = Models::from_env()?;
    let in_use = models.in_use(&Paths::from_env()?)?;
    let model = Some(model.unwrap_or(&in_use));
    let threads = threads.and_then(|threads| usize::try_from(threads).ok());
    if !printer.is_json() {
        printer.note(&format!(
            "measuring {}; this takes up to a minute",
            models.file(model)?.display()
        ));
    }
    models.bench(model, threads, &mut |row: Row| {
        if printer.is_json() {
            printer.json(&serde_json::json!({
                "bench": row.name, "about": row.about, "value": row.value, "unit": row.unit
            }));
        } else {
            printer.line(&format!("{:>9.1} {:<9} {}", row.value, row.unit, row.about));
        }
    })?;
    Ok(ExitCode::SUCCESS)
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
