//! How fast a model is on this machine.

use std::path::Path;
use std::time::Instant;

use steward_engine::{
    Cancel, Engine, EngineError, GenerateRequest, Generation, LoadOptions, Prompt, Session,
};
use steward_kernel::SysError;

use crate::local::explained;

/// Tokens of the prompt that is read, and of the answer that is written.
const READ: usize = 512;
const WRITTEN: usize = 64;
/// Answers that are written side by side.
const TOGETHER: usize = 8;
/// Each figure is the median of so many runs.
const RUNS: u32 = 3;

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What was measured, such as `read`.
    pub name: &'static str,
    /// It in words.
    pub about: String,
    /// Its value.
    pub value: f64,
    /// Its unit, such as `tokens/s`.
    pub unit: &'static str,
}

/// Loads a model and measures it: how long it loads, how fast it reads, writes, and writes several
/// answers at once. `each` gets every row as it is there. Blocks.
///
/// # Errors
/// The model cannot be loaded, or its context is too small.
pub fn measure(
    file: &Path,
    threads: Option<usize>,
    each: &mut dyn FnMut(Row),
) -> Result<(), SysError> {
    let mut run = || -> Result<(), EngineError> {
        let begun = Instant::now();
        let options = LoadOptions {
            threads,
            context: None,
            ..LoadOptions::default()
        };
        let engine = Engine::load(file, &options)?;
        each(Row {
            name: "load",
            about: "until the model can answer".to_owned(),
            value: begun.elapsed().as_secs_f64(),
            unit: "s",
        });
        let bench = Bench { engine: &engine };
        each(Row {
            name: "read",
            about: format!("reading a text of {READ} tokens"),
            value: bench.median(|run| {
                let out = bench.generate(READ, run, 1)?;
                Ok(READ as f64 / out.prefill_seconds)
            })?,
            unit: "tokens/s",
        });
        each(Row {
            name: "write",
            about: "writing one answer".to_owned(),
            value: bench.median(|run| {
                let out = bench.generate(16, 100 + run, WRITTEN + 1)?;
                // The first token comes with the prompt.
                Ok((out.ids.len() - 1) as f64 / out.decode_seconds)
            })?,
            unit: "tokens/s",
        });
        each(Row {
            name: "write-together",
            about: format!("writing {TOGETHER} answers at once, in all"),
            value: bench.median(|run| bench.together(200 + 10 * run))?,
            unit: "tokens/s",
        });
        Ok(())
    };
    run().map_err(|error| explained(&error))
}

struct Bench<'a> {
    engine: &'a Engine,
}

impl Bench<'_> {
    fn median(
        &self,
        mut measure: impl FnMut(u32) -> Result<f64, EngineError>,
    ) -> Result<f64, EngineError> {
        // The first one touches memory for the first time.
        measure(0)?;
        let mut values = (1..=RUNS).map(measure).collect::<Result<Vec<_>, _>>()?;
        values.sort_by(f64::total_cmp);
        Ok(values[values.len() / 2])
    }

    /// A prompt of ordinary tokens; another one at each run, so that nothing of it is known.
    fn request(&self, len: usize, run: u32, tokens: usize) -> GenerateRequest {
        let words = self.engine.info().vocab as u32;
        let first = words / 50;
        let ids = (0..len as u32).map(|at| (first + run * 31 + at * 37) % words.max(1));
        GenerateRequest {
            speculate: false,
            ignore_eos: true,
            ..GenerateRequest::new(Prompt::Tokens(ids.collect()), tokens)
        }
    }

    fn generate(&self, len: usize, run: u32, tokens: usize) -> Result<Generation, EngineError> {
        let request = self.request(len, run, tokens);
        self.engine.generate(&request, &Cancel::new(), &mut |_| ())
    }

    /// Tokens a second of all answers together.
    fn together(&self, run: u32) -> Result<f64, EngineError> {
        let begin = |answer: usize| {
            let request = self.request(16, run + answer as u32, WRITTEN + 1);
            let mut session = self.engine.begin(request)?;
            go_on(&mut session, Some(1))?;
            Ok(session)
        };
        let sessions = (0..TOGETHER).map(begin).collect::<Result<Vec<_>, _>>()?;
        let begun = Instant::now();
        let outcomes: Vec<Result<(), EngineError>> = std::thread::scope(|scope| {
            let threads: Vec<_> = sessions
                .into_iter()
                .map(|mut session| scope.spawn(move || go_on(&mut session, None)))
                .collect();
            let ended = threads.into_iter().map(|thread| thread.join());
            ended.filter_map(Result::ok).collect()
        });
        let seconds = begun.elapsed().as_secs_f64();
        let answers = outcomes.len();
        outcomes.into_iter().collect::<Result<(), _>>()?;
        Ok((answers * WRITTEN) as f64 / seconds)
    }
}

fn go_on(session: &mut Session, quantum: Option<u32>) -> Result<(), EngineError> {
    let never = Cancel::new();
    session.run(quantum, &never, &never, &mut |_| ())?;
    Ok(())
}
