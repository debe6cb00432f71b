use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How tokens are chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sampling {
    /// 0 is greedy.
    pub temperature: f32,
    /// Share of probability kept, (0, 1].
    pub top_p: f32,
    /// Seed of the generator.
    pub seed: u64,
    /// The likeliest tokens that are chosen from; 0 is all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub top_k: u32,
    /// Tokens at least this likely, as a share of the likeliest one's probability, are chosen from;
    /// 0 is all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub min_p: f32,
    /// Weakens tokens of the prompt and the answer, above 1; 1 changes nothing.
    #[serde(default = "no_penalty", skip_serializing_if = "is_no_penalty")]
    pub repetition_penalty: f32,
    /// Taken off a token's logit for each time that the answer has it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub frequency_penalty: f32,
    /// Taken off a token's logit if the answer has it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub presence_penalty: f32,
}

/// Whether a parameter stands as it does where it is absent: written requests stay as they were.
fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn no_penalty() -> f32 {
    1.0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_no_penalty(value: &f32) -> bool {
    *value == no_penalty()
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_p: 1.0,
            seed: 0,
            top_k: 0,
            min_p: 0.0,
            repetition_penalty: no_penalty(),
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_written_before_there_were_more_parameters_stays_as_it_was() {
        let written = json!({ "temperature": 0.5, "top_p": 0.75, "seed": 7 });
        let read: Sampling = serde_json::from_value(written.clone()).unwrap();
        let expected = Sampling {
            temperature: 0.5,
            top_p: 0.75,
            seed: 7,
            ..Sampling::default()
        };
        assert_eq!(read, expected);
        assert_eq!(serde_json::to_value(&read).unwrap(), written);
        let all = Sampling {
            top_k: 40,
            min_p: 0.25,
            repetition_penalty: 1.5,
            frequency_penalty: 0.5,
            presence_penalty: -0.5,
            ..expected
        };
        let written = serde_json::to_value(&all).unwrap();
        assert_eq!(serde_json::from_value::<Sampling>(written).unwrap(), all);
    }
}
