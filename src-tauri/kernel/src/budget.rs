//! Budgets: what processes may use, counted up the tree.
//!
//! A process's use counts for itself and for all above it, and each limit on that way binds. Use
//! that is not known beforehand (tokens, money) is reserved first and settled afterwards, so that
//! children side by side do not use the same rest twice.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Code, SysError};
use crate::process::Pid;
use crate::provider::Price;

/// What a process may use, its children and theirs counted in; no limit where absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Tokens, prompt and generated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// System calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Seconds that it runs or waits, while the kernel runs and it is not paused. A child's end no
    /// later than its parent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Money, in millionths of the currency of the cores' prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money_micros: Option<u64>,
    /// Children, and theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<u64>,
}

impl Budget {
    /// Whether it limits nothing.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// The tighter of two, limit by limit.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        let tighter = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self {
            tokens: tighter(self.tokens, other.tokens),
            calls: tighter(self.calls, other.calls),
            seconds: tighter(self.seconds, other.seconds),
            money_micros: tighter(self.money_micros, other.money_micros),
            children: tighter(self.children, other.children),
        }
    }

    /// What is left of it when so much was used.
    #[must_use]
    pub fn less(self, used: &Used) -> Self {
        let left = |limit: Option<u64>, used: u64| limit.map(|limit| limit.saturating_sub(used));
        Self {
            tokens: left(self.tokens, used.tokens),
            calls: left(self.calls, used.calls),
            seconds: left(self.seconds, used.seconds),
            money_micros: left(self.money_micros, used.money_micros),
            children: left(self.children, used.children),
        }
    }

    fn of(&self, what: What) -> Option<u64> {
        match what {
            What::Tokens => self.tokens,
            What::Calls => self.calls,
            What::Seconds => self.seconds,
            What::Money => self.money_micros,
            What::Children => self.children,
        }
    }
}

/// What a process and all below it have used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Used {
    /// Tokens, prompt and generated.
    pub tokens: u64,
    /// System calls made, those refused for the budget included.
    pub calls: u64,
    /// Seconds of the process itself.
    pub seconds: u64,
    /// Money, in millionths of the currency of the cores' prices.
    pub money_micros: u64,
    /// Children, and theirs.
    pub children: u64,
}

/// One of the things that a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Tokens,
    Calls,
    Seconds,
    Money,
    Children,
}

impl What {
    fn words(self, amount: u64) -> String {
        match self {
            What::Tokens => format!("`{amount}` tokens"),
            What::Calls => format!("`{amount}` system calls"),
            What::Seconds => format!("`{amount}` seconds"),
            What::Money => format!("`{amount}` millionths of money"),
            What::Children => format!("`{amount}` children"),
        }
    }
}

/// A limit that was reached.
pub(crate) fn used_up(of: Pid, what: What, limit: u64) -> SysError {
    let limit = what.words(limit);
    let message = format!("the budget of process `{of}` is used up: it has {limit}");
    SysError::new(Code::Limit, message).hint("end with what is done, and tell what is left")
}

/// What a generation may use, set aside for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reserved {
    /// Tokens that it may generate.
    pub generate: u32,
    tokens: u64,
    money: u64,
}

/// Accounts of all processes that run, and of those above them.
#[derive(Default)]
pub(crate) struct Ledger {
    accounts: Mutex<HashMap<Pid, Account>>,
}

/// A process's account when it is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening {
    pub pid: Pid,
    pub parent: Option<Pid>,
    pub limits: Budget,
    pub used: Used,
    /// Whether the process has not ended.
    pub lives: bool,
}

struct Account {
    parent: Option<Pid>,
    limits: Budget,
    used: Used,
    reserved_tokens: u64,
    reserved_money: u64,
    lives: bool,
    /// Accounts right below it.
    below: usize,
}

impl Account {
    fn spent(&self, what: What) -> u64 {
        match what {
            What::Tokens => self.used.tokens.saturating_add(self.reserved_tokens),
            What::Calls => self.used.calls,
            What::Seconds => self.used.seconds,
            What::Money => self.used.money_micros.saturating_add(self.reserved_money),
            What::Children => self.used.children,
        }
    }

    fn left(&self, what: What) -> Option<u64> {
        let limit = self.limits.of(what)?;
        Some(limit.saturating_sub(self.spent(what)))
    }
}

impl Ledger {
    /// Whether a process has an account.
    pub(crate) fn knows(&self, pid: Pid) -> bool {
        self.lock().contains_key(&pid)
    }

    /// Opens accounts, those above first. One that is open stays as it is.
    pub(crate) fn open(&self, openings: &[Opening]) {
        let mut accounts = self.lock();
        for opening in openings {
            if let Some(account) = accounts.get_mut(&opening.pid) {
                account.lives |= opening.lives;
                continue;
            }
            if let Some(above) = opening.parent.and_then(|pid| accounts.get_mut(&pid)) {
                above.below += 1;
            }
            let account = Account {
                parent: opening.parent,
                limits: opening.limits,
                used: opening.used,
                reserved_tokens: 0,
                reserved_money: 0,
                lives: opening.lives,
                below: 0,
            };
            accounts.insert(opening.pid, account);
        }
    }

    /// Closes the account of a process that has ended; it binds those below as long as there are
    /// any. What it used in all.
    pub(crate) fn close(&self, pid: Pid) -> Used {
        let mut accounts = self.lock();
        let used = accounts.get_mut(&pid).map(|account| {
            account.lives = false;
            account.used
        });
        let mut next = Some(pid);
        while let Some(pid) = next.take() {
            if accounts.get(&pid).is_some_and(|a| !a.lives && a.below == 0)
                && let Some(gone) = accounts.remove(&pid)
                && let Some(above) = gone.parent
                && let Some(account) = accounts.get_mut(&above)
            {
                account.below -= 1;
                next = Some(above);
            }
        }
        used.unwrap_or_default()
    }

    pub(crate) fn used(&self, pid: Pid) -> Option<Used> {
        self.lock().get(&pid).map(|account| account.used)
    }

    /// What is left for a process, by its own limits and those above.
    pub(crate) fn left(&self, pid: Pid) -> Budget {
        let accounts = self.lock();
        let mut left = Budget::default();
        for (_, account) in chain(&accounts, pid) {
            left = left.within(Budget {
                tokens: account.left(What::Tokens),
                calls: account.left(What::Calls),
                seconds: account.left(What::Seconds),
                money_micros: account.left(What::Money),
                children: account.left(What::Children),
            });
        }
        left
    }

    /// Counts one more call. It is counted also where it is over the budget.
    pub(crate) fn call(&self, pid: Pid) -> Result<(), SysError> {
        self.count(pid, What::Calls, true)
    }

    /// Counts one more child, unless it is over the budget.
    pub(crate) fn child(&self, pid: Pid) -> Result<(), SysError> {
        self.count(pid, What::Children, false)
    }

    /// Takes back one child that was counted and not made.
    pub(crate) fn no_child(&self, pid: Pid) {
        each(&mut self.lock(), pid, |account| {
            account.used.children = account.used.children.saturating_sub(1);
        });
    }

    pub(crate) fn set_seconds(&self, pid: Pid, seconds: u64) {
        if let Some(account) = self.lock().get_mut(&pid) {
            account.used.seconds = seconds;
        }
    }

    fn count(&self, pid: Pid, what: What, always: bool) -> Result<(), SysError> {
        let mut accounts = self.lock();
        let over = chain(&accounts, pid)
            .find_map(|(of, account)| (account.left(what)? == 0).then_some((of, account.limits)));
        if over.is_none() || always {
            each(&mut accounts, pid, |account| match what {
                What::Children => account.used.children += 1,
                _ => account.used.calls += 1,
            });
        }
        match over {
            Some((of, limits)) => Err(used_up(of, what, limits.of(what).unwrap_or_default())),
            None => Ok(()),
        }
    }

    /// Whether tokens or money are limited for a process.
    pub(crate) fn counts_tokens(&self, pid: Pid) -> bool {
        let accounts = self.lock();
        chain(&accounts, pid).any(|(_, account)| {
            account.limits.tokens.is_some() || account.limits.money_micros.is_some()
        })
    }

    /// Sets tokens aside for a generation: its prompt, and of `wanted` as many as are left.
    pub(crate) fn reserve(
        &self,
        pid: Pid,
        prompt: u64,
        wanted: u32,
        price: Price,
    ) -> Result<Reserved, SysError> {
        let mut accounts = self.lock();
        let mut generate = wanted;
        for (of, account) in chain(&accounts, pid) {
            let fits = |left: u64| u32::try_from(left).unwrap_or(u32::MAX);
            if let Some(left) = account.left(What::Tokens) {
                let rest = left.saturating_sub(prompt);
                if rest == 0 {
                    let limit = account.limits.tokens.unwrap_or_default();
                    return Err(used_up(of, What::Tokens, limit));
                }
                generate = generate.min(fits(rest));
            }
            if let Some(left) = account.left(What::Money) {
                let Some(most) = price.generated_for(prompt, left) else {
                    let limit = account.limits.money_micros.unwrap_or_default();
                    return Err(used_up(of, What::Money, limit));
                };
                generate = generate.min(fits(most));
            }
        }
        let tokens = prompt + u64::from(generate);
        let money = price.of(prompt, u64::from(generate));
        each(&mut accounts, pid, |account| {
            account.reserved_tokens += tokens;
            account.reserved_money += money;
        });
        Ok(Reserved {
            generate,
            tokens,
            money,
        })
    }

    /// Counts what was really used in the place of what was set aside.
    pub(crate) fn settle(&self, pid: Pid, reserved: Reserved, tokens: u64, money: u64) {
        each(&mut self.lock(), pid, |account| {
            account.reserved_tokens = account.reserved_tokens.saturating_sub(reserved.tokens);
            account.reserved_money = account.reserved_money.saturating_sub(reserved.money);
            account.used.tokens += tokens;
            account.used.money_micros += money;
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Pid, Account>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A process's account and those above it.
fn chain(accounts: &HashMap<Pid, Account>, pid: Pid) -> impl Iterator<Item = (Pid, &Account)> {
    let at = |pid: Pid| accounts.get(&pid).map(|account| (pid, account));
    std::iter::successors(at(pid), move |(_, account)| at(account.parent?))
}

fn each(accounts: &mut HashMap<Pid, Account>, pid: Pid, mut change: impl FnMut(&mut Account)) {
    let mut next = Some(pid);
    while let Some(account) = next.and_then(|pid| accounts.get_mut(&pid)) {
        change(account);
        next = account.parent;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const FREE: Price = Price {
        prompt: 0,
        generated: 0,
    };

    /// A grandparent (1), a parent (2) and two children (3, 4).
    fn family(limits: [Budget; 4]) -> Ledger {
        let ledger = Ledger::default();
        let parents = [None, Some(1), Some(2), Some(2)];
        for (n, limits) in (1..).zip(limits) {
            ledger.open(&[Opening {
                pid: Pid(n),
                parent: parents[n as usize - 1].map(Pid),
                limits,
                used: Used::default(),
                lives: true,
            }]);
        }
        ledger
    }

    fn tokens(limit: u64) -> Budget {
        Budget {
            tokens: Some(limit),
            ..Budget::default()
        }
    }

    #[test]
    fn every_limit_above_binds_and_is_named() {
        let none = Budget::default();
        let calls = |limit| Budget {
            calls: Some(limit),
            ..none
        };
        let ledger = family([calls(3), none, calls(2), none]);
        for pid in [3, 3] {
            ledger.call(Pid(pid)).unwrap();
        }
        let words = |error: SysError| error.message;
        let over = words(ledger.call(Pid(3)).unwrap_err());
        assert_eq!(
            over,
            "the budget of process `3` is used up: it has `2` system calls"
        );
        let over = words(ledger.call(Pid(4)).unwrap_err());
        assert_eq!(
            over,
            "the budget of process `1` is used up: it has `3` system calls"
        );
        assert_eq!(ledger.used(Pid(1)).unwrap().calls, 4);
        assert_eq!(ledger.used(Pid(4)).unwrap().calls, 1);
        assert_eq!(ledger.left(Pid(4)), calls(0));
    }

    #[test]
    fn what_is_set_aside_is_not_to_be_had_twice() {
        let none = Budget::default();
        let ledger = family([tokens(100), none, none, tokens(30)]);
        let first = ledger.reserve(Pid(3), 10, 50, FREE).unwrap();
        assert_eq!(first.generate, 50);
        // Its own limit leaves it 20 after the prompt.
        let second = ledger.reserve(Pid(4), 10, 50, FREE).unwrap();
        assert_eq!(second.generate, 20);
        // 100 less 60 less 30.
        let third = ledger.reserve(Pid(3), 5, 50, FREE).unwrap();
        assert_eq!(third.generate, 5);
        assert!(ledger.reserve(Pid(2), 0, 1, FREE).is_err());
        ledger.settle(Pid(3), first, 12, 0);
        ledger.settle(Pid(3), third, 10, 0);
        assert_eq!(ledger.left(Pid(3)), tokens(100 - 30 - 22));
        assert_eq!(ledger.used(Pid(1)).unwrap().tokens, 22);
    }

    #[test]
    fn money_bounds_a_generation_by_its_price() {
        let none = Budget::default();
        let price = Price {
            prompt: 1_000_000,
            generated: 2_000_000,
        };
        let money = |limit| Budget {
            money_micros: Some(limit),
            ..none
        };
        let ledger = family([money(100), none, none, none]);
        let reserved = ledger.reserve(Pid(3), 40, 500, price).unwrap();
        assert_eq!(reserved.generate, 30);
        ledger.settle(Pid(3), reserved, 50, price.of(40, 10));
        assert_eq!(ledger.left(Pid(3)), money(40));
        let over = ledger.reserve(Pid(3), 40, 1, price).unwrap_err();
        assert_eq!(over.code, Code::Limit);
    }

    #[test]
    fn an_account_binds_those_below_it_after_its_process_has_ended() {
        let none = Budget::default();
        let ledger = family([tokens(5), none, none, none]);
        for pid in [1, 2, 4] {
            ledger.close(Pid(pid));
        }
        assert!(!ledger.knows(Pid(4)));
        let reserved = ledger.reserve(Pid(3), 1, 9, FREE).unwrap();
        assert_eq!(reserved.generate, 4);
        ledger.settle(Pid(3), reserved, 5, 0);
        assert_eq!(ledger.close(Pid(3)).tokens, 5);
        assert!((1..=4).all(|pid| !ledger.knows(Pid(pid))));
    }
}
