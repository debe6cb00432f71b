//! The batch: one thread runs the steps of all generations of an engine, each step for as many of
//! them as there are ("continuous batching", Yu et al. 2022). They join and leave between steps.
//!
//! A text that is read is cut into pieces, and beside texts that are written only so much of it is
//! read in a step that these are not held up ("chunked prefill", Agrawal et al. 2024).

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use super::pace::{Pace, Took};
use super::prefix::common_len;
use crate::cancel::Cancel;
use crate::engine::Engine;
use crate::error::{EngineError, guard};
use crate::kv::POSITIONS;
use crate::model::{Logits, Run, RunLogits, STEP_TOKENS};

/// Works that run at a time; others wait for one to leave.
const MOST: usize = 64;

/// Pending tokens up to which a work counts as one that writes.
pub(super) const WRITES: usize = 8;

/// What the batch can run.
pub(super) trait Work: Send {
    fn engine(&self) -> &Engine;
    fn cancel(&self) -> &Cancel;

    /// Whether it is to leave before the next step although it is not done.
    fn stands_still(&self) -> bool;

    /// Tokens that it has to run before it can go on.
    fn pending(&self) -> usize;

    /// The text that it reads or has read, while others can gain from waiting for it.
    fn reads(&self) -> Option<&[u32]>;

    /// The text that it will begin with.
    fn begins_with(&self) -> &[u32];

    /// Pages that it may come to hold beyond those that it holds.
    fn growth(&self) -> usize;

    /// Takes what is known of its texts.
    fn start(&mut self);

    /// Its next runs, of at most `most` tokens in all, as far as they can be cut.
    fn runs(&mut self, most: usize) -> Vec<Run<'_>>;

    /// Takes what its runs gave, one for each; whether it is done.
    fn fed(&mut self, given: &[Result<RunLogits<'_>, EngineError>], took: Took<'_>) -> bool;

    /// Ends its stay.
    fn leave(self: Box<Self>, why: Leave);
}

/// Why a work leaves the batch.
#[derive(Debug)]
pub(super) enum Leave {
    /// It is done, or failed by itself.
    Done,
    /// It stands still.
    Paused,
    Cancelled,
    /// The step that it was part of failed.
    Failed(EngineError),
}

/// Where works are handed in.
#[derive(Debug)]
pub(crate) struct Batch {
    works: Sender<Box<dyn Work>>,
}

impl Batch {
    /// Starts the thread. It ends with the batch, once no work is left.
    pub(crate) fn start() -> std::io::Result<Self> {
        let (works, coming) = channel();
        std::thread::Builder::new()
            .name("engine-0".to_owned())
            .spawn(move || Runner::new(coming).run())?;
        Ok(Self { works })
    }

    pub(super) fn submit(&self, work: Box<dyn Work>) -> Result<(), EngineError> {
        let gone = |_| EngineError::Internal("the thread that computes has ended".to_owned());
        self.works.send(work).map_err(gone)
    }
}

struct Runner {
    coming: Receiver<Box<dyn Work>>,
    waiting: VecDeque<Box<dyn Work>>,
    /// Those that run, whoever had no step for longest first.
    running: Vec<Box<dyn Work>>,
    pace: Pace,
}

impl Runner {
    fn new(coming: Receiver<Box<dyn Work>>) -> Self {
        Self {
            coming,
            waiting: VecDeque::new(),
            running: Vec::new(),
            pace: Pace::default(),
        }
    }

    fn run(mut self) {
        loop {
            if self.running.is_empty() && self.waiting.is_empty() {
                match self.coming.recv() {
                    Ok(work) => self.waiting.push_back(work),
                    Err(_) => return,
                }
            }
            self.waiting.extend(self.coming.try_iter());
            self.let_go();
            self.admit();
            self.step();
        }
    }

    /// Those leave who are not to go on.
    fn let_go(&mut self) {
        let why = |work: &dyn Work| {
            if work.cancel().is_cancelled() {
                Some(Leave::Cancelled)
            } else {
                work.stands_still().then_some(Leave::Paused)
            }
        };
        for work in std::mem::take(&mut self.waiting) {
            match why(&*work) {
                Some(why) => work.leave(why),
                None => self.waiting.push_back(work),
            }
        }
        for work in std::mem::take(&mut self.running) {
            match why(&*work) {
                Some(why) => work.leave(why),
                None => self.running.push(work),
            }
        }
    }

    /// Those come in for whom there is room to their end, in the order in which they came. Whose
    /// text begins like one that is just read waits for that.
    fn admit(&mut self) {
        for mut work in std::mem::take(&mut self.waiting) {
            if self.running.len() < MOST && self.has_room(&*work) && !self.can_gain(&*work) {
                work.start();
                self.running.push(work);
            } else {
                self.waiting.push_back(work);
            }
        }
    }

    fn has_room(&self, work: &dyn Work) -> bool {
        // What no one runs beside can be had in full: `begin` refuses what never fits.
        if self.running.is_empty() {
            return true;
        }
        let growth: usize = self.running.iter().map(|work| work.growth()).sum();
        let engine = work.engine();
        let free = engine.prefixes().unused();
        let held = engine.pages().held().saturating_sub(free);
        held + growth + work.growth() <= engine.pages().most()
    }

    fn can_gain(&self, work: &dyn Work) -> bool {
        let text = work.begins_with();
        let readers = self.running.iter().filter_map(|work| work.reads());
        let common = readers.map(|other| common_len(text, other)).max();
        let common = common.unwrap_or(0) / POSITIONS * POSITIONS;
        common > 0 && common > work.engine().prefixes().known(text)
    }

    fn step(&mut self) {
        let Some(first) = self.running.first() else {
            return;
        };
        let engine = first.engine().clone();
        let shares = self.shares();
        let columns: usize = shares.iter().map(|share| share.1).sum();
        let pages = shares.len() + columns.div_ceil(POSITIONS);
        engine.make_room(pages);

        let mut works: Vec<_> = std::mem::take(&mut self.running)
            .into_iter()
            .map(Some)
            .collect();
        let mut chosen: Vec<Chosen> = shares
            .iter()
            .filter_map(|&(index, most)| Some(Chosen::new(works[index].take()?, most)))
            .collect();
        self.running = works.into_iter().flatten().collect();

        let started = Instant::now();
        let flags: Vec<Cancel> = chosen
            .iter()
            .map(|chosen| chosen.work.cancel().clone())
            .collect();
        let mut runs = Vec::new();
        for Chosen {
            work,
            most,
            runs: count,
            ..
        } in &mut chosen
        {
            let own = work.runs(*most);
            *count = own.len();
            runs.extend(own);
        }
        let logits = engine
            .model()
            .step(&mut runs, &|| flags.iter().all(Cancel::is_cancelled));
        drop(runs);
        let seconds = started.elapsed().as_secs_f64();
        let outcome = logits.and_then(|logits| {
            self.pace.observe(columns, seconds);
            let took = Took {
                columns,
                seconds,
                pace: &self.pace,
            };
            hand_out(&engine, &mut chosen, &logits, took)
        });
        if let Err(error) = outcome
            && !matches!(error, EngineError::Cancelled)
        {
            let said = error.to_string();
            for Chosen { work, .. } in chosen.drain(..) {
                work.leave(Leave::Failed(EngineError::Internal(said.clone())));
            }
        }
        for Chosen { work, done, .. } in chosen {
            if done {
                work.leave(Leave::Done);
            } else {
                self.running.push(work);
            }
        }
    }

    /// Whose runs the next step takes, by their place, and how many tokens of each.
    fn shares(&self) -> Vec<(usize, usize)> {
        let pending: Vec<usize> = self.running.iter().map(|work| work.pending()).collect();
        let places = pending.iter().copied().enumerate();
        let mut shares = Vec::new();
        let mut columns = 0;
        for (place, pending) in places.clone().filter(|(_, pending)| *pending <= WRITES) {
            if columns + pending > STEP_TOKENS {
                break;
            }
            shares.push((place, pending));
            columns += pending;
        }
        let mut left = if columns == 0 {
            STEP_TOKENS
        } else {
            self.pace.beside(columns).min(STEP_TOKENS - columns)
        };
        for (place, pending) in places.filter(|(_, pending)| *pending > WRITES) {
            let most = pending.min(left);
            if most == 0 {
                break;
            }
            shares.push((place, most));
            left -= most;
        }
        shares
    }
}

/// Gives each work what its runs gave, on all threads.
fn hand_out(
    engine: &Engine,
    chosen: &mut [Chosen],
    logits: &Logits,
    took: Took<'_>,
) -> Result<(), EngineError> {
    let mut first = 0;
    for chosen in &mut *chosen {
        chosen.first = first;
        first += chosen.runs;
    }
    guard(|| {
        engine.model().on_threads(chosen, |chosen| {
            let runs = chosen.first..chosen.first + chosen.runs;
            let given: Vec<_> = runs.map(|run| logits.of(run)).collect();
            chosen.done = chosen.work.fed(&given, took);
        });
        Ok(())
    })
}

/// A work that the step takes.
struct Chosen {
    work: Box<dyn Work>,
    most: usize,
    /// Where its runs begin among all, and how many they are.
    first: usize,
    runs: usize,
    done: bool,
}

impl Chosen {
    fn new(work: Box<dyn Work>, most: usize) -> Self {
        Self {
            work,
            most,
            first: 0,
            runs: 0,
            done: false,
        }
    }
}
