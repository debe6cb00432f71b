//! The real provider on real folders: what is refused, what changes, what survives.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

mod bed;
mod bounds;
mod changes;
mod confined;
mod conflicts;
mod crash;
mod versions;
