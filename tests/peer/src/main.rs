//! llama.cpp at the work that the engine's benchmark does: the same file, threads, tokens and counts,
//! always the likeliest token. `./x bench engine` runs the two in turns.
//!
//! `steward-peer [--threads N] [--only NAME] MODEL`: one JSON object a row.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Instant;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;

type Failed = Box<dyn std::error::Error>;

/// Tokens that a call of `decode` takes at most.
const BATCH: usize = 512;
/// Streams side by side.
const STREAMS: usize = 16;

struct Row {
    name: &'static str,
    measure: fn(&mut LlamaContext<'_>) -> Result<f64, Failed>,
}

const ROWS: [Row; 6] = [
    Row {
        name: "engine/prefill-512",
        measure: |context| {
            let started = Instant::now();
            read(context, &prompt(512, 1), 0)?;
            Ok(512.0 / started.elapsed().as_secs_f64())
        },
    },
    Row {
        name: "engine/decode-128",
        measure: |context| decode_after(context, 16),
    },
    Row {
        name: "engine/decode-128-at-1500",
        measure: |context| decode_after(context, 1500),
    },
    Row {
        name: "engine/batch-16",
        measure: |context| {
            let mut streams = Vec::new();
            for stream in 0..STREAMS {
                streams.push(Stream::read(context, &prompt(64, 100 + stream), stream)?);
            }
            let started = Instant::now();
            write(context, &mut streams, 64)?;
            Ok((STREAMS * 64) as f64 / started.elapsed().as_secs_f64())
        },
    },
    Row {
        name: "engine/shared-prefix-16",
        measure: |context| {
            let started = Instant::now();
            let shared = prompt(1024, 300);
            read(context, &shared, 0)?;
            for stream in 1..STREAMS {
                context.copy_kv_cache_seq(0, stream as i32, None, None)?;
            }
            let streams = (0..STREAMS).map(|stream| (stream, prompt(64, 400 + stream)));
            let mut streams = Stream::read_all(context, &streams.collect::<Vec<_>>(), 1024)?;
            write(context, &mut streams, 63)?;
            Ok((STREAMS * 64) as f64 / started.elapsed().as_secs_f64())
        },
    },
    Row {
        // What it does where a sequence has lost its place: it reads it again.
        name: "engine/resume-2000",
        measure: |context| {
            let started = Instant::now();
            Stream::read(context, &prompt(2000, 500), 0)?;
            Ok(1.0 / started.elapsed().as_secs_f64())
        },
    },
];

/// A sequence that is written.
struct Stream {
    id: i32,
    position: i32,
    next: LlamaToken,
}

impl Stream {
    fn read(context: &mut LlamaContext<'_>, tokens: &[i32], id: usize) -> Result<Self, Failed> {
        Ok(Self {
            id: id as i32,
            position: tokens.len() as i32,
            next: read(context, tokens, id)?,
        })
    }

    /// Reads the texts of all sequences, each from position `first` on, together.
    fn read_all(
        context: &mut LlamaContext<'_>,
        texts: &[(usize, Vec<i32>)],
        first: usize,
    ) -> Result<Vec<Self>, Failed> {
        let mut streams = Vec::new();
        for texts in texts.chunks(BATCH / texts[0].1.len()) {
            let mut batch = LlamaBatch::new(BATCH, STREAMS as i32);
            let mut last = Vec::new();
            for (id, text) in texts {
                for (at, &token) in text.iter().enumerate() {
                    let is_last = at + 1 == text.len();
                    let position = (first + at) as i32;
                    batch.add(LlamaToken(token), position, &[*id as i32], is_last)?;
                }
                last.push((*id as i32, batch.n_tokens() - 1, (first + text.len()) as i32));
            }
            context.decode(&mut batch)?;
            streams.extend(last.into_iter().map(|(id, row, position)| Self {
                id,
                position,
                next: likeliest(context.get_logits_ith(row)),
            }));
        }
        Ok(streams)
    }
}

/// Reads a text from position 0 on; the likeliest token after it.
fn read(context: &mut LlamaContext<'_>, tokens: &[i32], id: usize) -> Result<LlamaToken, Failed> {
    let mut batch = LlamaBatch::new(BATCH, STREAMS as i32);
    for (part, tokens_of_part) in tokens.chunks(BATCH).enumerate() {
        batch.clear();
        for (at, &token) in tokens_of_part.iter().enumerate() {
            let position = part * BATCH + at;
            let is_last = position + 1 == tokens.len();
            batch.add(LlamaToken(token), position as i32, &[id as i32], is_last)?;
        }
        context.decode(&mut batch)?;
    }
    Ok(likeliest(context.get_logits_ith(batch.n_tokens() - 1)))
}

/// Goes on by `count` tokens with all sequences.
fn write(context: &mut LlamaContext<'_>, streams: &mut [Stream], count: usize) -> Result<(), Failed> {
    let mut batch = LlamaBatch::new(streams.len(), STREAMS as i32);
    for _ in 0..count {
        batch.clear();
        for stream in &*streams {
            batch.add(stream.next, stream.position, &[stream.id], true)?;
        }
        context.decode(&mut batch)?;
        for (row, stream) in streams.iter_mut().enumerate() {
            stream.next = likeliest(context.get_logits_ith(row as i32));
            stream.position += 1;
        }
    }
    Ok(())
}

fn decode_after(context: &mut LlamaContext<'_>, len: usize) -> Result<f64, Failed> {
    let mut streams = [Stream::read(context, &prompt(len, 200), 0)?];
    let started = Instant::now();
    write(context, &mut streams, 128)?;
    Ok(128.0 / started.elapsed().as_secs_f64())
}

fn likeliest(logits: &[f32]) -> LlamaToken {
    let mut best = (0, f32::NEG_INFINITY);
    for (id, &logit) in logits.iter().enumerate() {
        if logit > best.1 {
            best = (id, logit);
        }
    }
    LlamaToken(best.0 as i32)
}

/// The tokens that the engine's benchmark takes too.
fn prompt(len: usize, salt: usize) -> Vec<i32> {
    (0..len).map(|at| (1000 + salt + at * 37 % 4000) as i32).collect()
}

fn main() -> Result<(), Failed> {
    let (mut threads, mut only, mut model) = (2, None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--threads" => threads = arguments.next().ok_or("`--threads` needs a number")?.parse()?,
            "--only" => only = arguments.next(),
            path => model = Some(PathBuf::from(path)),
        }
    }
    let model = model.ok_or("usage: steward-peer [--threads N] [--only NAME] MODEL")?;
    let mut backend = LlamaBackend::init()?;
    backend.void_logs();
    let model = LlamaModel::load_from_file(&backend, model, &LlamaModelParams::default())?;
    let parameters = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(4096))
        .with_n_batch(BATCH as u32)
        .with_n_ubatch(BATCH as u32)
        .with_n_seq_max(STREAMS as u32)
        .with_kv_unified(true)
        .with_n_threads(threads)
        .with_n_threads_batch(threads);
    let mut context = model.new_context(&backend, parameters)?;
    // The first pass touches the weights.
    read(&mut context, &prompt(64, 9), 0)?;
    for Row { name, measure } in &ROWS {
        if only.as_deref().is_some_and(|only| only != *name) {
            continue;
        }
        context.clear_kv_cache();
        let value = measure(&mut context)?;
        println!("{}", serde_json::json!({ "bench": name, "value": value }));
    }
    Ok(())
}
