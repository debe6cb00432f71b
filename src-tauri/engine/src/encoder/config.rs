use crate::gguf::GgufError;

/// Sizes beyond these are of no encoder that could be run, and keep products in range.
const MAX_LAYERS: usize = 256;
const MAX_WIDTH: usize = 1 << 14;
const MAX_POSITIONS: usize = 1 << 16;
const MAX_VOCAB: usize = 1 << 24;

/// The hyperparameters of an encoder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct EncoderConfig {
    pub(crate) layers: usize,
    pub(crate) width: usize,
    pub(crate) hidden: usize,
    pub(crate) heads: usize,
    pub(crate) vocab: usize,
    /// Tokens of a text at most.
    pub(crate) positions: usize,
    /// The position of a text's first token.
    pub(crate) first_position: usize,
    pub(crate) epsilon: f32,
}

impl EncoderConfig {
    pub(super) fn head_len(&self) -> usize {
        self.width / self.heads
    }

    /// Whether all sizes are such that the engine can run them.
    pub(super) fn check(self) -> Result<Self, GgufError> {
        for (name, found, limit) in [
            ("layers", self.layers, MAX_LAYERS),
            ("width", self.width, MAX_WIDTH),
            ("feed-forward width", self.hidden, MAX_WIDTH),
            ("heads", self.heads, MAX_WIDTH),
            ("vocabulary", self.vocab, MAX_VOCAB),
            ("positions", self.positions, MAX_POSITIONS),
        ] {
            if found == 0 || found > limit {
                let problem = format!("`{found}` is not between 1 and {limit}");
                return Err(GgufError::invalid(format!("the number of {name}"), problem));
            }
        }
        // A head begins with a tile of 16 rows.
        if !self.width.is_multiple_of(self.heads) || !self.head_len().is_multiple_of(16) {
            let problem = format!("a width of {} in {} heads", self.width, self.heads);
            return Err(GgufError::invalid("the size of a head", problem));
        }
        if !(self.epsilon.is_finite() && self.epsilon >= 0.0) {
            let problem = format!("`{}`", self.epsilon);
            return Err(GgufError::invalid("the norm's epsilon", problem));
        }
        Ok(self)
    }
}
