//! Measures the engine with the default model's real weights, sampling included.
//!
//! `cargo run --release -p steward-engine --example bench -- [--json] [--runs N] [--threads N] [--only NAME] [MODEL]`

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use steward_engine::{
    Cancel, Constraint, Engine, GenerateRequest, LoadOptions, Progress, Prompt, Session,
};

const FILE: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

fn main() {
    let mut json = false;
    let mut runs = 7u32;
    let mut model = None;
    let mut threads: Option<usize> = None;
    let mut only = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = true,
            "--runs" => runs = number(arguments.next(), "--runs"),
            "--threads" => threads = Some(number(arguments.next(), "--threads")),
            "--only" => only = arguments.next(),
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
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let report = |name: &str, unit: &str, value: f64| {
        if !wanted(name) {
            return;
        }
        if json {
            println!(
                "{}",
                serde_json::json!({ "bench": name, "unit": unit, "value": value })
            );
        } else {
            println!("{name:<28}{value:>10.2} {unit}");
        }
    };
    report("engine/load-ms", "ms", loaded * 1e3);
    for (name, measure) in ROWS {
        if wanted(name) {
            let unit = match name {
                "engine/resume-2000" | "engine/tool-calls-16" => "/s",
                _ => "tok/s",
            };
            report(name, unit, median(runs, |run| measure(&engine, run)));
        }
    }
    if wanted("engine/decode-of-bandwidth") {
        // In turns, so that a machine that changes its pace does so for both.
        let share = median(runs, |run| {
            let bandwidth = read_bandwidth(info.threads);
            decode_after(&engine, 16, 9000 + run) * info.bytes as f64 / bandwidth
        });
        report("engine/decode-of-bandwidth", "of 1", share);
    }
    if wanted("engine/switch-us") || wanted("engine/resume-us") {
        let (switch, resume) = switches(&engine, runs);
        report("engine/switch-us", "us", switch);
        report("engine/resume-us", "us", resume);
    }
}

type Measure = fn(&Engine, u32) -> f64;

/// What llama.cpp is measured at too: tokens a second, but for the last, which is resumptions.
const ROWS: [(&str, Measure); 7] = [
    ("engine/prefill-512", |engine, run| {
        let out = generate(engine, prompt(512, run), 1);
        assert_eq!(out.cached_tokens, 0, "a cached prompt would be measured");
        512.0 / out.prefill_seconds
    }),
    ("engine/decode-128", |engine, run| {
        decode_after(engine, 16, 1000 + run)
    }),
    ("engine/decode-128-at-1500", |engine, run| {
        decode_after(engine, 1500, 2000 + run)
    }),
    ("engine/batch-16", |engine, run| {
        let begin = |stream| {
            let mut session = begin(engine, prompt(64, 3000 + 100 * run + stream));
            go_on(&mut session, Some(1), &mut |_| ());
            session
        };
        let sessions = (0..STREAMS).map(begin).collect();
        f64::from(STREAMS * 64) / together(sessions, 64)
    }),
    ("engine/shared-prefix-16", |engine, run| {
        let shared = prompt(1024, 6000 + run);
        let prompts = (0..STREAMS).map(|stream| [&shared[..], &prompt(64, 100 + stream)].concat());
        let sessions = prompts.map(|prompt| begin(engine, prompt)).collect();
        // A step of the prompt counts as one token of a turn.
        f64::from(STREAMS * 64) / together_to(sessions, 64)
    }),
    ("engine/tool-calls-16", |engine, run| {
        let system = prompt(512, 10_000 + run);
        let requests = (0..STREAMS).map(|stream| {
            let mut request = request([&system[..], &prompt(48, 200 + stream)].concat(), 96);
            request.ignore_eos = false;
            request.constraint = Some(Constraint::JsonSchema(tools()));
            request
        });
        let sessions: Vec<Session> = requests
            .map(|request| {
                engine
                    .begin(request)
                    .unwrap_or_else(|error| panic!("{error}"))
            })
            .collect();
        f64::from(STREAMS) / until_done(sessions)
    }),
    ("engine/resume-2000", |engine, run| {
        let mut session = begin(engine, prompt(2000, 7000 + run));
        go_on(&mut session, Some(17), &mut |_| ());
        generate(engine, prompt(64, 8000 + run), 8);
        let started = Instant::now();
        go_on(&mut session, Some(1), &mut |_| ());
        1.0 / started.elapsed().as_secs_f64()
    }),
];

/// Streams side by side.
const STREAMS: u32 = 16;

/// A generation that does the work that is counted: no token of it is guessed.
fn request(prompt: Vec<u32>, max_tokens: usize) -> GenerateRequest {
    let mut request = GenerateRequest::new(Prompt::Tokens(prompt), max_tokens);
    request.speculate = false;
    request.ignore_eos = true;
    request
}

fn begin(engine: &Engine, prompt: Vec<u32>) -> Session {
    let session = engine.begin(request(prompt, 512));
    session.unwrap_or_else(|error| panic!("{error}"))
}

fn decode_after(engine: &Engine, len: usize, salt: u32) -> f64 {
    let out = generate(engine, prompt(len, salt), 129);
    // The first token comes with the prefill.
    (out.ids.len() - 1) as f64 / out.decode_seconds
}

/// Seconds in which all sessions go on by `tokens`, side by side.
fn together(mut sessions: Vec<Session>, tokens: u32) -> f64 {
    let start = Barrier::new(sessions.len() + 1);
    thread::scope(|scope| {
        for session in &mut sessions {
            scope.spawn(|| {
                start.wait();
                go_on(session, Some(tokens), &mut |_| ());
            });
        }
        start.wait();
        Instant::now()
    })
    .elapsed()
    .as_secs_f64()
}

/// Seconds in which all sessions have written `tokens`, side by side.
fn together_to(mut sessions: Vec<Session>, tokens: u32) -> f64 {
    let started = Instant::now();
    thread::scope(|scope| {
        for session in &mut sessions {
            scope.spawn(move || {
                let mut written = 0;
                while written < tokens {
                    go_on(session, Some(tokens - written), &mut |_| written += 1);
                }
            });
        }
    });
    started.elapsed().as_secs_f64()
}

/// Seconds in which all sessions come to their end, side by side.
fn until_done(sessions: Vec<Session>) -> f64 {
    let started = Instant::now();
    thread::scope(|scope| {
        for mut session in sessions {
            scope.spawn(move || {
                let never = Cancel::new();
                let progress = session.run(None, &never, &never, &mut |_| ());
                assert!(matches!(progress, Ok(Progress::Done(_))), "{progress:?}");
            });
        }
    });
    started.elapsed().as_secs_f64()
}

/// A call of one of eight tools, as a JSON schema.
fn tools() -> serde_json::Value {
    let path = serde_json::json!({ "type": "string", "maxLength": 24 });
    let call = |name: &str, arguments: &[&str]| {
        let fields: serde_json::Map<_, _> = arguments
            .iter()
            .map(|argument| ((*argument).to_owned(), path.clone()))
            .collect();
        serde_json::json!({
            "type": "object",
            "properties": {
                "tool": { "const": name },
                "arguments": {
                    "type": "object", "properties": fields, "required": arguments,
                    "additionalProperties": false
                }
            },
            "required": ["tool", "arguments"],
            "additionalProperties": false
        })
    };
    serde_json::json!({ "anyOf": [
        call("read_file", &["path"]),
        call("write_file", &["path", "text"]),
        call("list_folder", &["path"]),
        call("move_file", &["from", "to"]),
        call("delete_file", &["path"]),
        call("search", &["words"]),
        call("remember", &["fact"]),
        call("answer", &["text"]),
    ] })
}

/// Bytes a second at which so many threads read memory that is in no cache.
fn read_bandwidth(threads: usize) -> f64 {
    const BYTES: usize = 256 << 20;
    let memory = vec![1u64; BYTES / size_of::<u64>()];
    let started = Instant::now();
    let sum: u64 = thread::scope(|scope| {
        let parts = memory.chunks(memory.len().div_ceil(threads));
        let readers: Vec<_> = parts
            .map(|part| scope.spawn(move || part.iter().fold(0u64, |sum, word| sum ^ word)))
            .collect();
        readers
            .into_iter()
            .map(|reader| reader.join().unwrap())
            .sum()
    });
    let seconds = started.elapsed().as_secs_f64();
    assert!(std::hint::black_box(sum) < 2 * threads as u64);
    BYTES as f64 / seconds
}

/// Tokens that the sessions of [`switches`] have behind them.
const BEHIND: usize = 200;

/// Two sessions that take turns at every token. What a switch costs: how much longer such a token
/// takes at the median than one of a session that goes on without a pause. And what going on and
/// standing still cost where nothing is computed in between. Both in microseconds.
fn switches(engine: &Engine, runs: u32) -> (f64, f64) {
    let begin = |salt| {
        let mut session = engine
            .begin(request(prompt(BEHIND, salt), 4000))
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
    engine
        .generate(&request(prompt, max_tokens), &Cancel::new(), &mut |_| ())
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
