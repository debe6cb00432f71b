//! Generations of cores that give only text: each slice is a call of its own that goes on from the
//! text so far.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::error::{Code, SysError};
use crate::human::sha256;
use crate::provider::{
    Cancel, ChatReply, ChatRequest, Digest, Finish, Generation, LlmCore, Message, Progress,
    Resumption, Role, TokenSink,
};

const VERSION: u32 = 1;

const GO_ON: &str = "Your answer was cut off there. Go on from exactly where it stopped: do not \
                     repeat any of it, and say nothing about the cut.";

pub(crate) struct TextGeneration<C: ?Sized> {
    core: Arc<C>,
    request: ChatRequest,
    so_far: SoFar,
}

/// All there is to a generation that goes by text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SoFar {
    version: u32,
    /// Of the request that it answers.
    request: Digest,
    said: String,
    /// What follows `said` and may be the beginning of a stop text.
    held: String,
    slices: u64,
    tokens: u32,
    prompt_tokens: u32,
    cached_tokens: u32,
    ended: bool,
}

/// Text of one slice.
#[derive(Default)]
struct Slice {
    heard: String,
    pieces: u32,
    stopped: bool,
}

impl<C: LlmCore + ?Sized> TextGeneration<C> {
    pub(crate) fn new(core: Arc<C>, request: ChatRequest) -> Self {
        let so_far = SoFar {
            version: VERSION,
            request: digest_of(&request),
            said: String::new(),
            held: String::new(),
            slices: 0,
            tokens: 0,
            prompt_tokens: 0,
            cached_tokens: 0,
            ended: false,
        };
        Self {
            core,
            request,
            so_far,
        }
    }

    pub(crate) fn restore(
        core: Arc<C>,
        request: ChatRequest,
        snapshot: &[u8],
    ) -> Result<Self, SysError> {
        let refuse = |what: String| {
            SysError::new(Code::Invalid, format!("the generation's snapshot {what}"))
                .hint("begin the generation anew")
        };
        let so_far: SoFar = serde_json::from_slice(snapshot)
            .map_err(|error| refuse(format!("cannot be read: {error}")))?;
        if so_far.version != VERSION {
            let found = so_far.version;
            return Err(refuse(format!("is of version `{found}`, not `{VERSION}`")));
        }
        if so_far.request != digest_of(&request) {
            return Err(refuse("is of another request".to_owned()));
        }
        Ok(Self {
            core,
            request,
            so_far,
        })
    }

    /// Whether the text can only be made in one go: what was said of it is no beginning that a
    /// constraint or a search could be taken up from.
    fn whole(&self) -> bool {
        self.request.constraint.is_some() || self.request.beams != 1
    }

    /// The request for `tokens` more.
    fn next(&self, tokens: u32) -> ChatRequest {
        let mut request = self.request.clone();
        request.max_tokens = tokens;
        // The same seed would draw the same numbers in every slice.
        request.sampling.seed = request.sampling.seed.wrapping_add(self.so_far.slices);
        let said = [&self.request.prefix, &self.so_far.said, &self.so_far.held]
            .map(String::as_str)
            .concat();
        let new = self.so_far.said.is_empty() && self.so_far.held.is_empty();
        if self.core.resumption() != Resumption::Retold || new {
            request.prefix = said;
            return request;
        }
        request.prefix.clear();
        request.messages.push(Message {
            role: Role::Assistant,
            content: said,
        });
        request.messages.push(Message {
            role: Role::User,
            content: GO_ON.to_owned(),
        });
        request
    }

    /// Takes a piece of text and lets out what cannot belong to a stop text any more.
    fn hear(&mut self, piece: &str, slice: &mut Slice, sink: &TokenSink) {
        slice.heard.push_str(piece);
        slice.pieces += 1;
        if slice.stopped {
            return;
        }
        let held = &mut self.so_far.held;
        held.push_str(piece);
        let stops = &self.request.stop;
        let found = stops
            .iter()
            .filter_map(|stop| held.find(stop.as_str()))
            .min();
        if let Some(at) = found {
            slice.stopped = true;
            held.truncate(at);
        }
        let kept = if slice.stopped {
            held.len()
        } else {
            held.len() - possible_stop(held, stops)
        };
        let rest = held.split_off(kept);
        let sure = std::mem::replace(held, rest);
        self.say(&sure, sink);
    }

    fn say(&mut self, text: &str, sink: &TokenSink) {
        if !text.is_empty() {
            sink(text);
            self.so_far.said.push_str(text);
        }
    }

    fn end(&mut self, finish: Finish, sink: &TokenSink) -> Progress {
        let held = std::mem::take(&mut self.so_far.held);
        self.say(&held, sink);
        self.so_far.ended = true;
        Progress::Done(ChatReply {
            text: self.so_far.said.clone(),
            finish,
            prompt_tokens: self.so_far.prompt_tokens,
            cached_tokens: self.so_far.cached_tokens,
            tokens: self.so_far.tokens,
        })
    }

    /// Makes one call and hears it out.
    async fn slice(
        &mut self,
        tokens: u32,
        sink: &TokenSink,
        yield_now: &Cancel,
        cancel: &Cancel,
    ) -> (Slice, Result<ChatReply, SysError>) {
        let (speak, mut heard) = mpsc::unbounded_channel::<String>();
        let stop = Cancel::default();
        let core = Arc::clone(&self.core);
        let speak = Box::new(move |text: &str| {
            // Nobody hears only when nobody waits for the reply either.
            let _ = speak.send(text.to_owned());
        });
        let mut call = core.chat(self.next(tokens), speak, stop.clone());
        let mut slice = Slice::default();
        let reply = loop {
            // A slice that gave way before its first text would read the prompt for nothing.
            let yields = !self.whole() && slice.pieces > 0;
            tokio::select! {
                biased;
                Some(piece) = heard.recv() => {
                    self.hear(&piece, &mut slice, sink);
                    if slice.stopped {
                        stop.cancel();
                    }
                }
                reply = &mut call => break reply,
                () = cancel.cancelled(), if !stop.is_cancelled() => stop.cancel(),
                () = yield_now.cancelled(), if yields && !stop.is_cancelled() => stop.cancel(),
            }
        };
        while let Ok(piece) = heard.try_recv() {
            self.hear(&piece, &mut slice, sink);
        }
        // A core may say more in its reply than it streamed.
        if let Ok(reply) = &reply
            && let Some(rest) = reply.text.strip_prefix(slice.heard.as_str())
            && !rest.is_empty()
        {
            self.hear(rest, &mut slice, sink);
        }
        (slice, reply)
    }

    fn count(&mut self, slice: &Slice, reply: &Result<ChatReply, SysError>) {
        let so_far = &mut self.so_far;
        so_far.slices += 1;
        // A core that was stopped may not say what it made; then a piece counts as a token. And no
        // slice counts as none, or a core that reports nothing would never come to the limit.
        let (tokens, prompt, cached) = match reply {
            Ok(reply) => (reply.tokens, reply.prompt_tokens, reply.cached_tokens),
            Err(_) => (slice.pieces, 0, 0),
        };
        so_far.tokens = so_far.tokens.saturating_add(tokens.max(1));
        so_far.prompt_tokens = so_far.prompt_tokens.saturating_add(prompt);
        so_far.cached_tokens = so_far.cached_tokens.saturating_add(cached);
    }
}

#[async_trait]
impl<C: LlmCore + ?Sized> Generation for TextGeneration<C> {
    async fn run(
        &mut self,
        quantum: Option<u32>,
        sink: &TokenSink,
        yield_now: &Cancel,
        cancel: &Cancel,
    ) -> Result<Progress, SysError> {
        if self.so_far.ended {
            return Err(SysError::new(Code::Invalid, "the generation has ended"));
        }
        if cancel.is_cancelled() {
            return Ok(self.end(Finish::Cancelled, sink));
        }
        let left = self.request.max_tokens.saturating_sub(self.so_far.tokens);
        if left == 0 {
            return Ok(self.end(Finish::Length, sink));
        }
        if yield_now.is_cancelled() || quantum == Some(0) {
            return Ok(Progress::Paused);
        }
        let tokens = match quantum {
            Some(quantum) if !self.whole() => quantum.min(left),
            _ => left,
        };
        let (slice, reply) = self.slice(tokens, sink, yield_now, cancel).await;
        let asked_to = slice.stopped || cancel.is_cancelled() || yield_now.is_cancelled();
        match &reply {
            Err(error) if !(asked_to && error.code == Code::Interrupted) => {
                return Err(error.clone());
            }
            _ => self.count(&slice, &reply),
        }
        let finish = reply.map_or(Finish::Cancelled, |reply| reply.finish);
        Ok(match finish {
            _ if slice.stopped => self.end(Finish::Stop, sink),
            Finish::Stop => self.end(Finish::Stop, sink),
            Finish::Cancelled if cancel.is_cancelled() => self.end(Finish::Cancelled, sink),
            Finish::Length if self.so_far.tokens >= self.request.max_tokens || self.whole() => {
                self.end(Finish::Length, sink)
            }
            Finish::Length | Finish::Cancelled => Progress::Paused,
        })
    }

    fn resident_bytes(&self) -> u64 {
        let request = &self.request;
        let texts = request.messages.iter().map(|message| &message.content);
        let texts = texts.chain(&request.stop).chain([&request.prefix]);
        let held: usize = texts.map(String::capacity).sum();
        let own = self.so_far.said.capacity() + self.so_far.held.capacity();
        (size_of::<Self>() + held + own) as u64
    }

    async fn snapshot(&mut self) -> Result<Vec<u8>, SysError> {
        serde_json::to_vec(&self.so_far)
            .map_err(|error| SysError::new(Code::Internal, format!("no snapshot: {error}")))
    }
}

fn digest_of(request: &ChatRequest) -> Digest {
    // A request is made of texts and numbers, which JSON always has a form for.
    sha256(&serde_json::to_vec(request).unwrap_or_default())
}

/// Length of the longest end of `text` that begins one of the stop texts.
fn possible_stop(text: &str, stops: &[String]) -> usize {
    let ends = stops.iter().filter_map(|stop| {
        let mut cuts = stop.char_indices().map(|(at, _)| at).rev();
        cuts.find(|&cut| text.ends_with(&stop[..cut]))
    });
    ends.max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
