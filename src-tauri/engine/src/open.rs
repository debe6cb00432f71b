use std::path::Path;

use crate::error::EngineError;
use crate::folder::Folder;
use crate::gguf::{Gguf, GgufError};
use crate::info::ModelInfo;
use crate::model::{Config, Source};
use crate::text::{ChatTemplate, Tokenizer};

/// A model's file or folder with all read but the weights.
pub(crate) struct Opened {
    pub(crate) source: Box<dyn Source>,
    pub(crate) config: Config,
    pub(crate) info: ModelInfo,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) template: Option<ChatTemplate>,
}

impl Opened {
    /// Opens a GGUF file, or a folder of safetensors.
    pub(crate) fn open(path: &Path) -> Result<Self, EngineError> {
        let wrong = |source| EngineError::Model {
            path: path.to_owned(),
            source,
        };
        if path.is_dir() {
            let name = path.file_name().unwrap_or("model".as_ref());
            let name = name.to_string_lossy();
            let mut folder = Folder::open(path)?;
            let config = folder.config().map_err(wrong)?;
            let tokenizer = folder.tokenizer(config.vocab)?;
            let template = folder.template(&tokenizer)?;
            let mut info = folder.info(&config, &name);
            info.chat = template.is_some();
            return Ok(Self {
                source: Box::new(folder),
                config,
                info,
                tokenizer,
                template,
            });
        }
        let map = Gguf::map(path).map_err(|source| EngineError::Open {
            path: path.to_owned(),
            source,
        })?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::gguf(map, &name).map_err(wrong)
    }

    fn gguf(map: memmap2::Mmap, name: &str) -> Result<Self, GgufError> {
        let file = Gguf::parse(map)?;
        let config = Config::read(&file)?;
        let info = ModelInfo::read(&file, &config, name)?;
        let tokenizer = Tokenizer::read(&file)?;
        if tokenizer.len() > config.vocab {
            let problem = format!(
                "{} tokens for an embedding of {} rows",
                tokenizer.len(),
                config.vocab
            );
            return Err(GgufError::invalid("`tokenizer.ggml.tokens`", problem));
        }
        let template = match file.find_str("tokenizer.chat_template")? {
            Some(source) => Some(
                ChatTemplate::new(source, tokenizer.bos_name(), tokenizer.eos_name())
                    .map_err(|e| GgufError::invalid("`tokenizer.chat_template`", e.to_string()))?,
            ),
            None => None,
        };
        Ok(Self {
            source: Box::new(file),
            config,
            info,
            tokenizer,
            template,
        })
    }
}
