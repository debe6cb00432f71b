//! Sessions that stand still and go on, with the default model: the tokens are those of a run in
//! one go.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

mod model;

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::json;
use steward_engine::{
    Cancel, Constraint, Engine, EngineError, Finish, GenerateRequest, Generation, LoadOptions,
    Progress, Prompt, Sampling, Session, TokenLogprob,
};

fn load() -> Engine {
    Engine::load(&model::path(), &LoadOptions::default()).unwrap()
}

/// A small generator of numbers that look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }

    fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    fn tokens(&mut self, len: usize) -> Vec<u32> {
        (0..len).map(|_| 500 + self.below(9000) as u32).collect()
    }
}

/// A request of one of the kinds there are: greedy, seeded, a search, each with a constraint or
/// without, some with a stop string, some with log-probabilities, some beyond one step.
fn request(dice: &mut Dice, index: usize) -> GenerateRequest {
    let len = match index % 40 {
        0 => dice.between(129, 200),
        _ => dice.between(1, 16),
    };
    let mut request = GenerateRequest::new(Prompt::Tokens(dice.tokens(len)), dice.between(1, 8));
    match index % 5 {
        0 | 1 => (),
        2 | 3 => {
            request.sampling = Sampling {
                temperature: 0.5 + dice.below(10) as f32 / 10.0,
                top_p: [0.8, 0.95, 1.0][dice.below(3)],
                seed: index as u64,
                ..Sampling::default()
            };
            if index % 5 == 3 {
                request.sampling = Sampling {
                    top_k: 400,
                    min_p: 0.001,
                    typical_p: 0.98,
                    repetition_penalty: 1.2,
                    frequency_penalty: 0.3,
                    presence_penalty: 0.2,
                    penalty_window: Some(10),
                    logit_bias: BTreeMap::from([(dice.below(9000) as u32, 4.0)]),
                    ..request.sampling
                };
            }
        }
        _ => {
            request.beams = dice.between(2, 8);
            request.max_tokens = dice.between(1, 4);
        }
    }
    if index % 4 == 3 {
        request.max_tokens += 4;
        request.constraint = Some(match dice.below(3) {
            0 => {
                Constraint::Regex("(north|south|[0-9]{2,4} (steps|miles))( east| west)?".to_owned())
            }
            1 => Constraint::JsonSchema(json!({
                "type": "object",
                "properties": {
                    "tool": { "enum": ["fs.read", "fs.write", "fs.list"] },
                    "path": { "type": "string", "maxLength": 8 }
                },
                "required": ["tool", "path"],
                "additionalProperties": false
            })),
            _ => Constraint::Lark(
                "start: \"The answer is \" (\"yes\" | \"no\") \", certainly.\"".to_owned(),
            ),
        });
    }
    request.logprobs = dice.below(3) == 0;
    if request.logprobs && request.beams == 1 {
        request.top_logprobs = dice.below(3);
    }
    if dice.below(6) == 0 {
        request.stop = vec![" the".to_owned(), "ing".to_owned()];
    }
    request
}

fn in_one_go(engine: &Engine, request: &GenerateRequest) -> Generation {
    engine
        .generate(request, &Cancel::new(), &mut |_| ())
        .unwrap()
}

/// All of an answer but the time it took.
fn answer(out: &Generation) -> (&[u32], &str, Vec<u32>, &[Vec<TokenLogprob>], Finish) {
    let bits = out.logprobs.iter().map(|value| value.to_bits()).collect();
    (&out.ids, &out.text, bits, &out.top_logprobs, out.finish)
}

/// A session, and what it has told so far.
struct Running {
    index: usize,
    session: Session,
    request: GenerateRequest,
    text: String,
    ids: Vec<u32>,
}

impl Running {
    /// Lets it run for `quantum`, or less where the dice say so: by a smaller quantum, or by a pause
    /// that comes when it comes.
    fn slice(&mut self, dice: &mut Dice, quantum: u32) -> Option<Generation> {
        let pause = Cancel::new();
        let mut until = dice.between(1, 6);
        let quantum = match dice.below(2) {
            0 => quantum.min(until as u32),
            _ => quantum,
        };
        let progress = self
            .session
            .run(Some(quantum), &pause, &Cancel::new(), &mut |event| {
                self.text.push_str(event.text);
                self.ids.extend(event.token);
                until -= 1;
                if until == 0 {
                    pause.cancel();
                    until = usize::MAX;
                }
            });
        match progress.unwrap() {
            Progress::Paused => None,
            Progress::Done(out) => Some(out),
        }
    }
}

#[test]
fn pauses_change_no_token() {
    let began = Instant::now();
    let (whole, sliced) = (load(), load());
    let mut dice = Dice(7);
    let mut pauses = 0;
    let mut restored = 0;
    for round in 0..25 {
        let quantum = [1, 4, 16][round % 3];
        let mut running: Vec<Running> = (0..8)
            .map(|at| {
                let index = round * 8 + at;
                let request = request(&mut dice, index);
                Running {
                    index,
                    session: sliced.begin(request.clone()).unwrap(),
                    request,
                    text: String::new(),
                    ids: Vec::new(),
                }
            })
            .collect();
        while !running.is_empty() {
            let at = dice.below(running.len());
            if let Some(out) = running[at].slice(&mut dice, quantum) {
                let Running {
                    index,
                    request,
                    text,
                    ids,
                    ..
                } = running.swap_remove(at);
                let expected = in_one_go(&whole, &request);
                assert_eq!(answer(&out), answer(&expected), "{index}: {request:?}");
                assert_eq!(
                    (ids, text),
                    (out.ids, out.text),
                    "{index}: what was told is the answer"
                );
                continue;
            }
            pauses += 1;
            if dice.below(12) == 0 {
                let Running {
                    session, request, ..
                } = &mut running[at];
                let snapshot = session.snapshot().unwrap();
                *session = sliced.restore(request.clone(), &snapshot).unwrap();
                restored += 1;
            }
        }
    }
    println!(
        "200 prompts, {pauses} pauses, {restored} restored, {:?}",
        began.elapsed()
    );
    assert!(pauses > 250 && restored > 15, "{pauses} {restored}");
}

#[test]
fn a_snapshot_goes_on_in_another_engine() {
    let (first, second) = (load(), load());
    let mut dice = Dice(11);
    // Every kind of request, at every stage: unread, half read, and after some tokens.
    for (index, quantum) in [
        (0, 0),
        (25, 1),
        (1, 3),
        (2, 4),
        (23, 2),
        (3, 3),
        (7, 2),
        (4, 2),
        (9, 3),
        (19, 2),
    ] {
        let mut request = request(&mut dice, index);
        request.stop.clear();
        let mut session = first.begin(request.clone()).unwrap();
        let mut ids = Vec::new();
        let progress = session.run(
            Some(quantum),
            &Cancel::new(),
            &Cancel::new(),
            &mut |event| ids.extend(event.token),
        );
        if let Progress::Done(_) = progress.unwrap() {
            assert!(
                session
                    .snapshot()
                    .unwrap_err()
                    .to_string()
                    .contains("has ended")
            );
            continue;
        }
        let snapshot = session.snapshot().unwrap();
        let told = ids.len();
        let mut restored = second.restore(request.clone(), &snapshot).unwrap();
        assert_eq!(
            restored.snapshot().unwrap(),
            snapshot,
            "{index}: a snapshot of what was restored is the same"
        );
        let goes_on = |session: &mut Session| {
            let progress = session.run(None, &Cancel::new(), &Cancel::new(), &mut |_| ());
            let Progress::Done(out) = progress.unwrap() else {
                panic!("{index}: nothing stops it");
            };
            out
        };
        let (out, again) = (goes_on(&mut restored), goes_on(&mut session));
        assert_eq!(answer(&out), answer(&again), "{index}");
        assert_eq!(out.ids[..told], ids, "{index}: what was told stays");
        assert_eq!(
            answer(&out),
            answer(&in_one_go(&first, &request)),
            "{index}"
        );
    }
}

#[test]
fn a_prompt_is_read_in_steps_with_pauses_between() {
    let engine = model::engine();
    let prompt = Dice(3).tokens(300);
    let mut session = engine
        .begin(GenerateRequest::new(Prompt::Tokens(prompt.clone()), 4))
        .unwrap();
    let mut told = Vec::new();
    let mut steps = 0;
    let out = loop {
        let mut heard = 0;
        let progress = session.run(Some(1), &Cancel::new(), &Cancel::new(), &mut |event| {
            heard += usize::from(event.token.is_some());
        });
        steps += 1;
        told.push(heard);
        if let Progress::Done(out) = progress.unwrap() {
            break out;
        }
    };
    assert_eq!(
        told,
        [0, 0, 1, 1, 1, 1],
        "three steps of the prompt, the last with a token"
    );
    assert_eq!((steps, out.ids.len(), out.finish), (6, 4, Finish::Length));
    assert!(matches!(
        session.run(None, &Cancel::new(), &Cancel::new(), &mut |_| ()),
        Err(EngineError::InvalidRequest(_))
    ));
    let next = in_one_go(engine, &GenerateRequest::new(Prompt::Tokens(prompt), 1));
    assert_eq!(
        next.cached_tokens, 299,
        "a session leaves what it read to others"
    );
}

#[test]
fn a_prompt_that_was_read_serves_others_before_the_answer_ends() {
    let engine = model::engine();
    let mut prompt = Dice(5).tokens(80);
    let mut first = engine
        .begin(GenerateRequest::new(Prompt::Tokens(prompt.clone()), 50))
        .unwrap();
    let progress = first
        .run(Some(2), &Cancel::new(), &Cancel::new(), &mut |_| ())
        .unwrap();
    assert_eq!(progress, Progress::Paused);
    prompt.extend([900, 901]);
    let second = in_one_go(engine, &GenerateRequest::new(Prompt::Tokens(prompt), 3));
    assert_eq!(second.cached_tokens, 80);
}

#[test]
fn guesses_change_no_token() {
    let engine = load();
    let list = "one apple, two pears, three plums, one apple, two pears, three plums, one apple,";
    let code = "let a = first.value; let b = first.value; let c = first.value; let";
    let mut guessed = 0;
    for (text, temperature) in [(list, 0.0), (code, 0.0), (list, 0.3), (code, 0.9)] {
        for (seed, logprobs) in [(1, false), (2, true)] {
            let mut request = GenerateRequest::new(Prompt::Text(text.to_owned()), 60);
            request.sampling.temperature = temperature;
            request.sampling.seed = seed;
            request.logprobs = logprobs;
            // A turn of one token leaves no room for a guess.
            let mut slow = engine.begin(request.clone()).unwrap();
            let slow = loop {
                let never = Cancel::new();
                let progress = slow.run(Some(1), &never, &never, &mut |_| ()).unwrap();
                if let Progress::Done(out) = progress {
                    break out;
                }
            };
            assert_eq!(slow.guessed, 0);
            let out = in_one_go(&engine, &request);
            assert_eq!(out.ids, slow.ids, "{text}, at {temperature}");
            assert_eq!(out.logprobs, slow.logprobs, "{text}, at {temperature}");
            assert_eq!(out.text, slow.text);
            guessed += out.guessed;
        }
    }
    assert!(guessed > 60, "{guessed} of 480 tokens were guessed");
}

#[test]
fn it_holds_memory_for_what_it_has_read() {
    let engine = model::engine();
    let mut session = engine
        .begin(GenerateRequest::new(Prompt::Tokens(Dice(6).tokens(100)), 5))
        .unwrap();
    assert!(
        session.resident_bytes() < 10_000,
        "{}",
        session.resident_bytes()
    );
    session
        .run(Some(1), &Cancel::new(), &Cancel::new(), &mut |_| ())
        .unwrap();
    // Seven pages of 16 positions, 30 layers, 3 KV heads, keys and values of 64 halves.
    let pages = 7 * 16 * 30 * 3 * 2 * 64 * 2;
    assert!(
        (pages..pages + 10_000).contains(&session.resident_bytes()),
        "{}",
        session.resident_bytes()
    );
    let snapshot = session.snapshot().unwrap().len() as u64;
    // Packed: only the 100 positions there are.
    assert!(snapshot < pages * 100 / 112 + 10_000, "{snapshot}");
}

#[test]
fn a_search_finds_texts_that_are_likelier() {
    let engine = model::engine();
    let mut better = 0;
    for prompt in [
        "The capital of France is",
        "Once upon a time there was",
        "In the morning the children",
        "To make bread, you need",
    ] {
        let mut request = GenerateRequest::new(Prompt::Text(prompt.to_owned()), 6);
        request.logprobs = true;
        let total = |beams| {
            let mut request = request.clone();
            request.beams = beams;
            let out = in_one_go(engine, &request);
            assert_eq!(
                (out.finish, out.logprobs.len()),
                (Finish::Length, 6),
                "{out:?}"
            );
            // What it says of each token is what the model says of the text.
            let text = [out.text.clone()];
            let score = engine
                .score(&request.prompt, &text, &Cancel::new())
                .unwrap()[0];
            let total: f64 = out.logprobs.iter().copied().map(f64::from).sum();
            assert!(score.tokens != 6 || (score.logprob - total).abs() < 1e-6);
            println!("{beams} beams, {total:.3}: {prompt}{}", out.text);
            total
        };
        better += usize::from(total(4) > total(1));
    }
    // A beginning that was given up may have led further, so not always.
    assert!(better >= 3, "{better} of 4");
}
