//! Shares by tokens used.

use std::collections::HashMap;

use super::{Call, Kind, Policy};

pub(super) const KIND: Kind = Kind {
    name: "fair_share",
    help: "every agent gets the same share of tokens, however many calls it makes",
    make: |params| {
        let quantum = params.quantum()?;
        let by_run = params.word("by", &["run", "process"])? == "run";
        Ok(Box::new(FairShare {
            quantum,
            by_run,
            virtual_time: 0,
            agents: HashMap::new(),
            keep: AGENTS_KEPT,
        }))
    },
};

/// Agents remembered before those are looked for that can be forgotten.
const AGENTS_KEPT: usize = 64;

/// Start-time fair queuing. An agent is a run with all its children, or a single process.
///
/// A virtual time goes on with the tokens that are given out. A call's rank is the virtual time at
/// which it starts: now, or when its agent's calls before it will have had their tokens, whichever
/// is later. A quantum is set aside for each call when it comes and made good by what it used when
/// its turn ends, at least one token, so that calls which cost nothing cannot hold others up.
///
/// **Waiting:** a call of an agent that was idle waits for one turn at most of each other agent. Of
/// two agents that both want tokens, neither is ever four quanta ahead of the other.
struct FairShare {
    quantum: u32,
    by_run: bool,
    /// The highest rank that was given a turn.
    virtual_time: u64,
    agents: HashMap<u64, Agent>,
    keep: usize,
}

/// How far an agent's calls have got, in virtual time.
#[derive(Clone, Copy, Default)]
struct Agent {
    /// When its next call starts.
    next: u64,
    /// Rank of its last call: ranks of one agent only grow.
    last: u64,
    /// Calls that wait or run.
    open: usize,
}

impl Agent {
    /// Puts what was used in the place of what was set aside.
    fn settled(self, reserved: u64, used: u64) -> u64 {
        (self.next + used)
            .saturating_sub(reserved)
            .max(self.last + 1)
    }
}

impl FairShare {
    fn agent(&self, call: &Call) -> u64 {
        match self.by_run {
            true => call.caller.run,
            false => call.caller.pid.0,
        }
    }

    fn reserve(&self) -> u64 {
        u64::from(self.quantum)
    }

    /// Forgets agents that no longer differ from new ones.
    fn forget(&mut self) {
        if self.agents.len() < self.keep {
            return;
        }
        let now = self.virtual_time;
        self.agents
            .retain(|_, agent| agent.open > 0 || agent.next > now);
        self.keep = (2 * self.agents.len()).max(AGENTS_KEPT);
    }
}

impl Policy for FairShare {
    fn rank(&self, call: &Call) -> u64 {
        let known = self.agents.get(&self.agent(call));
        known.map_or(self.virtual_time, |agent| agent.next.max(self.virtual_time))
    }

    fn quantum(&self) -> Option<u32> {
        Some(self.quantum)
    }

    fn arrive(&mut self, call: &Call) -> u64 {
        self.forget();
        let rank = self.rank(call);
        let next = rank + self.reserve();
        let agent = self.agents.entry(self.agent(call)).or_default();
        *agent = Agent {
            next,
            last: rank,
            open: agent.open + 1,
        };
        rank
    }

    fn again(&self, call: &Call, tokens: u32, _now_ms: u64) -> u64 {
        let known = self.agents.get(&self.agent(call));
        known.map_or(self.virtual_time, |agent| {
            let settled = agent.settled(self.reserve(), u64::from(tokens.max(1)));
            settled.max(self.virtual_time)
        })
    }

    fn start(&mut self, rank: u64) {
        self.virtual_time = self.virtual_time.max(rank);
    }

    fn end(&mut self, call: &Call, tokens: u32) {
        let reserve = self.reserve();
        if let Some(agent) = self.agents.get_mut(&self.agent(call)) {
            agent.next = agent.settled(reserve, u64::from(tokens.max(1)));
            agent.open = agent.open.saturating_sub(1);
        }
    }
}
