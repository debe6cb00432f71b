//! The model catalogue.

use serde::{Deserialize, Serialize};

/// Bytes of a model at most, so that a slip in the catalogue cannot fill a disk.
const MAX_BYTES: u64 = 1 << 40;

/// The models that are known, one of them the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    models: Vec<Model>,
    default: usize,
}

/// A model that can be fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// How it is named in commands and the configuration.
    pub name: String,
    /// Its file's name in the models folder.
    pub file: String,
    /// Its name for people.
    pub title: String,
    /// Where it comes from.
    pub source: Source,
    /// SPDX expression.
    pub licence: String,
    /// Size of the file.
    pub bytes: u64,
    /// SHA-256 of the file, 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// Tokens of prompt and answer together.
    pub context: u32,
    /// The form of its conversations. The template in the file is the one that is used.
    pub template: String,
    /// Memory that the program needs with it, in MiB.
    pub memory_mib: u32,
    /// What to expect of it, in a sentence.
    pub good_for: String,
    /// Whether it is used where none is named.
    #[serde(default)]
    pub default: bool,
}

/// Where a model comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// A file in a wheel of a Python package index.
    Pypi {
        /// The package.
        package: String,
        /// Its version, exactly.
        version: String,
        /// The file's path in the wheel.
        member: String,
    },
}

/// Why a catalogue cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// Not TOML, or not of this form.
    #[error("the model catalogue cannot be read: {0}")]
    Form(String),
    /// A value that cannot be.
    #[error("the model catalogue's model `{model}` cannot be used: {why}")]
    Model {
        /// Its name.
        model: String,
        /// What is wrong.
        why: String,
    },
    /// None or several are the default.
    #[error("the model catalogue has {0} default models, not one")]
    Defaults(usize),
}

impl Catalogue {
    /// Reads a catalogue from TOML.
    pub fn parse(text: &str) -> Result<Self, CatalogueError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Document {
            #[serde(rename = "model", default)]
            models: Vec<Model>,
        }
        let document: Document = toml::from_str(text)
            .map_err(|e| CatalogueError::Form(e.to_string().trim_end().to_owned()))?;
        let models = document.models;
        for (i, model) in models.iter().enumerate() {
            let twin = |other: &&Model| other.name == model.name || other.file == model.file;
            let why = match models[..i].iter().find(twin) {
                Some(twin) => Some(format!("its name or file is that of `{}` too", twin.name)),
                None => model.fault(),
            };
            if let Some(why) = why {
                return Err(CatalogueError::Model {
                    model: model.name.clone(),
                    why,
                });
            }
        }
        let mut defaults = models.iter().enumerate().filter(|(_, model)| model.default);
        match (defaults.next(), defaults.count()) {
            (Some((default, _)), 0) => Ok(Self { default, models }),
            (first, more) => Err(CatalogueError::Defaults(
                usize::from(first.is_some()) + more,
            )),
        }
    }

    /// The model of a name.
    pub fn get(&self, name: &str) -> Option<&Model> {
        self.models.iter().find(|model| model.name == name)
    }

    /// The one that is used where none is named.
    pub fn default_model(&self) -> &Model {
        &self.models[self.default]
    }

    /// All, in the catalogue's order.
    pub fn models(&self) -> &[Model] {
        &self.models
    }
}

impl Model {
    fn fault(&self) -> Option<String> {
        let plain = |text: &str, more: &str| {
            !text.is_empty()
                && !text.starts_with(['.', '-'])
                && text
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        let Source::Pypi {
            package,
            version,
            member,
        } = &self.source;
        let digest = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        let checks = [
            (
                plain(&self.name, "._-"),
                "`name` is not of letters, digits, `.`, `_` and `-`",
            ),
            (plain(&self.file, "._-"), "`file` is not a plain file name"),
            (
                plain(package, "._-"),
                "`source.package` is not a package name",
            ),
            (plain(version, ".+!-"), "`source.version` is not a version"),
            (
                plain(member, "._-/"),
                "`source.member` is not a path in an archive",
            ),
            (!self.licence.trim().is_empty(), "`licence` is empty"),
            (
                (1..=MAX_BYTES).contains(&self.bytes),
                "`bytes` is not between 1 and 2^40",
            ),
            (
                self.sha256.len() == 64 && self.sha256.bytes().all(digest),
                "`sha256` is not 64 lower-case hexadecimal digits",
            ),
            (self.context > 0, "`context` is 0"),
            (self.memory_mib > 0, "`memory_mib` is 0"),
        ];
        checks
            .iter()
            .find(|(holds, _)| !holds)
            .map(|(_, why)| (*why).to_owned())
    }
}
