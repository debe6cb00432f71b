//! Commands about what the person has set.

use std::sync::PoisonError;

use super::Host;
use crate::settings::Config;
use crate::surface::{Problem, Reply, SettingsChange};

impl Host {
    pub(super) fn settings(&self) -> Reply {
        Reply::Settings(self.config().settings(&self.paths, &self.model))
    }

    pub(super) fn change_settings(&self, change: SettingsChange) -> Result<Reply, Problem> {
        let changed = self.config().changed(change)?;
        self.keep(changed)?;
        Ok(self.settings())
    }

    /// Takes changed settings, once they are written down.
    pub(super) fn keep(&self, changed: Config) -> Result<(), Problem> {
        changed.save(&self.paths)?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = changed;
        Ok(())
    }

    pub(super) fn config(&self) -> Config {
        self.config
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
