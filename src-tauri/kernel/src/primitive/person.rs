//! `human.ask`, `human.tell`, `human.approve`, and the wait for a yes that every irreversible call
//! shares.

use super::{Ctx, Outcome, Primitive};
use crate::capability::{CapabilityId, Resource, Right};
use crate::error::{Code, SysError};
use crate::escape::{shown, shown_lines};
use crate::event::{KernelEvent, StepState};
use crate::human::{self, Approval, EffectKind, Preview, Question};
use crate::journal::Decision;
use crate::process::ProcessState;
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
        let verdict = ctx.check(Resource::Human, Right::Use).await?;
        let asked = Approval {
            id: 0,
            pid: ctx.info.pid,
            run: ctx.info.run,
            image: ctx.info.image.clone(),
            goal: shown(&ctx.info.goal),
            action: ctx.name.to_owned(),
            kind: EffectKind::Other,
            path: shown(&self.title),
            relative: String::new(),
            target: None,
            bytes_before: None,
            bytes_after: None,
            sha256: None,
            preview: Preview::between(None, Some(self.text.as_bytes())),
            risks: Vec::new(),
            items: Vec::new(),
            digest: human::binding(ctx.info.pid, ctx.row.seq, ctx.name, &self),
            asked_ms: 0,
        };
        let decision = ctx.ask_for_yes(asked, verdict.by).await?;
        let yes = matches!(decision, Decision::Approved(_));
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

impl Ctx {
    /// Files an approval (or finds the one filed before a restart) and waits for the answer,
    /// without a slot, a thread or a lock.
    pub(super) async fn ask_for_yes(
        &self,
        asked: Approval,
        ask: CapabilityId,
    ) -> Result<Decision, SysError> {
        self.intend().await?;
        let journal = &self.inner.journal;
        let waiter = self.inner.waiter(self.row.id);
        let stands = journal.approval_of(self.row.id).await?;
        let stands = stands.filter(|row| row.digest == asked.digest.0);
        let shown = match stands {
            Some(row) => {
                if let Some(decision) = row.decision() {
                    return Ok(decision);
                }
                Approval {
                    id: row.id,
                    ..asked
                }
            }
            None => {
                let digest = super::short(&asked.digest);
                let detail = match asked.kind {
                    // What a process asks in its own words is content.
                    EffectKind::Other => format!("in its own words, digest {digest}"),
                    kind => format!("{kind:?} {}, digest {digest}", asked.path),
                };
                journal
                    .file(self.row.id, self.at(), ask, asked, detail)
                    .await?
            }
        };
        let id = shown.id;
        self.inner.tell(KernelEvent::Approval(Box::new(shown)));
        self.wait_for_person();
        loop {
            let row = journal.approval_of(self.row.id).await?;
            if let Some(decision) = row
                .filter(|row| row.id == id)
                .and_then(|row| row.decision())
            {
                self.enter_state(ProcessState::WaitingTool);
                return Ok(decision);
            }
            if let Err(why) = self.waiting(waiter.notified()).await {
                self.withdraw().await?;
                return Err(why);
            }
        }
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
