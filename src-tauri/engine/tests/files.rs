//! Model files of every supported kind, and damaged ones: each gets a clear error, and none a
//! panic or a huge allocation.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

mod tiny;

use std::path::PathBuf;

use proptest::prelude::*;
use steward_engine::{Cancel, Engine, EngineError, GenerateRequest, LoadOptions, Prompt};

use tiny::{Field, File, Grain, Kind};

fn load(bytes: &[u8]) -> Result<Engine, EngineError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, bytes).unwrap();
    Engine::load(
        &path,
        &LoadOptions {
            threads: Some(1),
            context: None,
            ..LoadOptions::default()
        },
    )
}

fn valid() -> File {
    File::new(Kind::Q8_0, Grain::Eight)
}

/// Tokens and their log-probabilities after a fixed prompt.
fn run(kind: Kind, grain: Grain) -> (Vec<u32>, Vec<f32>) {
    let engine = load(&File::new(kind, grain).bytes()).unwrap();
    let mut request = GenerateRequest::new(Prompt::Text("the tiny model says".to_owned()), 24);
    request.logprobs = true;
    let out = engine
        .generate(&request, &Cancel::new(), &mut |_| ())
        .unwrap();
    (out.ids, out.logprobs)
}

#[test]
fn all_tensor_types_make_the_same_model_of_the_same_weights() {
    let exact = run(Kind::F32, Grain::Four);
    assert_eq!(exact.0.len(), 24);
    assert_eq!(
        run(Kind::F16, Grain::Four),
        exact,
        "halves hold these weights exactly"
    );
    assert_eq!(run(Kind::Q4_0, Grain::Four), run(Kind::Q4_1, Grain::Four));
    assert_eq!(run(Kind::F32, Grain::Eight), run(Kind::F16, Grain::Eight));
    // Quantised products round the activations to 8 bits.
    for (kind, grain) in [(Kind::Q4_1, Grain::Four), (Kind::Q8_0, Grain::Eight)] {
        let (exact, found) = (run(Kind::F32, grain), run(kind, grain));
        let same = exact
            .0
            .iter()
            .zip(&found.0)
            .take_while(|(a, b)| a == b)
            .count();
        assert!(same > 0, "{kind:?} begins with another token");
        for index in 0..same {
            let apart = (exact.1[index] - found.1[index]).abs();
            assert!(apart < 0.1, "{kind:?}, token {index}: {apart}");
        }
    }
}

#[test]
fn damage_is_named() {
    type Damage = fn(&mut File);
    let rows: &[(Damage, &str)] = &[
        (|f| f.version = 1, "unknown GGUF version `1`"),
        (|f| f.version = 3 << 24, "unknown GGUF version"),
        (
            |f| {
                f.set("general.architecture", Field::Text("foo".to_owned()));
            },
            "unknown architecture `foo` in `general.architecture`: this engine runs `llama`",
        ),
        (
            |f| {
                f.remove("general.architecture");
            },
            "`general.architecture` is missing",
        ),
        (
            |f| {
                f.set("llama.block_count", Field::U32(3));
            },
            "tensor `blk.2.attn_q.weight` is missing",
        ),
        (
            |f| {
                f.set("llama.block_count", Field::U32(0));
            },
            "`llama.block_count`: must not be zero",
        ),
        (
            |f| {
                f.set("llama.block_count", Field::U32(u32::MAX));
            },
            "`llama.block_count` is `4294967295`",
        ),
        (
            |f| {
                f.set("llama.embedding_length", Field::U32(128));
            },
            "tensor `token_embd.weight`",
        ),
        (
            |f| {
                f.set("llama.attention.head_count", Field::U32(0));
            },
            "`llama.attention.head_count`",
        ),
        (
            |f| {
                f.set("llama.attention.head_count", Field::U32(5));
            },
            "`llama.attention.head_count",
        ),
        (
            |f| {
                f.set("llama.attention.head_count_kv", Field::U32(3));
            },
            "cannot share `3` KV heads",
        ),
        (
            |f| {
                f.set("llama.rope.dimension_count", Field::U32(7));
            },
            "`llama.rope.dimension_count`",
        ),
        (
            |f| {
                f.set("llama.rope.scaling.type", Field::Text("yarn".to_owned()));
            },
            "scaling `yarn` is not supported",
        ),
        (
            |f| {
                f.remove("tokenizer.ggml.tokens");
            },
            "`tokenizer.ggml.tokens` is missing",
        ),
        (
            |f| {
                f.set("tokenizer.ggml.pre", Field::Text("other".to_owned()));
            },
            "`tokenizer.ggml.pre`: `other` is not supported",
        ),
        (
            |f| {
                f.set("tokenizer.ggml.token_type", Field::I32s(vec![1]));
            },
            "1 types for 258 tokens",
        ),
        (
            |f| {
                f.set(
                    "tokenizer.ggml.merges",
                    Field::Texts(vec!["zz zz".to_owned()]),
                );
            },
            "`tokenizer.ggml.merges`",
        ),
        (
            |f| {
                f.set("tokenizer.ggml.merges", Field::Texts(vec!["ab".to_owned()]));
            },
            "`ab` is no pair",
        ),
        (
            |f| {
                f.set("tokenizer.ggml.eos_token_id", Field::U32(258));
            },
            "`258` is not one of the 258",
        ),
        (
            |f| {
                f.set(
                    "tokenizer.chat_template",
                    Field::Text("{% for %}".to_owned()),
                );
            },
            "`tokenizer.chat_template`",
        ),
        (
            |f| {
                f.set("general.alignment", Field::U32(33));
            },
            "`general.alignment`",
        ),
        (
            |f| {
                f.set("general.alignment", Field::U32(0));
            },
            "`general.alignment`",
        ),
        (
            |f| f.tensor("blk.1.attn_k.weight").kind = 11,
            "tensor `blk.1.attn_k.weight` has type `Q3_K`",
        ),
        (
            |f| f.tensor("blk.1.attn_k.weight").kind = 77,
            "unknown type `77` in tensor `blk.1.attn_k.weight`",
        ),
        (
            |f| f.tensor("blk.1.attn_k.weight").dims[1] = 31,
            "tensor `blk.1.attn_k.weight`: is [64, 31]",
        ),
        (
            |f| f.tensor("blk.1.attn_k.weight").dims[0] = 63,
            "do not fill blocks of 32",
        ),
        (
            |f| f.tensor("blk.1.attn_k.weight").dims[0] = 0,
            "a dimension of zero",
        ),
        (
            |f| f.tensor("blk.1.attn_k.weight").dims = vec![1 << 40, 1 << 40],
            "the size of tensor `blk.1.attn_k.weight`",
        ),
        (
            |f| f.tensor("blk.1.attn_k.weight").dims = vec![1 << 40],
            "the file is cut short: tensor",
        ),
        (
            |f| f.tensor("blk.1.attn_k.weight").dims = vec![32; 5],
            "`5` dimensions",
        ),
        (
            |f| f.tensor("blk.1.attn_k.weight").name = "token_embd.weight".to_owned(),
            "occurs twice",
        ),
        (
            |f| f.metadata.push(f.metadata[0].clone()),
            "`general.architecture` occurs twice",
        ),
    ];
    for (damage, expected) in rows {
        let mut file = valid();
        damage(&mut file);
        let error = load(&file.bytes()).expect_err(expected).to_string();
        assert!(
            error.contains(expected),
            "expected `{expected}` in: {error}"
        );
        assert!(error.contains("model.gguf"), "{error}");
    }
}

#[test]
fn damaged_bytes_are_named() {
    let whole = valid().bytes();
    let with = |at: usize, bytes: &[u8]| {
        let mut out = whole.clone();
        out[at..at + bytes.len()].copy_from_slice(bytes);
        out
    };
    let huge = u64::MAX.to_le_bytes();
    let rows: Vec<(Vec<u8>, &str)> = vec![
        (
            Vec::new(),
            "the file is cut short: the magic needs 4 bytes at offset 0",
        ),
        (b"GG".to_vec(), "the file is cut short: the magic"),
        (
            with(0, b"PK\x03\x04"),
            "not a GGUF file: it starts with `PK\\x03\\x04`",
        ),
        (whole[..6].to_vec(), "the file is cut short: the version"),
        (with(8, &huge), "the tensor count is `18446744073709551615`"),
        (
            with(16, &huge),
            "the metadata count is `18446744073709551615`",
        ),
        (with(24, &huge), "the file is cut short: metadata key 0"),
        // The first key's type, after its length and `general.architecture`.
        (
            with(24 + 8 + 20, &99u32.to_le_bytes()),
            "unknown type `99` in `general.architecture`",
        ),
        (
            with(24 + 8 + 20 + 4, &huge),
            "the file is cut short: `general.architecture`",
        ),
        (with(24 + 8, b"\xff"), "metadata key 0 is not valid UTF-8"),
        (
            whole[..whole.len() - 64].to_vec(),
            "the file is cut short: tensor `output_norm.weight`",
        ),
    ];
    for (bytes, expected) in rows {
        let error = load(&bytes).expect_err(expected).to_string();
        assert!(
            error.contains(expected),
            "expected `{expected}` in: {error}"
        );
    }
}

#[test]
fn files_that_cannot_be_opened_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for path in [
        PathBuf::from("/no/such/model.gguf"),
        folder.path().to_owned(),
    ] {
        let error = Engine::load(&path, &LoadOptions::default()).unwrap_err();
        assert!(matches!(error, EngineError::Open { .. }), "{error}");
        assert!(
            error.to_string().contains(&path.display().to_string()),
            "{error}"
        );
    }
}

#[test]
fn bad_options_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    std::fs::write(&path, valid().bytes()).unwrap();
    for (options, said) in [
        (
            LoadOptions {
                threads: Some(0),
                context: None,
                ..LoadOptions::default()
            },
            "`0` threads",
        ),
        (
            LoadOptions {
                memory: Some(4096),
                ..LoadOptions::default()
            },
            "0 MiB are left",
        ),
        (
            LoadOptions {
                threads: Some(1 << 20),
                context: None,
                ..LoadOptions::default()
            },
            "`1048576` threads",
        ),
        (
            LoadOptions {
                threads: Some(1),
                context: Some(0),
                ..LoadOptions::default()
            },
            "a context of `0`",
        ),
        (
            LoadOptions {
                threads: Some(1),
                context: Some(257),
                ..LoadOptions::default()
            },
            "a context of `257`",
        ),
    ] {
        let error = Engine::load(&path, &options).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any file either fails with an error or works; a panic fails the test.
    #[test]
    fn cut_files_are_errors(share in 0.0f64..1.0) {
        let whole = valid().bytes();
        let len = (share * whole.len() as f64) as usize;
        prop_assert!(load(&whole[..len]).is_err());
    }

    #[test]
    fn changed_directories_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = valid().bytes();
        // The directory is what is interpreted; weights may have any value.
        let directory = 6_500.min(bytes.len());
        for (at, value) in changes {
            bytes[at.index(directory)] = value;
        }
        if let Ok(engine) = load(&bytes) {
            let request = GenerateRequest::new(Prompt::Tokens(vec![1, 2, 3]), 2);
            // Also a model with changed figures may refuse the request, but not crash.
            let _ = engine.generate(&request, &Cancel::new(), &mut |_| ());
        }
    }
}

#[test]
fn a_file_is_known_without_its_weights() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    std::fs::write(&path, valid().bytes()).unwrap();
    let told = Engine::inspect(&path).unwrap();
    let engine = Engine::load(&path, &LoadOptions::default()).unwrap();
    let info = engine.info();
    assert_eq!(
        (&told.name, told.context, told.parameters, told.token_bytes),
        (&info.name, info.context, info.parameters, info.token_bytes)
    );
    assert!(told.token_bytes > 0);
    assert_eq!(told.needs(10) - told.needs(0), 10 * told.token_bytes);
    std::fs::write(&path, b"GGUF and no more").unwrap();
    let error = Engine::inspect(&path).unwrap_err();
    assert!(matches!(error, EngineError::Model { .. }), "{error}");
}

#[test]
fn a_load_tells_how_far_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    std::fs::write(&path, valid().bytes()).unwrap();
    let told = std::sync::Mutex::new(Vec::new());
    let note = |done, total| told.lock().unwrap().push((done, total));
    Engine::load_with(&path, &LoadOptions::default(), &note).unwrap();
    let told = told.into_inner().unwrap();
    assert!(told.len() > 10, "{told:?}");
    assert!(told.is_sorted(), "{told:?}");
    let (done, total) = told[told.len() - 1];
    assert_eq!(done, total);
}
