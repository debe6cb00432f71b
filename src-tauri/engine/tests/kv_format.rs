//! Keys and values of eight bits, on the default model: half the memory, nearly the same text.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

#[allow(dead_code, reason = "other tests use the rest")]
mod model;

use steward_engine::{
    Cancel, Engine, GenerateRequest, KvFormat, LoadOptions, Progress, Prompt, Sampling,
};

/// The texts that are weighed; each begins with a story long enough for several segments.
const ENDS: [&str; 4] = [
    " The capital of France is Paris, and that of Germany is Berlin.",
    " Water boils at one hundred degrees Celsius at sea level.",
    " She opened the door, looked into the garden and called his name.",
    " The function returns the sum of its two arguments.",
];

fn load(kv_format: KvFormat) -> Engine {
    let options = LoadOptions {
        kv_format,
        ..LoadOptions::default()
    };
    Engine::load(&model::path(), &options).unwrap()
}

fn story() -> String {
    "Once upon a time there was a small village at the foot of a mountain. ".repeat(30)
}

#[test]
fn eight_bits_take_about_half_the_memory_and_weigh_texts_nearly_alike() {
    let (whole, small) = (load(KvFormat::F16), load(KvFormat::Q8));
    let (whole_bytes, small_bytes) = (whole.info().token_bytes, small.info().token_bytes);
    assert!(
        small_bytes * 10 < whole_bytes * 6,
        "{small_bytes} {whole_bytes}"
    );
    let ends = ENDS.map(str::to_owned);
    let prompt = Prompt::Text(story());
    let score = |engine: &Engine| engine.score(&prompt, &ends, &Cancel::new()).unwrap();
    for (expected, found) in score(&whole).iter().zip(score(&small)) {
        assert_eq!(expected.tokens, found.tokens);
        let apart = (expected.logprob - found.logprob).abs() / expected.tokens as f64;
        assert!(apart < 0.06, "{expected:?} {found:?}");
    }
}

#[test]
fn a_pause_changes_nothing_where_they_are_of_eight_bits() {
    let engine = load(KvFormat::Q8);
    let mut request = GenerateRequest::new(Prompt::Text(story()), 40);
    request.sampling = Sampling {
        temperature: 0.8,
        seed: 11,
        ..Sampling::default()
    };
    let expected = engine
        .generate(&request, &Cancel::new(), &mut |_| ())
        .unwrap();
    let mut session = engine.begin(request).unwrap();
    let found = loop {
        let run = session.run(Some(3), &Cancel::new(), &Cancel::new(), &mut |_| ());
        match run.unwrap() {
            Progress::Paused => {
                // Whatever comes between may take the pages: then they are computed anew.
                let other = GenerateRequest::new(Prompt::Text("Elsewhere".to_owned()), 2);
                engine
                    .generate(&other, &Cancel::new(), &mut |_| ())
                    .unwrap();
            }
            Progress::Done(out) => break out,
        }
    };
    assert_eq!(found.ids, expected.ids);
    assert!(!found.ids.is_empty());
}
