//! What a person said once for many calls: policies by action and scope, standing grants among them.
//!
//! A policy never gives a right that is not held: it only turns what the capabilities say, towards a
//! question or away from one. A deny wins; of the others the latest word counts.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Approval, EffectKind};
use crate::capability::{self, Capability, CapabilityId, Need, Now, Stance, Verdict};
use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::process::{Pid, RunId};

/// What is said to an action within a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Yes, without asking.
    AlwaysAllow,
    /// No, without asking.
    AlwaysDeny,
    /// The person is asked, also where a capability would allow it.
    AskEachTime,
    /// Yes to the next one, without asking.
    AllowOnce,
}

impl Policy {
    /// What comes of what the capabilities say.
    pub(crate) fn turns(self, stance: Stance) -> Stance {
        match (self, stance) {
            (_, Stance::Deny) | (Policy::AlwaysDeny, _) => Stance::Deny,
            (Policy::AskEachTime, _) => Stance::Ask,
            (Policy::AlwaysAllow | Policy::AllowOnce, _) => Stance::Allow,
        }
    }
}

/// A place in a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// One path.
    Path(String),
    /// A folder and all beneath it.
    Folder(String),
}

/// Where a policy holds: all that is given must fit. Without anything, everywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scope {
    /// Root of a workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
    /// A place in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// What would be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<EffectKind>,
    /// Processes of an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Processes of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// One process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Pid>,
}

/// A policy as it stands, or stood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// Its number.
    pub id: u64,
    /// The system call that it is about, such as `fs.write`.
    pub action: String,
    /// Where it holds.
    pub scope: Scope,
    /// What it says.
    pub policy: Policy,
    /// What it says, in a sentence.
    pub words: String,
    /// Who gave it.
    pub by: String,
    /// Unix milliseconds when it was given.
    pub issued_ms: u64,
    /// How often it still decides; any number of times where absent.
    pub uses_left: Option<u64>,
    /// How often it has decided that something was done without asking.
    pub used: u64,
    /// Unix milliseconds when it was taken back.
    pub revoked_ms: Option<u64>,
    /// Who took it back.
    pub revoked_by: Option<String>,
}

/// A scope that is offered for an "always".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Its name in an answer.
    pub id: String,
    /// What would be done without asking, in a sentence.
    pub words: String,
    /// The scope.
    pub scope: Scope,
}

/// A call that policies are asked about.
#[derive(Debug, Clone)]
pub(crate) struct Act {
    pub action: &'static str,
    /// What it would do, once that is known.
    pub kind: Option<EffectKind>,
    pub workspace: PathBuf,
    pub image: String,
    pub run: RunId,
    pub pid: Pid,
}

/// What capabilities and policies together say to a call.
#[derive(Debug, Clone)]
pub(crate) struct Ruling {
    /// The strictest of what is said to the call's needs.
    pub verdict: Verdict,
    /// Capabilities of which it takes a use.
    pub counted: Vec<CapabilityId>,
}

/// Decides a call.
///
/// # Errors
/// [`Code::Denied`], with the reason.
pub(crate) fn rule(
    held: &[Capability],
    standing: &[Standing],
    needs: &[Need],
    act: &Act,
    now: &Now,
) -> Result<Ruling, SysError> {
    let mut strictest: Option<Verdict> = None;
    let mut counted = Vec::new();
    for need in needs {
        let verdict = capability::decide(held, need, now)?;
        let by = held.iter().find(|c| c.id == verdict.by);
        if by.is_some_and(|c| c.grant.uses.is_some()) && !counted.contains(&verdict.by) {
            counted.push(verdict.by);
        }
        if strictest.is_none_or(|s| s.stance == Stance::Allow) {
            strictest = Some(verdict);
        }
    }
    let mut verdict =
        strictest.ok_or_else(|| SysError::new(Code::Internal, "a call names no need"))?;
    let paths: Vec<&str> = needs
        .iter()
        .filter_map(|n| n.facts.path.as_deref())
        .collect();
    let said = said(standing, act, &paths);
    if let Some(said) = said {
        let turned = said.policy.turns(verdict.stance);
        if turned == Stance::Deny {
            let message = format!(
                "`{}` is not allowed: standing grant {}, {}",
                act.action, said.id, said.words
            );
            return Err(SysError::new(Code::Denied, message)
                .hint("do it without this; the person can take that back with `steward grants`"));
        }
        // It does not count where the same is said without it.
        if turned != verdict.stance || said.policy == Policy::AskEachTime {
            verdict.standing = Some(said.id);
        }
        verdict.stance = turned;
    }
    Ok(Ruling { verdict, counted })
}

/// The policy that counts for a call.
pub(crate) fn said<'a>(
    standing: &'a [Standing],
    act: &Act,
    paths: &[&str],
) -> Option<&'a Standing> {
    let counts = |s: &&Standing| {
        let open = s.revoked_ms.is_none() && s.uses_left != Some(0);
        open && s.action == act.action && s.covers(act, paths)
    };
    let mut covering: Vec<&Standing> = standing.iter().filter(counts).collect();
    covering.sort_by_key(|s| (s.policy == Policy::AlwaysDeny, s.id));
    covering.pop()
}

impl Standing {
    /// A yes covers a call as a whole; a no or a question covers one of which it covers a part.
    fn covers(&self, act: &Act, paths: &[&str]) -> bool {
        let Scope {
            workspace,
            place,
            kind,
            image,
            run,
            pid,
        } = &self.scope;
        let fits = workspace.as_ref().is_none_or(|w| *w == act.workspace)
            && kind.is_none_or(|k| Some(k) == act.kind)
            && image.as_ref().is_none_or(|i| *i == act.image)
            && run.is_none_or(|r| r == act.run)
            && pid.is_none_or(|p| p == act.pid);
        let in_place = match (place, self.policy) {
            (None, _) => true,
            (Some(place), Policy::AlwaysAllow | Policy::AllowOnce) => {
                !paths.is_empty() && paths.iter().all(|path| place.covers(path))
            }
            (Some(place), _) => paths.iter().any(|path| place.covers(path)),
        };
        fits && in_place
    }
}

impl Place {
    fn covers(&self, path: &str) -> bool {
        let Some(path) = capability::normal_path(path) else {
            return false;
        };
        match self {
            Place::Path(this) => *path == **this,
            Place::Folder(folder) => {
                let beneath = path.strip_prefix(folder.as_str());
                folder.is_empty() || beneath.is_some_and(|rest| rest.starts_with('/'))
            }
        }
    }
}

impl Scope {
    /// What a policy in this scope says of an action, in words.
    pub fn words(&self, action: &str, policy: Policy) -> String {
        let said = match policy {
            Policy::AlwaysAllow => "always allow",
            Policy::AlwaysDeny => "never allow",
            Policy::AskEachTime => "always ask before",
            Policy::AllowOnce => "allow once",
        };
        format!("{said} {}", self.of(action))
    }

    fn of(&self, action: &str) -> String {
        let kind = self.kind.and_then(doing);
        let mut words = kind.map_or_else(|| format!("`{}`", shown(action)), str::to_owned);
        match &self.place {
            Some(Place::Path(path)) => words += &format!(" at `{}`", shown(path)),
            Some(Place::Folder(folder)) => words += &format!(" below `{}/`", shown(folder)),
            None => {}
        }
        match &self.workspace {
            Some(root) => words += &format!(" in `{}`", shown(&root.to_string_lossy())),
            None => words += " anywhere",
        }
        if let Some(image) = &self.image {
            words += &format!(", by any `{}` agent", shown(image));
        }
        if let Some(run) = self.run {
            words += &format!(", until run {run} ends");
        }
        if let Some(pid) = self.pid {
            words += &format!(", by process {pid}");
        }
        words
    }
}

fn doing(kind: EffectKind) -> Option<&'static str> {
    match kind {
        EffectKind::Create => Some("making new files"),
        EffectKind::Overwrite => Some("overwriting files"),
        EffectKind::Delete => Some("deleting files and empty folders"),
        EffectKind::Move => Some("moving and renaming files"),
        EffectKind::Replace => Some("moving files onto others"),
        EffectKind::MakeFolder => Some("making folders"),
        EffectKind::Undo | EffectKind::Use | EffectKind::Grant | EffectKind::Other => None,
    }
}

/// The scopes that an "always" to an approval may have, the narrowest first. None for what a process
/// asks in its own words, and for an undo: no scope would say what comes.
pub(crate) fn offers(asked: &Approval, act: &Act, paths: &[String]) -> Vec<Offer> {
    let kind = match act.kind {
        None | Some(EffectKind::Undo | EffectKind::Grant | EffectKind::Other) => return Vec::new(),
        Some(EffectKind::Use) => None,
        kind => kind,
    };
    let mut places = Vec::new();
    if let (Some(EffectKind::Overwrite) | None, [path]) = (kind, paths)
        && !path.is_empty()
    {
        places.push(Some(Place::Path(path.clone())));
    }
    let folder = common_folder(paths);
    if !folder.is_empty() {
        places.push(Some(Place::Folder(folder)));
    }
    places.push(None);
    let scope = |place: &Option<Place>| Scope {
        workspace: Some(act.workspace.clone()),
        place: place.clone(),
        kind,
        ..Scope::default()
    };
    let in_run = places.iter().map(|place| Scope {
        run: Some(act.run),
        ..scope(place)
    });
    let by_image = places.iter().map(|place| Scope {
        image: Some(act.image.clone()),
        ..scope(place)
    });
    let named = in_run.chain(by_image).enumerate();
    named
        .map(|(number, scope)| Offer {
            id: (number + 1).to_string(),
            words: scope.words(&asked.action, Policy::AlwaysAllow),
            scope,
        })
        .collect()
}

/// The folder in which all paths lie; empty for the workspace itself.
fn common_folder(paths: &[String]) -> String {
    let folder = |path: &str| {
        path.rsplit_once('/')
            .map_or("", |(folder, _)| folder)
            .to_owned()
    };
    let mut folders = paths.iter().map(|path| folder(path));
    let mut common = folders.next().unwrap_or_default();
    for other in folders {
        let in_common = |common: &str| {
            let rest = other.strip_prefix(common);
            common.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        while !in_common(&common) {
            common = folder(&common);
        }
    }
    common
}

/// A policy to be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPolicy {
    /// The system call that it is about.
    pub action: String,
    /// Where it holds.
    pub scope: Scope,
    /// What it says.
    pub policy: Policy,
}

impl NewPolicy {
    /// Refuses what no call could match.
    pub(crate) fn check(&self) -> Result<(), SysError> {
        let Scope {
            workspace, place, ..
        } = &self.scope;
        if !crate::syscall::catalogue()
            .iter()
            .any(|c| c.name == self.action)
        {
            let message = format!("there is no system call `{}`", shown(&self.action));
            return Err(
                SysError::new(Code::NotFound, message).hint("use a name such as `fs.write`")
            );
        }
        let whole = |path: &Path| path.is_absolute();
        if workspace.as_deref().is_some_and(|root| !whole(root)) {
            return Err(
                SysError::new(Code::Invalid, "the workspace of a policy is not absolute")
                    .hint("give its whole path"),
            );
        }
        let (Some(Place::Path(path) | Place::Folder(path)), root) = (place, workspace) else {
            return Ok(());
        };
        if root.is_none() || capability::normal_path(path).as_deref() != Some(path.as_str()) {
            let message = format!("`{}` is no place in a workspace", shown(path));
            return Err(SysError::new(Code::Invalid, message)
                .hint("name a workspace, and a path in it without `.` and `..`"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
