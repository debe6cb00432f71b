//! The program behind `steward undo` and the window's undo button.

use async_trait::async_trait;
use steward_kernel::syscall::FsUndo;
use steward_kernel::{Exit, Program, Sys, SysError};

/// Name of the image.
pub(crate) const IMAGE: &str = "undo";

/// Undoes the run that its goal names.
pub(crate) struct Undo;

/// The goal of an undo.
pub(crate) fn goal(run: u64) -> String {
    format!("undo run {run}")
}

#[async_trait]
impl Program for Undo {
    async fn run(&self, sys: Sys) -> Result<Exit, SysError> {
        let run = sys
            .goal()
            .rsplit(' ')
            .next()
            .and_then(|word| word.parse().ok());
        let undone = sys.call(FsUndo { run }).await?;
        let mut lines = Vec::new();
        for path in &undone.restored {
            lines.push(format!(
                "{} is as it was before.",
                steward_kernel::escape::shown(path)
            ));
        }
        for kept in &undone.kept {
            lines.push(format!("Kept {kept}"));
        }
        Ok(Exit {
            ok: undone.kept.is_empty(),
            answer: lines.join("\n"),
            error: None,
        })
    }
}
