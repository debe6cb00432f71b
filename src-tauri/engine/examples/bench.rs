//! Measures prefill and decode with the default model's real weights, sampling included.
//!
//! `cargo run --release -p steward-engine --example bench -- [--json] [--runs N] [--threads N] [MODEL]`

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use std::time::Instant;

use steward_engine::{Cancel, Engine, GenerateRequest, LoadOptions, Prompt};

const FILE: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

fn main() {
    let mut json = false;
    let mut runs = 7u32;
    let mut model = None;
    let mut threads: Option<usize> = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = true,
            "--runs" => runs = number(arguments.next(), "--runs"),
            "--threads" => threads = Some(number(arguments.next(), "--threads")),
            path => model = Some(PathBuf::from(path)),
        }
    }
    let path = model.unwrap_or_else(default_model);
    let started = Instant::now();
    let options = LoadOptions {
        threads,
        context: None,
    };
    let engine = Engine::load(&path, &options).unwrap_or_else(|error| panic!("{error}"));
    let loaded = started.elapsed().as_secs_f64();
    let info = engine.info();
    if !json {
        println!(
            "{} {}, {} threads, {}, median of {runs} runs",
            info.name, info.file_type, info.threads, info.instructions
        );
    }
    let report = |name: &str, unit: &str, value: f64| {
        if json {
            println!(
                "{}",
                serde_json::json!({ "bench": name, "unit": unit, "value": value })
            );
        } else {
            println!("{name:<24}{value:>10.1} {unit}");
        }
    };
    report("engine/load-ms", "ms", loaded * 1e3);
    let prefill = median(runs, |run| {
        let out = generate(&engine, prompt(512, run), 1);
        assert_eq!(out.cached_tokens, 0, "a cached prompt would be measured");
        512.0 / out.prefill_seconds
    });
    report("engine/prefill-512", "tok/s", prefill);
    let decode = median(runs, |run| {
        let out = generate(&engine, prompt(16, 1000 + run), 129);
        // The first token comes with the prefill.
        (out.ids.len() - 1) as f64 / out.decode_seconds
    });
    report("engine/decode-128", "tok/s", decode);
}

fn number<T: std::str::FromStr>(argument: Option<String>, flag: &str) -> T {
    let number = argument.and_then(|argument| argument.parse().ok());
    number.unwrap_or_else(|| panic!("{flag} wants a number"))
}

/// Tokens of ordinary words, with another one first in each run so that no prefix is reused.
fn prompt(len: usize, run: u32) -> Vec<u32> {
    (0..len as u32)
        .map(|index| 1000 + run + index * 37 % 4000)
        .collect()
}

fn generate(engine: &Engine, prompt: Vec<u32>, max_tokens: usize) -> steward_engine::Generation {
    let request = GenerateRequest::new(Prompt::Tokens(prompt), max_tokens);
    engine
        .generate(&request, &Cancel::new(), &mut |_| ())
        .unwrap_or_else(|error| panic!("{error}"))
}

fn median(runs: u32, mut measure: impl FnMut(u32) -> f64) -> f64 {
    measure(runs);
    let mut values: Vec<f64> = (0..runs).map(&mut measure).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn default_model() -> PathBuf {
    let set = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let folder = set("STEWARD_MODELS").unwrap_or_else(|| {
        let data = set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")));
        data.expect("HOME is set").join("steward/models")
    });
    folder.join(FILE)
}
