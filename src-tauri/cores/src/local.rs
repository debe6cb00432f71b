//! The local engine as a core: loaded on first use, cancelled when its caller goes away.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use steward_engine::{Engine, EngineError, GenerateRequest, KvFormat, LoadOptions, Prompt};
use steward_kernel::provider::{
    Cancel, ChatReply, ChatRequest, Constraint, CoreInfo, Finish, Generation, LlmCore, Message,
    Resumption, Role, TokenSink,
};
use steward_kernel::{Code, SysError};
use tokio::sync::OnceCell;

use crate::generation::LocalGeneration;

/// Generations that take their steps together. A step reads the weights once for all of them, so
/// that eight write more than twice as fast as one, and each still faster than a person reads.
const AT_ONCE: usize = 8;

/// What the core is made from.
#[derive(Debug, Clone)]
pub struct Source {
    /// Name of the model.
    pub model: String,
    /// Its file, or why there is none.
    pub file: Result<PathBuf, SysError>,
    /// Tokens of context.
    pub context: u32,
    /// Threads to compute with; the machine's cores where absent.
    pub threads: Option<usize>,
    /// What keys and values are kept as.
    pub kv_format: KvFormat,
}

/// How loading goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadState {
    /// It has begun.
    Loading,
    /// It takes a while: so many bytes of the weights were read, of so many.
    Reading {
        /// Bytes that were read.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// The model can answer.
    Ready,
    /// It failed.
    Failed(SysError),
}

type OnLoad = Arc<dyn Fn(LoadState) + Send + Sync>;

/// How often it is told how far a load is.
const TOLD_EVERY: Duration = Duration::from_millis(500);

/// A model that runs on this machine.
pub struct LocalCore {
    loader: Arc<Loader>,
}

pub(crate) struct Loader {
    source: Source,
    engine: OnceCell<Engine>,
    on_load: OnLoad,
}

impl Loader {
    /// The engine, loaded. A load that failed is tried again at the next call.
    async fn engine(&self) -> Result<Engine, SysError> {
        let engine = self.engine.get_or_try_init(|| async {
            (self.on_load)(LoadState::Loading);
            let loaded = self.load().await;
            (self.on_load)(match &loaded {
                Ok(_) => LoadState::Ready,
                Err(error) => LoadState::Failed(error.clone()),
            });
            loaded
        });
        engine.await.cloned()
    }

    async fn load(&self) -> Result<Engine, SysError> {
        let path = self.source.file.clone()?;
        let options = LoadOptions {
            threads: self.source.threads,
            context: Some(self.source.context as usize),
            kv_format: self.source.kv_format,
            ..LoadOptions::default()
        };
        let on_load = Arc::clone(&self.on_load);
        let last = Mutex::new(Instant::now());
        let told = move |done, total| {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.elapsed() >= TOLD_EVERY {
                *last = Instant::now();
                on_load(LoadState::Reading { done, total });
            }
        };
        let loaded = tokio::task::spawn_blocking(move || Engine::load_with(&path, &options, &told));
        loaded
            .await
            .map_err(|e| broke_down(&e))?
            .map_err(|e| explained(&e))
    }

    /// The engine, loaded, unless `cancel` comes first.
    pub(crate) async fn ready(self: &Arc<Self>, cancel: &Cancel) -> Result<Engine, SysError> {
        if let Some(engine) = self.engine.get() {
            return Ok(engine.clone());
        }
        // A task of its own: a load goes on, and is told of, when whoever asked for it has gone.
        let loader = Arc::clone(self);
        let loading = tokio::spawn(async move { loader.engine().await });
        tokio::select! {
            engine = loading => engine.map_err(|e| broke_down(&e))?,
            () = cancel.cancelled() => Err(stopped()),
        }
    }
}

impl LocalCore {
    /// A core that loads its model when it is first asked; `on_load` is told how that goes.
    pub fn new(source: Source, on_load: impl Fn(LoadState) + Send + Sync + 'static) -> Self {
        let loader = Loader {
            source,
            engine: OnceCell::new(),
            on_load: Arc::new(on_load),
        };
        Self {
            loader: Arc::new(loader),
        }
    }

    /// Runs work on the engine off the async threads. The work is cancelled by `cancel`, and when
    /// whoever waits for it goes away.
    async fn run<T: Send + 'static>(
        &self,
        cancel: Cancel,
        work: impl FnOnce(&Engine, &steward_engine::Cancel) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, SysError> {
        let engine = self.loader.ready(&cancel).await?;
        let flag = steward_engine::Cancel::new();
        let _gone = CancelOnDrop(flag.clone());
        let inner = flag.clone();
        let mut work = tokio::task::spawn_blocking(move || work(&engine, &inner));
        let done = tokio::select! {
            done = &mut work => done,
            () = cancel.cancelled() => {
                flag.cancel();
                work.await
            }
        };
        done.map_err(|e| broke_down(&e))?.map_err(|e| explained(&e))
    }
}

/// Ends what runs when whoever waits for it goes away.
pub(crate) struct CancelOnDrop(pub(crate) steward_engine::Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[async_trait]
impl LlmCore for LocalCore {
    fn info(&self) -> CoreInfo {
        CoreInfo {
            model: self.loader.source.model.clone(),
            context: self.loader.source.context,
            local: true,
        }
    }

    async fn chat(
        &self,
        request: ChatRequest,
        sink: TokenSink,
        cancel: Cancel,
    ) -> Result<ChatReply, SysError> {
        let request = translated(request);
        let generation = self
            .run(cancel, move |engine, cancel| {
                engine.generate(&request, cancel, &mut |event| {
                    if !event.text.is_empty() {
                        sink(event.text);
                    }
                })
            })
            .await?;
        Ok(reply(generation))
    }

    fn at_once(&self) -> usize {
        AT_ONCE
    }

    fn resumption(&self) -> Resumption {
        Resumption::Exact
    }

    async fn begin(self: Arc<Self>, request: ChatRequest) -> Result<Box<dyn Generation>, SysError> {
        let loader = Arc::clone(&self.loader);
        Ok(Box::new(LocalGeneration::new(loader, translated(request))))
    }

    async fn restore(
        self: Arc<Self>,
        request: ChatRequest,
        snapshot: Vec<u8>,
    ) -> Result<Box<dyn Generation>, SysError> {
        let request = translated(request);
        let session = self
            .run(Cancel::default(), move |engine, _| {
                engine.restore(request, &snapshot)
            })
            .await?;
        let loader = Arc::clone(&self.loader);
        Ok(Box::new(LocalGeneration::restored(loader, session)))
    }

    async fn score(
        &self,
        messages: Vec<Message>,
        prefix: String,
        choices: Vec<String>,
        cancel: Cancel,
    ) -> Result<Vec<f64>, SysError> {
        let prompt = prompt(messages, prefix);
        let scores = self
            .run(cancel, move |engine, cancel| {
                engine.score(&prompt, &choices, cancel)
            })
            .await?;
        Ok(scores.into_iter().map(|score| score.logprob).collect())
    }

    async fn count_tokens(&self, text: String) -> Result<u32, SysError> {
        let ids = self
            .run(Cancel::default(), move |engine, _| {
                engine.encode(&text, false)
            })
            .await?;
        Ok(u32::try_from(ids.len()).unwrap_or(u32::MAX))
    }
}

pub(crate) fn reply(generation: steward_engine::Generation) -> ChatReply {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    ChatReply {
        finish: match generation.finish {
            steward_engine::Finish::Stop => Finish::Stop,
            steward_engine::Finish::Length => Finish::Length,
            steward_engine::Finish::Cancelled => Finish::Cancelled,
        },
        prompt_tokens: count(generation.prompt_tokens),
        cached_tokens: count(generation.cached_tokens),
        tokens: count(generation.ids.len()),
        text: generation.text,
    }
}

fn translated(request: ChatRequest) -> GenerateRequest {
    let ChatRequest {
        messages,
        prefix,
        max_tokens,
        sampling,
        stop,
        constraint,
        beams,
    } = request;
    GenerateRequest {
        prompt: prompt(messages, prefix),
        max_tokens: max_tokens as usize,
        sampling: steward_engine::Sampling {
            temperature: sampling.temperature,
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            min_p: sampling.min_p,
            repetition_penalty: sampling.repetition_penalty,
            frequency_penalty: sampling.frequency_penalty,
            presence_penalty: sampling.presence_penalty,
            seed: sampling.seed,
            ..steward_engine::Sampling::default()
        },
        stop,
        constraint: constraint.map(|form| match form {
            Constraint::JsonSchema { schema } => steward_engine::Constraint::JsonSchema(schema),
            Constraint::Regex { pattern } => steward_engine::Constraint::Regex(pattern),
            Constraint::Lark { grammar } => steward_engine::Constraint::Lark(grammar),
        }),
        logprobs: false,
        top_logprobs: 0,
        beams: beams as usize,
        speculate: true,
        ignore_eos: false,
    }
}

fn prompt(messages: Vec<Message>, assistant_prefix: String) -> Prompt {
    let messages = messages.into_iter().map(|message| steward_engine::Message {
        role: match message.role {
            Role::System => steward_engine::Role::System,
            Role::User => steward_engine::Role::User,
            Role::Assistant => steward_engine::Role::Assistant,
        },
        content: message.content,
    });
    Prompt::Messages {
        messages: messages.collect(),
        assistant_prefix,
    }
}

pub(crate) fn explained(error: &EngineError) -> SysError {
    let (code, hint) = match error {
        EngineError::Open { .. } => (
            Code::Unavailable,
            "fetch the model with `steward models get`",
        ),
        EngineError::DoesNotFit { .. } => (
            Code::Unavailable,
            "end other programs, or choose a smaller model: `steward models`",
        ),
        EngineError::Model { .. } | EngineError::Logits(_) => (
            Code::Unavailable,
            "check it with `steward models verify`, or fetch it anew",
        ),
        EngineError::ContextOverflow { .. } => (Code::Limit, "ask about less text at a time"),
        EngineError::Template(_) => (Code::Unavailable, "choose a model made for conversations"),
        EngineError::Snapshot(_) => (Code::Invalid, "begin the generation anew"),
        EngineError::Cancelled => return stopped(),
        EngineError::Internal(_) => (Code::Internal, "this is a fault of Steward; try again"),
        _ => (Code::Invalid, "change the request"),
    };
    SysError::new(code, error.to_string()).hint(hint)
}

pub(crate) fn broke_down(error: &tokio::task::JoinError) -> SysError {
    SysError::new(Code::Internal, format!("the engine broke down: {error}"))
        .hint("this is a fault of Steward; try the request again")
}

pub(crate) fn stopped() -> SysError {
    SysError::new(Code::Interrupted, "the generation was stopped")
}
