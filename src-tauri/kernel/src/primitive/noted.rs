//! What a call's rows in the journal say in columns of their own: gathered while it is carried out.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::Ctx;
use crate::capability::{Need, Resource, Stance, Verdict};
use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::journal::{Audit, Decision};

/// What is known so far.
pub(super) struct Noted(Mutex<Audit>);

impl Noted {
    pub(super) fn new(resource: Option<String>) -> Self {
        Self(Mutex::new(Audit {
            resource,
            ..Audit::default()
        }))
    }

    /// What the rights and policies say to the needs of the call.
    pub(super) fn ruling(
        &self,
        workspace: &Path,
        needs: &[Need],
        ruled: Result<&Verdict, &SysError>,
    ) {
        let mut audit = self.lock();
        if audit.resource.is_none() {
            audit.resource = needs.first().map(|need| resource(workspace, need));
        }
        // What the person said to it stays, whatever else is looked at afterwards.
        if matches!(audit.decision, Some("yes" | "no" | "expired")) {
            return;
        }
        match ruled {
            Ok(verdict) => {
                audit.capability = Some(verdict.by);
                audit.decision = Some(match verdict.stance {
                    Stance::Allow => "allow",
                    Stance::Ask => "ask",
                    Stance::Deny => "deny",
                });
                audit.by = Some(match verdict.standing {
                    Some(standing) => format!("standing grant {standing}"),
                    None => format!("capability {}", verdict.by),
                });
            }
            Err(error) if error.code == Code::Denied => {
                (audit.decision, audit.by) = (Some("deny"), None);
            }
            Err(_) => {}
        }
    }

    /// What the person said.
    pub(super) fn answer(&self, answer: Decision) {
        let mut audit = self.lock();
        audit.by = Some("the person".to_owned());
        match answer {
            Decision::Approved(once) => {
                (audit.decision, audit.capability) = (Some("yes"), Some(once));
            }
            Decision::Denied => audit.decision = Some("no"),
            Decision::Expired => (audit.decision, audit.by) = (Some("expired"), None),
        }
    }

    /// The person is asked anew: what they said before was about something else.
    pub(super) fn asked(&self) {
        let mut audit = self.lock();
        if let Some(capability) = audit.capability {
            audit.by = Some(format!("capability {capability}"));
        }
        audit.decision = Some("ask");
    }

    /// How it ended, where that was for want of a right.
    pub(super) fn error(&self, error: &SysError) {
        if matches!(error.code, Code::Denied | Code::Confined) {
            let mut audit = self.lock();
            if !matches!(audit.decision, Some("yes" | "no" | "expired")) {
                audit.decision = Some("deny");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Audit> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ctx {
    /// Figures of this call, for its last row: a small JSON object, never contents.
    pub(super) fn note_facts(&self, facts: &Value) {
        self.noted.lock().facts = Some(facts.to_string());
    }

    /// What the rows of this call say from now on.
    pub(super) fn audit(&self) -> Audit {
        let wait_ms = self.waited_ms.load(std::sync::atomic::Ordering::Relaxed);
        let now = self.inner.providers.clock.monotonic_ms();
        let run_ms = now.saturating_sub(self.since_ms).saturating_sub(wait_ms);
        Audit {
            wait_ms: Some(wait_ms),
            run_ms: Some(run_ms),
            ..self.noted.lock().clone()
        }
    }
}

/// What a need is about: a path by its whole name, anything else in words.
fn resource(workspace: &Path, need: &Need) -> String {
    match (&need.resource, &need.facts) {
        (Resource::Workspace { .. }, facts) if let Some(path) = &facts.path => {
            at_path(workspace, path)
        }
        (_, facts) if let Some(host) = &facts.host => shown(host),
        (other, _) => other.to_string(),
    }
}

/// A path within a workspace by its whole name, as the journal has it.
pub(super) fn at_path(workspace: &Path, path: &str) -> String {
    let whole = workspace.join(path.trim_start_matches("./"));
    let text = whole.to_string_lossy();
    shown(text.trim_end_matches("/."))
}
