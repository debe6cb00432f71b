//! The journal's check and export, from its files: whether a kernel runs or not.

use std::io::Write;

pub use steward_kernel::audit::{Format, Span};
use steward_kernel::audit::{export_journal, verify::Verification, verify_journal};

use crate::paths::Paths;
use crate::surface::Problem;
use crate::witness::KeyWitness;

/// Checks every row of the journal, and its end against what was signed of it.
///
/// # Errors
/// There is no journal, or the witness's folder cannot be used. What is wrong with the rows is no
/// error but what is told.
pub fn verify(paths: &Paths) -> Result<Verification, Problem> {
    there(paths)?;
    let witness = KeyWitness::open(paths)?;
    Ok(verify_journal(&paths.journal(), &witness)?)
}

/// Writes the journal's rows out, oldest first; how many there were.
///
/// # Errors
/// There is no journal, or what is written cannot be.
pub fn export(
    paths: &Paths,
    format: Format,
    span: Span,
    out: &mut dyn Write,
) -> Result<u64, Problem> {
    there(paths)?;
    Ok(export_journal(&paths.journal(), format, span, out)?)
}

fn there(paths: &Paths) -> Result<(), Problem> {
    if paths.journal().exists() {
        return Ok(());
    }
    let shown = steward_kernel::escape::shown(&paths.journal().to_string_lossy());
    Err(
        Problem::new("unavailable", format!("there is no journal `{shown}` yet"))
            .hint("ask for something first, or check XDG_DATA_HOME"),
    )
}
