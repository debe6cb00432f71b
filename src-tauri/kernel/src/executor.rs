//! Where the kernel's tasks run: on tokio, or under a test that decides the order.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::error::{Code, SysError};

/// A task of the kernel: a process, or an effect that is carried out.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs tasks. The kernel starts none in another way, so that whoever implements this decides when
/// each goes on.
pub trait Executor: Send + Sync {
    /// Runs a task until it is done.
    fn spawn(&self, task: Task);
    /// Runs work that blocks, where it does not hold up tasks.
    fn blocking(&self, work: Box<dyn FnOnce() + Send>);
    /// Whether there are threads beside the one that runs tasks. Without them the journal writes at
    /// once, where it is called.
    fn has_threads(&self) -> bool {
        true
    }
}

/// The tokio runtime that the caller is in.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokioExecutor;

impl Executor for TokioExecutor {
    fn spawn(&self, task: Task) {
        tokio::spawn(task);
    }

    fn blocking(&self, work: Box<dyn FnOnce() + Send>) {
        tokio::task::spawn_blocking(work);
    }
}

/// Runs blocking work and waits for what comes of it.
pub(crate) async fn blocking<T: Send + 'static>(
    executor: &Arc<dyn Executor>,
    what: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SysError> {
    let (done, result) = oneshot::channel();
    executor.blocking(Box::new(move || {
        // Whoever waited may have gone.
        let _gone = done.send(work());
    }));
    result.await.map_err(|_| stopped(what))
}

/// Runs a task that goes on when whoever waits for it has gone.
pub(crate) async fn detached<T: Send + 'static>(
    executor: &Arc<dyn Executor>,
    what: &str,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, SysError> {
    let (done, result) = oneshot::channel();
    executor.spawn(Box::pin(async move {
        let _gone = done.send(work.await);
    }));
    result.await.map_err(|_| stopped(what))
}

/// The other side was dropped: the work broke down.
fn stopped(what: &str) -> SysError {
    SysError::new(Code::Internal, format!("{what} stopped in the middle"))
        .hint("this is a fault of Steward; what was done stands in the journal")
}
