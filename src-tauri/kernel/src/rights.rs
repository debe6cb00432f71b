//! What surfaces may do about rights and answers: look, explain, grant, take back, set policies.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::capability::{Capability, CapabilityId, Explanation, Grant, Now, Resource, Steady};
use crate::error::{Code, SysError};
use crate::event::KernelEvent;
use crate::human::{Answer, Approval, NewPolicy, Offer, Standing};
use crate::journal::{Answered, Decision};
use crate::kernel::{Inner, Kernel, Taken};
use crate::process::Pid;

impl Kernel {
    /// Approvals that wait, oldest first. Those whose time is over end with this.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn approvals(&self) -> Result<Vec<Approval>, SysError> {
        let now = self.inner.now();
        for (id, call) in self.inner.journal.expire_all(now).await? {
            self.inner.tell_expired(id);
            self.inner.wake(call);
        }
        self.inner.journal.pending().await
    }

    /// Answers an approval as shown under `digest`. The first answer counts. An "always" is also a
    /// yes to all others that wait and offer the same scope.
    ///
    /// # Errors
    /// [`Code::NotFound`] for a number that is none, [`Code::Conflict`] where something else was
    /// shown, [`Code::Invalid`] for a scope that was not offered.
    pub async fn decide(
        &self,
        id: u64,
        answer: impl Into<Answer>,
        digest: &str,
        by: &str,
    ) -> Result<Taken, SysError> {
        let answer = answer.into();
        let covered = match &answer {
            Answer::Always { scope } => self.covered_with(id, scope).await?,
            Answer::Yes | Answer::No => Vec::new(),
        };
        let taken = self.decide_one(id, answer, digest, by).await?;
        if taken == Taken::Counted {
            for other in covered {
                // Whoever answered it meanwhile was the first. One that cannot be answered waits on,
                // and takes nothing from the answer that counted.
                let also = self.decide_one(other.id, Answer::Yes, &other.digest.0, by);
                if let Err(error) = also.await {
                    tracing::warn!(id = other.id, %error, "an approval within the scope still waits");
                }
            }
        }
        Ok(taken)
    }

    /// Those that wait and offer the scope that `id` calls `scope`.
    async fn covered_with(&self, id: u64, scope: &str) -> Result<Vec<Approval>, SysError> {
        let mut waiting = self.inner.journal.pending().await?;
        let Some(at) = waiting.iter().position(|approval| approval.id == id) else {
            return Ok(Vec::new());
        };
        let Approval { action, scopes, .. } = waiting.swap_remove(at);
        let offered = scopes.into_iter().find(|offer| offer.id == scope);
        waiting.retain(|other| {
            let same = |wanted: &Offer| other.scopes.iter().any(|o| o.scope == wanted.scope);
            other.action == action && offered.as_ref().is_some_and(same)
        });
        waiting.sort_by_key(|other| other.id);
        Ok(waiting)
    }

    async fn decide_one(
        &self,
        id: u64,
        answer: Answer,
        digest: &str,
        by: &str,
    ) -> Result<Taken, SysError> {
        let (digest, whose) = (digest.to_owned(), by.to_owned());
        let now = self.inner.now();
        let answered = self
            .inner
            .journal
            .decide(id, answer, digest, whose, now)
            .await?;
        match answered {
            Answered::Counted(call, decision) => {
                self.inner.rights_changed(None);
                self.inner.standing_changed();
                let approved = matches!(decision, Decision::Approved(_));
                self.inner.tell(KernelEvent::Decided {
                    id,
                    approved,
                    by: by.to_owned(),
                });
                self.inner.wake(call);
                Ok(Taken::Counted)
            }
            Answered::TooLate(why) => Ok(Taken::TooLate(why)),
            Answered::Expired(call) => {
                self.inner.tell_expired(id);
                self.inner.wake(call);
                Ok(Taken::TooLate("the time to answer was over".to_owned()))
            }
        }
    }

    /// Answers several approvals alike, each as shown under its own digest.
    ///
    /// # Errors
    /// Of the first that is none or was shown otherwise; those before it count.
    pub async fn decide_all(
        &self,
        approvals: &[(u64, String)],
        answer: &Answer,
        by: &str,
    ) -> Result<Vec<Taken>, SysError> {
        let mut taken = Vec::new();
        for (id, digest) in approvals {
            taken.push(self.decide(*id, answer.clone(), digest, by).await?);
        }
        Ok(taken)
    }

    /// How long an approval waits for an answer from now on, in milliseconds; for ever where absent.
    pub fn set_approval_lifetime(&self, ms: Option<u64>) {
        let ms = ms.unwrap_or(0);
        self.inner.approvals_wait.store(ms, Ordering::Release);
    }

    /// Active capabilities of a process.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn capabilities(&self, pid: Pid) -> Result<Vec<Capability>, SysError> {
        let now = self.inner.now();
        let mut held = self.inner.journal.held(pid).await?;
        held.retain(|capability| !capability.is_over(&now));
        Ok(held)
    }

    /// Every capability that a process was given, each as it stands.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn all_capabilities(&self, pid: Pid) -> Result<Vec<Capability>, SysError> {
        let now = self.inner.now();
        let mut all = self.inner.journal.given(pid).await?;
        for capability in &mut all {
            capability.status = capability.status_at(&now);
        }
        Ok(all)
    }

    /// Milliseconds that a capability still counts; until it is taken back where absent.
    pub fn left_ms(&self, capability: &Capability) -> Option<u64> {
        let now = self.inner.now();
        let lease = capability.lease.as_ref()?;
        Some(lease.left_ms(&now.steady))
    }

    /// What would be said to a call that a process makes now, such as `fs.write notes/a.md`, and why.
    ///
    /// # Errors
    /// [`Code::NotFound`] for a process or a call that is none, [`Code::Invalid`] where more must be
    /// said.
    pub async fn explain(&self, pid: Pid, call: &str) -> Result<Explanation, SysError> {
        let process = self.process(pid).await?;
        self.inner.explain(&process, call).await
    }

    /// Gives a process a right, from the person.
    ///
    /// # Errors
    /// [`Code::NotFound`] where it does not run, [`Code::Invalid`] for a grant that says nothing.
    pub async fn grant(&self, pid: Pid, grant: Grant) -> Result<CapabilityId, SysError> {
        grant.check()?;
        let process = self.process(pid).await?;
        if process.state.is_final() {
            let message = format!("process `{pid}` has ended");
            return Err(SysError::new(Code::NotFound, message).hint("list them with `steward ps`"));
        }
        let issuer = "person".to_owned();
        let now = self.inner.now();
        let issued = self
            .inner
            .journal
            .grant(pid, vec![grant], None, issuer, now)
            .await?;
        self.inner.rights_changed(Some(pid));
        issued
            .first()
            .copied()
            .ok_or_else(|| SysError::new(Code::Internal, "a capability just issued is not there"))
    }

    /// Takes a capability back, and all derived from it, from the next check on. False where there
    /// is no such active one.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub async fn revoke(&self, id: CapabilityId, by: &str) -> Result<bool, SysError> {
        let now = self.inner.providers.clock.now_ms();
        let revoked = self.inner.journal.revoke(id, by.to_owned(), now).await;
        self.inner.rights_changed(None);
        revoked
    }

    /// Standing grants and policies, newest first, those taken back included.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn grants(&self) -> Result<Vec<Standing>, SysError> {
        self.inner.journal.standing().await
    }

    /// Takes a standing grant or a policy back. False where it was taken back already.
    ///
    /// # Errors
    /// [`Code::NotFound`] for a number that is none.
    pub async fn revoke_grant(&self, id: u64, by: &str) -> Result<bool, SysError> {
        let now = self.inner.providers.clock.now_ms();
        let revoked = self.inner.journal.unstand(id, by.to_owned(), now).await;
        self.inner.standing_changed();
        revoked
    }

    /// Sets what is said to an action within a scope; its number.
    ///
    /// # Errors
    /// [`Code::NotFound`] for an action that is none, [`Code::Invalid`] for a scope that no call
    /// fits.
    pub async fn set_action_policy(&self, new: NewPolicy, by: &str) -> Result<u64, SysError> {
        new.check()?;
        let now = self.inner.providers.clock.now_ms();
        let set = self.inner.journal.stand(new, by.to_owned(), now).await;
        self.inner.standing_changed();
        set
    }
}

impl Inner {
    /// The time, for what checks rights.
    pub(crate) fn now(&self) -> Now {
        let clock = &self.providers.clock;
        let steady = Steady {
            boot: self.boot.clone(),
            ms: clock.steady_ms(),
        };
        Now {
            wall_ms: clock.now_ms(),
            steady,
        }
    }

    /// Policies that stand, as read when they last changed.
    pub(crate) async fn standing(&self) -> Result<Arc<Vec<Standing>>, SysError> {
        let version = self.policies.load(Ordering::Acquire);
        {
            let read = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, standing)) = read.as_ref().filter(|(then, _)| *then == version) {
                return Ok(Arc::clone(standing));
            }
        }
        let all = Arc::new(self.journal.standing_now().await?);
        let mut read = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        *read = Some((version, Arc::clone(&all)));
        Ok(all)
    }

    /// Says that policies changed, once that is written.
    pub(crate) fn standing_changed(&self) {
        self.policies.fetch_add(1, Ordering::AcqRel);
    }

    /// How long an approval waits where nothing else is said.
    pub(crate) fn approval_lifetime(&self) -> Option<u64> {
        Some(self.approvals_wait.load(Ordering::Acquire)).filter(|ms| *ms > 0)
    }

    /// Tells that an approval ended without an answer.
    pub(crate) fn tell_expired(&self, id: u64) {
        self.tell(KernelEvent::Decided {
            id,
            approved: false,
            by: "nobody: the time to answer was over".to_owned(),
        });
    }

    /// Refuses grants that could not be meant.
    pub(crate) fn check_grants(grants: &[Grant]) -> Result<(), SysError> {
        grants.iter().try_for_each(Grant::check)
    }
}

impl Grant {
    /// Refuses a grant that says nothing, or that only an answer of the person may make.
    pub(crate) fn check(&self) -> Result<(), SysError> {
        let namespace = match &self.resource {
            Resource::Objects { namespace } => namespace.as_str(),
            _ => "x",
        };
        let odd = |name: &str| matches!(name, "" | "." | "..") || name.contains('\0');
        let why = if self.rights.is_empty() || self.rights.len() > 16 {
            "it names no right, or more than there are"
        } else if self.uses == Some(0) || self.lease_ms == Some(0) {
            "it is for no use or no time"
        } else if matches!(self.resource, Resource::Exactly { .. }) {
            "one effect is granted by the answer to its question only"
        } else if namespace.len() > 1024 || namespace.split('/').any(odd) {
            "its namespace is none"
        } else {
            return Ok(());
        };
        Err(
            SysError::new(Code::Invalid, format!("a grant cannot be made: {why}"))
                .hint("name a resource and its rights; leave out what is not limited"),
        )
    }
}
