//! What lies between two checkpoints.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CheckpointDetail, CheckpointId, KeptCall, ObjectThen};
use crate::capability::CapabilityId;

/// Calls told beyond what two checkpoints share, of each, at most.
const CALLS_TOLD: usize = 500;

/// What differs between two checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointDiff {
    /// The one compared from.
    pub from: CheckpointId,
    /// The one compared to.
    pub to: CheckpointId,
    /// Calls that both begin with.
    pub shared: u64,
    /// Calls beyond those, of each; the first 500.
    pub calls: Vec<CallBeyond>,
    /// Calls beyond those, that are not told.
    pub left_out: u64,
    /// Objects that differ.
    pub objects: Vec<ObjectChange>,
    /// Capabilities that only one of them has.
    pub rights: Vec<RightChange>,
}

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Only the one compared from has it.
    From,
    /// Only the one compared to has it.
    To,
}

/// A call that only one of two checkpoints has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallBeyond {
    /// Which.
    pub side: Side,
    /// The call's number there.
    pub seq: u64,
    /// The system call.
    pub name: String,
    /// What it did, escaped.
    pub title: String,
}

/// An object that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectChange {
    /// Its handle.
    pub id: u64,
    /// Its name, or its handle where it has none.
    pub name: String,
    /// Its version in the one compared from, where it was there.
    pub from: Option<u64>,
    /// Its version in the one compared to, where it was there.
    pub to: Option<u64>,
}

/// A capability that only one of two checkpoints has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RightChange {
    /// Which.
    pub side: Side,
    /// The capability.
    pub id: CapabilityId,
}

impl CheckpointDiff {
    /// What differs, a line each; nothing where nothing does.
    pub fn lines(&self) -> Vec<String> {
        let mark = |side: &Side| match side {
            Side::From => '-',
            Side::To => '+',
        };
        let calls = self.calls.iter().map(|call| {
            let CallBeyond { seq, name, .. } = call;
            format!("{} call {seq}: {name} {}", mark(&call.side), call.title)
        });
        let more = (self.left_out > 0).then(|| format!("{} more calls", self.left_out));
        let objects = self.objects.iter().map(|object| {
            let version =
                |version: Option<u64>| version.map_or("none".to_owned(), |v| v.to_string());
            format!(
                "object {}: version {} to {}",
                object.name,
                version(object.from),
                version(object.to)
            )
        });
        let rights = self
            .rights
            .iter()
            .map(|right| format!("{} capability {}", mark(&right.side), right.id));
        calls.chain(more).chain(objects).chain(rights).collect()
    }
}

/// Compares two checkpoints.
pub(crate) fn between(from: &CheckpointDetail, to: &CheckpointDetail) -> CheckpointDiff {
    let shared = from
        .calls
        .iter()
        .zip(&to.calls)
        // What `checkpoint.create` gave says how a process came there, not where it is.
        .take_while(|(a, b)| {
            let same = a.result == b.result || a.name == "checkpoint.create";
            a.name == b.name && a.args == b.args && same
        })
        .count();
    let beyond = |side, calls: &[KeptCall]| -> Vec<CallBeyond> {
        let beyond = calls.iter().skip(shared);
        beyond
            .map(|call| CallBeyond {
                side,
                seq: call.seq,
                name: call.name.clone(),
                title: call.title.clone(),
            })
            .collect()
    };
    let mut calls = Vec::new();
    let mut left_out = 0;
    for (side, all) in [(Side::From, &from.calls), (Side::To, &to.calls)] {
        let mut these = beyond(side, all);
        left_out += these.len().saturating_sub(CALLS_TOLD) as u64;
        these.truncate(CALLS_TOLD);
        calls.extend(these);
    }
    CheckpointDiff {
        from: from.checkpoint.id,
        to: to.checkpoint.id,
        shared: shared as u64,
        calls,
        left_out,
        objects: objects(&from.scene.objects, &to.scene.objects),
        rights: rights(from, to),
    }
}

fn objects(from: &[ObjectThen], to: &[ObjectThen]) -> Vec<ObjectChange> {
    let mut all: BTreeMap<u64, (Option<&ObjectThen>, Option<&ObjectThen>)> = BTreeMap::new();
    for object in from {
        all.entry(object.id).or_default().0 = Some(object);
    }
    for object in to {
        all.entry(object.id).or_default().1 = Some(object);
    }
    let changed = all.into_iter().filter(|(_, (a, b))| a != b);
    changed
        .map(|(id, (a, b))| {
            let name = b.or(a).and_then(|object| object.name.clone());
            ObjectChange {
                id,
                name: name.unwrap_or_else(|| id.to_string()),
                from: a.map(|object| object.version),
                to: b.map(|object| object.version),
            }
        })
        .collect()
}

fn rights(from: &CheckpointDetail, to: &CheckpointDetail) -> Vec<RightChange> {
    let only = |side, these: &CheckpointDetail, others: &CheckpointDetail| {
        let has = |id: CapabilityId| others.scene.capabilities.iter().any(|held| held.id == id);
        let only: Vec<RightChange> = these
            .scene
            .capabilities
            .iter()
            .filter(|held| !has(held.id))
            .map(|held| RightChange { side, id: held.id })
            .collect();
        only
    };
    [only(Side::From, from, to), only(Side::To, to, from)].concat()
}
