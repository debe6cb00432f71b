//! What a core's work costs: set aside before it, counted after it.

use std::sync::Arc;

use super::Ctx;
use crate::budget::Reserved;
use crate::error::SysError;
use crate::provider::{ChatReply, ChatRequest, Message};
use crate::syscall::LlmScore;

/// Tokens and money set aside for a generation; free again when dropped.
pub(super) struct Spending<'a> {
    ctx: &'a Ctx,
    reserved: Option<Reserved>,
}

impl Spending<'_> {
    /// Counts what was used; the tokens of it.
    pub(super) async fn used(mut self, reply: &ChatReply) -> Result<u64, SysError> {
        let inner = &self.ctx.inner;
        let pid = self.ctx.live.pid;
        let (prompt, generated) = (reply.prompt_tokens.into(), reply.tokens.into());
        let micros = inner.providers.core.price().of(prompt, generated);
        let tokens = prompt + generated;
        if let Some(reserved) = self.reserved.take() {
            inner.ledger.settle(pid, reserved, tokens, micros);
        }
        if micros > 0 {
            inner.journal.paid(pid, micros).await?;
        }
        Ok(tokens)
    }
}

impl Drop for Spending<'_> {
    fn drop(&mut self) {
        if let Some(reserved) = self.reserved.take() {
            let ledger = &self.ctx.inner.ledger;
            ledger.settle(self.ctx.live.pid, reserved, 0, 0);
        }
    }
}

impl Ctx {
    /// Sets aside what a generation may use, and bounds it to that. The prompt is counted by the
    /// core's own tokenizer, where there is a limit.
    pub(super) async fn set_aside(
        &self,
        request: &mut ChatRequest,
    ) -> Result<Spending<'_>, SysError> {
        let prompt = self.count(&request.messages, &[&request.prefix]).await?;
        let price = self.inner.providers.core.price();
        let reserved = self
            .inner
            .ledger
            .reserve(self.live.pid, prompt, request.max_tokens, price)
            .map_err(|error| self.over_budget(error))?;
        request.max_tokens = reserved.generate;
        Ok(Spending {
            ctx: self,
            reserved: Some(reserved),
        })
    }

    /// Counts the tokens that weighing answers reads, where there is a limit.
    pub(super) async fn weighed(&self, call: &LlmScore) -> Result<u64, SysError> {
        let mut texts: Vec<&str> = call.choices.iter().map(String::as_str).collect();
        texts.push(&call.prefix);
        let tokens = self.count(&call.messages, &texts).await?;
        let price = self.inner.providers.core.price();
        let (ledger, pid) = (&self.inner.ledger, self.live.pid);
        let reserved = ledger
            .reserve(pid, tokens, 1, price)
            .map_err(|error| self.over_budget(error))?;
        let micros = price.of(tokens, 0);
        ledger.settle(pid, reserved, tokens, micros);
        if micros > 0 {
            self.inner.journal.paid(pid, micros).await?;
        }
        Ok(tokens)
    }

    /// Keeps the tokens of a generation that gave no result.
    pub(super) async fn lost(&self, tokens: u64) -> Result<(), SysError> {
        self.live.update(|info| info.tokens += tokens);
        self.inner.journal.lost(self.live.pid, tokens).await
    }

    async fn count(&self, messages: &[Message], texts: &[&str]) -> Result<u64, SysError> {
        if !self.inner.ledger.counts_tokens(self.live.pid) {
            return Ok(0);
        }
        let core = Arc::clone(&self.inner.providers.core);
        let contents = messages.iter().map(|message| message.content.as_str());
        let all = contents.chain(texts.iter().copied());
        let all: Vec<&str> = all.filter(|text| !text.is_empty()).collect();
        Ok(core.count_tokens(all.join("\n")).await?.into())
    }
}
