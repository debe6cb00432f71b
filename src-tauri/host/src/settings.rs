//! `config.toml`: what a person may set.

mod scheduler;

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use steward_cores::KvFormat;
use steward_kernel::Retention;
use steward_kernel::budget::Budget;
use steward_kernel::escape::shown as escape_line;

use crate::paths::Paths;
use crate::surface::{Problem, SchedulingChange, Settings, SettingsChange};

pub(crate) use scheduler::{SchedulerConfig, name_of as module_name};

/// The hotkey where none is set.
pub const DEFAULT_HOTKEY: &str = "Ctrl+Shift+Space";
/// Minutes that an approval may wait at most: a year.
const EXPIRE_MOST: u64 = 366 * 24 * 60;
/// MiB that the journal may be set to at most: a tebibyte.
const JOURNAL_MOST: u64 = 1 << 20;
/// Entries of the journal that may be set to stay.
const ENTRIES_LEAST: u64 = 1_000;
const ENTRIES_MOST: u64 = 1_000_000_000;
const LANGUAGES: [&str; 3] = ["system", "en", "zh"];
const THEMES: [&str; 3] = ["system", "light", "dark"];

/// The file's form. Every entry may be left out; one that is not known is an error, so that a slip
/// of the pen is told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    #[serde(skip_serializing_if = "Option::is_none")]
    hotkey: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    theme: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// Threads of the local engine; the machine's cores where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) threads: Option<usize>,
    /// What the local engine keeps of the tokens it has read.
    #[serde(skip_serializing_if = "Option::is_none")]
    kv_cache: Option<KvCache>,
    #[serde(default, skip_serializing_if = "SchedulerConfig::is_empty")]
    scheduler: SchedulerConfig,
    /// What a run may use where nothing tighter is said.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    budget: Budget,
    #[serde(default, skip_serializing_if = "ApprovalsConfig::is_empty")]
    approvals: ApprovalsConfig,
    #[serde(default, skip_serializing_if = "JournalConfig::is_empty")]
    journal: JournalConfig,
}

/// `kv_cache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KvCache {
    F16,
    Q8,
}

/// `[approvals]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalsConfig {
    /// Minutes that an approval waits for an answer; for ever where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    expire_minutes: Option<u64>,
}

impl ApprovalsConfig {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// `[journal]`: when older entries go to archives beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalConfig {
    /// MiB above which they go.
    #[serde(skip_serializing_if = "Option::is_none")]
    mib: Option<u64>,
    /// Newest entries, which stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<u64>,
}

impl JournalConfig {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn check(&self) -> Result<(), Problem> {
        let refuse = |name: &str, value: u64, least: u64, most: u64| {
            let message = format!("`{name}` of `[journal]` is `{value}`");
            let hint = format!("use a number from {least} to {most}, or leave it out");
            Err(Problem::new("invalid", message).hint(hint))
        };
        match (self.mib, self.entries) {
            (Some(mib), _) if !(1..=JOURNAL_MOST).contains(&mib) => {
                refuse("mib", mib, 1, JOURNAL_MOST)
            }
            (_, Some(entries)) if !(ENTRIES_LEAST..=ENTRIES_MOST).contains(&entries) => {
                refuse("entries", entries, ENTRIES_LEAST, ENTRIES_MOST)
            }
            _ => Ok(()),
        }
    }
}

impl Config {
    pub(crate) fn load(paths: &Paths) -> Result<Self, Problem> {
        let text = match std::fs::read_to_string(&paths.config) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(e) => return Err(unreadable(paths, &e.to_string())),
        };
        let config: Self =
            toml::from_str(&text).map_err(|e| unreadable(paths, &told(&e, &text)))?;
        let checked = config.check();
        checked.map_err(|problem| problem.in_settings(paths))?;
        Ok(config)
    }

    pub(crate) fn save(&self, paths: &Paths) -> Result<(), Problem> {
        let write = || -> std::io::Result<()> {
            let folder = paths.config.parent().unwrap_or(&paths.config);
            std::fs::create_dir_all(folder)?;
            let text = toml::to_string(self).map_err(std::io::Error::other)?;
            let part = paths.config.with_extension("toml.part");
            let mut file = std::fs::File::create(&part)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&part, &paths.config)
        };
        write().map_err(|e| {
            Problem::new(
                "unavailable",
                format!("cannot write `{}`: {e}", shown(&paths.config)),
            )
            .hint("make room or check who owns the folder; the settings are as they were")
        })
    }

    pub(crate) fn changed(&self, change: SettingsChange) -> Result<Self, Problem> {
        let SettingsChange {
            hotkey,
            workspace,
            language,
            theme,
            model,
        } = change;
        let config = Self {
            hotkey: hotkey.or_else(|| self.hotkey.clone()),
            workspace: workspace
                .map(PathBuf::from)
                .or_else(|| self.workspace.clone()),
            language: language.or_else(|| self.language.clone()),
            theme: theme.or_else(|| self.theme.clone()),
            model: model.or_else(|| self.model.clone()),
            ..self.clone()
        };
        config.check()?;
        Ok(config)
    }

    pub(crate) fn scheduler(&self) -> &SchedulerConfig {
        &self.scheduler
    }

    pub(crate) fn budget(&self) -> Budget {
        self.budget
    }

    pub(crate) fn kv_format(&self) -> KvFormat {
        match self.kv_cache {
            None | Some(KvCache::F16) => KvFormat::F16,
            Some(KvCache::Q8) => KvFormat::Q8,
        }
    }

    /// Milliseconds that an approval waits for an answer; for ever where absent.
    pub(crate) fn approval_lifetime(&self) -> Option<u64> {
        self.approvals
            .expire_minutes
            .map(|minutes| minutes * 60_000)
    }

    /// When older entries of the journal go to archives.
    pub(crate) fn retention(&self) -> Retention {
        let JournalConfig { mib, entries } = self.journal;
        let default = Retention::default();
        Retention {
            bytes: mib.map_or(default.bytes, |mib| mib << 20),
            rows: entries.unwrap_or(default.rows),
        }
    }

    pub(crate) fn with_scheduling(&self, change: SchedulingChange) -> Result<Self, Problem> {
        let config = Self {
            scheduler: self.scheduler.changed(change),
            ..self.clone()
        };
        config.check()?;
        Ok(config)
    }

    pub(crate) fn settings(&self, paths: &Paths, model: &str) -> Settings {
        let or =
            |set: &Option<String>, default: &str| set.clone().unwrap_or_else(|| default.to_owned());
        let workspace = self
            .workspace
            .clone()
            .unwrap_or_else(|| paths.default_workspace());
        Settings {
            hotkey: or(&self.hotkey, DEFAULT_HOTKEY),
            workspace: workspace.to_string_lossy().into_owned(),
            language: or(&self.language, "system"),
            theme: or(&self.theme, "system"),
            model: model.to_owned(),
            next_model: None,
        }
    }

    fn check(&self) -> Result<(), Problem> {
        one_of("language", self.language.as_deref(), &LANGUAGES)?;
        one_of("theme", self.theme.as_deref(), &THEMES)?;
        if let Some(hotkey) = &self.hotkey
            && (hotkey.is_empty() || hotkey.len() > 64)
        {
            return Err(Problem::new(
                "invalid",
                format!("`{}` is not a hotkey", escape_line(hotkey)),
            )
            .hint(format!("write it like `{DEFAULT_HOTKEY}`")));
        }
        if let Some(workspace) = self.workspace.as_ref().filter(|w| !w.is_absolute()) {
            let shown = shown(workspace);
            return Err(Problem::new(
                "invalid",
                format!("the workspace `{shown}` is not an absolute path"),
            )
            .hint("write the whole path, beginning with /"));
        }
        self.scheduler.check()?;
        self.journal.check()?;
        if let Some(minutes) = self.approvals.expire_minutes
            && !(1..=EXPIRE_MOST).contains(&minutes)
        {
            let message = format!("`expire_minutes` is `{minutes}`");
            return Err(Problem::new("invalid", message).hint(format!(
                "use a number from 1 to {EXPIRE_MOST}, or leave it out"
            )));
        }
        if self.threads == Some(0) {
            return Err(
                Problem::new("invalid", "`threads` is `0`").hint("use 1 or more, or leave it out")
            );
        }
        Ok(())
    }
}

fn one_of(what: &str, value: Option<&str>, known: &[&str]) -> Result<(), Problem> {
    match value {
        Some(value) if !known.contains(&value) => Err(Problem::new(
            "invalid",
            format!("`{}` is not a {what}", escape_line(value)),
        )
        .hint(format!("use one of: {}", known.join(", ")))),
        _ => Ok(()),
    }
}

impl Problem {
    /// A problem with a value that stands in the settings' file, which is not the fault of whoever
    /// gave a command.
    pub(crate) fn in_settings(self, paths: &Paths) -> Self {
        Self {
            code: "unavailable".to_owned(),
            message: format!("cannot use `{}`: {}", shown(&paths.config), self.message),
            hint: self.hint,
        }
    }
}

fn unreadable(paths: &Paths, why: &str) -> Problem {
    Problem::new("invalid", why)
        .hint("mend the file, or move it away to start with the defaults")
        .in_settings(paths)
}

/// What is wrong with the file, and with which line.
fn told(error: &toml::de::Error, text: &str) -> String {
    let why = escape_line(error.message().trim());
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return why;
    };
    let number = before.matches('\n').count();
    let line: String = text
        .lines()
        .nth(number)
        .unwrap_or_default()
        .trim()
        .chars()
        .take(80)
        .collect();
    format!("line {}, `{}`: {why}", number + 1, escape_line(&line))
}

fn shown(path: &Path) -> String {
    escape_line(&path.to_string_lossy())
}
