use std::collections::BTreeMap;

use crate::error::EngineError;

/// How the next token is chosen.
///
/// What the grammar and the parameters do to the logits, in this order; each sees what the one
/// before it left, as in Hugging Face's transformers:
/// 1. tokens that the constraint does not allow are left out;
/// 2. `logit_bias` is added;
/// 3. `repetition_penalty`, then `frequency_penalty` and `presence_penalty`;
/// 4. at `temperature` 0 the likeliest token is taken, the first of equals; otherwise logits are
///    divided by the temperature;
/// 5. `top_k`, 6. `top_p`, 7. `min_p`, 8. `typical_p`, each of which keeps at least one token;
/// 9. one of the rest is drawn by its probability.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// 0 takes the likeliest token; larger values choose more freely. Up to 100.
    pub temperature: f32,
    /// The likeliest tokens to choose from (Fan et al. 2018); 0 is all.
    pub top_k: u32,
    /// The likeliest tokens that together have this probability are chosen from (Holtzman et al.
    /// 2020); 1 is all.
    pub top_p: f32,
    /// Tokens at least this likely, as a share of the likeliest one's probability, are chosen from
    /// (Nguyen et al. 2025); 0 is all.
    pub min_p: f32,
    /// The tokens whose information is closest to the expected one and that together have this
    /// probability are chosen from (locally typical sampling, Meister et al. 2023); 1 is all.
    pub typical_p: f32,
    /// Divides the positive logits of tokens of the prompt and the answer, and multiplies their
    /// negative ones (Keskar et al. 2019). 0.1 to 10; 1 changes nothing.
    pub repetition_penalty: f32,
    /// Taken off a token's logit for each time that the answer has it, as in `OpenAI`'s API. -2 to 2.
    pub frequency_penalty: f32,
    /// Taken off a token's logit if the answer has it, as in `OpenAI`'s API. -2 to 2.
    pub presence_penalty: f32,
    /// How many of the last tokens the penalties look at; all where absent.
    pub penalty_window: Option<u32>,
    /// What is added to the logits of some tokens, -100 to 100.
    pub logit_bias: BTreeMap<u32, f32>,
    /// The same seed, request and model give the same answer, on any machine.
    pub seed: u64,
}

impl Default for Sampling {
    /// Greedy.
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            typical_p: 1.0,
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            penalty_window: None,
            logit_bias: BTreeMap::new(),
            seed: 0,
        }
    }
}

impl Sampling {
    /// Whether what was said before counts.
    pub(crate) fn has_penalties(&self) -> bool {
        self.repetition_penalty != 1.0
            || self.frequency_penalty != 0.0
            || self.presence_penalty != 0.0
    }

    pub(crate) fn check(&self, vocab: usize) -> Result<(), EngineError> {
        let between = |value: f32, low: f32, high: f32| (low..=high).contains(&value);
        let share = |value: f32| value > 0.0 && value <= 1.0;
        let refuse = |problem: String| Err(EngineError::InvalidRequest(problem));
        for (name, value, is_good, range) in [
            (
                "temperature",
                self.temperature,
                between(self.temperature, 0.0, 100.0),
                "between 0 and 100",
            ),
            (
                "top_p",
                self.top_p,
                share(self.top_p),
                "above 0 and up to 1",
            ),
            (
                "min_p",
                self.min_p,
                between(self.min_p, 0.0, 1.0),
                "between 0 and 1",
            ),
            (
                "typical_p",
                self.typical_p,
                share(self.typical_p),
                "above 0 and up to 1",
            ),
            (
                "repetition_penalty",
                self.repetition_penalty,
                between(self.repetition_penalty, 0.1, 10.0),
                "between 0.1 and 10",
            ),
            (
                "frequency_penalty",
                self.frequency_penalty,
                between(self.frequency_penalty, -2.0, 2.0),
                "between -2 and 2",
            ),
            (
                "presence_penalty",
                self.presence_penalty,
                between(self.presence_penalty, -2.0, 2.0),
                "between -2 and 2",
            ),
        ] {
            if !is_good {
                return refuse(format!("{name} `{value}` is not {range}"));
            }
        }
        if self.penalty_window == Some(0) {
            return refuse(
                "penalty_window `0` would switch the penalties off; choose 1 or more, or leave it out"
                    .to_owned(),
            );
        }
        for (&id, &bias) in &self.logit_bias {
            if id as usize >= vocab {
                return refuse(format!(
                    "logit_bias has token `{id}`, which is not one of the {vocab} of the vocabulary"
                ));
            }
            if !between(bias, -100.0, 100.0) {
                return refuse(format!(
                    "logit_bias `{bias}` of token `{id}` is not between -100 and 100"
                ));
            }
        }
        Ok(())
    }
}
