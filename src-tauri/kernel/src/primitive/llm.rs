//! `llm.chat`, `llm.score`: asking a core.

use std::sync::Arc;

use super::{Ctx, Outcome, Primitive, by};
use crate::capability::{Resource, Right};
use crate::error::{Code, SysError};
use crate::event::KernelEvent;
use crate::provider::{ChatReply, Finish, Message, TokenSink};
use crate::syscall::{LlmChat, LlmScore};

const MESSAGES_MOST: usize = 256;
const TOKENS_MOST: u32 = 32_768;
const CHOICES_MOST: usize = 64;

impl Primitive for LlmChat {
    fn subject(&self) -> String {
        let form = if self.request.constraint.is_some() {
            ", in a given form"
        } else {
            ""
        };
        format!(
            "{}, at most {} tokens{form}",
            size(&self.request.messages),
            self.request.max_tokens
        )
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<ChatReply>, SysError> {
        check_messages(&self.request.messages)?;
        if !(1..=TOKENS_MOST).contains(&self.request.max_tokens) {
            let message = format!("`max_tokens` is `{}`", self.request.max_tokens);
            return Err(SysError::new(Code::Invalid, message)
                .hint(format!("use a number from 1 to {TOKENS_MOST}")));
        }
        ctx.check(Resource::Cores, Right::Use).await?;
        let _slot = ctx.turn().await?;
        let verdict = ctx.check(Resource::Cores, Right::Use).await?;
        let core = Arc::clone(&ctx.inner.providers.core);
        let sink = ctx.sink(self.visible);
        let reply = core
            .chat(self.request, sink, ctx.live.cancel.clone())
            .await?;
        if reply.finish == Finish::Cancelled {
            return Err(SysError::new(
                Code::Interrupted,
                "the generation was stopped",
            ));
        }
        let tokens = u64::from(reply.prompt_tokens) + u64::from(reply.tokens);
        let detail = format!(
            "{} tokens read, {} written",
            reply.prompt_tokens, reply.tokens
        );
        let record = format!(", {} from the cache{}", reply.cached_tokens, by(verdict));
        Ok(Outcome {
            tokens,
            ..Outcome::new(reply, detail).record(record)
        })
    }
}

impl Primitive for LlmScore {
    fn subject(&self) -> String {
        format!("{}, {} choices", size(&self.messages), self.choices.len())
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Vec<f64>>, SysError> {
        check_messages(&self.messages)?;
        if !(1..=CHOICES_MOST).contains(&self.choices.len()) {
            let message = format!("`{}` choices were given", self.choices.len());
            return Err(
                SysError::new(Code::Invalid, message).hint(format!("give 1 to {CHOICES_MOST}"))
            );
        }
        ctx.check(Resource::Cores, Right::Use).await?;
        let _slot = ctx.turn().await?;
        let verdict = ctx.check(Resource::Cores, Right::Use).await?;
        let core = Arc::clone(&ctx.inner.providers.core);
        let count = self.choices.len();
        let cancel = ctx.live.cancel.clone();
        let scores = core
            .score(self.messages, self.prefix, self.choices, cancel)
            .await?;
        Ok(Outcome::new(scores, format!("{count} choices weighed")).record(by(verdict)))
    }
}

impl Ctx {
    fn sink(&self, visible: bool) -> TokenSink {
        if !visible {
            return Box::new(|_| {});
        }
        let (inner, pid, run) = (Arc::clone(&self.inner), self.info.pid, self.info.run);
        Box::new(move |text| {
            inner.tell(KernelEvent::Token {
                pid,
                run,
                text: text.to_owned(),
            });
        })
    }
}

fn check_messages(messages: &[Message]) -> Result<(), SysError> {
    if (1..=MESSAGES_MOST).contains(&messages.len()) {
        return Ok(());
    }
    let message = format!("`{}` messages were given", messages.len());
    Err(SysError::new(Code::Invalid, message).hint(format!("give 1 to {MESSAGES_MOST}")))
}

fn size(messages: &[Message]) -> String {
    let bytes: usize = messages.iter().map(|m| m.content.len()).sum();
    format!("{} messages, {bytes} bytes", messages.len())
}
