//! Commands that start a run.

use std::path::PathBuf;
use std::sync::Arc;

use steward_kernel::budget::Budget;
use steward_kernel::capability::{self, FileAccess};
use steward_kernel::{Pid, Submission};

use super::Host;
use crate::surface::{Access, Problem, Reply, Run, ShellAccess, Submit};
use crate::undo;

/// What a run is started with.
struct Start {
    image: String,
    goal: String,
    /// The workspace, as the person named it.
    workspace: PathBuf,
    after: Option<u64>,
    access: Access,
    /// The folder of the workspace to begin in; the workspace itself where empty.
    folder: String,
    budget: Budget,
}

impl Host {
    pub(super) async fn submit(&self, submit: Submit) -> Result<Reply, Problem> {
        let Submit {
            request,
            workspace,
            after,
        } = submit;
        let workspace = match workspace {
            Some(folder) => PathBuf::from(folder),
            None => self.default_workspace()?,
        };
        self.start_run(Start {
            image: "base".to_owned(),
            goal: request,
            workspace,
            after,
            access: Access::Edit,
            folder: String::new(),
            budget: Budget::default(),
        })
        .await
    }

    /// Starts an image under the rights that the person names.
    pub(super) async fn run(&self, run: Run) -> Result<Reply, Problem> {
        let Run {
            image,
            request,
            workspace,
            folder,
            access,
            shell,
            limits,
            after,
        } = run;
        no_programs(shell)?;
        self.start_run(Start {
            image,
            goal: request,
            workspace: PathBuf::from(workspace),
            after,
            access,
            folder,
            budget: Budget {
                tokens: limits.tokens,
                calls: limits.calls,
                seconds: limits.seconds,
                money_micros: limits.money_micros,
                children: limits.children,
            },
        })
        .await
    }

    pub(super) async fn undo(&self, run: u64) -> Result<Reply, Problem> {
        let process = self.kernel.process(Pid(run)).await?;
        if process.run != run {
            return Err(Problem::new(
                "not_found",
                format!("`{run}` is a process of run `{}`", process.run),
            )
            .hint(format!("undo run {}", process.run)));
        }
        self.start_run(Start {
            image: undo::IMAGE.to_owned(),
            goal: undo::goal(run),
            workspace: process.workspace,
            after: None,
            access: Access::Edit,
            folder: String::new(),
            budget: Budget::default(),
        })
        .await
    }

    async fn start_run(&self, start: Start) -> Result<Reply, Problem> {
        let Start {
            image,
            goal,
            workspace,
            after,
            access,
            folder,
            budget,
        } = start;
        let files = Arc::clone(&self.files);
        let workspace = tokio::task::spawn_blocking(move || files.workspace(&workspace))
            .await
            .map_err(|e| Problem::new("internal", format!("the file provider stopped: {e}")))??;
        let submission = Submission {
            image,
            goal,
            grants: capability::workspace_grants(&workspace, file_access(access)),
            workspace,
            after,
            budget: budget.within(self.config().budget()),
        };
        let process = self.kernel.submit_in(submission, &folder).await?;
        Ok(Reply::Started {
            pid: process.pid.0,
            run: process.run,
        })
    }

    fn default_workspace(&self) -> Result<PathBuf, Problem> {
        let folder = PathBuf::from(self.config().settings(&self.paths, &self.model).workspace);
        std::fs::create_dir_all(&folder).map_err(|e| {
            let shown = steward_kernel::escape::shown(&folder.to_string_lossy());
            Problem::new(
                "unavailable",
                format!("cannot make the workspace `{shown}`: {e}"),
            )
            .hint("choose another workspace in the settings")
        })?;
        Ok(folder)
    }
}

/// The same, as the kernel has it.
fn file_access(access: Access) -> FileAccess {
    match access {
        Access::Read => FileAccess::Read,
        Access::Edit => FileAccess::Edit,
        Access::Full => FileAccess::Full,
    }
}

/// Nothing here runs programs confined, and none runs any other way.
fn no_programs(shell: ShellAccess) -> Result<(), Problem> {
    let asked = match shell {
        ShellAccess::None => return Ok(()),
        ShellAccess::Ask => "ask",
        ShellAccess::Allowlist => "allowlist",
        ShellAccess::Full => "full",
    };
    let message = format!(
        "no program can be run (`shell` is `{asked}`): this Steward has nothing that confines programs"
    );
    Err(Problem::new("unavailable", message).hint("leave the shell out, or set it to `none`"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_shell_fails_closed() {
        assert!(no_programs(ShellAccess::None).is_ok());
        for shell in [ShellAccess::Ask, ShellAccess::Allowlist, ShellAccess::Full] {
            assert_eq!(no_programs(shell).unwrap_err().code, "unavailable");
        }
    }
}
