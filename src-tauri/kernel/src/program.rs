//! Programs: what a process runs.

use async_trait::async_trait;

use crate::Sys;
use crate::error::SysError;
use crate::syscall::Exit;

/// The code of an agent image.
///
/// A program reaches the world through [`Sys`] only, and is *deterministic given the results of its
/// system calls*: after a crash the kernel runs it again from the start and gives each call the
/// result it had, until it stands where it stood (durable execution by replay). So: no clock, no
/// randomness and no state outside `run`, except through system calls.
#[async_trait]
pub trait Program: Send + Sync {
    /// Runs until the goal is reached or given up. An `Err` ends the process as failed.
    async fn run(&self, sys: Sys) -> Result<Exit, SysError>;
}
