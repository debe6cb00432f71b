//! Checkpoints: points in a process's history that it can be taken back to.
//!
//! A checkpoint keeps the calls that led to it, with their results, and says what the process held
//! and knew there. It is no frozen memory: a process taken back is run again on those results. What
//! was done outside since then stands; it is listed, and never done a second time.

mod call;
mod control;
mod diff;
mod replay;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::capability::CapabilityId;
use crate::error::{Code, SysError};
use crate::process::{ForkMode, Pid, RunId};
use crate::provider::Digest;

pub use call::{
    CheckpointCreate, CheckpointDiffer, CheckpointFork, CheckpointInspect, CheckpointList,
    CheckpointReplay, CheckpointRestore, Checkpointed, Way,
};
pub use diff::{CallBeyond, CheckpointDiff, ObjectChange, RightChange, Side};
pub use replay::{Replayed, Verdict};

pub(crate) use diff::between;
pub(crate) use replay::Replay;

/// Number of a checkpoint. Never used twice in one data directory.
pub type CheckpointId = u64;

/// Version of what is written in a checkpoint.
const FORMAT: u32 = 1;
/// Bytes of what is written in a checkpoint, its calls not counted, at most.
pub const SCENE_MOST: usize = 4 * 1024 * 1024;
/// Capabilities or objects of a checkpoint at most.
const PARTS_MOST: usize = 10_000;
/// Checkpoints of one run at most.
pub(crate) const RUN_CHECKPOINTS_MOST: u64 = 64;
/// Characters of a label at most.
pub(crate) const LABEL_MOST: usize = 200;

/// A checkpoint, as told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointInfo {
    /// Its number.
    pub id: CheckpointId,
    /// The process it is of.
    pub pid: Pid,
    /// The run of that process.
    pub run: RunId,
    /// The number of the last call before it.
    pub seq: u64,
    /// What it is called.
    pub label: String,
    /// SHA-256 of what is in it.
    pub digest: Digest,
    /// Unix milliseconds when it was made.
    pub at_ms: u64,
}

/// How a process stood at a checkpoint, beside its calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scene {
    pub(crate) format: u32,
    /// The image it ran.
    pub image: String,
    /// Its goal.
    pub goal: String,
    /// Its workspace.
    pub workspace: PathBuf,
    /// Its folder there.
    pub cwd: String,
    /// What it said that it did.
    pub status: String,
    /// The run it went on from.
    #[serde(default)]
    pub after: Option<RunId>,
    /// How it was forked, where it was.
    #[serde(default)]
    pub mode: Option<ForkMode>,
    /// What it might use.
    #[serde(default)]
    pub budget: Budget,
    /// Tokens it had used.
    pub tokens: u64,
    /// What it held.
    pub capabilities: Vec<HeldThen>,
    /// The objects it had made.
    pub objects: Vec<ObjectThen>,
}

/// A capability at a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeldThen {
    /// Its number.
    pub id: CapabilityId,
    /// SHA-256 of what it grants.
    pub digest: Digest,
}

/// An object at a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectThen {
    /// Its handle.
    pub id: u64,
    /// Where it lives.
    pub namespace: String,
    /// Its name there, where it has one.
    #[serde(default)]
    pub name: Option<String>,
    /// Its newest version.
    pub version: u64,
    /// SHA-256 of that version.
    pub sha256: String,
}

/// A call of the history that a checkpoint keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptCall {
    /// Its number.
    pub seq: u64,
    /// The system call.
    pub name: String,
    /// SHA-256 of its arguments.
    pub args: String,
    /// What it did, escaped.
    pub title: String,
    /// How it ended: `done`, `denied`, `failed` or `unknown`.
    pub state: String,
    /// SHA-256 of its result.
    pub result: Digest,
}

/// Something done outside after a checkpoint. It stands, whatever the process is taken back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutsideEffect {
    /// Who did it: the process, or one that it made since.
    pub pid: Pid,
    /// The call.
    pub seq: u64,
    /// The system call.
    pub name: String,
    /// What it did, escaped.
    pub title: String,
    /// `done`, or `unknown` where that is not known.
    pub state: String,
}

/// A checkpoint with all that is in it but the results of its calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointDetail {
    /// The checkpoint.
    pub checkpoint: CheckpointInfo,
    /// How the process stood.
    pub scene: Scene,
    /// The calls that led there.
    pub calls: Vec<KeptCall>,
    /// What was done outside since, and was not undone.
    pub outside: Vec<OutsideEffect>,
}

/// What taking a process back did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Restored {
    /// The process that goes on from the checkpoint: the same, or a new one where it had ended.
    pub pid: Pid,
    /// What was done outside since the checkpoint. It is not undone, and not done again.
    pub outside: Vec<OutsideEffect>,
    /// Capabilities that it got since, and has no more.
    pub dropped: Vec<CapabilityId>,
    /// Children that it made since; they were ended.
    pub ended: Vec<Pid>,
}

impl Scene {
    /// Reads what stands in a checkpoint. Whatever the text is, this ends soon, takes no more
    /// memory than some multiple of it, and says where the text is wrong.
    ///
    /// # Errors
    /// [`Code::Limit`] for a text that is too long, [`Code::Invalid`] for one that is no
    /// checkpoint.
    pub fn read(text: &str) -> Result<Self, SysError> {
        if text.len() > SCENE_MOST {
            let message = format!(
                "a checkpoint of `{}` bytes is not read, `{SCENE_MOST}` is the most",
                text.len()
            );
            return Err(SysError::new(Code::Limit, message).hint("make it anew"));
        }
        let reader = &mut serde_json::Deserializer::from_str(text);
        let scene: Self = serde_path_to_error::deserialize(reader).map_err(|error| {
            let (place, inner) = (error.path().to_string(), error.inner());
            let what = crate::escape::shown(&inner.to_string());
            broken(&format!("in `{}`: {what}", crate::escape::shown(&place)))
        })?;
        if scene.format != FORMAT {
            return Err(broken(&format!("`format` is `{}`", scene.format)));
        }
        let parts = [
            ("capabilities", scene.capabilities.len()),
            ("objects", scene.objects.len()),
        ];
        if let Some((name, count)) = parts.into_iter().find(|(_, count)| *count > PARTS_MOST) {
            return Err(broken(&format!("`{name}` has `{count}` entries")));
        }
        let digests = scene.capabilities.iter().map(|held| &held.digest.0);
        let mut digests = digests.chain(scene.objects.iter().map(|object| &object.sha256));
        if let Some(digest) = digests.find(|digest| !is_digest(digest)) {
            let shown = crate::escape::shown(digest);
            return Err(broken(&format!("`{shown}` is no SHA-256")));
        }
        Ok(scene)
    }
}

impl Default for Scene {
    fn default() -> Self {
        Self {
            format: FORMAT,
            image: String::new(),
            goal: String::new(),
            workspace: PathBuf::new(),
            cwd: String::new(),
            status: String::new(),
            after: None,
            mode: None,
            budget: Budget::default(),
            tokens: 0,
            capabilities: Vec::new(),
            objects: Vec::new(),
        }
    }
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn broken(how: &str) -> SysError {
    SysError::new(Code::Invalid, format!("the checkpoint is broken {how}"))
        .hint("make a new one; nothing was changed")
}

/// Digest of a checkpoint: of how the process stood, and of each call.
pub(crate) fn digest_of(scene: &str, calls: &[KeptCall]) -> Digest {
    let mut text = scene.to_owned();
    for call in calls {
        let KeptCall {
            seq,
            name,
            args,
            state,
            result,
            ..
        } = call;
        text += &format!("\n{seq} {name} {args} {state} {}", result.0);
    }
    crate::human::sha256(text.as_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn text(change: impl FnOnce(&mut serde_json::Value)) -> String {
        let mut scene = serde_json::to_value(Scene {
            image: "base".to_owned(),
            capabilities: vec![HeldThen {
                id: 1,
                digest: Digest("a".repeat(64)),
            }],
            ..Scene::default()
        })
        .unwrap();
        change(&mut scene);
        scene.to_string()
    }

    #[test]
    fn a_broken_checkpoint_is_refused_with_the_place() {
        let whole = text(|_| {});
        let read = Scene::read(&whole).unwrap();
        assert_eq!(
            serde_json::to_string(&read).unwrap(),
            serde_json::to_string(&Scene::read(&whole).unwrap()).unwrap()
        );
        let many: Vec<_> =
            vec![serde_json::json!({ "id": 1, "digest": "a".repeat(64) }); PARTS_MOST + 1];
        let rows = [
            (String::new(), "EOF"),
            ("[]".to_owned(), "invalid length"),
            ("{".to_owned(), "EOF"),
            ("[".repeat(100_000), "in `"),
            (whole[..whole.len() - 2].to_owned(), "EOF"),
            (text(|s| s["format"] = 2.into()), "`format` is `2`"),
            (text(|s| s["goal"] = 7.into()), "in `goal`"),
            (
                text(|s| s["capabilities"][0]["id"] = "x".into()),
                "in `capabilities[0].id`",
            ),
            (
                text(|s| s["capabilities"][0]["digest"] = "xyz".into()),
                "`xyz` is no SHA-256",
            ),
            (text(|s| s["capabilities"] = many.into()), "`10001` entries"),
            (text(|s| s["more"] = 1.into()), "unknown field"),
            (text(|s| s["tokens"] = (-1).into()), "in `tokens`"),
        ];
        for (text, words) in rows {
            let error = Scene::read(&text).unwrap_err();
            assert_eq!(error.code, Code::Invalid, "{words}");
            assert!(error.message.contains(words), "{words}: {error}");
        }
        let long = " ".repeat(SCENE_MOST + 1);
        assert_eq!(Scene::read(&long).unwrap_err().code, Code::Limit);
    }
}
