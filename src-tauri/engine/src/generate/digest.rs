use sha2::{Digest, Sha256};

use super::snapshot::{DIGEST, Writer};
use super::{Constraint, GenerateRequest, Sampling};
use crate::engine::Engine;

/// Digest of all that decides the answer besides the model.
pub(super) fn request_digest(
    engine: &Engine,
    request: &GenerateRequest,
    prompt: &[u32],
) -> [u8; DIGEST] {
    let mut all = Writer::default();
    all.number(engine.info().context);
    all.number(engine.pages().shape().format as usize);
    all.ids(prompt);
    all.bytes(&(request.max_tokens as u64).to_le_bytes());
    all.sampling(&request.sampling);
    all.number(request.stop.len());
    for stop in &request.stop {
        all.text(stop);
    }
    match &request.constraint {
        None => all.number(0),
        Some(Constraint::JsonSchema(schema)) => {
            all.number(1);
            all.text(&schema.to_string());
        }
        Some(Constraint::Regex(regex)) => {
            all.number(2);
            all.text(regex);
        }
        Some(Constraint::Lark(grammar)) => {
            all.number(3);
            all.text(grammar);
        }
    }
    all.number(usize::from(request.logprobs));
    all.number(request.top_logprobs);
    all.number(request.beams);
    all.number(usize::from(request.ignore_eos));
    Sha256::digest(&all.0).into()
}

impl Writer {
    fn sampling(&mut self, sampling: &Sampling) {
        let Sampling {
            temperature,
            top_k,
            top_p,
            min_p,
            typical_p,
            repetition_penalty,
            frequency_penalty,
            presence_penalty,
            penalty_window,
            logit_bias,
            seed,
        } = sampling;
        for value in [
            temperature,
            top_p,
            min_p,
            typical_p,
            repetition_penalty,
            frequency_penalty,
            presence_penalty,
        ] {
            self.bytes(&value.to_le_bytes());
        }
        self.bytes(&top_k.to_le_bytes());
        self.bytes(&penalty_window.unwrap_or(0).to_le_bytes());
        self.bytes(&seed.to_le_bytes());
        self.number(logit_bias.len());
        for (id, bias) in logit_bias {
            self.bytes(&id.to_le_bytes());
            self.bytes(&bias.to_le_bytes());
        }
    }
}
