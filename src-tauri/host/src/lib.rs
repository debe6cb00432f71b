//! From a configuration to a running kernel, and the commands that every surface shares.
#![allow(
    clippy::disallowed_methods,
    reason = "Steward's own files: configuration, lock, socket; never a person's"
)]

pub mod audit;
mod clock;
mod core;
mod doctor;
mod host;
mod lock;
mod models;
mod paths;
mod settings;
mod snapshots;
mod socket;
pub mod surface;
mod undo;
mod view;
mod witness;

pub use doctor::{diagnose, doctor, has_display, is_wayland};
pub use host::{Attached, Host, Resume, Surface, attach};
pub use models::Models;
pub use paths::Paths;
pub use settings::DEFAULT_HOTKEY;
pub use socket::Client;
pub use steward_cores::Row;
pub use steward_kernel::escape::{shown as escape_line, shown_lines as escape_lines};
pub use steward_net::Progress;
pub use surface::{Command, Event, Problem, Reply};
