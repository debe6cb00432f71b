//! Snapshots that are damaged, forged or of something else, and searches that can be counted out,
//! on a model of two layers over bytes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

#[allow(dead_code, reason = "another test file uses the rest")]
mod tiny;

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use steward_engine::{
    Cancel, Constraint, Engine, EngineError, Finish, GenerateRequest, KvFormat, LoadOptions,
    Progress, Prompt, Sampling,
};

use tiny::{Field, File, Grain, Kind};

fn load(file: &File) -> Engine {
    load_with(file, KvFormat::F16)
}

fn load_with(file: &File, kv_format: KvFormat) -> Engine {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, file.bytes()).unwrap();
    let options = LoadOptions {
        threads: Some(1),
        kv_format,
        ..LoadOptions::default()
    };
    Engine::load(&path, &options).unwrap()
}

fn tiny() -> Engine {
    load(&File::new(Kind::Q8_0, Grain::Eight))
}

/// Requests of every kind, each with a snapshot after some tokens.
fn requests() -> Vec<GenerateRequest> {
    let plain = GenerateRequest::new(Prompt::Text("once upon".to_owned()), 12);
    let mut seeded = plain.clone();
    seeded.sampling = Sampling {
        temperature: 1.0,
        top_p: 0.9,
        seed: 3,
        ..Sampling::default()
    };
    seeded.logprobs = true;
    seeded.stop = vec!["zz".to_owned()];
    let mut penalised = seeded.clone();
    penalised.sampling = Sampling {
        top_k: 60,
        min_p: 0.01,
        typical_p: 0.95,
        repetition_penalty: 1.3,
        frequency_penalty: 0.5,
        presence_penalty: 0.5,
        penalty_window: Some(4),
        logit_bias: BTreeMap::from([(97, 2.0), (98, -3.0)]),
        ..seeded.sampling
    };
    penalised.top_logprobs = 3;
    let mut search = plain.clone();
    search.beams = 4;
    let mut formed = plain.clone();
    formed.constraint = Some(Constraint::Regex("[a-d]{4} and then [e-h]{4}".to_owned()));
    let mut scored = formed.clone();
    scored.logprobs = true;
    scored.top_logprobs = 2;
    vec![plain, seeded, search, formed, penalised, scored]
}

fn snapshot(engine: &Engine, request: &GenerateRequest, quantum: u32) -> Vec<u8> {
    let mut session = engine.begin(request.clone()).unwrap();
    let progress = session.run(Some(quantum), &Cancel::new(), &Cancel::new(), &mut |_| ());
    assert_eq!(progress.unwrap(), Progress::Paused);
    session.snapshot().unwrap()
}

fn refusal(engine: &Engine, request: &GenerateRequest, snapshot: &[u8]) -> String {
    match engine.restore(request.clone(), snapshot) {
        Err(error @ EngineError::Snapshot(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn cut_and_changed_snapshots_are_refused() {
    let engine = tiny();
    for request in requests() {
        let whole = snapshot(&engine, &request, 3);
        for len in 0..whole.len() {
            refusal(&engine, &request, &whole[..len]);
        }
        for bit in 0..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            refusal(&engine, &request, &changed);
        }
        let longer = [&whole[..], &[0]].concat();
        assert!(refusal(&engine, &request, &longer).contains("bytes, not"));
        engine.restore(request, &whole).unwrap();
    }
}

/// What passes the digest is read with no more trust: it is refused, or it runs.
#[test]
fn forged_snapshots_make_no_panic() {
    let engine = tiny();
    let mut dice = 1u64;
    let mut below = |limit: usize| {
        dice = dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((dice >> 33) as usize) % limit
    };
    let mut refused = 0;
    for request in requests() {
        let whole = snapshot(&engine, &request, 3);
        // What follows the mark, the version, the length and the two digests.
        let body = 8 + 4 + 8 + 32 + 32;
        for _ in 0..600 {
            let mut forged = whole[..whole.len() - 32].to_vec();
            for _ in 0..1 + below(3) {
                // Most of the bytes are keys and values, in which anything goes.
                let tail = forged.len() - 400;
                let at = if below(2) == 0 {
                    body + below(40)
                } else {
                    tail + below(400)
                };
                forged[at] = [0, 1, 2, 255, below(256) as u8][below(5)];
            }
            if below(4) == 0 {
                let len = forged.len() - below(60);
                forged.truncate(len);
                let total = (len + 32) as u64;
                forged[12..20].copy_from_slice(&total.to_le_bytes());
            }
            forged.extend(Sha256::digest(&forged));
            match engine.restore(request.clone(), &forged) {
                Err(error) => {
                    assert!(matches!(error, EngineError::Snapshot(_)), "{error}");
                    refused += 1;
                }
                Ok(mut session) => {
                    let ended = session.run(None, &Cancel::new(), &Cancel::new(), &mut |_| ());
                    assert!(!matches!(ended, Err(EngineError::Internal(_))), "{ended:?}");
                }
            }
        }
    }
    assert!(refused > 500, "{refused}");
}

#[test]
fn a_restored_generation_goes_on_with_the_same_tokens() {
    for format in [KvFormat::F16, KvFormat::Q8] {
        let file = File::new(Kind::Q8_0, Grain::Eight);
        goes_on_with_the_same_tokens(&load_with(&file, format), &load_with(&file, format));
    }
}

fn goes_on_with_the_same_tokens(engine: &Engine, other: &Engine) {
    for request in requests() {
        let mut expected = None;
        engine
            .generate(&request, &Cancel::new(), &mut |_| ())
            .map(|out| expected = Some(out))
            .unwrap();
        let expected = expected.unwrap();
        for quantum in 0..5 {
            let snapshot = snapshot(engine, &request, quantum);
            let mut session = other.restore(request.clone(), &snapshot).unwrap();
            let ended = session.run(None, &Cancel::new(), &Cancel::new(), &mut |_| ());
            let Progress::Done(out) = ended.unwrap() else {
                panic!("nothing stops it");
            };
            assert_eq!(
                (&out.ids, &out.text, &out.logprobs, &out.top_logprobs),
                (
                    &expected.ids,
                    &expected.text,
                    &expected.logprobs,
                    &expected.top_logprobs
                ),
                "after {quantum}: {request:?}"
            );
        }
    }
}

#[test]
fn an_older_snapshot_is_refused_with_its_version() {
    let engine = tiny();
    let request = &requests()[0];
    let mut older = snapshot(&engine, request, 2);
    older[8..12].copy_from_slice(&1u32.to_le_bytes());
    let error = refusal(&engine, request, &older);
    assert!(error.contains("version `1`, not `2`"), "{error}");
}

#[test]
fn a_snapshot_goes_with_its_model_and_its_request_only() {
    let engine = tiny();
    let request = &requests()[1];
    let whole = snapshot(&engine, request, 2);
    let other_weights = load(&File::new(Kind::Q8_0, Grain::Four));
    let mut other_base = File::new(Kind::Q8_0, Grain::Eight);
    other_base.set("llama.rope.freq_base", Field::F32(50_000.0));
    for other in [other_weights, load(&other_base)] {
        assert!(refusal(&other, request, &whole).contains("of another model"));
    }
    tiny().restore(request.clone(), &whole).unwrap();
    let other_format = load_with(&File::new(Kind::Q8_0, Grain::Eight), KvFormat::Q8);
    assert!(refusal(&other_format, request, &whole).contains("of another request"));
    let change = |change: fn(&mut GenerateRequest)| {
        let mut request = request.clone();
        change(&mut request);
        request
    };
    for other in [
        change(|r| r.prompt = Prompt::Text("once upom".to_owned())),
        change(|r| r.max_tokens = 11),
        change(|r| r.sampling.seed = 4),
        change(|r| r.sampling.top_p = 0.8),
        change(|r| r.sampling.top_k = 8),
        change(|r| r.sampling.min_p = 0.1),
        change(|r| r.sampling.typical_p = 0.9),
        change(|r| r.sampling.repetition_penalty = 1.1),
        change(|r| r.sampling.frequency_penalty = 0.1),
        change(|r| r.sampling.presence_penalty = 0.1),
        change(|r| r.sampling.penalty_window = Some(5)),
        change(|r| r.sampling.logit_bias = BTreeMap::from([(1, 1.0)])),
        change(|r| r.top_logprobs = 1),
        change(|r| r.stop.clear()),
        change(|r| r.logprobs = false),
        change(|r| r.constraint = Some(Constraint::Regex("[a-z]*".to_owned()))),
    ] {
        assert!(
            refusal(&engine, &other, &whole).contains("of another request"),
            "{other:?}"
        );
    }
}

#[test]
fn a_wide_search_finds_the_likeliest_of_all() {
    let engine = tiny();
    for prompt in ["a", "two", "the third", "4"] {
        // Two ways at each of three places: four beams hold all beginnings there are.
        let mut request = GenerateRequest::new(Prompt::Text(prompt.to_owned()), 8);
        request.constraint = Some(Constraint::Regex("[xy]{3}".to_owned()));
        request.beams = 4;
        request.logprobs = true;
        let out = engine
            .generate(&request, &Cancel::new(), &mut |_| ())
            .unwrap();
        let texts: Vec<String> = (0..8)
            .map(|bits| {
                (0..3)
                    .map(|at| if bits >> at & 1 == 0 { 'x' } else { 'y' })
                    .collect()
            })
            .collect();
        let scores = engine
            .score(&request.prompt, &texts, &Cancel::new())
            .unwrap();
        let best = (0..8)
            .max_by(|&a, &b| scores[a].logprob.total_cmp(&scores[b].logprob))
            .unwrap();
        assert_eq!(
            (&out.text, out.finish),
            (&texts[best], Finish::Stop),
            "{prompt}: {scores:?}"
        );
        let total: f64 = out.logprobs.iter().copied().map(f64::from).sum();
        assert!(
            (total - scores[best].logprob).abs() < 1e-6,
            "{total} {scores:?}"
        );
    }
}

#[test]
fn searches_that_cannot_be_made_are_refused() {
    let engine = tiny();
    let mut request = requests()[0].clone();
    for (beams, temperature, said) in [
        (0, 0.0, "`0` beams"),
        (9, 0.0, "`9` beams"),
        (2, 0.5, "temperature `0.5`"),
    ] {
        request.beams = beams;
        request.sampling.temperature = temperature;
        let error = engine.begin(request.clone()).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn a_search_ends_by_stop_string_length_and_cancel() {
    let engine = tiny();
    let mut request = requests()[2].clone();
    let run = |request: &GenerateRequest, cancel: &Cancel| {
        let mut told = String::new();
        let out = engine
            .generate(request, cancel, &mut |event| told.push_str(event.text))
            .unwrap();
        assert_eq!(told, out.text);
        out
    };
    let free = run(&request, &Cancel::new());
    assert_eq!((free.finish, free.ids.len()), (Finish::Length, 12));
    request.max_tokens = 0;
    let none = run(&request, &Cancel::new());
    assert_eq!((none.finish, none.ids.len()), (Finish::Length, 0));
    request.max_tokens = 12;
    let cancelled = Cancel::new();
    cancelled.cancel();
    assert_eq!(run(&request, &cancelled).finish, Finish::Cancelled);
    let mut session = engine.begin(request.clone()).unwrap();
    let progress = session.run(Some(4), &Cancel::new(), &Cancel::new(), &mut |_| {
        panic!("nothing is sure yet")
    });
    assert_eq!(progress.unwrap(), Progress::Paused);
    let progress = session
        .run(None, &Cancel::new(), &cancelled, &mut |_| ())
        .unwrap();
    let Progress::Done(part) = progress else {
        panic!("{progress:?}")
    };
    assert_eq!((part.finish, part.ids.len()), (Finish::Cancelled, 4));
    // Any text is ended by what it begins with.
    request.stop = ('\u{0}'..='\u{7f}').map(String::from).collect();
    let stopped = run(&request, &Cancel::new());
    assert!(
        stopped.finish == Finish::Stop || !stopped.text.is_ascii(),
        "{stopped:?}"
    );
}
