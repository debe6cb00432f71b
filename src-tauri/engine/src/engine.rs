use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use sha2::{Digest, Sha256};

use crate::error::{EngineError, guard};
use crate::folder::Folder;
use crate::generate::{Batch, Grammars, PrefixCache, Prompt};
use crate::gguf::{Gguf, GgufError};
use crate::info::ModelInfo;
use crate::kv::{KvFormat, POSITIONS, Pages};
use crate::memory::available_memory;
use crate::model::{Config, Model};
use crate::open::Opened;
use crate::pool::{Pool, default_threads};
use crate::text::{ChatTemplate, Message, Tokenizer};

/// More threads than any machine this runs on has cores.
const MAX_THREADS: usize = 256;

/// Bytes of keys and values that an engine holds at most where nothing else is said.
const KV_BYTES: u64 = 512 << 20;

/// How to load a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// Threads to compute with; by default as many as there are physical cores.
    pub threads: Option<usize>,
    /// Tokens of context; by default, and at most, what the model was made for.
    pub context: Option<usize>,
    /// Bytes of keys and values to hold at most, those that are only kept for later included; by
    /// default 512 MiB, or what one whole context takes where that is more.
    pub kv_bytes: Option<u64>,
    /// What keys and values are kept as.
    pub kv_format: KvFormat,
    /// Bytes of memory that the weights may take; by default what the machine has left.
    pub memory: Option<u64>,
}

/// One loaded model; a clone is the same one. Requests from several threads take turns, step by
/// step.
#[derive(Clone)]
pub struct Engine {
    loaded: Arc<Loaded>,
}

struct Loaded {
    info: ModelInfo,
    tokenizer: Arc<Tokenizer>,
    template: Option<ChatTemplate>,
    model: Model,
    pages: Arc<Pages>,
    prefixes: Mutex<PrefixCache>,
    batch: Batch,
    answers: Mutex<VecDeque<Vec<u32>>>,
    grammars: OnceLock<Grammars>,
    digest: OnceLock<[u8; 32]>,
}

impl Engine {
    /// What a GGUF file says of itself, as far as that can be told without its weights.
    ///
    /// # Errors
    /// As [`Engine::load`] has them; a file that passes may still fail there.
    pub fn inspect(path: &Path) -> Result<ModelInfo, EngineError> {
        let faulty = |source| EngineError::Model {
            path: path.to_owned(),
            source,
        };
        if path.is_dir() {
            let mut folder = Folder::open(path)?;
            let config = folder.config().map_err(faulty)?;
            return Ok(folder.info(&config, &file_name(path)));
        }
        let map = Gguf::map(path).map_err(|source| EngineError::Open {
            path: path.to_owned(),
            source,
        })?;
        let read = || {
            let file = Gguf::parse(map)?;
            ModelInfo::read(&file, &Config::read(&file)?, &file_name(path))
        };
        read().map_err(faulty)
    }

    /// Loads a GGUF file, or a folder with `config.json`, `*.safetensors` and `tokenizer.json`.
    ///
    /// # Errors
    /// [`EngineError::Open`] where the file cannot be read, [`EngineError::DoesNotFit`] where its
    /// weights do not fit in memory, [`EngineError::Model`] where it is damaged or of a kind that
    /// this engine does not run, with the field that is at fault.
    pub fn load(path: &Path, options: &LoadOptions) -> Result<Self, EngineError> {
        Self::load_with(path, options, &|_, _| ())
    }

    /// [`Engine::load`] that tells how far it is: bytes of weights that were read, of so many. From
    /// any thread, with the number rising, the last time with all.
    ///
    /// # Errors
    /// As [`Engine::load`].
    pub fn load_with(
        path: &Path,
        options: &LoadOptions,
        told: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Self, EngineError> {
        let open = |source| EngineError::Open {
            path: path.to_owned(),
            source,
        };
        let threads = options.threads.unwrap_or_else(default_threads);
        if !(1..=MAX_THREADS).contains(&threads) {
            return Err(EngineError::InvalidRequest(format!(
                "`{threads}` threads: choose 1 to {MAX_THREADS}"
            )));
        }
        let opened = Opened::open(path)?;
        let needed = opened.info.bytes;
        let left = options.memory.or_else(available_memory);
        if let Some(available) = left.filter(|left| needed > *left) {
            return Err(EngineError::DoesNotFit {
                path: path.to_owned(),
                needed,
                available,
            });
        }
        let pool = Pool::new(threads).map_err(open)?;
        let batch = Batch::start().map_err(open)?;
        let loaded = Loaded::new(opened, pool, batch, options, told);
        let mut loaded = loaded.map_err(|source| EngineError::Model {
            path: path.to_owned(),
            source,
        })?;
        loaded.info.threads = threads;
        if let Some(context) = options.context {
            if !(1..=loaded.info.context).contains(&context) {
                return Err(EngineError::InvalidRequest(format!(
                    "a context of `{context}` tokens: the model was made for 1 to {}",
                    loaded.info.context
                )));
            }
            loaded.info.context = context;
        }
        Ok(Self {
            loaded: Arc::new(loaded),
        })
    }

    /// What the model is.
    pub fn info(&self) -> &ModelInfo {
        &self.loaded.info
    }

    /// Tokenises a text. With `special`, names of control tokens in it become these tokens: only
    /// for text that is trusted.
    ///
    /// # Errors
    /// [`EngineError::Tokenizer`] for a text of more than 64 MiB.
    pub fn encode(&self, text: &str, special: bool) -> Result<Vec<u32>, EngineError> {
        self.loaded.tokenizer.encode(text, special)
    }

    /// The text of some tokens, without control tokens.
    pub fn decode(&self, ids: &[u32]) -> String {
        self.loaded.tokenizer.decode(ids)
    }

    /// The chat as the model's template writes it, for a person to read. Requests take messages
    /// and not this text, in which a marker and a message that imitates one look alike.
    ///
    /// # Errors
    /// [`EngineError::Template`] where the file has no template or the template refuses.
    pub fn render(
        &self,
        messages: &[Message],
        add_generation_prompt: bool,
    ) -> Result<String, EngineError> {
        self.template()?.render(messages, add_generation_prompt)
    }

    /// The tokens of a prompt, checked against the context.
    ///
    /// # Errors
    /// [`EngineError::ContextOverflow`] for a prompt that leaves no room for an answer.
    pub fn prompt_tokens(&self, prompt: &Prompt) -> Result<Vec<u32>, EngineError> {
        let ids = match prompt {
            Prompt::Tokens(ids) => ids.clone(),
            Prompt::Text(text) => self
                .loaded
                .tokenizer
                .with_bos(self.loaded.tokenizer.encode(text, false)?),
            Prompt::Messages {
                messages,
                assistant_prefix,
            } => {
                let ids =
                    self.template()?
                        .with_pieces(messages, assistant_prefix, |pieces| {
                            self.loaded.tokenizer.encode_template(pieces)
                        })??;
                self.loaded.tokenizer.with_bos(ids)
            }
        };
        if ids.is_empty() {
            return Err(EngineError::InvalidRequest(
                "the prompt is empty".to_owned(),
            ));
        }
        if ids.len() >= self.loaded.info.context {
            let context = self.loaded.info.context;
            return Err(EngineError::ContextOverflow {
                prompt: ids.len(),
                context,
            });
        }
        Ok(ids)
    }

    fn template(&self) -> Result<&ChatTemplate, EngineError> {
        self.loaded.template.as_ref().ok_or_else(|| {
            EngineError::Template(
                "the file has no `tokenizer.chat_template`; give the prompt as text".to_owned(),
            )
        })
    }

    pub(crate) fn model(&self) -> &Model {
        &self.loaded.model
    }

    pub(crate) fn tokenizer(&self) -> &Tokenizer {
        &self.loaded.tokenizer
    }

    /// Where the keys and values of all texts are.
    pub(crate) fn pages(&self) -> &Arc<Pages> {
        &self.loaded.pages
    }

    pub(crate) fn prefixes(&self) -> MutexGuard<'_, PrefixCache> {
        let prefixes = &self.loaded.prefixes;
        prefixes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn answers(&self) -> MutexGuard<'_, VecDeque<Vec<u32>>> {
        let answers = &self.loaded.answers;
        answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn batch(&self) -> &Batch {
        &self.loaded.batch
    }

    /// The grammar compiler, made when the first constraint comes.
    pub(crate) fn grammars(&self) -> Result<&Grammars, EngineError> {
        if let Some(grammars) = self.loaded.grammars.get() {
            return Ok(grammars);
        }
        let made = guard(|| Grammars::new(Arc::clone(&self.loaded.tokenizer)))?;
        Ok(self.loaded.grammars.get_or_init(|| made))
    }

    /// A digest of all that the tokens of an answer depend on: the vocabulary, the sizes and the
    /// weights. It takes a moment at first, and is kept.
    pub(crate) fn digest(&self) -> Result<&[u8; 32], EngineError> {
        if let Some(digest) = self.loaded.digest.get() {
            return Ok(digest);
        }
        let mut hash = Sha256::new();
        let tokenizer = &self.loaded.tokenizer;
        for id in 0..tokenizer.len() as u32 {
            let bytes = tokenizer.bytes(id);
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
        hash.update(self.loaded.model.digest()?);
        Ok(self.loaded.digest.get_or_init(|| hash.finalize().into()))
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

impl Loaded {
    fn new(
        opened: Opened,
        pool: Pool,
        batch: Batch,
        options: &LoadOptions,
        told: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Self, GgufError> {
        let Opened {
            source,
            config,
            mut info,
            tokenizer,
            template,
        } = opened;
        let shape = config.kv_shape(options.kv_format);
        info.token_bytes = shape.token_bytes();
        let bytes = options.kv_bytes.unwrap_or_else(|| {
            let pages = config.context.div_ceil(POSITIONS) as u64;
            KV_BYTES.max(pages.saturating_mul(shape.page_bytes() as u64))
        });
        let pages = Pages::new(shape, bytes);
        let prefixes = Mutex::new(PrefixCache::new(Arc::clone(&pages)));
        let model = Model::load(source.as_ref(), config, pool, told)?;
        info.instructions = model.instructions();
        Ok(Self {
            info,
            tokenizer: Arc::new(tokenizer),
            template,
            model,
            pages,
            prefixes,
            batch,
            answers: Mutex::default(),
            grammars: OnceLock::new(),
            digest: OnceLock::new(),
        })
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("info", &self.loaded.info)
            .finish_non_exhaustive()
    }
}
