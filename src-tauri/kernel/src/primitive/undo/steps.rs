//! The steps back: the inverse of each change, and which of them can be taken.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;

use crate::error::SysError;
use crate::escape::shown;
use crate::journal::ChangeRow;
use crate::provider::{Change, Digest, Files, PathState, Plan};

/// One step back: the inverse of one change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Step {
    pub(super) change: u64,
    pub(super) back: Back,
    /// What must be there for the step to be taken.
    pub(super) expect: (String, PathState),
    /// Why it is not taken, where it is not.
    pub(super) kept: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) enum Back {
    Delete {
        path: String,
    },
    /// A folder that was made on the way, if it is empty by then.
    DeleteIfEmpty {
        path: String,
    },
    Restore {
        path: String,
        sha256: Digest,
        mode: u32,
    },
    Mkdir {
        path: String,
    },
    Move {
        from: String,
        to: String,
    },
}

impl Back {
    pub(super) fn change(&self) -> Change {
        match self.clone() {
            Back::Delete { path } | Back::DeleteIfEmpty { path } => Change::Delete { path },
            Back::Restore { path, sha256, mode } => Change::Restore { path, sha256, mode },
            Back::Mkdir { path } => Change::Mkdir { path },
            Back::Move { from, to } => Change::Move { from, to },
        }
    }

    pub(super) fn path(&self) -> &str {
        match self {
            Back::Delete { path }
            | Back::DeleteIfEmpty { path }
            | Back::Restore { path, .. }
            | Back::Mkdir { path } => path,
            Back::Move { to, .. } => to,
        }
    }

    fn after(&self, before: &PathState) -> PathState {
        match self {
            Back::Delete { .. } | Back::DeleteIfEmpty { .. } => PathState::Absent,
            Back::Restore { sha256, mode, .. } => PathState::File {
                sha256: sha256.clone(),
                bytes: 0,
                mode: *mode,
            },
            Back::Mkdir { .. } => PathState::Folder { mode: 0 },
            Back::Move { .. } => before.clone(),
        }
    }

    pub(super) fn words(&self) -> String {
        match self {
            Back::Delete { path } => format!("delete {}, which the run made", shown(path)),
            Back::DeleteIfEmpty { path } => {
                format!("delete the folder {} if it is empty", shown(path))
            }
            Back::Restore { path, .. } => format!("put back {}", shown(path)),
            Back::Mkdir { path } => format!("make the folder {} again", shown(path)),
            Back::Move { from, to } => format!("move {} back to {}", shown(from), shown(to)),
        }
    }
}

/// What would stand at a path after the steps planned so far.
struct Ahead<'a> {
    files: &'a dyn Files,
    root: &'a Path,
    states: HashMap<String, PathState>,
    /// Moves planned so far, as (new place, where it still lies on disk).
    moved: Vec<(String, String)>,
}

impl Ahead<'_> {
    fn state(&self, path: &str) -> Result<PathState, SysError> {
        if let Some(state) = self.states.get(path) {
            return Ok(state.clone());
        }
        let mut lies = path.to_owned();
        for (to, from) in self.moved.iter().rev() {
            if let Some(rest) = below(&lies, to) {
                lies = format!("{from}{rest}");
            } else if below(&lies, from).is_some() {
                return Ok(PathState::Absent);
            }
        }
        self.files.state(self.root, &lies)
    }

    fn take(&mut self, back: &Back, expect: &PathState) {
        if let Back::Move { from, to } = back {
            // What was planned beneath it moves along.
            let moved = self.states.drain().map(|(path, state)| {
                let path = below(&path, from).map_or(path.clone(), |rest| format!("{to}{rest}"));
                (path, state)
            });
            self.states = moved.collect();
            self.states.insert(from.clone(), PathState::Absent);
            self.moved.push((to.clone(), from.clone()));
        }
        self.states
            .insert(back.path().to_owned(), back.after(expect));
    }
}

/// What follows `folder` in a path that lies beneath it, from the `/` on.
fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    path.strip_prefix(folder)
        .filter(|rest| rest.starts_with('/'))
}

pub(super) fn plan_back(
    files: &dyn Files,
    root: &Path,
    changes: &[ChangeRow],
) -> Result<Vec<Step>, SysError> {
    let mut ahead = Ahead {
        files,
        root,
        states: HashMap::new(),
        moved: Vec::new(),
    };
    let mut steps = Vec::new();
    for row in changes {
        for (back, expect) in inverse(&row.plan) {
            let now = ahead.state(&expect.0)?;
            let done = back.after(&expect.1);
            let target = ahead.state(back.path())?;
            let in_the_way = matches!(back, Back::Move { .. }) && target != PathState::Absent;
            let kept = if same(&now, &expect.1) && in_the_way {
                Some("something else is in its old place now".to_owned())
            } else if same(&now, &expect.1) {
                None
            } else if same(&target, &done) {
                // It stands as before already: an undo that was interrupted, or the person's own.
                Some(String::new())
            } else {
                Some("it was changed since".to_owned())
            };
            if kept.is_none() {
                ahead.take(&back, &expect.1);
            }
            steps.push(Step {
                change: row.id,
                back,
                expect,
                kept,
            });
        }
    }
    Ok(steps)
}

/// The steps that take a change back, each with what must stand where for it.
fn inverse(plan: &Plan) -> Vec<(Back, (String, PathState))> {
    let path = plan.path.clone();
    let restore = |path: &str, state: &PathState| match state {
        PathState::File { sha256, mode, .. } => Some(Back::Restore {
            path: path.to_owned(),
            sha256: sha256.clone(),
            mode: *mode,
        }),
        PathState::Folder { .. } => Some(Back::Mkdir {
            path: path.to_owned(),
        }),
        PathState::Absent => None,
    };
    let mut steps = Vec::new();
    if let Some(target) = &plan.target {
        let back = Back::Move {
            from: target.path.clone(),
            to: path,
        };
        steps.push((back, (target.path.clone(), plan.before.clone())));
        if let Some(back) = restore(&target.path, &target.before) {
            steps.push((back, (target.path.clone(), PathState::Absent)));
        }
    } else {
        let back = restore(&path, &plan.before).unwrap_or(Back::Delete { path: path.clone() });
        steps.push((back, (path, plan.after.clone())));
    }
    for folder in plan.makes.iter().rev() {
        let back = Back::DeleteIfEmpty {
            path: folder.clone(),
        };
        steps.push((back, (folder.clone(), PathState::Folder { mode: 0 })));
    }
    steps
}

/// Whether two states are of the same content; permission bits a person changed do not count.
pub(super) fn same(a: &PathState, b: &PathState) -> bool {
    match (a, b) {
        (PathState::File { sha256: a, .. }, PathState::File { sha256: b, .. }) => a == b,
        (PathState::Absent, PathState::Absent) => true,
        (PathState::Folder { .. }, PathState::Folder { .. }) => true,
        _ => false,
    }
}
