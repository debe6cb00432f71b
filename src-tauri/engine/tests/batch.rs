//! Generations beside each other: each gives what it gives alone, and they share what they can.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

#[allow(dead_code, reason = "other tests use the rest")]
mod tiny;

use std::sync::Barrier;
use std::thread;

use steward_engine::{
    Cancel, Constraint, Engine, EngineError, GenerateRequest, Generation, LoadOptions, Progress,
    Prompt, Sampling, Session,
};
use tiny::{Field, File, Grain, Kind};

/// Bytes of a page of the tiny model: two layers of two heads, 16 positions of 16 halves, for keys
/// and for values.
const PAGE: u64 = 2 * 2 * 2 * 16 * 16 * 2;

fn load(change: impl FnOnce(&mut File), kv_bytes: Option<u64>) -> Engine {
    let mut file = File::new(Kind::Q8_0, Grain::Eight);
    file.set("llama.context_length", Field::U32(2048));
    change(&mut file);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    std::fs::write(&path, file.bytes()).unwrap();
    let options = LoadOptions {
        threads: Some(2),
        kv_bytes,
        ..LoadOptions::default()
    };
    Engine::load(&path, &options).unwrap()
}

fn tokens(salt: usize, len: usize) -> Vec<u32> {
    (0..len)
        .map(|at| ((at * 37 + salt * 101 + at * at * salt) % 256) as u32)
        .collect()
}

/// A request of one of the kinds there are.
fn request(index: usize) -> GenerateRequest {
    let len = [3, 17, 130, 300, 40][index % 5];
    let mut request = GenerateRequest::new(Prompt::Tokens(tokens(index, len)), 5 + index * 7 % 60);
    match index % 6 {
        0 | 1 => (),
        2 => {
            request.sampling = Sampling {
                temperature: 0.9,
                top_p: 0.9,
                seed: index as u64,
                ..Sampling::default()
            }
        }
        3 => request.beams = 3,
        4 => request.logprobs = true,
        _ => request.constraint = Some(Constraint::Regex("[a-f]{3}(-[0-9]{4}){2,9}".to_owned())),
    }
    request
}

fn alone(engine: &Engine, request: &GenerateRequest) -> Generation {
    engine
        .generate(request, &Cancel::new(), &mut |_| ())
        .unwrap()
}

/// What does not depend on time and on what was known.
fn said(out: &Generation) -> (&str, &[u32], &[f32]) {
    (&out.text, &out.ids, &out.logprobs)
}

fn paused(session: &mut Session, quantum: u32) {
    let never = Cancel::new();
    let progress = session
        .run(Some(quantum), &never, &never, &mut |_| ())
        .unwrap();
    assert_eq!(progress, Progress::Paused);
}

fn ended(session: &mut Session) -> Generation {
    let never = Cancel::new();
    match session.run(None, &never, &never, &mut |_| ()).unwrap() {
        Progress::Done(out) => out,
        Progress::Paused => panic!("nobody asked it to stand still"),
    }
}

#[test]
fn each_says_beside_others_what_it_says_alone() {
    let requests: Vec<_> = (0..30).map(request).collect();
    let apart = load(|_| (), None);
    let expected: Vec<_> = requests
        .iter()
        .map(|request| alone(&apart, request))
        .collect();
    for kv_bytes in [None, Some(90 * PAGE)] {
        let engine = load(|_| (), kv_bytes);
        let start = Barrier::new(requests.len());
        thread::scope(|scope| {
            let running: Vec<_> = requests
                .iter()
                .map(|request| {
                    let (engine, start) = (&engine, &start);
                    scope.spawn(move || {
                        start.wait();
                        alone(engine, request)
                    })
                })
                .collect();
            for (index, (running, expected)) in running.into_iter().zip(&expected).enumerate() {
                assert_eq!(
                    said(&running.join().unwrap()),
                    said(expected),
                    "request {index}"
                );
            }
        });
    }
}

#[test]
fn answers_are_weighed_beside_others_as_alone() {
    let engine = load(|_| (), None);
    let prompt = Prompt::Tokens(tokens(3, 200));
    let choices: Vec<String> = (0..20).map(|n| "ab cd ef".repeat(n)).collect();
    let score = || engine.score(&prompt, &choices, &Cancel::new()).unwrap();
    let apart = load(|_| (), None);
    let expected: Vec<_> = choices
        .iter()
        .map(|choice| {
            apart
                .score(&prompt, std::slice::from_ref(choice), &Cancel::new())
                .unwrap()[0]
        })
        .collect();
    thread::scope(|scope| {
        let others: Vec<_> = (0..4)
            .map(|index| {
                scope.spawn({
                    let engine = &engine;
                    move || alone(engine, &request(index))
                })
            })
            .collect();
        assert_eq!(score(), expected);
        for other in others {
            other.join().unwrap();
        }
    });
    assert_eq!(score(), expected);
}

#[test]
fn a_shared_beginning_is_computed_once() {
    let engine = load(|_| (), None);
    let shared = tokens(1, 400);
    let start = Barrier::new(8);
    thread::scope(|scope| {
        let running: Vec<_> = (0..8)
            .map(|index| {
                let prompt = [&shared[..], &tokens(50 + index, 30)].concat();
                let (engine, start) = (&engine, &start);
                scope.spawn(move || {
                    start.wait();
                    alone(engine, &GenerateRequest::new(Prompt::Tokens(prompt), 20))
                })
            })
            .collect();
        let cached = running
            .into_iter()
            .map(|one| one.join().unwrap().cached_tokens);
        let mut cached: Vec<_> = cached.collect();
        cached.sort_unstable();
        assert_eq!(cached[0], 0);
        assert!(
            cached[1..].iter().all(|&cached| cached >= 400),
            "{cached:?}"
        );
    });
}

#[test]
fn what_made_room_for_others_is_computed_again() {
    let expected = alone(&load(|_| (), None), &request(1));
    let engine = load(|_| (), Some(40 * PAGE));
    let mut session = engine.begin(request(1)).unwrap();
    paused(&mut session, 3);
    let others = || {
        for salt in 0..3 {
            let request = GenerateRequest::new(Prompt::Tokens(tokens(70 + salt, 500)), 100);
            assert_eq!(alone(&engine, &request).cached_tokens, 0);
        }
    };
    others();
    paused(&mut session, 1);
    others();
    let snapshot = session.snapshot().unwrap();
    assert!(
        snapshot.len() < 1_000,
        "nothing of it is held: {}",
        snapshot.len()
    );
    let mut restored = engine.restore(request(1), &snapshot).unwrap();
    assert_eq!(said(&ended(&mut session)), said(&expected));
    assert_eq!(said(&ended(&mut restored)), said(&expected));
}

#[test]
fn a_request_that_can_never_fit_is_refused_at_once() {
    let engine = load(|_| (), Some(40 * PAGE));
    let ask = |len, most, beams| {
        let mut request = GenerateRequest::new(Prompt::Tokens(tokens(1, len)), most);
        request.beams = beams;
        engine.begin(request).map(drop)
    };
    ask(600, 40, 1).unwrap();
    for refused in [ask(600, 41, 1), ask(300, 21, 2)] {
        let error = refused.unwrap_err();
        assert!(matches!(error, EngineError::Memory { .. }), "{error}");
        assert!(
            error.to_string().contains("ask for fewer tokens"),
            "{error}"
        );
    }
}

#[test]
fn values_that_are_not_numbers_are_an_error_that_names_the_layer() {
    for (layer, value) in [(0, f32::NAN), (1, f32::INFINITY)] {
        let spoil = |file: &mut File| {
            let norm = file.tensor(&format!("blk.{layer}.ffn_norm.weight"));
            norm.data[..4].copy_from_slice(&value.to_le_bytes());
        };
        let engine = load(spoil, None);
        let error = engine
            .generate(&request(0), &Cancel::new(), &mut |_| ())
            .unwrap_err();
        assert!(
            matches!(error, EngineError::NotFinite { layer: found } if found == layer),
            "{error}"
        );
        let error = engine
            .score(
                &Prompt::Tokens(vec![1, 2]),
                &["a".to_owned()],
                &Cancel::new(),
            )
            .unwrap_err();
        assert!(
            matches!(error, EngineError::NotFinite { layer: found } if found == layer),
            "{error}"
        );
    }
}

#[test]
fn an_engine_that_nobody_holds_ends_its_thread() {
    let engine = load(|_| (), None);
    let session = engine.begin(request(0)).unwrap();
    drop(engine);
    let mut session = session;
    ended(&mut session);
}
