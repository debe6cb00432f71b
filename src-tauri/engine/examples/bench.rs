//! Measures prefill and decode with the default model's real weights, sampling included.
//!
//! `cargo run --release -p steward-engine --example bench -- [--json] [--runs N] [--threads N] [MODEL]`

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use std::time::Instant;

use steward_engine::{Cancel, Engine, GenerateRequest, LoadOptions, Progress, Prompt, Session};

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
        ..LoadOptions::default()
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
    let (switch, resume) = switches(&engine, runs);
    report("engine/switch-us", "us", switch);
    report("engine/resume-us", "us", resume);
}

/// Tokens that the sessions of [`switches`] have behind them.
const BEHIND: usize = 200;

/// Two sessions that take turns at every token. What a switch costs: how much longer such a token
/// takes at the median than one of a session that goes on without a pause. And what going on and
/// standing still cost where nothing is computed in between. Both in microseconds.
fn switches(engine: &Engine, runs: u32) -> (f64, f64) {
    let begin = |salt| {
        let request = GenerateRequest::new(Prompt::Tokens(prompt(BEHIND, salt)), 4000);
        let mut session = engine
            .begin(request)
            .unwrap_or_else(|error| panic!("{error}"));
        go_on(&mut session, Some(4), &mut |_| ());
        session
    };
    let mut sessions = [begin(2001), begin(2002)];
    let (mut alone, mut in_turns) = (Vec::new(), Vec::new());
    // In turns of few tokens, so that a machine that changes its pace does so for both.
    for _ in 0..10 * runs {
        for session in &mut sessions {
            let mut last: Option<Instant> = None;
            go_on(session, Some(5), &mut |now: Instant| {
                alone.extend(last.map(|last| (now - last).as_secs_f64()));
                last = Some(now);
            });
        }
        let mut last: Option<Instant> = None;
        for turn in 0..9 {
            go_on(&mut sessions[turn % 2], Some(1), &mut |now: Instant| {
                in_turns.extend(last.map(|last| (now - last).as_secs_f64()));
                last = Some(now);
            });
        }
    }
    let switch = (middle(in_turns) - middle(alone)) * 1e6;
    let resume = median(runs, |_| {
        let started = Instant::now();
        for turn in 0..1000 {
            go_on(&mut sessions[turn % 2], Some(0), &mut |_| ());
        }
        started.elapsed().as_secs_f64() * 1e6 / 1000.0
    });
    (switch, resume)
}

/// Goes on with a session that does not end; `told` gets the time of each token.
fn go_on(session: &mut Session, quantum: Option<u32>, told: &mut dyn FnMut(Instant)) {
    let never = Cancel::new();
    let progress = session.run(quantum, &never, &never, &mut |_| told(Instant::now()));
    assert!(
        matches!(progress, Ok(Progress::Paused)),
        "a session ended before its time: {progress:?}"
    );
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
    middle((0..runs).map(&mut measure).collect())
}

fn middle(mut values: Vec<f64>) -> f64 {
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
