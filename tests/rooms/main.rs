//! The kernel's real primitives over the real file provider and a real journal. Stand-ins, each
//! named so: the language model, the clock, and programs that only make the calls of a row.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests: their files and processes are their own"
)]

mod approvals;
mod bed;
mod capabilities;
mod crash;
mod crash_all;
mod durable;
mod files;
mod generations;
mod journal;
mod processes;
mod signals;
mod stand_ins;
mod undo;
