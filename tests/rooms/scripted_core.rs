//! A stand-in for a language model whose generations can stand still.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use steward_kernel::SysError;
use steward_kernel::provider::{
    Cancel, ChatReply, ChatRequest, CoreInfo, Finish, Generation, LlmCore, Message, Progress,
    Resumption, TokenSink,
};
use tokio::sync::Semaphore;

use crate::bed::until;

/// Bytes that a generation says it holds.
pub(crate) const BYTES: u64 = 1_000;

/// A core that makes tokens out of a request and nothing else.
pub(crate) struct Scripted(Arc<Desk>);

/// What the test sees and decides.
#[derive(Default)]
pub(crate) struct Desk {
    /// Tokens that may be made; without end where absent.
    pub(crate) pace: Option<Semaphore>,
    pub(crate) made: AtomicUsize,
    /// Generations there are.
    pub(crate) alive: AtomicUsize,
    /// Generations that make a token just now.
    pub(crate) running: AtomicUsize,
    pub(crate) restored: AtomicUsize,
}

impl Scripted {
    pub(crate) fn free() -> (Arc<Self>, Arc<Desk>) {
        let desk = Arc::<Desk>::default();
        (Arc::new(Self(Arc::clone(&desk))), desk)
    }

    /// Makes only as many tokens as it is let.
    pub(crate) fn paced() -> (Arc<Self>, Arc<Desk>) {
        let desk = Arc::new(Desk {
            pace: Some(Semaphore::new(0)),
            ..Desk::default()
        });
        (Arc::new(Self(Arc::clone(&desk))), desk)
    }

    fn generation(&self, request: ChatRequest, state: u64, made: u32) -> Box<dyn Generation> {
        self.0.alive.fetch_add(1, Ordering::SeqCst);
        Box::new(Words {
            desk: Arc::clone(&self.0),
            most: request.max_tokens,
            first: first_state(&request),
            state,
            made,
            text: text_of(first_state(&request), made),
        })
    }
}

impl Desk {
    pub(crate) fn let_through(&self, tokens: usize) {
        self.pace.as_ref().unwrap().add_permits(tokens);
    }

    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::SeqCst)
    }

    /// Waits until so many tokens have been made in all.
    pub(crate) async fn makes(&self, tokens: usize) {
        until("a token", async || self.made() >= tokens).await;
    }
}

fn first_state(request: &ChatRequest) -> u64 {
    let bytes = request.messages.iter().flat_map(|m| m.content.bytes());
    bytes.fold(request.sampling.seed, |state, byte| {
        next(state ^ u64::from(byte))
    })
}

pub(crate) fn next(state: u64) -> u64 {
    state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407)
}

fn word(state: u64) -> String {
    format!("{} ", state >> 44)
}

/// The text of a generation that nothing interrupts.
pub(crate) fn text_of(mut state: u64, tokens: u32) -> String {
    let words = (0..tokens).map(|_| {
        state = next(state);
        word(state)
    });
    words.collect()
}

/// A generation: words, each from a state that the one before it left.
struct Words {
    desk: Arc<Desk>,
    most: u32,
    first: u64,
    state: u64,
    made: u32,
    text: String,
}

impl Drop for Words {
    fn drop(&mut self) {
        self.desk.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Words {
    fn done(&self, finish: Finish) -> Progress {
        Progress::Done(ChatReply {
            text: self.text.clone(),
            finish,
            prompt_tokens: 3,
            cached_tokens: 0,
            tokens: self.made,
        })
    }
}

#[async_trait]
impl Generation for Words {
    async fn run(
        &mut self,
        quantum: Option<u32>,
        sink: &TokenSink,
        yield_now: &Cancel,
        cancel: &Cancel,
    ) -> Result<Progress, SysError> {
        let until = quantum.map_or(u32::MAX, |quantum| self.made.saturating_add(quantum));
        while self.made < self.most {
            if cancel.is_cancelled() {
                return Ok(self.done(Finish::Cancelled));
            }
            if self.made >= until || yield_now.is_cancelled() {
                return Ok(Progress::Paused);
            }
            match &self.desk.pace {
                None => tokio::task::yield_now().await,
                Some(pace) => tokio::select! {
                    permit = pace.acquire() => permit.unwrap().forget(),
                    () = yield_now.cancelled() => continue,
                    () = cancel.cancelled() => continue,
                },
            }
            let others = self.desk.running.fetch_add(1, Ordering::SeqCst);
            assert_eq!(others, 0, "two generations on a core for one");
            self.state = next(self.state);
            let word = word(self.state);
            self.text.push_str(&word);
            sink(&word);
            self.made += 1;
            self.desk.running.fetch_sub(1, Ordering::SeqCst);
            self.desk.made.fetch_add(1, Ordering::SeqCst);
        }
        Ok(self.done(Finish::Length))
    }

    fn resident_bytes(&self) -> u64 {
        BYTES
    }

    async fn snapshot(&mut self) -> Result<Vec<u8>, SysError> {
        Ok(serde_json::to_vec(&(self.first, self.state, self.made)).unwrap())
    }
}

#[async_trait]
impl LlmCore for Scripted {
    fn info(&self) -> CoreInfo {
        CoreInfo {
            model: "scripted".to_owned(),
            context: 1000,
            local: true,
        }
    }

    fn resumption(&self) -> Resumption {
        Resumption::Exact
    }

    async fn begin(self: Arc<Self>, request: ChatRequest) -> Result<Box<dyn Generation>, SysError> {
        let state = first_state(&request);
        Ok(self.generation(request, state, 0))
    }

    async fn restore(
        self: Arc<Self>,
        request: ChatRequest,
        snapshot: Vec<u8>,
    ) -> Result<Box<dyn Generation>, SysError> {
        let (first, state, made): (u64, u64, u32) = serde_json::from_slice(&snapshot).unwrap();
        assert_eq!(
            first,
            first_state(&request),
            "a snapshot of another request"
        );
        self.0.restored.fetch_add(1, Ordering::SeqCst);
        Ok(self.generation(request, state, made))
    }

    async fn chat(&self, _: ChatRequest, _: TokenSink, _: Cancel) -> Result<ChatReply, SysError> {
        panic!("the kernel goes by generations");
    }

    async fn score(
        &self,
        _: Vec<Message>,
        _: String,
        choices: Vec<String>,
        _: Cancel,
    ) -> Result<Vec<f64>, SysError> {
        Ok(vec![0.0; choices.len()])
    }

    async fn count_tokens(&self, text: String) -> Result<u32, SysError> {
        Ok(u32::try_from(text.len()).unwrap())
    }
}
