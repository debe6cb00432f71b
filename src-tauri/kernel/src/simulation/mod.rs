//! A world made up for tests: time, order, files and answers that a seed decides.
//!
//! [`Simulation`] is the executor and the clock of a kernel. It runs one task at a time, in an order
//! that its seed decides, and lets time pass only when nothing else can go on; so a whole history of
//! a kernel is a function of its seed, and a failure can be seen again under the same one.
//! [`MemoryFiles`], [`ScriptedCore`], [`ScriptedOutside`] and [`SeededRandom`] are the rest of that world.

mod core;
mod executor;
mod files;
mod outside;

pub use self::core::ScriptedCore;
pub use self::executor::Simulation;
pub use self::files::MemoryFiles;
pub use self::outside::{ScriptedOutside, SeededRandom};
