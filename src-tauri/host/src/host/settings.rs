//! Commands about what the person has set.

use std::sync::PoisonError;

use super::Host;
use crate::models::Models;
use crate::settings::Config;
use crate::surface::{Problem, Reply, SettingsChange};

impl Host {
    pub(super) fn settings(&self) -> Reply {
        let config = self.config();
        let mut settings = config.settings(&self.paths, &self.model);
        let next = self.models.name(&config);
        settings.next_model = (next != self.model).then_some(next);
        Reply::Settings(settings)
    }

    pub(super) async fn change_settings(&self, change: SettingsChange) -> Result<Reply, Problem> {
        let changed = self.config().changed(change.clone())?;
        if let Some(name) = change.model {
            self.on_models(move |models| models.check(&name)).await??;
        }
        self.keep(changed)?;
        Ok(self.settings())
    }

    pub(super) async fn list_models(&self) -> Result<Reply, Problem> {
        let listed = |models: &Models| Reply::Models {
            models: models.list(),
            found: models.found(),
        };
        self.on_models(listed).await
    }

    /// Looks at the models' files, which takes its time.
    async fn on_models<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Models) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let models = self.models.clone();
        let done = tokio::task::spawn_blocking(move || work(&models));
        done.await
            .map_err(|e| Problem::new("internal", format!("the models cannot be looked at: {e}")))
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
