//! A question to a model, answered as it is written; a text that goes on, where it is not made for chats.
//!
//! `cargo run --release -p steward-engine --example chat -- MODEL.gguf "Why is the sky blue?"`

use std::io::{Write, stdout};
use std::path::Path;

use steward_engine::{Cancel, Engine, GenerateRequest, LoadOptions, Message, Prompt, Role};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(question)) = (arguments.next(), arguments.next()) else {
        return Err("usage: chat MODEL.gguf QUESTION".into());
    };
    let engine = Engine::load(Path::new(&file), &LoadOptions::default())?;
    let prompt = if engine.info().chat {
        let role = Role::User;
        let content = question;
        Prompt::Messages {
            messages: vec![Message { role, content }],
            assistant_prefix: String::new(),
        }
    } else {
        Prompt::Text(question)
    };
    let request = GenerateRequest::new(prompt, 256);
    let out = engine.generate(&request, &Cancel::new(), &mut |event| {
        print!("{}", event.text);
        let _shown = stdout().flush();
    })?;
    let speed = out.ids.len() as f64 / out.decode_seconds;
    println!("\n\n{} tokens, {speed:.0} a second", out.ids.len());
    Ok(())
}
