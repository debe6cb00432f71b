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
mod audit;
mod bed;
mod budgets;
mod capabilities;
mod checkpoints;
#[expect(dead_code, reason = "its `main` is for `cargo run --example`")]
#[path = "examples/coding_session.rs"]
mod coding_session;
#[expect(dead_code, reason = "its `main` is for `cargo run --example`")]
#[path = "examples/copy_through_object.rs"]
mod copy_through_object;
mod crash;
mod crash_all;
mod delegation;
mod demonstrations;
mod durable;
mod families;
mod files;
mod generations;
mod images;
mod journal;
#[expect(dead_code, reason = "its `main` is for `cargo run --example`")]
#[path = "examples/launch_presets.rs"]
mod launch_presets;
mod messages;
mod moves;
mod objects;
mod outside;
mod policies;
mod processes;
mod rights;
mod scripted_core;
mod signals;
mod stand_ins;
#[expect(dead_code, reason = "its `main` is for `cargo run --example`")]
#[path = "examples/two_sleepers.rs"]
mod two_sleepers;
mod undo;
mod waiting;
