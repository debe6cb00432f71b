//! From a configuration to a running kernel, and the commands that every surface shares.

pub mod surface;
