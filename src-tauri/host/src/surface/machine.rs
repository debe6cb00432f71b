//! What works on this machine, and what the person has set.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// One check of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Check {
    /// What was checked, such as `model` or `hotkey`.
    pub name: String,
    /// How it stands.
    pub state: CheckState,
    /// What was found.
    pub found: String,
    /// What to do, where something is to be done.
    pub hint: Option<String>,
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum CheckState {
    /// Works.
    Works,
    /// Works in part or is not needed here.
    Limited,
    /// Does not work.
    Missing,
}

/// One model of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ModelView {
    /// Its name in the catalogue.
    pub name: String,
    /// Its licence (SPDX).
    pub licence: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its SHA-256 (hex).
    pub sha256: String,
    /// Tokens of context it was made for.
    pub context: u32,
    /// Memory it needs, in MiB.
    pub memory_mib: u32,
    /// What it is good for.
    pub good_for: String,
    /// Where the file is, once it is there.
    pub path: Option<String>,
    /// Whether it fits in the memory that is left, once it is there.
    pub fitness: Option<FitnessView>,
    /// Whether it is the default.
    pub is_default: bool,
}

/// A model on this machine that is not in the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct FoundModel {
    /// How it is named in commands and the settings (escaped).
    pub name: String,
    /// Its file (escaped).
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Whose folder it is in, such as `Ollama`.
    pub keeper: String,
    /// Its licence, where it is known.
    pub licence: Option<String>,
    /// Whether it fits in the memory that is left.
    pub fitness: FitnessView,
}

/// Whether a model can run here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct FitnessView {
    /// In a word.
    pub fits: Fit,
    /// Why, in a sentence.
    pub why: String,
    /// Its family, size and form; empty where it cannot be read.
    pub kind: String,
}

/// How a model fits in the memory that is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Fit {
    /// With room to spare.
    Fits,
    /// Only just.
    Tight,
    /// Not.
    DoesNotFit,
    /// It is damaged, or of a kind that is not run.
    Unusable,
}

/// Settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Settings {
    /// The hotkey, such as `Ctrl+Shift+Space`.
    pub hotkey: String,
    /// The default workspace of the desktop (absolute).
    pub workspace: String,
    /// `system`, `en` or `zh`.
    pub language: String,
    /// `system`, `light` or `dark`.
    pub theme: String,
    /// The model in use.
    pub model: String,
    /// The one that is used from the next start on, where that is another.
    pub next_model: Option<String>,
}

/// Settings to change; absent ones stay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct SettingsChange {
    /// A new hotkey.
    #[serde(default)]
    pub hotkey: Option<String>,
    /// A new default workspace.
    #[serde(default)]
    pub workspace: Option<String>,
    /// A new language.
    #[serde(default)]
    pub language: Option<String>,
    /// A new theme.
    #[serde(default)]
    pub theme: Option<String>,
    /// Another model, from the next start on.
    #[serde(default)]
    pub model: Option<String>,
}
