//! Whether a model can run on this machine, told before it is loaded.

use std::path::Path;

use steward_engine::{Engine, ModelInfo, available_memory};
use steward_kernel::SysError;

use crate::local::explained;

/// Tokens of context that are used at most where nothing else is said; a larger one is seldom
/// filled and holds memory.
const CONTEXT_MOST: usize = 32_768;
/// Tokens of context below which a model is of little use.
const CONTEXT_LEAST: usize = 2_048;

/// How a model fits in the memory that is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fits {
    /// With room to spare.
    Well,
    /// Only just: other programs may have to give way.
    Tightly,
    /// Not.
    Not,
}

/// What is known of a model's file before it is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fitness {
    /// How it fits.
    pub fits: Fits,
    /// Why, in a sentence.
    pub why: String,
    /// Tokens of context to load it with.
    pub context: u32,
    /// Its family and size, such as `llama, 135 M weights, Q4_1`.
    pub kind: String,
}

/// Looks at a model's file and at the memory that is left.
///
/// # Errors
/// A file that cannot be read, is damaged, or is of a kind that the engine does not run.
pub fn fitness(file: &Path) -> Result<Fitness, SysError> {
    let info = Engine::inspect(file).map_err(|error| explained(&error))?;
    Ok(judged(&info, available_memory()))
}

fn judged(info: &ModelInfo, available: Option<u64>) -> Fitness {
    let kind = format!(
        "{}, {} M weights, {}",
        info.architecture,
        info.parameters.div_ceil(1_000_000),
        info.file_type
    );
    let mut context = info.context.min(CONTEXT_MOST);
    let Some(available) = available else {
        return Fitness {
            fits: Fits::Well,
            why: format!("needs {} MiB", info.needs(context) >> 20),
            context: context as u32,
            kind,
        };
    };
    let comfortable = available / 10 * 7;
    while info.needs(context) > comfortable && context / 2 >= CONTEXT_LEAST {
        context /= 2;
    }
    let needed = info.needs(context);
    let (fits, word) = if needed <= comfortable {
        (Fits::Well, "fits")
    } else if needed <= available {
        (Fits::Tightly, "tight")
    } else {
        (Fits::Not, "does not fit")
    };
    Fitness {
        fits,
        why: format!(
            "{word}: needs {} MiB with a context of {context} tokens, {} MiB are left",
            needed >> 20,
            available >> 20
        ),
        context: context as u32,
        kind,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    const MIB: u64 = 1 << 20;

    fn model(bytes: u64, context: usize) -> ModelInfo {
        ModelInfo {
            architecture: "llama".to_owned(),
            name: "m".to_owned(),
            license: None,
            file_type: "Q4_0".to_owned(),
            context,
            vocab: 1,
            parameters: 1_500_000_000,
            layers: 1,
            width: 1,
            bytes,
            token_bytes: MIB / 16,
            chat: true,
            threads: 1,
            instructions: "portable",
        }
    }

    #[test]
    fn a_model_fits_well_tightly_or_not() {
        let row = |available, context| {
            let told = judged(&model(1000 * MIB, context), Some(available * MIB));
            (told.fits, told.context)
        };
        assert_eq!(row(16_000, 8192), (Fits::Well, 8192));
        // The context is what gives way first.
        assert_eq!(row(2_000, 8192), (Fits::Well, 4096));
        assert_eq!(row(1_500, 8192), (Fits::Tightly, 2048));
        assert_eq!(row(1_100, 8192), (Fits::Not, 2048));
        assert_eq!(row(1_000_000, 1 << 20), (Fits::Well, 32_768));
        assert_eq!(row(1_100, 512), (Fits::Tightly, 512));
        let told = judged(&model(1000 * MIB, 8192), Some(1_100 * MIB));
        assert_eq!(
            told.why,
            "does not fit: needs 1188 MiB with a context of 2048 tokens, 1100 MiB are left"
        );
        assert_eq!(told.kind, "llama, 1500 M weights, Q4_0");
    }
}
