//! Constraints: the first character says which kind, the rest is the text. Compiled or refused in
//! bounded time; what is generated under one goes on to its end.
#![no_main]

mod engine;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use steward_engine::{Cancel, Constraint, Engine, GenerateRequest, Prompt};

static ENGINE: OnceLock<Engine> = OnceLock::new();

fuzz_target!(
    init: engine::panics_are_answers(),
    |input: &str| {
        let constraint = match input.split_at_checked(1) {
            Some(("j", schema)) => match serde_json::from_str(schema) {
                Ok(schema) => Constraint::JsonSchema(schema),
                Err(_) => return,
            },
            Some(("r", regex)) => Constraint::Regex(regex.to_owned()),
            Some(("l", grammar)) => Constraint::Lark(grammar.to_owned()),
            _ => return,
        };
        let engine = ENGINE.get_or_init(|| {
            engine::load(&engine::file().bytes()).expect("the tiny model loads")
        });
        let mut request = GenerateRequest::new(Prompt::Text("a".to_owned()), 4);
        request.constraint = Some(constraint);
        if let Err(error) = engine.generate(&request, &Cancel::new(), &mut |_| ()) {
            engine::expect_clear(&error);
        }
    }
);
