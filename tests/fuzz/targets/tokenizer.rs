//! A vocabulary, merges and a text: the lines of the input up to an empty one are merges (`+a b`),
//! control tokens (`!name`), user-defined tokens (`=name`) and plain ones; the rest is the text.
//! The vocabulary is refused with its field, or the text comes back from its tokens.
#![no_main]

mod engine;

use engine::tiny::Field;
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: engine::panics_are_answers(),
    |input: &str| {
        let (lines, text) = input.split_once("\n\n").unwrap_or(("", input));
        let mut file = engine::file();
        let mut names = Vec::new();
        let mut kinds = Vec::new();
        let mut merges = Vec::new();
        for (key, field) in &file.metadata {
            match (key.as_str(), field) {
                ("tokenizer.ggml.tokens", Field::Texts(texts)) => names.clone_from(texts),
                ("tokenizer.ggml.token_type", Field::I32s(values)) => kinds.clone_from(values),
                _ => (),
            }
        }
        // As many as there are rows of the embedding; the last two are the control tokens.
        let mut place = 0;
        for line in lines.lines() {
            let (name, kind) = match line.split_at_checked(1) {
                Some(("+", merge)) => {
                    merges.push(merge.to_owned());
                    continue;
                }
                Some(("!", name)) => (name, 3),
                Some(("=", name)) => (name, 4),
                _ => (line, 1),
            };
            // In place of bytes that UTF-8 does not have, so that any text has its tokens.
            let Some(spare) = (0xf5..=0xff).nth(place) else { break };
            (names[spare], kinds[spare]) = (name.to_owned(), kind);
            place += 1;
        }
        file.set("tokenizer.ggml.tokens", Field::Texts(names));
        file.set("tokenizer.ggml.token_type", Field::I32s(kinds));
        file.set("tokenizer.ggml.merges", Field::Texts(merges));
        let engine = match engine::load(&file.bytes()) {
            Ok(engine) => engine,
            Err(error) => return engine::expect_clear(&error),
        };
        let plain = engine.encode(text, false).expect("a short text");
        assert_eq!(engine.decode(&plain), text, "{plain:?}");
        let special = engine.encode(text, true).expect("a short text");
        for id in plain.iter().chain(&special) {
            assert!((*id as usize) < engine.info().vocab);
        }
    }
);
