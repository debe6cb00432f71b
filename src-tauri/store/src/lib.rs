//! A person's files: confined access, versions by content hash.
//!
//! [`WorkspaceFiles`] is the kernel's [`Files`](steward_kernel::provider::Files) provider, and this
//! crate is the only one that opens a person's files. What holds for every call:
//!
//! - A path is resolved by the operating system beneath a descriptor of the workspace's folder,
//!   with no symbolic link followed (`openat2` with `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
//!   RESOLVE_NO_MAGICLINKS`). There is no check of a path string that a swapped link could outrun.
//! - Only regular files and folders are opened. What a FIFO, a device, a socket or a link is, is
//!   found out without opening it for reading.
//! - New content is written to another file and put in place by rename. A hard link is so broken,
//!   never written through; its other names keep the old bytes. Reading through one is allowed.
//! - Bytes that a change would remove are in the version store before the change is even proposed.
#![allow(
    clippy::disallowed_methods,
    reason = "this is the room that opens a person's files, and keeps their old versions"
)]

mod apply;
mod beneath;
mod blobs;
mod fault;
mod files;
mod part;
mod path;
mod pending;
mod plan;
mod state;

pub use files::{MAX_READ, WorkspaceFiles};
