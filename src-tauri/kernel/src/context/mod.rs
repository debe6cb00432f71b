//! Generations that stand still and go on.

pub(crate) mod text;
