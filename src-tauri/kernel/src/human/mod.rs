//! The human queue: what a person is asked before something irreversible happens.

pub(crate) mod policy;
mod preview;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::process::{Pid, RunId};
use crate::provider::{Digest, PathState, Plan};

pub use policy::{NewPolicy, Offer, Place, Policy, Scope, Standing};
pub(crate) use preview::PREVIEW_MOST;
pub use preview::{DiffLine, LineKind, Preview};

/// Approvals and questions that one process may file.
pub(crate) const ASKED_MOST: u32 = 64;
/// Approvals of one run that may wait at once.
pub(crate) const WAITING_MOST: u32 = 64;
/// Milliseconds that an approval waits at most, where it does not wait for ever.
pub(crate) const LIFETIME_MOST: u64 = 366 * 24 * 60 * 60 * 1000;

/// What an approval would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    /// Writes a file where none is.
    Create,
    /// Replaces a file's bytes.
    Overwrite,
    /// Deletes a file or an empty folder.
    Delete,
    /// Moves or renames, with nothing at the target.
    Move,
    /// Moves onto an existing file.
    Replace,
    /// Makes a folder.
    MakeFolder,
    /// Puts back what a run changed.
    Undo,
    /// Any other use that asks first.
    Use,
    /// Gives a right to who asks.
    Grant,
    /// A step that a process asks about in its own words.
    Other,
}

/// A risk worth a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// The same effect may have happened already, before a crash.
    Repeat,
    /// The file there now can be run as a program.
    Executable,
    /// The file is hidden, or in a hidden folder: programs read such files by themselves.
    Hidden,
    /// The text or the path holds characters that cannot be seen; they are shown escaped.
    Invisible,
}

/// A question to the person that only a yes lets pass. Everything in it is bound by `digest`; texts
/// are escaped for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// Its number; the same after a restart.
    pub id: u64,
    /// Who asks.
    pub pid: Pid,
    /// The run.
    pub run: RunId,
    /// The image of who asks.
    pub image: String,
    /// The goal it is done for.
    pub goal: String,
    /// The system call, such as `fs.write`.
    pub action: String,
    /// What it would do.
    pub kind: EffectKind,
    /// Absolute path.
    pub path: String,
    /// Path within the workspace.
    pub relative: String,
    /// Where a move goes, absolute.
    pub target: Option<String>,
    /// Bytes there now.
    pub bytes_before: Option<u64>,
    /// Bytes there afterwards.
    pub bytes_after: Option<u64>,
    /// SHA-256 of the bytes that would be written.
    pub sha256: Option<Digest>,
    /// What would change.
    pub preview: Preview,
    /// Risks worth telling.
    pub risks: Vec<Risk>,
    /// For an undo: each path with what happens to it.
    pub items: Vec<String>,
    /// SHA-256 over everything the answer is bound to.
    pub digest: Digest,
    /// Unix milliseconds when it was asked.
    pub asked_ms: u64,
    /// Unix milliseconds when it stops waiting, which is never a yes.
    #[serde(default)]
    pub expires_ms: Option<u64>,
    /// The first of those of one run and one action that wait together.
    #[serde(default)]
    pub group: u64,
    /// What an "always" may cover, the narrowest first.
    #[serde(default)]
    pub scopes: Vec<Offer>,
}

/// An answer to an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Do it.
    Yes,
    /// Leave it.
    No,
    /// Do it, and whatever else lies in one of the scopes that were offered, without asking.
    Always {
        /// The scope's [`Offer::id`].
        scope: String,
    },
}

impl From<bool> for Answer {
    fn from(yes: bool) -> Self {
        if yes { Answer::Yes } else { Answer::No }
    }
}

/// A question of a process to the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Its number; the same after a restart.
    pub id: u64,
    /// Who asks.
    pub pid: Pid,
    /// The run.
    pub run: RunId,
    /// The question.
    pub text: String,
    /// Answers offered; free text where empty.
    pub choices: Vec<String>,
    /// Unix milliseconds when it was asked.
    pub asked_ms: u64,
}

/// Digest of what an answer is bound to: the asking call and the exact effect.
pub(crate) fn binding(pid: Pid, seq: u64, action: &str, effect: &impl Serialize) -> Digest {
    let bound = serde_json::json!({ "pid": pid, "seq": seq, "action": action, "effect": effect });
    sha256(bound.to_string().as_bytes())
}

/// SHA-256 of some bytes.
pub(crate) fn sha256(bytes: &[u8]) -> Digest {
    Digest(hex::encode(Sha256::digest(bytes)))
}

/// What a plan is, in one word.
pub(crate) fn kind_of(action: &str, plan: &Plan) -> EffectKind {
    match (action, &plan.target) {
        ("fs.mkdir", _) => EffectKind::MakeFolder,
        ("fs.delete", _) => EffectKind::Delete,
        (_, Some(target)) if target.before == PathState::Absent => EffectKind::Move,
        (_, Some(_)) => EffectKind::Replace,
        (_, None) if plan.before == PathState::Absent => EffectKind::Create,
        (_, None) => EffectKind::Overwrite,
    }
}

/// Risks that can be seen from a plan and the text that would be written.
pub(crate) fn risks_of(plan: &Plan, text: Option<&str>) -> Vec<Risk> {
    let mut risks = Vec::new();
    let target = plan.target.as_ref();
    let touched =
        |state: &PathState| matches!(state, PathState::File { mode, .. } if mode & 0o111 != 0);
    if touched(&plan.before) || target.is_some_and(|t| touched(&t.before)) {
        risks.push(Risk::Executable);
    }
    let paths = [Some(plan.path.as_str()), target.map(|t| t.path.as_str())];
    if paths
        .iter()
        .flatten()
        .any(|p| p.split('/').any(|part| part.starts_with('.')))
    {
        risks.push(Risk::Hidden);
    }
    if paths
        .iter()
        .flatten()
        .chain(text.iter())
        .any(|t| crate::escape::has_invisible(t))
    {
        risks.push(Risk::Invisible);
    }
    risks
}
