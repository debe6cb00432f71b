//! The engine against reference values that llama.cpp gave for the same file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

mod model;

use serde_json::Value;
use steward_engine::{Cancel, Finish, GenerateRequest, Message, Prompt, Role};

use model::engine;

fn goldens(name: &str) -> Value {
    let path = format!("{}/../../tests/goldens/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap()
}

fn ids(value: &Value) -> Vec<u32> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_u64().unwrap() as u32)
        .collect()
}

#[test]
fn tokenizer_agrees_in_every_row() {
    let goldens = goldens("tokenizer.json");
    for (rows, special) in [("plain", false), ("special", true)] {
        for row in goldens[rows].as_array().unwrap() {
            let text = row["text"].as_str().unwrap();
            assert_eq!(
                engine().encode(text, special).unwrap(),
                ids(&row["tokens"]),
                "{text:?}"
            );
            if !special {
                assert_eq!(engine().decode(&ids(&row["tokens"])), text);
            }
        }
    }
}

/// A first difference is right only where the reference itself was close to undecided.
const CLOSE: f64 = 0.25;

#[test]
fn greedy_continuations_agree() {
    let goldens = goldens("greedy.json");
    let (mut agreeing, mut distance) = (0, 0.0);
    for case in goldens["cases"].as_array().unwrap() {
        let text = case["prompt"].as_str().unwrap();
        let prompt = Prompt::Messages {
            messages: vec![Message {
                role: Role::User,
                content: text.to_owned(),
            }],
            assistant_prefix: String::new(),
        };
        assert_eq!(
            engine().prompt_tokens(&prompt).unwrap(),
            ids(&case["prompt_tokens"]),
            "the chat template gives other tokens for {text:?}"
        );
        let steps = case["steps"].as_array().unwrap();
        let mut request = GenerateRequest::new(prompt, steps.len());
        request.logprobs = true;
        let out = engine()
            .generate(&request, &Cancel::new(), &mut |_| ())
            .unwrap();
        let mut differs = false;
        for (index, step) in steps.iter().enumerate() {
            let id = step["id"].as_u64().unwrap() as u32;
            let got = out.ids.get(index).copied();
            let ended = got.is_none() && out.finish == Finish::Stop && id == 2;
            if ended {
                break;
            }
            if got != Some(id) {
                let margin = step["margin"].as_f64().unwrap();
                assert!(
                    margin < CLOSE,
                    "{text:?}, step {index}: {got:?} not {id}, {margin} apart"
                );
                differs = true;
                break;
            }
            agreeing += 1;
            distance += (f64::from(out.logprobs[index]) - step["logprob"].as_f64().unwrap()).abs();
        }
        println!(
            "{text:?}: {}",
            if differs {
                "differs at a close step"
            } else {
                "same"
            }
        );
    }
    let mean = distance / f64::from(agreeing);
    println!("{agreeing} agreeing tokens, log-probabilities {mean:.4} apart on average");
    assert!(agreeing > 100, "too few tokens agree to tell: {agreeing}");
    assert!(mean < 0.1, "log-probabilities differ by {mean} on average");
}
