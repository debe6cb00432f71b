//! Folders of safetensors: the same model as from a GGUF file, and a clear error for each fault.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

mod folder;
#[allow(dead_code, reason = "other tests use the rest")]
mod tiny;

use proptest::prelude::*;
use serde_json::{Value, json};
use steward_engine::{Cancel, Engine, GenerateRequest, LoadOptions, Prompt};

use folder::{Dtype, Folder, part_name, weights, with_header};
use tiny::{File, Grain, Kind};

fn gguf() -> File {
    File::new(Kind::F32, Grain::Four)
}

fn valid() -> Folder {
    Folder::of(&gguf(), Dtype::F32)
}

/// Tokens and their log-probabilities after a fixed prompt.
fn run(engine: &Engine) -> (Vec<u32>, Vec<f32>) {
    let mut request = GenerateRequest::new(Prompt::Text("the tiny model says".to_owned()), 24);
    request.logprobs = true;
    let out = engine
        .generate(&request, &Cancel::new(), &mut |_| ())
        .unwrap();
    (out.ids, out.logprobs)
}

#[test]
fn a_folder_is_the_same_model_as_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    std::fs::write(&path, gguf().bytes()).unwrap();
    let file = Engine::load(&path, &LoadOptions::default()).unwrap();
    let expected = run(&file);
    for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
        for cut in [false, true] {
            let mut folder = Folder::of(&gguf(), dtype);
            if cut {
                folder.cut();
            }
            let engine = folder.load().unwrap();
            assert_eq!(run(&engine), expected, "{dtype:?} {cut}");
            let (info, expected) = (engine.info(), file.info());
            assert_eq!(info.name, "tiny-folder");
            assert_eq!(info.file_type, format!("{dtype:?}").to_uppercase());
            assert_eq!(
                (
                    info.context,
                    info.vocab,
                    info.parameters,
                    info.layers,
                    info.width,
                    info.chat
                ),
                (256, 258, expected.parameters, 2, 64, false)
            );
        }
    }
}

#[test]
fn an_output_matrix_of_its_own_is_used_unless_tied() {
    let tied = run(&valid().load().unwrap());
    let mut folder = valid();
    let mut output = folder.tensor("model.embed_tokens.weight").clone();
    output.data.rotate_left(64 * 4);
    folder.tensors.insert("lm_head.weight".to_owned(), output);
    assert_eq!(run(&folder.load().unwrap()), tied);
    folder.config("tie_word_embeddings", json!(false));
    assert_ne!(run(&folder.load().unwrap()).0, tied.0);
}

#[test]
fn texts_and_special_tokens_are_those_of_the_folder() {
    let mut folder = valid();
    let tokenizer = folder.text("tokenizer.json");
    tokenizer["post_processor"] = json!({
        "type": "TemplateProcessing",
        "single": [
            { "SpecialToken": { "id": "<|im_start|>", "type_id": 0 } },
            { "Sequence": { "id": "A", "type_id": 0 } },
        ],
        "pair": [],
        "special_tokens": {
            "<|im_start|>": { "id": "<|im_start|>", "ids": [256], "tokens": ["<|im_start|>"] },
        },
    });
    let template =
        "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}";
    let named = json!([{ "name": "default", "template": template }]);
    folder.texts.insert(
        "tokenizer_config.json".to_owned(),
        json!({ "chat_template": named }),
    );
    let engine = folder.load().unwrap();
    assert!(engine.info().chat);
    let text = "a<|im_end|>";
    assert_eq!(engine.encode(text, false).unwrap().len(), text.len());
    assert_eq!(engine.encode(text, true).unwrap(), [u32::from(b'a'), 257]);
    let prompt = Prompt::Text("b".to_owned());
    assert_eq!(
        engine.prompt_tokens(&prompt).unwrap(),
        [256, u32::from(b'b')]
    );
    assert_eq!(engine.decode(&[256, u32::from(b'c'), 257]), "c");
    let message = steward_engine::Message {
        role: steward_engine::Role::User,
        content: "d".to_owned(),
    };
    let rendered = engine.render(&[message], true).unwrap();
    assert_eq!(rendered, "<|im_start|>d<|im_end|>");

    let own = b"{{ messages[0].content }}!".to_vec();
    folder.files.insert("chat_template.jinja".to_owned(), own);
    let message = steward_engine::Message {
        role: steward_engine::Role::User,
        content: "e".to_owned(),
    };
    assert_eq!(
        folder.load().unwrap().render(&[message], true).unwrap(),
        "e!"
    );
}

#[test]
fn damage_is_named() {
    type Damage = fn(&mut Folder);
    let rows: &[(Damage, &str)] = &[
        (
            |f| drop(f.texts.remove("config.json")),
            "cannot open the model",
        ),
        (|f| drop(f.texts.remove("tokenizer.json")), "tokenizer.json"),
        (|f| f.tensors.clear(), "model.safetensors"),
        (
            |f| drop(f.files.insert("config.json".to_owned(), b"{".to_vec())),
            "`config.json`: not valid JSON",
        ),
        (
            |f| f.config("model_type", json!("mamba")),
            "`model_type`: unknown architecture `mamba`: this engine runs `llama`",
        ),
        (
            |f| f.config("model_type", json!(7)),
            "`model_type`: not a string",
        ),
        (
            |f| f.config("hidden_act", json!("gelu")),
            "`hidden_act`: `gelu` is not supported",
        ),
        (
            |f| f.config("attention_bias", json!(true)),
            "`attention_bias`: biases are not supported",
        ),
        (
            |f| f.config("quantization_config", json!({})),
            "`quantization_config`: quantised folders are not supported",
        ),
        (
            |f| f.config("hidden_size", json!(null)),
            "`hidden_size` is missing",
        ),
        (
            |f| f.config("hidden_size", json!(-1)),
            "`hidden_size`: not a whole number",
        ),
        (
            |f| f.config("hidden_size", json!(128)),
            "is [64, 64], not [128, 128] as the metadata says",
        ),
        (
            |f| f.config("num_attention_heads", json!(0)),
            "`num_attention_heads`: must not be zero",
        ),
        (
            |f| f.config("num_attention_heads", json!(6)),
            "`num_attention_heads`: a width of 64 cannot be split into `6` heads",
        ),
        (
            |f| f.config("num_key_value_heads", json!(3)),
            "cannot share `3` KV heads",
        ),
        (
            |f| f.config("head_dim", json!(24)),
            "`head_dim`: heads of `24`",
        ),
        (
            |f| f.config("num_hidden_layers", json!(3)),
            "tensor `model.layers.2.self_attn.q_proj.weight` is missing",
        ),
        (
            |f| f.config("num_hidden_layers", json!(99_999)),
            "`num_hidden_layers` is `99999`",
        ),
        (
            |f| f.config("vocab_size", json!(300)),
            "tensor `model.embed_tokens.weight`: is [64, 258], not [64, 300]",
        ),
        (
            |f| f.config("rms_norm_eps", json!(0)),
            "`rms_norm_eps`: `0` is not a finite number above zero",
        ),
        (|f| f.config("rope_theta", json!(1e300)), "`rope_theta`: `1"),
        (
            |f| {
                f.config(
                    "rope_scaling",
                    json!({ "rope_type": "yarn", "factor": 4.0 }),
                );
            },
            "`rope_scaling.rope_type`: `yarn` is not supported",
        ),
        (
            |f| f.config("rope_scaling", json!({ "type": "linear" })),
            "`rope_scaling.factor` is missing",
        ),
        (
            |f| f.config("tie_word_embeddings", json!(false)),
            "tensor `lm_head.weight`: is missing, and `tie_word_embeddings` is not true",
        ),
        (
            |f| f.config("eos_token_id", json!("end")),
            "`eos_token_id` in `config.json`: neither",
        ),
        (
            |f| f.config("eos_token_id", json!(258)),
            "`258` is not one of the 258 tokens",
        ),
        (
            |f| f.text("tokenizer.json")["model"]["type"] = json!("Unigram"),
            "`model.type`: `Unigram`",
        ),
        (
            |f| f.text("tokenizer.json")["pre_tokenizer"] = json!(null),
            "`pre_tokenizer`: has no `ByteLevel` step",
        ),
        (
            |f| f.text("tokenizer.json")["model"]["vocab"]["a"] = json!(1e9),
            "`model.vocab` of `a`: not a token's number",
        ),
        (
            |f| f.text("tokenizer.json")["model"]["vocab"]["a"] = json!(4_000_000_000_u32),
            "4000000001 tokens for an embedding of 258 rows",
        ),
        (
            |f| f.text("tokenizer.json")["model"]["vocab"]["a"] = json!(98),
            "`a` and `b` have one number, `98`",
        ),
        (
            |f| f.text("tokenizer.json")["model"]["merges"] = json!(["zz zz"]),
            "the tokenizer: ",
        ),
        (
            |f| f.text("tokenizer.json")["added_tokens"][0]["id"] = json!(-1),
            "`added_tokens[0]`: not a token",
        ),
        (
            |f| f.tensor("model.layers.1.self_attn.k_proj.weight").dtype = "I32".to_owned(),
            "tensor `model.layers.1.self_attn.k_proj.weight`: has type `I32`: use a folder with F32",
        ),
        (
            |f| f.tensor("model.layers.1.self_attn.k_proj.weight").dtype = "F99".to_owned(),
            "`model.safetensors`: ",
        ),
        (
            |f| f.tensor("model.layers.1.self_attn.k_proj.weight").shape = vec![64, 32],
            "tensor `model.layers.1.self_attn.k_proj.weight`: is [32, 64], not [64, 32]",
        ),
        (
            |f| f.tensor("model.layers.1.self_attn.k_proj.weight").shape = vec![64, 31],
            "`model.safetensors`: ",
        ),
        (
            |f| drop(f.tensors.remove("model.layers.1.mlp.up_proj.weight")),
            "tensor `model.layers.1.mlp.up_proj.weight` is missing",
        ),
        (
            |f| {
                let bias = f.tensor("model.norm.weight").clone();
                let name = "model.layers.0.self_attn.q_proj.bias".to_owned();
                f.tensors.insert(name, bias);
            },
            "tensor `model.layers.0.self_attn.q_proj.bias`: biases are not supported",
        ),
        (
            |f| {
                let source = json!({ "chat_template": "{% for %}" });
                f.texts.insert("tokenizer_config.json".to_owned(), source);
            },
            "the chat template: ",
        ),
    ];
    for (damage, expected) in rows {
        let mut folder = valid();
        damage(&mut folder);
        let error = folder.load().expect_err(expected).to_string();
        assert!(
            error.contains(expected),
            "expected `{expected}` in: {error}"
        );
        assert!(error.contains("tiny-folder"), "{error}");
    }
}

#[test]
fn an_index_leads_nowhere_else() {
    for (file, expected) in [
        (
            json!("../model.safetensors"),
            "`../model.safetensors` is not the name of",
        ),
        (json!("/etc/passwd"), "`/etc/passwd` is not the name of"),
        (
            json!("a/b.safetensors"),
            "`a/b.safetensors` is not the name of",
        ),
        (json!("a\\b.safetensors"), "is not the name of"),
        (json!("..\u{0}.safetensors"), "is not the name of"),
        (json!(7), "`what stands there` is not the name of"),
        (json!("absent.safetensors"), "absent.safetensors"),
        (
            json!(part_name(1)),
            "is not in `model-00002-of-00002.safetensors`",
        ),
    ] {
        let mut folder = valid();
        folder.cut();
        let index = folder.text("model.safetensors.index.json");
        index["weight_map"]["model.embed_tokens.weight"] = file;
        let error = folder.load().expect_err(expected).to_string();
        assert!(
            error.contains(expected),
            "expected `{expected}` in: {error}"
        );
    }
    let mut folder = valid();
    folder.cut();
    *folder.text("model.safetensors.index.json") = json!({ "weight_map": [] });
    let error = folder.load().unwrap_err().to_string();
    assert!(error.contains("`weight_map` in"), "{error}");
}

#[test]
fn damaged_headers_are_named() {
    let whole = weights(&valid().tensors);
    let mut long = whole.clone();
    long.push(0);
    let huge = u64::MAX.to_le_bytes();
    // Sizes that the sum of all overflows with.
    let eighth = (1u64 << 61) - 1;
    let overflowing: serde_json::Map<_, _> = (0..8)
        .map(|index| {
            let offsets = [index * eighth, (index + 1) * eighth];
            let entry = json!({ "dtype": "U8", "shape": [eighth], "data_offsets": offsets });
            (format!("t{index}"), entry)
        })
        .collect();
    let entry = |text: &str| format!("{{\"t\":{text}}}");
    let rows: Vec<(Vec<u8>, &str)> = vec![
        (Vec::new(), "model.safetensors"),
        (
            whole[..7].to_vec(),
            "`model.safetensors`: `7` bytes are no header; download it again",
        ),
        (
            whole[..40].to_vec(),
            "bytes and it has 32; download it again",
        ),
        (
            whole[..whole.len() - 1].to_vec(),
            "`model.safetensors`: its tensors need",
        ),
        (long, "download it again"),
        (
            [&huge[..], b"{}"].concat(),
            "the header of `model.safetensors` is `18446744073709551615`",
        ),
        (with_header("[]", b""), "download it again"),
        (with_header("\u{0}", b""), "download it again"),
        (with_header(&"[".repeat(100_000), b""), "download it again"),
        (
            with_header(
                &entry(r#"{"dtype":"F32","shape":[1],"data_offsets":[4,0]}"#),
                b"",
            ),
            "download it again",
        ),
        (
            with_header(
                &entry(r#"{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#),
                b"",
            ),
            "download it again",
        ),
        (
            with_header(
                &entry(r#"{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}"#),
                b"",
            ),
            "download it again",
        ),
        (
            with_header(&Value::Object(overflowing).to_string(), b""),
            "download it again",
        ),
        (
            with_header("{}", b""),
            "tensor `model.layers.0.self_attn.q_proj.weight` is missing",
        ),
    ];
    for (index, (bytes, expected)) in rows.into_iter().enumerate() {
        let mut folder = valid();
        folder.files.insert("model.safetensors".to_owned(), bytes);
        let error = folder.load().expect_err(expected).to_string();
        assert!(
            error.contains(expected),
            "{index}: expected `{expected}` in: {error}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Any header either fails with an error or works; a panic fails the test.
    #[test]
    fn changed_headers_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut folder = valid();
        let mut bytes = weights(&folder.tensors);
        let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        for (at, value) in changes {
            bytes[at.index(8 + header)] = value;
        }
        folder.files.insert("model.safetensors".to_owned(), bytes);
        let _ = folder.load();
    }

    #[test]
    fn changed_texts_never_panic(
        file in 0usize..2, at: prop::sample::Index, value: u8,
    ) {
        let mut folder = valid();
        let name = ["config.json", "tokenizer.json"][file];
        let mut bytes = folder.text(name).to_string().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = value;
        folder.files.insert(name.to_owned(), bytes);
        if let Ok(engine) = folder.load() {
            let request = GenerateRequest::new(Prompt::Tokens(vec![1, 2, 3]), 2);
            let _ = engine.generate(&request, &Cancel::new(), &mut |_| ());
        }
    }
}
