use crate::gguf::{Gguf, GgufError};
use crate::kv::KvFormat;
use crate::memory::BESIDES;
use crate::model::Config;

/// What a model file says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    /// The model family, such as `llama`.
    pub architecture: String,
    /// The model's name; the file's name where it has none.
    pub name: String,
    /// The licence as an SPDX identifier, if the file names one.
    pub license: Option<String>,
    /// How most tensors are stored, such as `Q4_1`.
    pub file_type: String,
    /// Tokens that prompt and answer may have together.
    pub context: usize,
    /// Tokens in the vocabulary.
    pub vocab: usize,
    /// Weights in all tensors.
    pub parameters: u64,
    /// Transformer layers.
    pub layers: usize,
    /// Elements of a hidden state.
    pub width: usize,
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of keys and values that a token of context takes.
    pub token_bytes: u64,
    /// Whether the file has a chat template.
    pub chat: bool,
    /// Threads that compute.
    pub threads: usize,
    /// The instruction set that the kernels use: `portable`, `avx2` or `avx512-vnni`.
    pub instructions: &'static str,
}

impl ModelInfo {
    /// Bytes of memory that the model takes with a context of so many tokens in use.
    pub fn needs(&self, context: usize) -> u64 {
        let cache = self.token_bytes.saturating_mul(context as u64);
        self.bytes.saturating_add(cache).saturating_add(BESIDES)
    }

    pub(crate) fn read(
        file: &Gguf,
        config: &Config,
        fallback_name: &str,
    ) -> Result<Self, GgufError> {
        let text = |key: &str| Ok::<_, GgufError>(file.find_str(key)?.map(str::to_owned));
        Ok(Self {
            architecture: file.str("general.architecture")?.to_owned(),
            name: text("general.name")?.unwrap_or_else(|| fallback_name.to_owned()),
            license: text("general.license")?,
            file_type: file_type(file.find_u32("general.file_type")?),
            context: config.context,
            vocab: config.vocab,
            parameters: file.parameters(),
            layers: config.layers,
            width: config.width,
            bytes: file.size() as u64,
            token_bytes: config.kv_shape(KvFormat::F16).token_bytes(),
            chat: file.find_str("tokenizer.chat_template")?.is_some(),
            threads: 0,
            instructions: "",
        })
    }
}

fn file_type(number: Option<u32>) -> String {
    match number {
        Some(0) => "F32".to_owned(),
        Some(1) => "F16".to_owned(),
        Some(2) => "Q4_0".to_owned(),
        Some(3) => "Q4_1".to_owned(),
        Some(7) => "Q8_0".to_owned(),
        Some(8) => "Q5_0".to_owned(),
        Some(9) => "Q5_1".to_owned(),
        Some(14) => "Q4_K_S".to_owned(),
        Some(15) => "Q4_K_M".to_owned(),
        Some(16) => "Q5_K_S".to_owned(),
        Some(17) => "Q5_K_M".to_owned(),
        Some(18) => "Q6_K".to_owned(),
        Some(32) => "BF16".to_owned(),
        Some(other) => format!("type {other}"),
        None => "unknown".to_owned(),
    }
}
