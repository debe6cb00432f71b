//! `human.ask`, `human.tell`, `human.approve`, and the wait for a yes that every irreversible call
//! shares.

use super::admit::speculative;
use super::{Ctx, Outcome, Primitive};
use crate::capability::{CapabilityId, Resource, Right};
use crate::error::{Code, SysError};
use crate::escape::{shown, shown_lines};
use crate::event::{KernelEvent, StepState};
use crate::human::{self, Approval, EffectKind, Preview, Question, policy};
use crate::journal::{ApprovalRow, Decision, Terms};
use crate::kernel::Waiter;
use crate::process::{ForkMode, ProcessState};
use crate::provider::Digest;
use crate::syscall::{HumanApprove, HumanAsk, HumanTell};

/// Bytes of a message or question at most.
const TEXT_MOST: usize = 64 * 1024;
const CHOICES_MOST: usize = 16;

impl Primitive for HumanAsk {
    fn subject(&self) -> String {
        format!("{} bytes, {} choices", self.text.len(), self.choices.len())
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<String>, SysError> {
        bounded(&self.text)?;
        if self.choices.len() > CHOICES_MOST {
            let message = format!("`{}` choices were given", self.choices.len());
            return Err(
                SysError::new(Code::Invalid, message).hint(format!("give at most {CHOICES_MOST}"))
            );
        }
        ctx.check(Resource::Human, Right::Use).await?;
        let answer = ctx.ask(&self).await?;
        let detail = format!("answered, {} bytes", answer.len());
        Ok(Outcome::new(answer, detail))
    }
}

impl Primitive for HumanTell {
    fn subject(&self) -> String {
        format!("{} bytes", self.text.len())
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<()>, SysError> {
        bounded(&self.text)?;
        ctx.check(Resource::Human, Right::Use).await?;
        ctx.inner.tell(KernelEvent::Message {
            pid: ctx.info.pid,
            run: ctx.info.run,
            text: shown_lines(&self.text),
        });
        Ok(Outcome::new((), "told"))
    }
}

impl Primitive for HumanApprove {
    fn subject(&self) -> String {
        format!("{} bytes", self.title.len() + self.text.len())
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<bool>, SysError> {
        bounded(&self.title)?;
        bounded(&self.text)?;
        let lifetime_ms = lifetime(self.expires_ms)?;
        let verdict = ctx.check(Resource::Human, Right::Use).await?;
        let digest = human::binding(ctx.info.pid, ctx.row.seq, ctx.name, &self);
        let approval = Approval {
            path: shown(&self.title),
            preview: Preview::between(None, Some(self.text.as_bytes())),
            ..ctx.approval(EffectKind::Other, digest)
        };
        let asking = Asking {
            approval,
            by: verdict.by,
            paths: Vec::new(),
            lifetime_ms,
        };
        let yes = match ctx.ask_for_yes(asking).await? {
            Decision::Approved(_) => true,
            Decision::Denied => false,
            Decision::Expired => return Err(expired()),
        };
        Ok(Outcome::new(
            yes,
            if yes {
                "the person said yes"
            } else {
                "the person said no"
            },
        ))
    }
}

/// What is to be asked, and by which right.
pub(super) struct Asking {
    pub(super) approval: Approval,
    pub(super) by: CapabilityId,
    /// Paths within the workspace that it is about, as policies match them.
    pub(super) paths: Vec<String>,
    /// How long it waits; as long as the kernel is set to, where absent.
    pub(super) lifetime_ms: Option<u64>,
}

impl Decision {
    /// The one-shot capability of a yes, or why there is none.
    pub(super) fn or_refused(
        self,
        refused: impl FnOnce() -> SysError,
    ) -> Result<CapabilityId, SysError> {
        match self {
            Decision::Approved(once) => Ok(once),
            Decision::Denied => Err(refused()),
            Decision::Expired => Err(expired()),
        }
    }
}

fn expired() -> SysError {
    SysError::new(Code::Expired, "nobody answered in time; nothing was done")
        .hint("go on without it, or ask again")
}

pub(super) fn lifetime(ms: Option<u64>) -> Result<Option<u64>, SysError> {
    match ms {
        Some(ms) if !(1..=human::LIFETIME_MOST).contains(&ms) => Err(SysError::new(
            Code::Invalid,
            format!("`expires_ms` is `{ms}`"),
        )
        .hint("use a number of milliseconds from 1 to a year, or leave it out")),
        ms => Ok(ms),
    }
}

impl Ctx {
    /// An approval of this call, as far as it is told by the call itself.
    pub(super) fn approval(&self, kind: EffectKind, digest: Digest) -> Approval {
        Approval {
            id: 0,
            pid: self.info.pid,
            run: self.info.run,
            image: self.info.image.clone(),
            goal: shown(&self.info.goal),
            action: self.name.to_owned(),
            kind,
            path: String::new(),
            relative: String::new(),
            target: None,
            bytes_before: None,
            bytes_after: None,
            sha256: None,
            preview: Preview::default(),
            risks: Vec::new(),
            items: Vec::new(),
            digest,
            asked_ms: 0,
            expires_ms: None,
            group: 0,
            scopes: Vec::new(),
        }
    }

    /// Files an approval (or finds the one filed before a restart) and waits for the answer,
    /// without a slot, a thread or a lock.
    pub(super) async fn ask_for_yes(&self, asking: Asking) -> Result<Decision, SysError> {
        if self.info.mode == Some(ForkMode::Speculative) {
            return Err(speculative(self.name));
        }
        self.intend().await?;
        let asked = self.offered(asking.approval, &asking.paths);
        let lifetime_ms = asking.lifetime_ms.or(self.inner.approval_lifetime());
        let journal = &self.inner.journal;
        let waiter = self.inner.waiter(self.row.id);
        let stands = journal.approval_of(self.row.id).await?;
        let stands = stands.filter(|row| row.digest == asked.digest.0);
        let shown = match stands {
            Some(row) => {
                if let Some(decision) = row.decision() {
                    self.noted.answer(decision);
                    return Ok(decision);
                }
                journal.renew(row.id, self.inner.now()).await?;
                journal.shown(row.id).await?.unwrap_or(Approval {
                    id: row.id,
                    ..asked
                })
            }
            None => {
                let digest = super::short(&asked.digest);
                let detail = match asked.kind {
                    // What a process asks in its own words is content.
                    EffectKind::Other => format!("in its own words, digest {digest}"),
                    kind => format!("{kind:?} {}, digest {digest}", asked.path),
                };
                self.noted.asked();
                let terms = Terms {
                    lifetime_ms,
                    now: self.inner.now(),
                };
                journal
                    .file(self.row.id, self.at(), asking.by, asked, terms, detail)
                    .await?
            }
        };
        let id = shown.id;
        self.inner.tell(KernelEvent::Approval(Box::new(shown)));
        self.wait_for_person();
        loop {
            let row = journal.approval_of(self.row.id).await?;
            let row = row.filter(|row| row.id == id);
            if let Some(decision) = row.as_ref().and_then(ApprovalRow::decision) {
                self.enter_state(ProcessState::WaitingTool);
                self.noted.answer(decision);
                return Ok(decision);
            }
            let left = row.and_then(|row| row.left_ms(&self.inner.now().steady));
            let answer = self.answer_or_end(&waiter, id, left);
            if let Err(why) = self.waiting(answer).await.flatten() {
                self.withdraw().await?;
                return Err(why);
            }
        }
    }

    /// The approval with the scopes that an "always" may have; they are bound with the rest.
    fn offered(&self, asked: Approval, paths: &[String]) -> Approval {
        let scopes = policy::offers(&asked, &self.act(Some(asked.kind)), paths);
        let digest = match scopes.is_empty() {
            true => asked.digest,
            false => human::binding(
                asked.pid,
                self.row.seq,
                self.name,
                &(&asked.digest, &scopes),
            ),
        };
        Approval {
            scopes,
            digest,
            ..asked
        }
    }

    /// Waits until an answer may be there, or until the time for it is over.
    async fn answer_or_end(
        &self,
        waiter: &Waiter,
        id: u64,
        left_ms: Option<u64>,
    ) -> Result<(), SysError> {
        let Some(left_ms) = left_ms else {
            waiter.notified().await;
            return Ok(());
        };
        tokio::select! {
            biased;
            () = waiter.notified() => return Ok(()),
            () = self.inner.providers.clock.sleep_ms(left_ms) => {}
        }
        let ended = self.inner.journal.expire(id, self.inner.now()).await?;
        if ended.is_some() {
            self.inner.tell_expired(id);
        }
        Ok(())
    }

    async fn ask(&self, asked: &HumanAsk) -> Result<String, SysError> {
        self.intend().await?;
        let journal = &self.inner.journal;
        let waiter = self.inner.waiter(self.row.id);
        if let Some(answer) = journal.answer(self.row.id).await? {
            return Ok(answer);
        }
        let question = Question {
            id: 0,
            pid: self.info.pid,
            run: self.info.run,
            text: shown_lines(&asked.text),
            choices: asked.choices.iter().map(|c| shown(c)).collect(),
            asked_ms: 0,
        };
        let question = journal.ask(self.row.id, self.at(), question).await?;
        self.inner.tell(KernelEvent::Question(question));
        self.wait_for_person();
        loop {
            if let Some(answer) = journal.answer(self.row.id).await? {
                return Ok(answer);
            }
            if let Err(why) = self.waiting(waiter.notified()).await {
                self.withdraw().await?;
                return Err(why);
            }
        }
    }

    /// Takes back what this call asks the person.
    async fn withdraw(&self) -> Result<(), SysError> {
        for id in self.inner.journal.withdraw(self.row.id, self.at()).await? {
            self.inner.tell(KernelEvent::Decided {
                id,
                approved: false,
                by: "interrupted".to_owned(),
            });
        }
        Ok(())
    }

    fn wait_for_person(&self) {
        self.enter_state(ProcessState::WaitingHuman);
        self.tell_step(StepState::Waiting, "waiting for your answer");
    }
}

fn bounded(text: &str) -> Result<(), SysError> {
    if text.len() <= TEXT_MOST {
        return Ok(());
    }
    Err(SysError::new(
        Code::Limit,
        format!(
            "the text has `{}` bytes, `{TEXT_MOST}` is the most",
            text.len()
        ),
    )
    .hint("say it shorter, or write it to a file"))
}
