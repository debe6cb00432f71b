//! The model catalogue: what there is, what is here, fetching and checking.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use steward_net::{Catalogue, Download, Model, Progress, locate, models_dir, verify};

use crate::settings::Config;
use crate::surface::{ModelView, Problem};

const CATALOGUE: &str = include_str!("../../../models/catalogue.toml");

/// The catalogue and the folder of models.
#[derive(Debug, Clone)]
pub struct Models {
    catalogue: Catalogue,
    folder: PathBuf,
}

impl Models {
    /// The built-in catalogue, and the folder that the environment names.
    ///
    /// # Errors
    /// There is no folder for models.
    pub fn from_env() -> Result<Self, Problem> {
        let catalogue = Catalogue::parse(CATALOGUE)
            .map_err(|e| Problem::new("internal", e.to_string()).hint("this build is faulty"))?;
        Ok(Self {
            catalogue,
            folder: models_dir().map_err(problem)?,
        })
    }

    /// Every model, and where its file is.
    pub fn list(&self) -> Vec<ModelView> {
        let view = |model: &Model| ModelView {
            name: model.name.clone(),
            licence: model.licence.clone(),
            bytes: model.bytes,
            sha256: model.sha256.to_string(),
            context: model.context,
            memory_mib: model.memory_mib,
            good_for: model.good_for.clone(),
            path: locate(&self.folder, model)
                .ok()
                .map(|p| p.to_string_lossy().into_owned()),
            is_default: model.default,
        };
        self.catalogue.models().iter().map(view).collect()
    }

    /// Fetches a model (the default where none is named), going on from where an earlier try
    /// stopped. Blocks.
    ///
    /// # Errors
    /// No network, a wrong hash, a full disk, a name that is not in the catalogue.
    pub fn get(
        &self,
        name: Option<&str>,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<PathBuf, Problem> {
        let model = self.find(name)?;
        let download = Download::from_env(self.folder.clone()).map_err(problem)?;
        download.fetch(model, cancel, progress).map_err(problem)
    }

    /// Compares a model's file with the catalogue's size and SHA-256. Blocks.
    ///
    /// # Errors
    /// The file is missing, of another size, or of another content.
    pub fn verify(&self, name: Option<&str>) -> Result<PathBuf, Problem> {
        verify(&self.folder, self.find(name)?).map_err(problem)
    }

    /// The model that the configuration names, and its file where it is there.
    pub(crate) fn chosen(
        &self,
        config: &Config,
    ) -> Result<(Model, Result<PathBuf, Problem>), Problem> {
        let model = self.find(config.model.as_deref())?;
        Ok((model.clone(), locate(&self.folder, model).map_err(problem)))
    }

    fn find(&self, name: Option<&str>) -> Result<&Model, Problem> {
        let Some(name) = name else {
            return Ok(self.catalogue.default_model());
        };
        self.catalogue.get(name).ok_or_else(|| {
            let known: Vec<_> = self
                .catalogue
                .models()
                .iter()
                .map(|m| m.name.as_str())
                .collect();
            let shown = steward_kernel::escape::shown(name);
            Problem::new(
                "not_found",
                format!("there is no model `{shown}` in the catalogue"),
            )
            .hint(format!("use one of: {}", known.join(", ")))
        })
    }
}

fn problem(error: steward_net::Error) -> Problem {
    let hint = error.hint();
    Problem::new("unavailable", error.to_string()).hint(hint)
}
