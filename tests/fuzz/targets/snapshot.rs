//! Snapshots of generations, changed byte by byte and sealed again as if they were whole: refused, or
//! they go on. The first byte of the input picks the request; then come edits of four bytes each.
#![no_main]

mod engine;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};
use steward_engine::{
    Cancel, Constraint, Engine, EngineError, GenerateRequest, Progress, Prompt, Sampling,
};

/// Mark, version, length; the digests of model and request follow.
const HEAD: usize = 8 + 4 + 8;
const DIGEST: usize = 32;

struct Known {
    engine: Engine,
    /// Requests, each with a snapshot of it.
    begun: Vec<(GenerateRequest, Vec<u8>)>,
}

static KNOWN: OnceLock<Known> = OnceLock::new();

fuzz_target!(
    init: engine::panics_are_answers(),
    |input: &[u8]| {
        let Known { engine, begun } = KNOWN.get_or_init(known);
        let Some((pick, edits)) = input.split_first() else { return };
        let (request, whole) = &begun[*pick as usize % begun.len()];
        let mut body = whole[HEAD + 2 * DIGEST..whole.len() - DIGEST].to_vec();
        edits.as_chunks::<4>().0.iter().for_each(|edit| apply(&mut body, *edit));
        let mut forged = whole[..HEAD + 2 * DIGEST].to_vec();
        forged.extend(body);
        let len = (forged.len() + DIGEST) as u64;
        forged[HEAD - 8..HEAD].copy_from_slice(&len.to_le_bytes());
        forged.extend(Sha256::digest(&forged));
        match engine.restore(request.clone(), &forged) {
            Err(error) => assert!(matches!(error, EngineError::Snapshot(_)), "{error}"),
            Ok(mut session) => {
                let never = Cancel::new();
                if let Err(error) = session.run(Some(4), &never, &never, &mut |_| ()) {
                    engine::expect_clear(&error);
                }
            }
        }
    }
);

/// Sets, adds, takes out or cuts off, at a place from the beginning or from the end.
fn apply(body: &mut Vec<u8>, [what, low, high, value]: [u8; 4]) {
    let at = usize::from(u16::from_le_bytes([low, high]));
    let at = if what & 0x80 == 0 {
        at
    } else {
        body.len().wrapping_sub(at + 1)
    };
    if at >= body.len() {
        return;
    }
    match what & 3 {
        0 => body[at] = value,
        1 => body.insert(at, value),
        2 => drop(body.remove(at)),
        _ => body.truncate(at),
    }
}

fn known() -> Known {
    let engine = engine::load(&engine::file().bytes()).expect("the tiny model loads");
    let plain = GenerateRequest::new(Prompt::Text("once upon".to_owned()), 12);
    let mut sampled = plain.clone();
    sampled.sampling = Sampling {
        temperature: 1.0,
        repetition_penalty: 1.2,
        penalty_window: Some(4),
        logit_bias: BTreeMap::from([(97, 1.0)]),
        ..Sampling::default()
    };
    sampled.logprobs = true;
    sampled.top_logprobs = 2;
    sampled.stop = vec!["zz".to_owned()];
    let mut search = plain.clone();
    search.beams = 4;
    let mut formed = plain.clone();
    formed.constraint = Some(Constraint::Regex("[a-d]{4} and then [e-h]{4}".to_owned()));
    formed.logprobs = true;
    let begun = [plain, sampled, search, formed]
        .into_iter()
        .flat_map(|request| {
            [0, 1, 3].map(|quantum| {
                let mut session = engine.begin(request.clone()).expect("a good request");
                let never = Cancel::new();
                let progress = session.run(Some(quantum), &never, &never, &mut |_| ());
                assert_eq!(progress.expect("it runs"), Progress::Paused);
                (
                    request.clone(),
                    session.snapshot().expect("it has not ended"),
                )
            })
        });
    let begun = begun.collect();
    Known { engine, begun }
}
