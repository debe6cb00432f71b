//! What would be said to a call, and why: for people and for processes that ask before they try.

use std::path::Path;

use crate::capability::{self, Explanation, Facts, Need, Resource, Right, Stance, normal_path};
use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::human::policy::{self, Act};
use crate::kernel::Inner;
use crate::process::ProcessInfo;
use crate::syscall;

/// Bytes of a call in words at most.
const CALL_MOST: usize = 8 * 1024;

impl Inner {
    /// Explains a call in words, such as `fs.write notes/a.md`, as a process would make it now.
    pub(crate) async fn explain(
        &self,
        process: &ProcessInfo,
        call: &str,
    ) -> Result<Explanation, SysError> {
        let (action, needs) = read(call, process)?;
        let held = self.journal.given(process.pid).await?;
        let (standing, now) = (self.standing().await?, self.now());
        let told = needs
            .iter()
            .map(|need| capability::explain(&held, need, &now));
        // The strictest is what is said to the call.
        let strictest = told.max_by_key(|told| match told.stance {
            Stance::Allow => 0,
            Stance::Ask => 1,
            Stance::Deny => 2,
        });
        let Some(mut told) = strictest else {
            return Err(SysError::new(Code::Internal, "a call names no need"));
        };
        if told.stance == Stance::Deny {
            return Ok(told);
        }
        let act = Act {
            action,
            kind: None,
            workspace: process.workspace.clone(),
            image: process.image.clone(),
            run: process.run,
            pid: process.pid,
        };
        let paths: Vec<&str> = needs
            .iter()
            .filter_map(|n| n.facts.path.as_deref())
            .collect();
        if let Some(said) = policy::said(&standing, &act, &paths) {
            let turned = said.policy.turns(told.stance);
            if turned != told.stance || turned == Stance::Ask {
                told.standing = Some(format!("standing grant {}: {}", said.id, said.words));
            }
            told.stance = turned;
        }
        Ok(told)
    }
}

/// The call and its needs, as far as the words tell.
fn read(call: &str, process: &ProcessInfo) -> Result<(&'static str, Vec<Need>), SysError> {
    if call.len() > CALL_MOST {
        return Err(
            SysError::new(Code::Limit, "the call is too long to be explained")
                .hint("give its name and a path"),
        );
    }
    let call = call.trim();
    let (name, rest) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
    let found = syscall::catalogue()
        .into_iter()
        .find(|info| info.name == name);
    let Some(info) = found else {
        return Err(SysError::new(
            Code::NotFound,
            format!("there is no system call `{}`", shown(name)),
        )
        .hint("use a name such as `fs.write`, and what it is about"));
    };
    let root = &process.workspace;
    let workspace = Resource::Workspace { root: root.clone() };
    let at = |right, path: &str| -> Result<Need, SysError> {
        let facts = Facts {
            path: Some(within(root, path)?),
            ..Facts::default()
        };
        Ok(Need::new(workspace.clone(), right).with(facts).partially())
    };
    let rest = rest.trim();
    let on = |resource, right| Ok(vec![Need::new(resource, right).partially()]);
    let needs: Result<Vec<Need>, SysError> = match name {
        "fs.read" | "fs.list" | "fs.stat" => Ok(vec![at(Right::Read, rest)?]),
        "fs.write" | "fs.mkdir" | "object.export" => Ok(vec![at(Right::Write, rest)?]),
        "fs.delete" => Ok(vec![at(Right::Delete, rest)?]),
        "fs.move" => match rest.split_whitespace().collect::<Vec<_>>()[..] {
            [from, to] => Ok(vec![at(Right::Delete, from)?, at(Right::Write, to)?]),
            _ => Err(SysError::new(Code::Invalid, "a move names two paths")
                .hint("write it as `fs.move from to`")),
        },
        "fs.undo" => Ok([Right::Write, Right::Delete]
            .map(|right| Need::new(workspace.clone(), right).partially())
            .into()),
        "capability.list" | "capability.inspect" | "capability.explain" | "access.check" => {
            on(Resource::Capabilities, Right::Read)
        }
        "capability.request" => on(Resource::Capabilities, Right::Use),
        "capability.delegate" | "access.add_privilege" => on(Resource::Capabilities, Right::Grant),
        "capability.revoke" => on(Resource::Capabilities, Right::Revoke),
        "process.list" => on(Resource::Processes, Right::Read),
        "image.list" | "image.inspect" => on(Resource::Images, Right::Read),
        "image.register" | "image.commit" => on(Resource::Images, Right::Admin),
        _ => match name.split_once('.').map(|(module, _)| module) {
            Some("llm") => on(Resource::Cores, Right::Use),
            Some("human") => on(Resource::Human, Right::Use),
            Some("process") => on(Resource::Processes, Right::Use),
            Some("clock") => on(Resource::Clock, Right::Use),
            Some("object") => object(name, rest),
            _ => Err(SysError::new(
                Code::Invalid,
                format!("`{name}` cannot be explained by its name"),
            )
            .hint("look at the capabilities with `steward caps`")),
        },
    };
    Ok((info.name, needs?))
}

fn object(name: &str, namespace: &str) -> Result<Vec<Need>, SysError> {
    if namespace.is_empty() {
        let message = format!("`{name}` is explained for a namespace");
        return Err(SysError::new(Code::Invalid, message).hint("name one, such as `proc/7`"));
    }
    let right = match name {
        "object.create" | "object.update" | "object.keep" | "object.import" => Right::Write,
        "object.delete" => Right::Delete,
        "object.link" => Right::Link,
        "object.diff" => Right::Diff,
        "object.materialize" => Right::Materialize,
        _ => Right::Read,
    };
    let namespace = namespace.to_owned();
    Ok(vec![Need::new(Resource::Objects { namespace }, right)])
}

/// A path as it lies within a workspace.
fn within(root: &Path, path: &str) -> Result<String, SysError> {
    let beneath = Path::new(path)
        .strip_prefix(root)
        .ok()
        .and_then(Path::to_str);
    match normal_path(beneath.unwrap_or(path)) {
        Some(normal) => Ok(normal.into_owned()),
        None => Err(SysError::new(
            Code::Confined,
            format!(
                "`{}` is not within the workspace `{}`",
                shown(path),
                shown(&root.to_string_lossy())
            ),
        )
        .hint("no right reaches there; name a path within the workspace")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::process::Pid;

    fn process() -> ProcessInfo {
        serde_json::from_value(serde_json::json!({
            "pid": 7, "parent": null, "run": 7, "image": "base", "goal": "", "state": "running",
            "status": "", "workspace": "/w", "tokens": 0, "steps": 0, "created_ms": 0,
            "ended_ms": null, "after": null,
        }))
        .unwrap()
    }

    #[test]
    fn every_call_of_the_catalogue_is_read_or_says_what_is_missing() {
        let process = process();
        assert_eq!(process.pid, Pid(7));
        for info in syscall::catalogue() {
            let call = format!("{} a", info.name);
            if let Err(error) = read(&call, &process) {
                assert!(error.hint.is_some(), "{call}: {error}");
            }
        }
    }

    #[test]
    fn paths_are_read_as_they_lie_in_the_workspace() {
        let rows = [
            ("fs.write a/./b", Ok(vec![(Right::Write, "a/b")])),
            ("fs.write /w/a", Ok(vec![(Right::Write, "a")])),
            ("fs.write /wx/a", Err(Code::Confined)),
            ("fs.read ../a", Err(Code::Confined)),
            ("  fs.list  ", Ok(vec![(Right::Read, "")])),
            (
                "fs.move a b",
                Ok(vec![(Right::Delete, "a"), (Right::Write, "b")]),
            ),
            ("fs.move a", Err(Code::Invalid)),
            ("fs.burn a", Err(Code::NotFound)),
            ("", Err(Code::NotFound)),
        ];
        for (call, expected) in rows {
            let got = read(call, &process())
                .map_err(|e| e.code)
                .map(|(_, needs)| {
                    let needs = needs.into_iter().map(|n| (n.right, n.facts.path.unwrap()));
                    needs.collect::<Vec<_>>()
                });
            let expected = expected.map(|needs| {
                let needs = needs
                    .into_iter()
                    .map(|(right, path)| (right, path.to_owned()));
                needs.collect::<Vec<_>>()
            });
            assert_eq!(got, expected, "{call:?}");
        }
    }
}
