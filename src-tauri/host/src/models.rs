//! Models: which are known, which are here, whether they fit, fetching and checking.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use steward_cores::{Fits, Row, fitness, measure};
use steward_kernel::escape::shown;
use steward_net::{
    Catalogue, Download, Found, Hub, HubRef, Keeper, Model, Origin, Progress, Shelves, locate,
    models_dir, verify,
};

use crate::paths::Paths;
use crate::settings::Config;
use crate::surface::{Fit, FitnessView, FoundModel, ModelView, Problem};

const CATALOGUE: &str = include_str!("../../../models/catalogue.toml");

/// Tokens of context of a model that cannot be looked at.
const CONTEXT_UNKNOWN: u32 = 2_048;

/// The catalogue, the folder of models, and where other programs keep theirs.
#[derive(Debug, Clone)]
pub struct Models {
    catalogue: Catalogue,
    folder: PathBuf,
    shelves: Shelves,
}

/// The model to use.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    pub(crate) name: String,
    /// Its file, or why there is none.
    pub(crate) file: Result<PathBuf, Problem>,
    /// Tokens of context to use it with.
    pub(crate) context: u32,
}

impl Models {
    /// The built-in catalogue, and the folders that the environment names.
    ///
    /// # Errors
    /// There is no folder for models.
    pub fn from_env() -> Result<Self, Problem> {
        let catalogue = Catalogue::parse(CATALOGUE)
            .map_err(|e| Problem::new("internal", e.to_string()).hint("this build is faulty"))?;
        let folder = models_dir().map_err(problem)?;
        Ok(Self {
            catalogue,
            shelves: Shelves::from_env(folder.clone()),
            folder,
        })
    }

    /// Every model of the catalogue, and where its file is.
    pub fn list(&self) -> Vec<ModelView> {
        let view = |model: &Model| {
            let path = self.file_of(model).ok();
            ModelView {
                name: model.name.clone(),
                licence: model.licence.clone(),
                bytes: model.bytes,
                sha256: model.sha256.to_string(),
                context: model.context,
                memory_mib: model.memory_mib,
                good_for: model.good_for.clone(),
                fitness: path.as_deref().map(fitness_of),
                path: path.map(|path| path.to_string_lossy().into_owned()),
                is_default: model.default,
            }
        };
        self.catalogue.models().iter().map(view).collect()
    }

    /// Every other model that is on this machine, whoever fetched it.
    pub fn found(&self) -> Vec<FoundModel> {
        let listed = |found: &Found| {
            let models = self.catalogue.models().iter();
            models
                .map(|model| self.folder.join(&model.file))
                .any(|file| file == found.path)
        };
        let others = self
            .shelves
            .all()
            .into_iter()
            .filter(|found| !listed(found));
        others
            .map(|found| FoundModel {
                name: shown(&found.name),
                path: shown(&found.path.to_string_lossy()),
                bytes: found.bytes,
                keeper: found.keeper.name().to_owned(),
                licence: Origin::beside(&found.path).and_then(|origin| origin.licence),
                fitness: fitness_of(&found.path),
            })
            .collect()
    }

    /// Fetches a model (the default where none is named), going on from where an earlier try
    /// stopped: one of the catalogue by its name, any of Hugging Face as `OWNER/REPO/FILE.gguf` or
    /// `OWNER/REPO:Q4_K_M`. Blocks.
    ///
    /// # Errors
    /// No network, a wrong hash, a full disk, a name that nobody has.
    pub fn get(
        &self,
        name: Option<&str>,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<PathBuf, Problem> {
        if let Some(name) = name
            && self.catalogue.get(name).is_none()
            && let Some(wanted) = HubRef::parse(name).map_err(misnamed)?
        {
            let hub = Hub::from_env(self.folder.clone()).map_err(problem)?;
            return hub.fetch(&wanted, cancel, progress).map_err(misnamed);
        }
        let model = self.find(name)?;
        let download = Download::from_env(self.folder.clone()).map_err(problem)?;
        download.fetch(model, cancel, progress).map_err(problem)
    }

    /// Compares a model's file with the size and SHA-256 of the catalogue, or with those that were
    /// kept when it came. Blocks.
    ///
    /// # Errors
    /// The file is missing, of another size, or of another content; nothing is known of it.
    pub fn verify(&self, name: Option<&str>) -> Result<PathBuf, Problem> {
        let name = match name {
            Some(name) if self.catalogue.get(name).is_none() => name,
            known => return verify(&self.folder, self.find(known)?).map_err(problem),
        };
        let found = self.named(name)?;
        let origin = Origin::beside(&found.path).ok_or_else(|| {
            let name = shown(name);
            Problem::new(
                "unavailable",
                format!("nothing is known of `{name}` to compare it with"),
            )
            .hint("only models that Steward fetched can be verified")
        })?;
        origin.verify(&found.path).map_err(problem)?;
        Ok(found.path)
    }

    /// The file of a model by its name; of the default one where none is named.
    ///
    /// # Errors
    /// There is none of that name, or its file is not here.
    pub fn file(&self, name: Option<&str>) -> Result<PathBuf, Problem> {
        match name {
            Some(name) if self.catalogue.get(name).is_none() => Ok(self.named(name)?.path),
            known => self.file_of(self.find(known)?),
        }
    }

    /// The name of the model that the settings name.
    ///
    /// # Errors
    /// The settings cannot be read.
    pub fn in_use(&self, paths: &Paths) -> Result<String, Problem> {
        Ok(self.name(&Config::load(paths)?))
    }

    /// Measures a model on this machine; `each` gets every figure as it is there. Blocks.
    ///
    /// # Errors
    /// As [`Models::file`], and where the model cannot be loaded.
    pub fn bench(
        &self,
        name: Option<&str>,
        threads: Option<usize>,
        each: &mut dyn FnMut(Row),
    ) -> Result<(), Problem> {
        let file = self.file(name)?;
        measure(&file, threads, each).map_err(Problem::from)
    }

    /// Whether a model can be chosen, and how it fits. Blocks.
    ///
    /// # Errors
    /// There is none of that name here, or it cannot be run.
    pub fn check(&self, name: &str) -> Result<FitnessView, Problem> {
        Ok(view(fitness(&self.file(Some(name))?)?))
    }

    /// The name of the model that the configuration names, here or not.
    pub(crate) fn name(&self, config: &Config) -> String {
        let default = || self.catalogue.default_model().name.clone();
        config.model.clone().unwrap_or_else(default)
    }

    /// The model that the configuration names.
    pub(crate) fn chosen(&self, config: &Config) -> Result<Chosen, Problem> {
        let named = config.model.as_deref();
        if let Some(name) = named.filter(|name| self.catalogue.get(name).is_none()) {
            let file = match self.named(name) {
                Ok(found) => Ok(found.path),
                // What was here once may be gone: all that needs no model goes on.
                Err(gone) if name.contains(['/', ':']) => Err(gone),
                Err(unknown) => return Err(unknown),
            };
            let fits = file.as_ref().ok().and_then(|file| fitness(file).ok());
            return Ok(Chosen {
                name: name.to_owned(),
                context: fits.map_or(CONTEXT_UNKNOWN, |fits| fits.context),
                file,
            });
        }
        let model = self.find(named)?;
        Ok(Chosen {
            name: model.name.clone(),
            file: self.file_of(model),
            context: model.context,
        })
    }

    /// A catalogue model's file: in our folder, or the same bytes in another program's.
    fn file_of(&self, model: &Model) -> Result<PathBuf, Problem> {
        locate(&self.folder, model).or_else(|error| {
            let elsewhere = self.shelves.by_content(&model.sha256, model.bytes);
            elsewhere.ok_or_else(|| problem(error))
        })
    }

    /// A model that is here and not in the catalogue.
    fn named(&self, name: &str) -> Result<Found, Problem> {
        let path = Path::new(name);
        if path.is_absolute()
            && let Ok(meta) = std::fs::metadata(path)
            && (meta.is_file() || path.join("config.json").is_file())
        {
            return Ok(Found {
                name: name.to_owned(),
                path: path.to_owned(),
                bytes: meta.len(),
                keeper: Keeper::Steward,
            });
        }
        let all = self.shelves.all();
        let found = all.into_iter().find(|found| found.name == name);
        found.ok_or_else(|| self.unknown(name))
    }

    fn find(&self, name: Option<&str>) -> Result<&Model, Problem> {
        let Some(name) = name else {
            return Ok(self.catalogue.default_model());
        };
        self.catalogue.get(name).ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> Problem {
        let known: Vec<_> = self
            .catalogue
            .models()
            .iter()
            .map(|model| model.name.as_str())
            .collect();
        let shown = shown(name);
        Problem::new(
            "not_found",
            format!("there is no model `{shown}` in the catalogue or on this machine"),
        )
        .hint(format!(
            "use one of: {}; or fetch one of Hugging Face: `steward models get OWNER/REPO/FILE.gguf`; \
             `steward models` lists those that are here",
            known.join(", ")
        ))
    }
}

pub(crate) fn fitness_of(file: &Path) -> FitnessView {
    fitness(file).map_or_else(
        |error| FitnessView {
            fits: Fit::Unusable,
            why: error.message,
            kind: String::new(),
        },
        view,
    )
}

fn view(fits: steward_cores::Fitness) -> FitnessView {
    FitnessView {
        fits: match fits.fits {
            Fits::Well => Fit::Fits,
            Fits::Tightly => Fit::Tight,
            Fits::Not => Fit::DoesNotFit,
        },
        why: fits.why,
        kind: fits.kind,
    }
}

fn problem(error: steward_net::Error) -> Problem {
    let hint = error.hint();
    Problem::new("unavailable", error.to_string()).hint(hint)
}

/// Of what a person wrote: the fault may be theirs.
fn misnamed(error: steward_net::Error) -> Problem {
    use steward_net::Error::{Choose, NoRepository, Reference, Split};
    let theirs = matches!(
        error,
        Reference { .. } | NoRepository { .. } | Choose { .. } | Split { .. }
    );
    let problem = problem(error);
    if theirs {
        let code = "not_found".to_owned();
        return Problem { code, ..problem };
    }
    problem
}
