//! Grants and needs in words, for people and for models.

use std::fmt;

use super::{Grant, Need, Resource, Right, Stance};
use crate::escape::shown;

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resource::Workspace { root } => {
                write!(f, "the workspace `{}`", shown(&root.to_string_lossy()))
            }
            Resource::Cores => f.write_str("the cores"),
            Resource::Human => f.write_str("the person's attention"),
            Resource::Processes => f.write_str("processes"),
            Resource::Process { pid } => write!(f, "process {pid}"),
            Resource::Clock => f.write_str("the clock"),
            Resource::Objects { namespace } => write!(f, "the objects of `{}`", shown(namespace)),
            Resource::Images => f.write_str("images"),
            Resource::Checkpoints => f.write_str("checkpoints"),
            Resource::Journal => f.write_str("the journal"),
            Resource::Shell => f.write_str("other programs"),
            Resource::Network => f.write_str("the network"),
            Resource::Capabilities => f.write_str("capabilities"),
            Resource::Exactly { .. } => f.write_str("this effect"),
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Right::Read => "reading",
            Right::Write => "writing",
            Right::Delete => "deleting",
            Right::Use => "using",
            Right::Execute => "running",
            Right::Link => "linking",
            Right::Diff => "comparing",
            Right::Materialize => "showing to a model",
            Right::Grant => "granting",
            Right::Revoke => "taking back",
            Right::Approve => "approving for",
            Right::Admin => "doing everything with",
        })
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = &self.facts;
        match (&facts.path, &facts.argv, &facts.host) {
            (Some(path), ..) if !path.is_empty() => {
                write!(f, "{} `{}` in {}", self.right, shown(path), self.resource)
            }
            (_, Some(argv), _) => write!(f, "{} `{}`", self.right, shown(&argv.join(" "))),
            (_, _, Some(host)) => {
                write!(f, "{} {} to `{}`", self.right, self.resource, shown(host))
            }
            _ => write!(f, "{} {}", self.right, self.resource),
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.stance {
            Stance::Allow => "allows ",
            Stance::Ask => "asks before ",
            Stance::Deny => "denies ",
        })?;
        let rights: Vec<String> = self.rights.iter().map(Right::to_string).collect();
        write!(f, "{} {}", rights.join(" and "), self.resource)?;
        if !self.constraints.is_empty() {
            write!(f, ", {}", self.constraints)?;
        }
        match self.uses {
            Some(1) => f.write_str(", once")?,
            Some(uses) => write!(f, ", {uses} times")?,
            None => {}
        }
        if let Some(ms) = self.lease_ms {
            write!(f, ", for {}", duration(ms))?;
        }
        Ok(())
    }
}

/// A length of time in the largest unit that tells it exactly.
fn duration(ms: u64) -> String {
    let units = [
        (86_400_000, "day"),
        (3_600_000, "hour"),
        (60_000, "minute"),
        (1_000, "second"),
    ];
    let fits = units
        .into_iter()
        .find(|(unit, _)| ms >= *unit && ms.is_multiple_of(*unit));
    match fits {
        Some((unit, name)) if ms == unit => format!("1 {name}"),
        Some((unit, name)) => format!("{} {name}s", ms / unit),
        None => format!("{ms} ms"),
    }
}
