//! Commands about the journal.

use steward_kernel::Pid;

use super::Host;
use crate::surface::{LogQuery, Problem, Reply};
use crate::view;

/// Rows of the journal told at most, and where nothing is said.
const LOG_MOST: u32 = 10_000;
const LOG_DEFAULT: u32 = 100;

impl Host {
    pub(super) async fn log(&self, query: LogQuery) -> Result<Reply, Problem> {
        let limit = query.limit.unwrap_or(LOG_DEFAULT);
        if !(1..=LOG_MOST).contains(&limit) {
            return Err(Problem::new("invalid", format!("`limit` is `{limit}`"))
                .hint(format!("use a number from 1 to {LOG_MOST}")));
        }
        let query = steward_kernel::JournalQuery {
            pid: query.pid.map(Pid),
            run: query.run,
            seq: None,
            capability: query.capability,
            name: query.call,
            resource: query.resource,
            decision: query.decision,
            by: query.by,
            kind: None,
            since_ms: query.since_ms,
            until_ms: query.until_ms,
            before_id: query.before,
            text: query.text,
            limit,
        };
        let rows = self.kernel.journal(query).await?;
        Ok(Reply::Log {
            rows: rows.into_iter().map(view::row).collect(),
        })
    }
}
