//! The chain behind an effect: who asked, by what right or whose yes, what happened.

use std::collections::HashSet;

use steward_kernel::escape::shown;
use steward_kernel::{JournalQuery, Pid};

use super::Host;
use crate::surface::{Ancestor, ApprovalTold, Authority, Chain, LogRow, Problem, Reply};
use crate::view;

/// Rows of the journal about one call at most: a call leaves a handful, and a few for each time that
/// it is asked anew.
const ROWS_MOST: u32 = 1_000;

impl Host {
    pub(super) async fn chain(&self, pid: u64, seq: u64) -> Result<Reply, Problem> {
        let process = self.kernel.process(Pid(pid)).await?;
        let query = JournalQuery {
            pid: Some(Pid(pid)),
            seq: Some(seq),
            limit: ROWS_MOST,
            ..JournalQuery::default()
        };
        let newest_first = self.kernel.journal(query).await?;
        let rows: Vec<LogRow> = newest_first.into_iter().rev().map(view::row).collect();
        let steps = self.kernel.steps(Pid(pid)).await?;
        let step = steps.into_iter().find(|step| step.seq == seq);
        let (Some(step), Some(first)) = (step.map(view::step), rows.first()) else {
            let message = format!("process `{pid}` made no call `{seq}` that is told");
            return Err(Problem::new("not_found", message)
                .hint(format!("list its calls with `steward log --pid {pid}`")));
        };
        let ended = rows.iter().rfind(|row| row.kind == "outcome");
        Ok(Reply::Chain(Box::new(Chain {
            pid,
            run: process.run,
            seq,
            name: step.name,
            title: step.title,
            asked: self.asked(Pid(pid)).await?,
            authority: self.authority(Pid(pid), seq, &rows).await?,
            state: step.state,
            detail: step.detail,
            asked_ms: first.at_ms,
            ended_ms: ended.map(|row| row.at_ms),
            rows,
        })))
    }

    /// A process, then who started it, up to the person's request.
    async fn asked(&self, pid: Pid) -> Result<Vec<Ancestor>, Problem> {
        let mut asked = Vec::new();
        let mut known = HashSet::new();
        let mut next = Some(pid);
        while let Some(pid) = next.filter(|pid| known.insert(*pid)) {
            let process = self.kernel.process(pid).await?;
            asked.push(Ancestor {
                pid: pid.0,
                image: process.image,
                goal: shown(&process.goal),
            });
            next = process.parent;
        }
        Ok(asked)
    }

    /// By what the call took effect, or was refused: what its last rows name.
    async fn authority(&self, pid: Pid, seq: u64, rows: &[LogRow]) -> Result<Authority, Problem> {
        let by = rows.iter().rev().find_map(|row| row.capability);
        let mut held = self.kernel.all_capabilities(pid).await?.into_iter();
        let approval = self.kernel.answered(pid, seq).await?;
        let standing = rows
            .iter()
            .rev()
            .find_map(|row| standing(row.by.as_deref()?));
        let grant = match standing {
            Some(id) => self.grant(id).await?,
            None => None,
        };
        Ok(Authority {
            capability: by
                .and_then(|id| held.find(|held| held.id == id))
                .map(|held| self.capability(held)),
            approval: approval.map(|told| ApprovalTold {
                id: told.id,
                state: match told.state.as_str() {
                    "pending" => "waiting".to_owned(),
                    "approved" | "used" => "yes".to_owned(),
                    "denied" => "no".to_owned(),
                    _ => told.state,
                },
                by: told.by,
                digest: told.digest.0,
                asked_ms: told.asked_ms,
                answered_ms: told.answered_ms,
            }),
            grant,
        })
    }
}

/// The number in `standing grant N`, as the kernel writes it of who decided.
fn standing(by: &str) -> Option<u64> {
    by.strip_prefix("standing grant ")?.parse().ok()
}
