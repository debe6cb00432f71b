//! The operating system for agents: processes, system calls, scheduler, capabilities, human queue,
//! journal.
//!
//! The kernel knows no provider: files, cores and clocks reach it through the traits in
//! [`provider`]. A tool or a program holds no right by itself; every primitive checks the calling
//! process's capabilities at every call.

pub mod error;
pub mod process;
pub mod program;
pub mod provider;
mod sys;
pub mod syscall;

pub use error::{Code, SysError};
pub use process::{Pid, ProcessInfo, ProcessState, RunId, Signal};
pub use program::Program;
pub use sys::{Sys, Turn};
pub use syscall::{Exit, Syscall};
