//! Every family of models against what `transformers` computes with the same weights.
//! `tests/goldens/architectures.py` says how they were made.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

#[allow(dead_code, reason = "other tests use the rest")]
mod tiny;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use steward_engine::{
    Cancel, Engine, GenerateRequest, LoadOptions, Progress, Prompt, TokenLogprob,
};
use tiny::{Field, File, Grain, Kind, Tensor, noise};

#[derive(Deserialize)]
struct Golden {
    name: String,
    architecture: String,
    metadata: BTreeMap<String, Value>,
    seed: u64,
    tensors: Vec<Shape>,
    prompt: Vec<u32>,
    logits: BTreeMap<usize, Vec<f64>>,
    answer: Vec<u32>,
}

#[derive(Deserialize)]
struct Shape {
    name: String,
    dims: Vec<u64>,
    #[serde(default)]
    scale: f32,
    #[serde(default)]
    offset: f32,
    /// The values themselves, where they are not made up.
    values: Option<Vec<f32>>,
}

fn goldens() -> Vec<Golden> {
    let text = include_str!("../../../tests/goldens/architectures.json");
    serde_json::from_str(text).unwrap()
}

/// The model as a file, with the metadata and tensors of the golden in place of the tiny model's.
fn file_of(golden: &Golden) -> File {
    let mut file = File::new(Kind::F32, Grain::Eight);
    file.metadata.retain(|(key, _)| !key.starts_with("llama."));
    file.set(
        "general.architecture",
        Field::Text(golden.architecture.clone()),
    );
    for (key, value) in &golden.metadata {
        let field = match value {
            Value::String(text) => Field::Text(text.clone()),
            Value::Number(number) if number.is_u64() => {
                Field::U32(number.as_u64().unwrap().try_into().unwrap())
            }
            number => Field::F32(number.as_f64().unwrap() as f32),
        };
        file.set(&format!("{}.{key}", golden.architecture), field);
    }
    // As many tokens as the embedding has rows; the last one ends an answer.
    let count = golden.logits[&0].len();
    let names = (0..count).map(|id| format!("t{id}")).collect();
    let mut kinds = vec![1; count];
    kinds[count - 1] = 3;
    file.set("tokenizer.ggml.tokens", Field::Texts(names));
    file.set("tokenizer.ggml.token_type", Field::I32s(kinds));
    file.set("tokenizer.ggml.eos_token_id", Field::U32(count as u32 - 1));
    let mut random = golden.seed;
    let tensor = |shape: &Shape| {
        let count = shape.dims.iter().product::<u64>() as usize;
        let values = shape.values.clone().unwrap_or_else(|| {
            let noise = noise(&mut random, count);
            noise
                .iter()
                .map(|value| value * shape.scale + shape.offset)
                .collect()
        });
        Tensor {
            name: shape.name.clone(),
            dims: shape.dims.clone(),
            kind: Kind::F32 as u32,
            data: values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect(),
        }
    };
    file.tensors = golden.tensors.iter().map(tensor).collect();
    file
}

fn load(golden: &Golden) -> Engine {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, file_of(golden).bytes()).unwrap();
    Engine::load(&path, &LoadOptions::default()).unwrap()
}

fn request(prompt: &[u32], tokens: usize) -> GenerateRequest {
    GenerateRequest {
        logprobs: true,
        ignore_eos: true,
        ..GenerateRequest::new(Prompt::Tokens(prompt.to_vec()), tokens)
    }
}

/// Log-probabilities of all tokens.
fn log_softmax(logits: &[f64]) -> Vec<f64> {
    let peak = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logits.iter().map(|logit| (logit - peak).exp()).sum();
    logits.iter().map(|logit| logit - peak - sum.ln()).collect()
}

#[test]
fn every_family_gives_the_reference_s_probabilities_and_answer() {
    let goldens = goldens();
    assert_eq!(goldens.len(), 6);
    for golden in &goldens {
        let engine = load(golden);
        assert_eq!(engine.info().architecture, golden.architecture);
        for (&at, logits) in &golden.logits {
            let mut request = request(&golden.prompt[..=at], 1);
            request.top_logprobs = 20;
            let out = engine
                .generate(&request, &Cancel::new(), &mut |_| ())
                .unwrap();
            let expected = log_softmax(logits);
            let top: &[TokenLogprob] = &out.top_logprobs[0];
            assert_eq!(top.len(), 20);
            for found in top {
                let expected = expected[found.id as usize];
                let found = f64::from(found.logprob);
                // Keys and values are kept in half precision.
                assert!(
                    (found - expected).abs() < 0.02,
                    "{} at {at}: {found} and not {expected}",
                    golden.name
                );
            }
        }
        let out = engine
            .generate(
                &request(&golden.prompt, golden.answer.len()),
                &Cancel::new(),
                &mut |_| (),
            )
            .unwrap();
        assert_eq!(out.ids, golden.answer, "{}", golden.name);
    }
}

#[test]
fn a_token_does_not_depend_on_how_its_text_was_cut() {
    for golden in goldens() {
        let whole = load(&golden);
        let cut = load(&golden);
        let tokens = golden.answer.len();
        let expected = whole
            .generate(
                &request(&golden.prompt, tokens),
                &Cancel::new(),
                &mut |_| (),
            )
            .unwrap();
        // The prompt's beginning is known already, and its rest is read token by token.
        for len in (4..golden.prompt.len()).step_by(5) {
            cut.generate(
                &request(&golden.prompt[..len], 1),
                &Cancel::new(),
                &mut |_| (),
            )
            .unwrap();
        }
        let mut session = cut.begin(request(&golden.prompt, tokens)).unwrap();
        let never = Cancel::new();
        let out = loop {
            match session.run(Some(1), &never, &never, &mut |_| ()).unwrap() {
                Progress::Paused => {}
                Progress::Done(out) => break out,
            }
        };
        let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(out.ids, expected.ids, "{}", golden.name);
        assert_eq!(
            bits(&out.logprobs),
            bits(&expected.logprobs),
            "{}",
            golden.name
        );
    }
}

#[test]
fn a_tensor_that_would_not_be_used_is_refused() {
    let golden = &goldens()[1];
    let mut file = file_of(golden);
    file.tensors.push(Tensor {
        name: "blk.0.ffn_gate_inp.weight".to_owned(),
        dims: vec![32],
        kind: Kind::F32 as u32,
        data: vec![0; 128],
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, file.bytes()).unwrap();
    let error = Engine::load(&path, &LoadOptions::default()).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("`blk.0.ffn_gate_inp.weight`"), "{said}");
}
