//! Where a call's rights are checked: its needs with their facts, what capabilities and policies say
//! to them, and the uses that it takes.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use super::Ctx;
use super::person::Asking;
use crate::capability::{CapabilityId, Facts, Need, Resource, Right, Stance, Verdict, normal_path};
use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::human::policy::{self, Act, Ruling};
use crate::human::{self, Approval, EffectKind, Policy, Preview};
use crate::journal::{Authority, CallState, Ended, Uses};
use crate::provider::Change;
use crate::syscall::Record;

/// Uses that a call takes, found at its checks: the latest for each need.
#[derive(Default)]
pub(super) struct Taken(Mutex<Vec<(Vec<Need>, Uses)>>);

impl Taken {
    fn note(&self, needs: &[Need], ruling: &Ruling) {
        let uses = Uses {
            capabilities: ruling.counted.clone(),
            standing: ruling
                .verdict
                .standing
                .filter(|_| ruling.verdict.stance == Stance::Allow),
        };
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.is_empty() && uses.is_empty() {
            return;
        }
        let same = |a: &[Need]| {
            let about = |n: &Need| (n.resource.clone(), n.right, n.facts.path.clone());
            a.iter().map(about).eq(needs.iter().map(about))
        };
        taken.retain(|(other, _)| !same(other));
        taken.push((needs.to_vec(), uses));
    }

    fn clear(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    fn all(&self) -> Uses {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Uses::default();
        for (_, uses) in taken.iter() {
            all.standing = all.standing.or(uses.standing);
            for id in &uses.capabilities {
                if !all.capabilities.contains(id) {
                    all.capabilities.push(*id);
                }
            }
        }
        all
    }
}

/// What a change to files needs.
pub(super) fn needs_of(change: &Change, workspace: &Resource) -> Vec<Need> {
    let need = |right, path: &str, bytes| {
        let facts = Facts {
            path: Some(path.to_owned()),
            bytes,
            count: Some(1),
            ..Facts::default()
        };
        Need::new(workspace.clone(), right).with(facts)
    };
    match change {
        Change::Write { path, bytes } => vec![need(Right::Write, path, Some(bytes.len() as u64))],
        Change::Restore { path, .. } => vec![need(Right::Write, path, None)],
        Change::Mkdir { path } => vec![need(Right::Write, path, Some(0))],
        Change::Delete { path } => vec![need(Right::Delete, path, Some(0))],
        // What was moved may be read where it is then.
        Change::Move { from, to } => vec![
            need(Right::Read, from, None),
            need(Right::Delete, from, Some(0)),
            need(Right::Write, to, Some(0)),
        ],
    }
}

/// The paths that needs name, as they are matched.
pub(super) fn paths_of(needs: &[Need]) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for path in needs.iter().filter_map(|need| need.facts.path.as_deref()) {
        let normal = normal_path(path).unwrap_or(path.into());
        if !paths.iter().any(|known| *known == normal) {
            paths.push(normal.into_owned());
        }
    }
    paths
}

impl Ctx {
    /// Lets a call through of which nothing more is known, or asks the person where that is what is
    /// said. Where a slot is held, see [`Ctx::check_again`].
    pub(super) async fn check(
        &self,
        resource: Resource,
        right: Right,
    ) -> Result<Verdict, SysError> {
        self.check_need(Need::new(resource, right)).await
    }

    /// The same for a need with its facts.
    pub(super) async fn check_need(&self, need: Need) -> Result<Verdict, SysError> {
        let needs = [need];
        let kind = Some(EffectKind::Use);
        let verdict = self.rule(&needs, kind).await?;
        if verdict.stance == Stance::Allow || self.may.load(Ordering::Acquire) {
            return Ok(verdict);
        }
        // Rare, and large: kept out of every call that waits for something else.
        Box::pin(self.ask_about(&needs, verdict.by)).await?;
        Ok(verdict)
    }

    /// Asks the person about a call as a whole.
    async fn ask_about(&self, needs: &[Need], by: CapabilityId) -> Result<(), SysError> {
        if self.record == Record::Nothing {
            let message = format!("`{}` cannot ask the person", self.name);
            return Err(SysError::new(Code::Denied, message).hint("do it without this"));
        }
        let paths = paths_of(needs);
        let path = match paths.first() {
            Some(path) => self
                .info
                .workspace
                .join(path)
                .to_string_lossy()
                .into_owned(),
            None => self.about.title.clone(),
        };
        let digest = human::binding(self.info.pid, self.row.seq, self.name, &self.about.args);
        let asking = Asking {
            approval: Approval {
                path: shown(&path),
                relative: shown(paths.first().map_or("", String::as_str)),
                preview: Preview::between(None, Some(self.about.title.as_bytes())),
                ..self.approval(EffectKind::Use, digest)
            },
            by,
            paths,
            lifetime_ms: None,
        };
        self.ask_for_yes(asking).await?.or_refused(|| {
            let message = format!("the person said no to `{}`", self.name);
            SysError::new(Code::Refused, message).hint("do it without this, or ask what they want")
        })?;
        self.may.store(true, Ordering::Release);
        Ok(())
    }

    /// Checks once more, when the call's turn has come: what was not asked about before is not asked
    /// about now, with others waiting.
    pub(super) async fn check_again(&self, need: Need) -> Result<Verdict, SysError> {
        let verdict = self.rule(&[need], Some(EffectKind::Use)).await?;
        if verdict.stance == Stance::Allow || self.may.load(Ordering::Acquire) {
            return Ok(verdict);
        }
        let message = format!("`{}` came to need a yes while it waited", self.name);
        Err(SysError::new(Code::Denied, message).hint("try again"))
    }

    /// The strictest of what is said to several needs of one call, and to what it would do.
    pub(super) async fn rule(
        &self,
        needs: &[Need],
        kind: Option<EffectKind>,
    ) -> Result<Verdict, SysError> {
        let held = self.inner.rights_of(&self.live).await?;
        let standing = self.inner.standing().await?;
        let now = self.inner.now();
        let ruled = policy::rule(&held, &standing, needs, &self.act(kind), &now);
        if self.record != Record::Nothing {
            let verdict = ruled.as_ref().map(|ruling| &ruling.verdict);
            self.noted.ruling(&self.info.workspace, needs, verdict);
        }
        let ruling = ruled?;
        self.taken.note(needs, &ruling);
        Ok(ruling.verdict)
    }

    /// Whether rights or policies tell paths of the workspace apart.
    pub(super) async fn tells_paths_apart(&self) -> Result<bool, SysError> {
        let held = self.inner.rights_of(&self.live).await?;
        let standing = self.inner.standing().await?;
        Ok(held.iter().any(|c| c.grant.constraints.paths.is_some())
            || standing.iter().any(|s| s.scope.place.is_some()))
    }

    /// Whether paths may leave their place: not where a policy keeps what is there from being looked
    /// at.
    pub(super) async fn may_leave(&self, paths: &[&str]) -> Result<(), SysError> {
        let standing = self.inner.standing().await?;
        for action in ["fs.read", "fs.list", "fs.stat"] {
            let act = Act {
                action,
                ..self.act(Some(EffectKind::Use))
            };
            let said = policy::said(&standing, &act, paths);
            if let Some(said) = said.filter(|said| said.policy == Policy::AlwaysDeny) {
                let message = format!(
                    "`{}` is not allowed: standing grant {}, {}, would not count for what is moved",
                    self.name, said.id, said.words
                );
                return Err(SysError::new(Code::Denied, message).hint(
                    "do it without this; the person can take that back with `steward grants`",
                ));
            }
        }
        Ok(())
    }

    /// This call, as policies see it.
    pub(super) fn act(&self, kind: Option<EffectKind>) -> Act {
        Act {
            action: self.name,
            kind,
            workspace: self.info.workspace.clone(),
            image: self.info.image.clone(),
            run: self.info.run,
            pid: self.info.pid,
        }
    }

    /// By what this call takes effect.
    pub(super) fn authority(
        &self,
        needs: Vec<Need>,
        kind: Option<EffectKind>,
        once: Option<CapabilityId>,
    ) -> Authority {
        Authority {
            needs,
            once,
            act: self.act(kind),
            now: self.inner.now(),
        }
    }

    /// What this call takes a use of, as found at its checks.
    pub(super) fn uses(&self) -> Uses {
        self.taken.all()
    }

    /// Says that uses were taken: whatever was read of them is out of date.
    pub(super) fn uses_taken(&self) {
        self.inner.rights_changed(None);
        self.inner.standing_changed();
    }

    /// The uses of this call were taken where it took effect.
    pub(super) fn taken_with_the_effect(&self) {
        self.taken.clear();
    }

    /// Writes down how this call ended, with the uses it takes. Calls with an effect have taken
    /// theirs with it.
    pub(super) async fn end(&self, ended: Ended) -> Result<(), SysError> {
        let uses = self.taken.all();
        let counts = ended.state == CallState::Done
            || (self.record != Record::Steps && ended.state == CallState::Failed);
        if uses.is_empty() || !counts {
            return self.write_down(ended).await;
        }
        self.intend().await?;
        let (journal, call) = (&self.inner.journal, self.row.id);
        let counted = journal.counted(call, self.at(), ended, uses).await;
        self.uses_taken();
        if let Err(error) = &counted
            && error.code == Code::Denied
        {
            let detail = crate::escape::shown(&error.message);
            let denied = Ended {
                state: CallState::Denied,
                result: Err(error.clone()),
                record: detail.clone(),
                detail,
                tokens: 0,
            };
            self.write_down(denied).await?;
        }
        counted
    }
}
