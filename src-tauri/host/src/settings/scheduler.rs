//! `[scheduler]`: the order of waiting calls, and how many run at once.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use steward_kernel::scheduler::PolicyChoice;
use steward_kernel::syscall::Module;
use steward_kernel::{Kernel, SysError};

use crate::surface::{Problem, SchedulingChange};

/// MiB that waiting generations may hold at most: a tebibyte.
const CONTEXT_MOST: u64 = 1 << 20;

/// What is not set is as the kernel has it by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SchedulerConfig {
    /// The policy of every queue, such as `round_robin(quantum=16)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    /// MiB of memory that waiting generations may hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_mib: Option<u64>,
    /// Calls that may run at once, by module.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    limits: BTreeMap<String, u32>,
}

impl SchedulerConfig {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn changed(&self, change: SchedulingChange) -> Self {
        let SchedulingChange {
            policy,
            limits,
            context_mib,
        } = change;
        let mut changed = self.clone();
        changed.policy = policy.or(changed.policy);
        changed.context_mib = context_mib.or(changed.context_mib);
        changed.limits.extend(limits.unwrap_or_default());
        changed
    }

    pub(super) fn check(&self) -> Result<(), Problem> {
        if let Some(policy) = &self.policy {
            PolicyChoice::by_name(policy)?;
        }
        for name in self.limits.keys() {
            module(name)?;
        }
        match self.context_mib {
            Some(mib) if !(1..=CONTEXT_MOST).contains(&mib) => {
                Err(Problem::new("invalid", format!("`context_mib` is `{mib}`"))
                    .hint(format!("use a number from 1 to {CONTEXT_MOST}")))
            }
            _ => Ok(()),
        }
    }

    /// Makes them count.
    pub(crate) fn apply(&self, kernel: &Kernel) -> Result<(), Problem> {
        if let Some(policy) = &self.policy {
            kernel.set_policy(None, &PolicyChoice::by_name(policy)?)?;
        }
        for (name, limit) in &self.limits {
            let most = usize::try_from(*limit).unwrap_or(usize::MAX);
            kernel
                .set_limit(module(name)?, most)
                .map_err(|error| about(name, error))?;
        }
        if let Some(mib) = self.context_mib {
            kernel.set_context_limit(mib << 20);
        }
        Ok(())
    }
}

fn about(name: &str, error: SysError) -> Problem {
    let problem = Problem::from(error);
    Problem {
        message: format!("`{name}`: {}", problem.message),
        ..problem
    }
}

/// A module's name, such as `llm`.
pub(crate) fn name_of(module: Module) -> String {
    let named = serde_json::to_value(module).unwrap_or_default();
    named.as_str().unwrap_or_default().to_owned()
}

fn module(name: &str) -> Result<Module, Problem> {
    let found = Module::ALL.iter().find(|module| name_of(**module) == name);
    found.copied().ok_or_else(|| {
        let names: Vec<String> = Module::ALL.iter().map(|module| name_of(*module)).collect();
        let shown = steward_kernel::escape::shown(name);
        Problem::new("invalid", format!("there is no module `{shown}`"))
            .hint(format!("use one of: {}", names.join(", ")))
    })
}
