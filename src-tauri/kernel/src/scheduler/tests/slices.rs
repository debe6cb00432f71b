//! Generations in slices on a simulated core that makes a token a millisecond.

use std::collections::{BTreeSet, HashMap};

use proptest::prelude::*;

use super::super::policy::KINDS;
use super::*;

const QUANTUM: u32 = 4;

/// A generation that comes at some time and takes some tokens.
#[derive(Debug, Clone)]
struct Job {
    gap_ms: u64,
    tokens: u32,
    caller: Caller,
}

fn job(agents: u64) -> impl Strategy<Value = Job> {
    let who = (0..agents, 0..8_u8, any::<bool>(), any::<Option<u8>>());
    (0..60_u64, 1..40_u32, who).prop_map(|(gap_ms, tokens, (run, class, person, due))| Job {
        gap_ms,
        tokens,
        caller: Caller {
            priority: class,
            interactive: person,
            deadline_ms: due.map(|due| 10 * u64::from(due)),
            ..Caller::new(Pid(run), run)
        },
    })
}

/// One wait for a turn.
#[derive(Debug, Clone, Copy)]
struct Wait {
    job: usize,
    /// When the call counts as come: earlier than `since_ms` where it only gave way.
    arrived_ms: u64,
    since_ms: u64,
}

/// What happened.
#[derive(Debug, Clone, Copy)]
enum Happened {
    Waits(Wait),
    Starts { wait: Wait, at_ms: u64 },
    Ran { job: usize, tokens: u32 },
    Ended { job: usize },
}

/// A core with one slot and the generations on it.
struct Core<'a> {
    jobs: &'a [Job],
    yard: Yard,
    left: Vec<u32>,
    /// The job and wait of each number of the yard.
    waits: HashMap<u64, Wait>,
    log: Vec<Happened>,
    due: std::iter::Peekable<std::iter::Enumerate<std::slice::Iter<'a, Job>>>,
    next_ms: u64,
}

impl<'a> Core<'a> {
    fn new(policy: &str, jobs: &'a [Job]) -> Self {
        let mut due = jobs.iter().enumerate().peekable();
        let next_ms = due.peek().map_or(0, |(_, job)| job.gap_ms);
        Self {
            jobs,
            yard: Yard::new(Module::Llm, policy),
            left: jobs.iter().map(|job| job.tokens).collect(),
            waits: HashMap::new(),
            log: Vec::new(),
            due,
            next_ms,
        }
    }

    /// Lets a millisecond pass; jobs come whose time it is.
    fn pass(&mut self) {
        self.yard.clock.pass(1);
        self.come();
    }

    fn come(&mut self) {
        while self.due.peek().is_some() && self.next_ms <= self.yard.now() {
            let (job, of) = self.due.next().unwrap();
            self.next_ms += self.due.peek().map_or(0, |(_, next)| next.gap_ms);
            let now = self.yard.now();
            let number = self.yard.arrive_sliced(of.caller);
            self.came(number, job, now);
        }
    }

    fn came(&mut self, number: u64, job: usize, arrived_ms: u64) {
        let wait = Wait {
            job,
            arrived_ms,
            since_ms: self.yard.now(),
        };
        self.waits.insert(number, wait);
        self.log.push(Happened::Waits(wait));
        if self.yard.running.contains_key(&number) {
            self.starts(number);
        }
    }

    fn starts(&mut self, number: u64) {
        let (wait, at_ms) = (self.waits[&number], self.yard.now());
        self.log.push(Happened::Starts { wait, at_ms });
    }

    fn started(&mut self) {
        for seen in self.yard.go_on() {
            self.starts(seen.number);
        }
        self.yard.check();
    }

    /// Runs the generation that has the slot until its slice ends.
    fn slice(&mut self, number: u64) {
        let wait = self.waits[&number];
        let job = wait.job;
        let (seen, mut slot) = self.yard.running.remove(&number).unwrap();
        let (quantum, yield_now) = (slot.quantum(), slot.yield_now());
        let mut tokens = 0;
        // It is told between two tokens; each slice makes one at least.
        while self.left[job] > 0
            && quantum.is_none_or(|most| tokens < most)
            && (tokens == 0 || !yield_now.is_cancelled())
        {
            self.pass();
            tokens += 1;
            self.left[job] -= 1;
        }
        slot.charge(tokens);
        self.log.push(Happened::Ran { job, tokens });
        if self.left[job] == 0 {
            drop(slot);
            self.log.push(Happened::Ended { job });
            return self.started();
        }
        // What has used its quantum up counts as come anew.
        let used_up = quantum.is_some_and(|most| tokens >= most);
        let arrived_ms = if used_up {
            self.yard.now()
        } else {
            wait.arrived_ms
        };
        match slot.after_slice() {
            AfterSlice::GoOn(slot) => {
                self.waits.insert(number, Wait { arrived_ms, ..wait });
                self.yard.running.insert(number, (seen, slot));
            }
            AfterSlice::GiveWay(entering) => {
                let again = self.yard.come(seen.caller, entering).unwrap();
                self.came(again, job, arrived_ms);
                self.started();
            }
        }
    }

    fn play(mut self) -> Vec<Happened> {
        self.come();
        loop {
            match self.yard.running.keys().next().copied() {
                Some(number) => self.slice(number),
                None if self.due.peek().is_some() => self.pass(),
                None => break,
            }
        }
        assert!(self.yard.waiting.is_empty() && self.left.iter().all(|left| *left == 0));
        let ended = self
            .log
            .iter()
            .filter(|h| matches!(h, Happened::Ended { .. }));
        assert_eq!(ended.count(), self.jobs.len());
        self.log
    }
}

/// Milliseconds after a call from which on none that comes goes before it.
fn bound_ms(policy: &str, caller: &Caller) -> u64 {
    match policy {
        "priority" => 20 * u64::from(caller.priority),
        "interactive" if caller.interactive => 0,
        "interactive" => 100,
        "deadline" => 200,
        _ => 0,
    }
}

fn parameters(policy: &str) -> String {
    let more = match policy {
        "fifo" => return policy.to_owned(),
        "priority" => ", age_ms=20",
        "interactive" => ", patience_ms=100",
        "deadline" => ", patience_ms=200",
        _ => "",
    };
    format!("{policy}(quantum={QUANTUM}{more})")
}

/// Holds that no call went before one that waits by more than its policy's bound.
fn check_bound(policy: &str, jobs: &[Job], log: &[Happened]) {
    let mut waiting: Vec<Wait> = Vec::new();
    for happened in log {
        match happened {
            Happened::Waits(wait) => waiting.push(*wait),
            Happened::Starts { wait: started, .. } => {
                waiting.retain(|wait| wait.job != started.job);
                for wait in &waiting {
                    let latest = wait.arrived_ms + bound_ms(policy, &jobs[wait.job].caller);
                    assert!(
                        started.arrived_ms <= latest,
                        "{policy}: {started:?} went before {wait:?}"
                    );
                }
            }
            Happened::Ran { .. } | Happened::Ended { .. } => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn all_are_done_and_none_waits_beyond_its_bound(
        jobs in prop::collection::vec(job(5), 500..1_500),
    ) {
        for kind in KINDS {
            let log = Core::new(&parameters(kind.name), &jobs).play();
            if kind.name != "fair_share" {
                check_bound(kind.name, &jobs, &log);
            }
        }
    }

    #[test]
    fn under_round_robin_a_turn_comes_after_a_quantum_of_each_at_most(
        jobs in prop::collection::vec(job(5), 500..1_500),
    ) {
        let log = Core::new(&parameters("round_robin"), &jobs).play();
        let mut most_ms = HashMap::new();
        for happened in log {
            match happened {
                Happened::Waits(wait) => {
                    let ahead = most_ms.len() as u64 + 1;
                    most_ms.insert(wait.job, ahead * u64::from(QUANTUM));
                }
                Happened::Starts { wait, at_ms } => {
                    let most_ms = most_ms.remove(&wait.job).unwrap();
                    let waited_ms = at_ms - wait.since_ms;
                    prop_assert!(waited_ms <= most_ms, "{} ms, not {}", waited_ms, most_ms);
                }
                Happened::Ran { .. } | Happened::Ended { .. } => {}
            }
        }
    }

    #[test]
    fn agents_that_want_tokens_get_as_many(
        jobs in prop::collection::vec(job(5), 500..1_500),
    ) {
        let log = Core::new(&parameters("fair_share"), &jobs).play();
        let mut agents = Agents::default();
        for happened in log {
            match happened {
                Happened::Waits(wait) => agents.want(jobs[wait.job].caller.run, wait.job),
                Happened::Ran { job, tokens } => agents.given(jobs[job].caller.run, tokens),
                Happened::Ended { job } => agents.done(jobs[job].caller.run, job),
                Happened::Starts { .. } => {}
            }
        }
    }

    #[test]
    fn a_new_agent_waits_for_one_turn_of_each_other_at_most(
        jobs in prop::collection::vec(job(100), 500..1_500),
    ) {
        let log = Core::new(&parameters("fair_share"), &jobs).play();
        let mut known = HashMap::new();
        for happened in log {
            match happened {
                Happened::Waits(wait) => {
                    known.entry(jobs[wait.job].caller.run).or_insert((wait.job, Some(HashMap::new())));
                }
                Happened::Starts { wait, .. } => {
                    let run = jobs[wait.job].caller.run;
                    for (job, turns) in known.values_mut() {
                        if *job == wait.job {
                            *turns = None;
                        } else if let Some(turns) = turns {
                            let turns = turns.entry(run).or_insert(0);
                            *turns += 1;
                            prop_assert!(*turns <= 1, "run {} had {} turns before it", run, turns);
                        }
                    }
                }
                Happened::Ran { .. } | Happened::Ended { .. } => {}
            }
        }
    }
}

/// Tokens of agents, and how far two of them are apart while both want some.
#[derive(Default)]
struct Agents {
    given: HashMap<u64, i64>,
    wanted: HashMap<u64, BTreeSet<usize>>,
    /// By how many tokens the first was ahead when both had come to want some.
    apart: HashMap<(u64, u64), i64>,
}

impl Agents {
    fn ahead(&self, of: u64, other: u64) -> i64 {
        let given = |run| self.given.get(&run).copied().unwrap_or(0);
        given(of) - given(other)
    }

    fn others(&self, run: u64) -> Vec<u64> {
        let wanting = self.wanted.iter().filter(|(_, jobs)| !jobs.is_empty());
        wanting
            .map(|(other, _)| *other)
            .filter(|other| *other != run)
            .collect()
    }

    fn want(&mut self, run: u64, job: usize) {
        let jobs = self.wanted.entry(run).or_default();
        let first = jobs.is_empty();
        jobs.insert(job);
        if first {
            for other in self.others(run) {
                self.apart.insert((run, other), self.ahead(run, other));
                self.apart.insert((other, run), self.ahead(other, run));
            }
        }
    }

    fn given(&mut self, run: u64, tokens: u32) {
        *self.given.entry(run).or_default() += i64::from(tokens);
        for other in self.others(run) {
            let since = self.ahead(run, other) - self.apart[&(run, other)];
            let most = 4 * i64::from(QUANTUM) - 1;
            assert!(
                since <= most,
                "run {run} is {since} tokens ahead of {other}"
            );
        }
    }

    fn done(&mut self, run: u64, job: usize) {
        self.wanted.entry(run).or_default().remove(&job);
    }
}
