//! Encoders against what `transformers` computes with the same weights, and broken ones.
//! `tests/goldens/encoders.py` wrote them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

use std::path::{Path, PathBuf};

use serde::Deserialize;
use steward_engine::{Cancel, Encoder, EngineError, Purpose};

#[derive(Deserialize)]
struct Goldens {
    texts: Vec<String>,
    models: Vec<Golden>,
}

#[derive(Deserialize)]
struct Golden {
    model: String,
    vectors: Vec<Vec<f32>>,
    /// The vectors of the texts as queries, where these differ.
    queries: Option<Vec<Vec<f32>>>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens/encoders")
}

fn goldens() -> Goldens {
    serde_json::from_slice(&std::fs::read(folder().join("vectors.json")).unwrap()).unwrap()
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn vectors_are_the_reference_s() {
    let Goldens { texts, models } = goldens();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for golden in models {
        let encoder = Encoder::load(&folder().join(&golden.model), None).unwrap();
        assert_eq!(encoder.info().dimensions, 32);
        assert_eq!(encoder.info().max_tokens, 40);
        // Matrices of four bits take activations of eight.
        let least = if golden.queries.is_some() {
            0.999
        } else {
            0.999_99
        };
        let mut cases = vec![(Purpose::Passage, &golden.vectors)];
        cases.extend(
            golden
                .queries
                .as_ref()
                .map(|queries| (Purpose::Query, queries)),
        );
        for (purpose, expected) in cases {
            let found = encoder.embed(&texts, purpose, &Cancel::new()).unwrap();
            for ((found, expected), text) in found.iter().zip(expected).zip(&texts) {
                let near = cosine(&found.vector, expected);
                assert!(
                    near > least,
                    "{}, {purpose:?}, `{text}`: {near}",
                    golden.model
                );
                assert_eq!(found.truncated, text.len() > 100, "`{text}`");
                let tokens = encoder.count_tokens(text, purpose).unwrap();
                assert_eq!(found.tokens, tokens.min(40));
            }
        }
    }
}

#[test]
fn a_vector_does_not_depend_on_what_is_beside_it() {
    let Goldens { texts, models } = goldens();
    for golden in models {
        let encoder = Encoder::load(&folder().join(&golden.model), Some(2)).unwrap();
        // More than one step takes.
        let many: Vec<&str> = texts.iter().cycle().take(40).map(String::as_str).collect();
        let together = encoder
            .embed(&many, Purpose::Query, &Cancel::new())
            .unwrap();
        for (text, together) in many.iter().zip(&together).take(texts.len()) {
            let alone = encoder
                .embed(&[text], Purpose::Query, &Cancel::new())
                .unwrap();
            assert_eq!(alone[0], *together, "`{text}`");
        }
        assert_eq!(together[0], together[texts.len()]);
    }
}

#[test]
fn a_cancel_ends_it() {
    let encoder = Encoder::load(&folder().join("bert"), None).unwrap();
    let cancel = Cancel::new();
    cancel.cancel();
    let ended = encoder.embed(&["the sea"], Purpose::Query, &cancel);
    assert!(matches!(ended, Err(EngineError::Cancelled)));
    assert!(
        encoder
            .embed(&[], Purpose::Query, &cancel)
            .unwrap()
            .is_empty()
    );
}

/// A copy of a model with one of its files changed.
fn changed(model: &str, file: &str, change: impl Fn(Vec<u8>) -> Vec<u8>) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder().join(model)).unwrap() {
        let entry = entry.unwrap();
        let mut bytes = std::fs::read(entry.path()).unwrap();
        if entry.file_name() == file {
            bytes = change(bytes);
        }
        std::fs::write(copy.path().join(entry.file_name()), bytes).unwrap();
    }
    copy
}

fn replaced(from: &str, to: &str) -> impl Fn(Vec<u8>) -> Vec<u8> {
    move |bytes| {
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains(from), "{from}");
        text.replace(from, to).into_bytes()
    }
}

#[test]
fn a_broken_folder_is_told() {
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() / 2].to_vec();
    let bad_header = |mut bytes: Vec<u8>| {
        bytes[..8].fill(0xff);
        bytes
    };
    let renamed = |bytes: Vec<u8>| {
        let text: Vec<u8> = bytes.clone();
        let name = b"encoder.layer.1.output.dense.weight";
        let at = text
            .windows(name.len())
            .position(|part| part == name)
            .unwrap();
        let mut bytes = bytes;
        bytes[at] = b'X';
        bytes
    };
    let cases: [(tempfile::TempDir, &str); 9] = [
        (
            changed("bert", "model.safetensors", cut),
            "model.safetensors",
        ),
        (
            changed("bert", "model.safetensors", bad_header),
            "model.safetensors",
        ),
        (
            changed("bert", "model.safetensors", renamed),
            "`encoder.layer.1.output.dense.weight` is missing",
        ),
        (
            changed("bert", "config.json", replaced("\"bert\"", "\"gpt\"")),
            "`gpt` is not supported",
        ),
        (
            changed(
                "bert",
                "config.json",
                replaced("\"hidden_size\": 32", "\"hidden_size\": 64"),
            ),
            "elements, not",
        ),
        (
            changed(
                "bert",
                "config.json",
                replaced("\"num_attention_heads\": 2", "\"num_attention_heads\": 0"),
            ),
            "heads",
        ),
        (
            changed(
                "bert",
                "config.json",
                replaced("\"num_attention_heads\": 2", "\"num_attention_heads\": 4"),
            ),
            "the size of a head",
        ),
        (
            changed("bert", "config.json", |_| b"{".to_vec()),
            "`config.json`",
        ),
        (
            changed("bert", "tokenizer.json", |_| b"{}".to_vec()),
            "`tokenizer.json`",
        ),
    ];
    for (folder, said) in cases {
        let error = Encoder::load(folder.path(), None).unwrap_err().to_string();
        assert!(error.contains(said), "expected `{said}` in: {error}");
    }
    let missing = Encoder::load(Path::new("/nowhere/at/all"), None).unwrap_err();
    assert!(matches!(missing, EngineError::Open { .. }), "{missing}");
}

#[test]
fn no_packed_file_however_broken_panics() {
    let whole = std::fs::read(folder().join("packed.bin")).unwrap();
    let copy = tempfile::tempdir().unwrap();
    let path = copy.path().join("encoder.bin");
    let load = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Encoder::load(&path, Some(1))
    };
    assert!(load(&whole).is_ok());
    for len in (0..whole.len()).step_by(97) {
        assert!(load(&whole[..len]).is_err(), "{len}");
    }
    // Where its numbers are.
    let mut refused = 0;
    for at in (0..900).step_by(4) {
        for value in [0xff, 0x00, 0x7f] {
            let mut bytes = whole.clone();
            bytes[at..at + 4].fill(value);
            refused += u32::from(load(&bytes).is_err());
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn sizes_whose_sum_overflows_are_refused() {
    let eighth = (1u64 << 61) - 1;
    let entries: serde_json::Map<_, _> = (0..8)
        .map(|index| {
            let offsets = [index * eighth, (index + 1) * eighth];
            let entry =
                serde_json::json!({ "dtype": "U8", "shape": [eighth], "data_offsets": offsets });
            (format!("t{index}"), entry)
        })
        .collect();
    let header = serde_json::Value::Object(entries).to_string();
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat();
    let folder = changed("bert", "model.safetensors", |_| bytes.clone());
    let error = Encoder::load(folder.path(), None).unwrap_err().to_string();
    assert!(error.contains("model.safetensors"), "{error}");
}
