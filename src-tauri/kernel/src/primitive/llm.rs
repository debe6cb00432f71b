//! `llm.chat`, `llm.score`: asking a core.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Ctx, Outcome, Primitive, by};
use crate::capability::{Need, Resource, Right, Verdict};
use crate::error::{Code, SysError};
use crate::event::KernelEvent;
use crate::provider::{ChatReply, ChatRequest, Finish, Message, Progress, TokenSink};
use crate::scheduler::AfterSlice;
use crate::syscall::{LlmChat, LlmScore};

const MESSAGES_MOST: usize = 256;
const TOKENS_MOST: u32 = 32_768;
const CHOICES_MOST: usize = 64;
/// Tokens of a prompt that count as one.
const CHUNK: u32 = 128;

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
        let need = asking_a_core(&self.request.messages);
        ctx.check_need(need.clone()).await?;
        let temperature = self.request.sampling.temperature;
        let mut request = self.request;
        let spending = ctx.set_aside(&mut request).await?;
        let most = request.max_tokens;
        let generating = Box::pin(ctx.generate(request, self.visible, need));
        let (reply, verdict) = generating.await?;
        let tokens = spending.used(&reply).await?;
        if reply.finish == Finish::Cancelled {
            ctx.lost(tokens).await?;
            return Err(ctx.stopped());
        }
        ctx.note_facts(&serde_json::json!({
            "model": ctx.inner.providers.core.info().model,
            "input_tokens": reply.prompt_tokens,
            "output_tokens": reply.tokens,
            "cached_tokens": reply.cached_tokens,
            "finish": reply.finish,
            "max_tokens": most,
            "temperature": temperature,
        }));
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
        let need = asking_a_core(&self.messages);
        ctx.check_need(need.clone()).await?;
        let mut slot = ctx.turn().await?;
        let verdict = ctx.check_again(need).await?;
        let core = Arc::clone(&ctx.inner.providers.core);
        let count = self.choices.len();
        let tokens = ctx.weighed(&self).await?;
        let cancel = ctx.live.attention.cancel();
        slot.charge(self.cost());
        let scores = core
            .score(self.messages, self.prefix, self.choices, cancel)
            .await?;
        Ok(Outcome {
            tokens,
            ..Outcome::new(scores, format!("{count} choices weighed")).record(by(verdict))
        })
    }
}

impl LlmScore {
    /// About what it costs, in tokens of a quantum: all is read, at about four bytes a token.
    fn cost(&self) -> u32 {
        let messages = self.messages.iter().map(|m| m.content.len());
        let bytes: usize = messages.chain(self.choices.iter().map(String::len)).sum();
        u32::try_from(bytes / 4).unwrap_or(u32::MAX).div_ceil(CHUNK)
    }
}

fn asking_a_core(messages: &[Message]) -> Need {
    let bytes: usize = messages.iter().map(|m| m.content.len()).sum();
    Need::new(Resource::Cores, Right::Use).of_bytes(bytes as u64)
}

impl Ctx {
    /// Generates in slices: after each, whoever goes before gets the core, and this call waits for
    /// its next turn with its generation put aside.
    async fn generate(
        &self,
        request: ChatRequest,
        visible: bool,
        need: Need,
    ) -> Result<(ChatReply, Verdict), SysError> {
        let core = &self.inner.providers.core;
        let mut slot = self.turn_of_slice().await?;
        let mut verdict = self.check_again(need.clone()).await?;
        let mut generation = Arc::clone(core).begin(request.clone()).await?;
        let mut meter = Meter::default();
        let sink = meter.sink(self.sink(visible));
        loop {
            let (quantum, yield_now) = (slot.quantum(), slot.yield_now());
            let attention = &self.live.attention;
            attention.gives_way_by(yield_now.clone());
            let progress = generation
                .run(quantum, &sink, &yield_now, &attention.cancel())
                .await?;
            match progress {
                Progress::Done(reply) => {
                    slot.charge(meter.rest(&reply));
                    return Ok((reply, verdict));
                }
                Progress::Paused => {
                    let whole = quantum.filter(|_| !yield_now.is_cancelled());
                    slot.charge(meter.paused(whole));
                }
            }
            let next = if attention.is_paused() {
                AfterSlice::GiveWay(slot.give_back())
            } else {
                slot.after_slice()
            };
            let turn = match next {
                AfterSlice::GoOn(same) => {
                    slot = same;
                    continue;
                }
                AfterSlice::GiveWay(entering) => self.next_slice(entering),
            };
            let contexts = &self.inner.contexts;
            (slot, generation) = contexts.wait(core, &request, generation, turn).await?;
            verdict = self.check_again(need.clone()).await?;
        }
    }

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

/// Counts the tokens of a generation, in units of a quantum, as far as they can be told from
/// outside.
#[derive(Default)]
struct Meter {
    pieces: Arc<AtomicU32>,
    charged: u32,
}

impl Meter {
    /// Counts the pieces of text that pass.
    fn sink(&self, to: TokenSink) -> TokenSink {
        let pieces = Arc::clone(&self.pieces);
        Box::new(move |text| {
            pieces.fetch_add(1, Ordering::Relaxed);
            to(text);
        })
    }

    /// Tokens of a slice that ended with a pause: its whole quantum, or where it was cut short a
    /// token for each piece.
    fn paused(&mut self, whole: Option<u32>) -> u32 {
        let pieces = self.pieces.swap(0, Ordering::Relaxed);
        let tokens = whole.unwrap_or(pieces.max(1));
        self.charged = self.charged.saturating_add(tokens);
        tokens
    }

    /// What was not charged yet when a generation has ended.
    fn rest(&self, reply: &ChatReply) -> u32 {
        let read = reply.prompt_tokens.saturating_sub(reply.cached_tokens);
        let all = reply.tokens.saturating_add(read.div_ceil(CHUNK));
        all.saturating_sub(self.charged)
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
