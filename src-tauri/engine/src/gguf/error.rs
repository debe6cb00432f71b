/// What is wrong with a GGUF file, and in which field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GgufError {
    /// A field reaches past the end of the file.
    #[error(
        "the file is cut short: {field} needs {needed} bytes at offset {offset}, and the file has \
         {size}; download it again"
    )]
    CutShort {
        /// The field being read.
        field: String,
        /// Bytes it takes.
        needed: u64,
        /// Where it starts.
        offset: u64,
        /// Bytes in the file.
        size: u64,
    },
    /// The first four bytes are not `GGUF`.
    #[error("not a GGUF file: it starts with `{found}` instead of `GGUF`")]
    Magic {
        /// The first four bytes, escaped.
        found: String,
    },
    /// The version is not one this reader knows.
    #[error("unknown GGUF version `{found}`: versions 2 and 3 can be read")]
    Version {
        /// The version in the file.
        found: u32,
    },
    /// A count or size is beyond what the file could hold or this reader accepts.
    #[error("{field} is `{found}`, more than the {limit} that are possible here")]
    TooLarge {
        /// The field that holds the figure.
        field: String,
        /// The figure in the file.
        found: u64,
        /// The largest figure accepted.
        limit: u64,
    },
    /// A type number that stands for nothing known.
    #[error("unknown type `{found}` in {field}")]
    UnknownType {
        /// The field that holds the number.
        field: String,
        /// The number in the file.
        found: u32,
    },
    /// A tensor type that exists and that this engine has no kernel for.
    #[error(
        "{field} has type `{found}`: use a file with Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, F16, BF16 or F32 tensors"
    )]
    UnsupportedTensor {
        /// The tensor.
        field: String,
        /// The type's name.
        found: &'static str,
    },
    /// Text that is not UTF-8.
    #[error("{field} is not valid UTF-8")]
    Utf8 {
        /// The field that holds the text.
        field: String,
    },
    /// A name that occurs twice.
    #[error("{field} occurs twice")]
    Duplicate {
        /// The key or tensor.
        field: String,
    },
    /// A key or tensor that the model needs is not there.
    #[error("{field} is missing")]
    Missing {
        /// The key or tensor.
        field: String,
    },
    /// A value that is there and cannot be used.
    #[error("{field}: {problem}")]
    Invalid {
        /// The key or tensor.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A model family this engine does not run.
    #[error(
        "unknown architecture `{found}` in `general.architecture`: this engine runs `llama`, `qwen2`, `qwen3` and `gemma3`"
    )]
    Architecture {
        /// The architecture in the file.
        found: String,
    },
}

impl GgufError {
    pub(crate) fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid {
            field: field.into(),
            problem: problem.into(),
        }
    }
}
