//! Commands about the journal.

use steward_kernel::Pid;
use steward_kernel::audit::Format;

use super::Host;
use crate::surface::{ExportForm, LogQuery, Problem, Reply, Verified};
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

    pub(super) async fn verify_log(&self) -> Result<Reply, Problem> {
        let found = self.kernel.verify().await?;
        let words = match found.findings.as_slice() {
            [] => found.signing(),
            [only] => only.words.clone(),
            [first, more @ ..] => {
                let more = more.len() as u64 + found.left_out;
                format!("{}, and {more} more", first.words)
            }
        };
        Ok(Reply::Verified(Verified {
            ok: found.whole,
            rows: found.rows,
            first_bad: found.findings.iter().find_map(|finding| finding.row),
            words,
        }))
    }

    pub(super) async fn export_log(
        &self,
        form: ExportForm,
        after: Option<u64>,
    ) -> Result<Reply, Problem> {
        let format = match form {
            ExportForm::Jsonl => Format::Jsonl,
            ExportForm::Otel => Format::Otel,
        };
        let (lines, after) = self.kernel.export_piece(format, after.unwrap_or(0)).await?;
        Ok(Reply::Exported { lines, after })
    }
}
