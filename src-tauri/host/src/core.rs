//! The core that the configuration names.

use std::sync::Arc;

use steward_cores::{LoadState, LocalCore, Source};
use steward_kernel::provider::LlmCore;
use steward_kernel::{Code, SysError};
use tokio::sync::broadcast;

use crate::models::Chosen;
use crate::settings::Config;
use crate::surface::{Event, Problem};

/// The local engine for a model; loading is told as events.
pub(crate) fn open(
    model: &Chosen,
    config: &Config,
    events: &broadcast::Sender<Event>,
) -> Arc<dyn LlmCore> {
    let source = Source {
        model: model.name.clone(),
        file: model.file.clone().map_err(|problem| SysError {
            code: Code::Unavailable,
            message: problem.message,
            hint: problem.hint,
        }),
        context: model.context,
        threads: config.threads,
        kv_format: config.kv_format(),
    };
    let (name, events) = (model.name.clone(), events.clone());
    Arc::new(LocalCore::new(source, move |state| {
        let error = match &state {
            LoadState::Failed(error) => Some(Problem::from(error.clone())),
            _ => None,
        };
        let ready = state == LoadState::Ready;
        let percent = match state {
            LoadState::Reading { done, total } => u8::try_from(done * 100 / total.max(1)).ok(),
            _ => None,
        };
        let _listeners = events.send(Event::Model {
            name: name.clone(),
            ready,
            error,
            percent,
        });
    }))
}
