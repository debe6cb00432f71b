//! One module's queue, as plain data: who waits, who runs, who is next.

use std::collections::{BTreeSet, HashMap};
use std::task::Waker;

use super::policy::{Call, Caller, Policy, PolicyChoice};
use super::waits::Waits;
use crate::error::SysError;
use crate::provider::Cancel;

/// Calls that may wait in one module's queue; more are refused, so that memory stays bounded.
pub(super) const QUEUE_LIMIT: usize = 131_072;

/// A call as it comes.
#[derive(Clone, Copy)]
pub(super) struct Comer {
    pub(super) caller: Caller,
    /// Whether it can give way in the middle: a generation.
    pub(super) sliced: bool,
    /// The call it was, where it only gave way: it keeps its arrival.
    pub(super) before: Option<Call>,
}

/// A call that waits, or whose turn has come and who has not taken it yet.
struct Place {
    call: Call,
    rank: u64,
    sliced: bool,
    entered_ms: u64,
    waker: Waker,
    granted: Option<Granted>,
}

/// A turn that was given.
pub(super) struct Granted {
    pub(super) call: Call,
    pub(super) entered_ms: u64,
    pub(super) started_ms: u64,
    /// Which of the line's policies counted the call in.
    epoch: u64,
    /// Set when a call of lower rank waits; of generations only.
    pub(super) yield_now: Option<Cancel>,
}

/// What a generation does after a slice.
pub(super) enum Next {
    /// It goes on; the tokens count for a new turn from here where true.
    GoOn { anew: bool },
    /// It gives its turn back. It keeps its arrival where it had not used its quantum up.
    GiveWay { keeps_arrival: bool },
}

/// A generation that runs and can be asked to give way.
struct Slice {
    call: Call,
    rank: u64,
    epoch: u64,
    yield_now: Cancel,
}

/// Where an arriving call stands.
pub(super) enum Arrival {
    Turn(Granted),
    Waits(u64),
    Full,
}

pub(super) struct Line {
    choice: PolicyChoice,
    policy: Box<dyn Policy>,
    epoch: u64,
    limit: usize,
    running: usize,
    next_ticket: u64,
    /// Waiting calls by rank and ticket.
    ready: BTreeSet<(u64, u64)>,
    places: HashMap<u64, Place>,
    slices: HashMap<u64, Slice>,
    waits: Waits,
}

impl Line {
    pub(super) fn new(choice: PolicyChoice, limit: usize) -> Result<Self, SysError> {
        Ok(Self {
            policy: choice.try_build()?,
            choice,
            epoch: 0,
            limit,
            running: 0,
            next_ticket: 0,
            ready: BTreeSet::new(),
            places: HashMap::new(),
            slices: HashMap::new(),
            waits: Waits::default(),
        })
    }

    /// A call comes: it has its turn at once where there is room, and waits otherwise.
    pub(super) fn arrive(&mut self, comer: Comer, now_ms: u64, waker: &Waker) -> Arrival {
        let room = self.running < self.limit && self.ready.is_empty();
        if !room && self.ready.len() >= QUEUE_LIMIT {
            return Arrival::Full;
        }
        let call = comer.before.unwrap_or_else(|| {
            self.next_ticket += 1;
            Call {
                ticket: self.next_ticket,
                caller: comer.caller,
                arrived_ms: now_ms,
            }
        });
        let place = Place {
            call,
            rank: self.policy.arrive(&call),
            sliced: comer.sliced,
            entered_ms: now_ms,
            waker: waker.clone(),
            granted: None,
        };
        if room {
            return Arrival::Turn(self.begin(&place, now_ms));
        }
        self.ready.insert((place.rank, call.ticket));
        self.places.insert(call.ticket, place);
        self.ask_to_yield();
        Arrival::Waits(call.ticket)
    }

    /// The turn of a waiting call, where it has come.
    pub(super) fn take(&mut self, ticket: u64, waker: &Waker) -> Option<Granted> {
        let place = self.places.get_mut(&ticket)?;
        if place.granted.is_none() {
            place.waker.clone_from(waker);
            return None;
        }
        self.places.remove(&ticket)?.granted
    }

    /// A waiting call gives up; whom to wake.
    pub(super) fn withdraw(&mut self, ticket: u64, now_ms: u64) -> Option<Waker> {
        let place = self.places.remove(&ticket)?;
        if let Some(granted) = place.granted {
            return self.leave(&granted, 0, now_ms);
        }
        self.ready.remove(&(place.rank, ticket));
        self.policy.end(&place.call, 0);
        None
    }

    /// A turn is over; whom to wake.
    pub(super) fn leave(&mut self, turn: &Granted, tokens: u32, now_ms: u64) -> Option<Waker> {
        let slice = self.slices.remove(&turn.call.ticket);
        let epoch = slice.map_or(turn.epoch, |slice| slice.epoch);
        // A policy that came in between knows nothing of this call.
        if epoch == self.epoch {
            self.policy.end(&turn.call, tokens);
        }
        self.running = self.running.saturating_sub(1);
        self.advance(now_ms)
    }

    /// Gives the next turn, where there is room and someone waits; whom to wake.
    pub(super) fn advance(&mut self, now_ms: u64) -> Option<Waker> {
        if self.running >= self.limit {
            return None;
        }
        let (_, ticket) = self.ready.pop_first()?;
        let mut place = self.places.remove(&ticket)?;
        place.granted = Some(self.begin(&place, now_ms));
        let waker = place.waker.clone();
        self.places.insert(ticket, place);
        Some(waker)
    }

    fn begin(&mut self, place: &Place, now_ms: u64) -> Granted {
        self.policy.start(place.rank);
        self.running += 1;
        self.waits.add(now_ms.saturating_sub(place.entered_ms));
        let yield_now = place.sliced.then(Cancel::default);
        if let Some(yield_now) = &yield_now {
            let slice = Slice {
                call: place.call,
                rank: place.rank,
                epoch: self.epoch,
                yield_now: yield_now.clone(),
            };
            self.slices.insert(place.call.ticket, slice);
        }
        Granted {
            call: place.call,
            entered_ms: place.entered_ms,
            started_ms: now_ms,
            epoch: self.epoch,
            yield_now,
        }
    }

    /// Asks the running generation of the highest rank to give way where calls of lower rank wait
    /// for whom none was asked yet.
    fn ask_to_yield(&self) {
        let asked = |slice: &&Slice| slice.yield_now.is_cancelled();
        let count = self.slices.values().filter(asked).count();
        let others = self.slices.values().filter(|slice| !asked(slice));
        let Some(worst) = others.max_by_key(|slice| (slice.rank, slice.call.ticket)) else {
            return;
        };
        if self.ready.range(..(worst.rank, 0)).nth(count).is_some() {
            worst.yield_now.cancel();
        }
    }

    /// What a running generation does now that it has used `tokens` in this turn.
    pub(super) fn after_slice(&mut self, turn: &mut Granted, tokens: u32, now_ms: u64) -> Next {
        let used_up = self.quantum().is_some_and(|quantum| tokens >= quantum);
        let go_on = Next::GoOn { anew: used_up };
        let Some(slice) = self.slices.get_mut(&turn.call.ticket) else {
            return go_on;
        };
        if let Some(&(best, _)) = self.ready.first() {
            let again = self.policy.again(&slice.call, tokens, now_ms);
            if best < slice.rank || (used_up && best <= again) {
                return Next::GiveWay {
                    keeps_arrival: !used_up,
                };
            }
        }
        if used_up {
            if slice.epoch == self.epoch {
                self.policy.end(&slice.call, tokens);
            }
            slice.call.arrived_ms = now_ms;
            slice.rank = self.policy.arrive(&slice.call);
            slice.epoch = self.epoch;
            self.policy.start(slice.rank);
            turn.call = slice.call;
        }
        if slice.yield_now.is_cancelled() {
            slice.yield_now = Cancel::default();
            turn.yield_now = Some(slice.yield_now.clone());
        }
        self.ask_to_yield();
        go_on
    }

    pub(super) fn quantum(&self) -> Option<u32> {
        self.policy.quantum()
    }

    /// Takes another policy; all who wait and the generations that run are ranked anew.
    pub(super) fn set_policy(&mut self, choice: PolicyChoice) -> Result<(), SysError> {
        self.policy = choice.try_build()?;
        self.choice = choice;
        self.epoch += 1;
        let mut running: Vec<_> = self.slices.values_mut().collect();
        running.sort_unstable_by_key(|slice| slice.call.ticket);
        for slice in running {
            slice.rank = self.policy.arrive(&slice.call);
            slice.epoch = self.epoch;
            self.policy.start(slice.rank);
        }
        let waiting = std::mem::take(&mut self.ready);
        let mut tickets: Vec<_> = waiting.into_iter().map(|(_, ticket)| ticket).collect();
        tickets.sort_unstable();
        for ticket in tickets {
            if let Some(place) = self.places.get_mut(&ticket) {
                place.rank = self.policy.arrive(&place.call);
                self.ready.insert((place.rank, ticket));
            }
        }
        self.ask_to_yield();
        Ok(())
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn choice(&self) -> &PolicyChoice {
        &self.choice
    }

    /// How many wait and how many run.
    pub(super) fn load(&self) -> (usize, usize) {
        (self.ready.len(), self.running)
    }

    pub(super) fn waits(&self) -> &Waits {
        &self.waits
    }
}
