//! How approvals were answered, for whoever looks into it later.

use rusqlite::OptionalExtension;

use super::failed;
use crate::error::SysError;
use crate::kernel::Kernel;
use crate::process::Pid;
use crate::provider::Digest;

/// An approval without what was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRecord {
    /// Its number.
    pub id: u64,
    /// `pending`, `approved`, `denied`, `expired` or `lapsed`.
    pub state: String,
    /// Who answered.
    pub by: Option<String>,
    /// What the answer was bound to.
    pub digest: Digest,
    /// Unix milliseconds when it was asked.
    pub asked_ms: u64,
    /// Unix milliseconds when it was answered.
    pub answered_ms: Option<u64>,
}

impl Kernel {
    /// The last approval that a call filed, where it filed one.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn answered(&self, pid: Pid, seq: u64) -> Result<Option<ApprovalRecord>, SysError> {
        let read = self.inner.journal.read(move |db| {
            let sql = "SELECT a.id, a.state, a.decided_by, a.digest, a.asked_ms, a.decided_ms
                       FROM approval a JOIN call c ON c.id = a.call
                       WHERE c.pid = ?1 AND c.seq = ?2 ORDER BY a.id DESC LIMIT 1";
            db.query_row(sql, (pid.0, seq), |r| {
                Ok(ApprovalRecord {
                    id: r.get(0)?,
                    state: r.get(1)?,
                    by: r.get(2)?,
                    digest: Digest(r.get(3)?),
                    asked_ms: r.get(4)?,
                    answered_ms: r.get(5)?,
                })
            })
            .optional()
            .map_err(failed)
        });
        read.await
    }
}
