//! Kernel events on their way to the surfaces.

use std::sync::Arc;

use steward_kernel::{Kernel, KernelEvent};
use tokio::sync::broadcast;

use super::doing::Doing;
use crate::surface::Event;
use crate::view;

/// Passes kernel events on to surfaces until the kernel is gone.
pub(super) async fn relay(
    kernel: Kernel,
    doing: Arc<Doing>,
    mut from: broadcast::Receiver<KernelEvent>,
    to: broadcast::Sender<Event>,
) {
    loop {
        match from.recv().await {
            Ok(event) => {
                doing.note(&event);
                let ends = matches!(&event, KernelEvent::Process(p) if p.state.is_final());
                let undoable = if ends {
                    kernel.undoable_runs().await.unwrap_or_default()
                } else {
                    Default::default()
                };
                for event in view::events(event, &undoable) {
                    let event = match event {
                        Event::Process { process } => Event::Process {
                            process: doing.told(process),
                        },
                        event => event,
                    };
                    let _listeners = to.send(event);
                }
            }
            Err(broadcast::error::RecvError::Lagged(count)) => {
                let _listeners = to.send(Event::Missed { count });
            }
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}
