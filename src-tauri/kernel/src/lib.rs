//! The operating system for agents: processes, system calls, scheduler, capabilities, human queue,
//! journal.
//!
//! The kernel knows no provider: files, cores and clocks reach it through the traits in
//! [`provider`]. A tool or a program holds no right by itself; every primitive checks the calling
//! process's capabilities at every call.

mod attention;
pub mod audit;
pub mod budget;
pub mod capability;
pub mod checkpoint;
mod context;
mod control;
mod error;
pub mod escape;
mod event;
mod executor;
mod explain;
pub mod human;
pub mod image;
mod journal;
mod kernel;
mod lifecycle;
mod live;
pub mod object;
pub mod outside;
pub mod primitive;
pub mod process;
mod program;
pub mod provider;
mod rights;
pub mod scheduler;
pub mod simulation;
mod sys;
pub mod syscall;

pub use audit::{JournalQuery, JournalRow, Retention};
pub use context::{ContextLoad, MemorySnapshots};
pub use error::{Code, SysError};
pub use event::{KernelEvent, Step, StepState};
pub use executor::{Executor, Task, TokioExecutor};
pub use journal::{ApprovalRecord, CommitHook, SCHEMA_VERSION};
pub use kernel::{Images, Kernel, Providers, Submission, Taken};
pub use process::{ForkMode, Pid, ProcessInfo, ProcessState, RunId, Signal, Urgency};
pub use program::Program;
pub use sys::{Sys, Turn};
pub use syscall::{Exit, Syscall};
