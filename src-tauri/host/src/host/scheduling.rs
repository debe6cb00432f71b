//! Commands about the order in which waiting calls run.

use steward_kernel::scheduler::policy;
use steward_kernel::{ContextLoad, scheduler::ModuleLoad};

use super::Host;
use crate::settings::module_name;
use crate::surface::{
    ContextView, ModuleView, PolicyKind, Problem, Reply, SchedulingChange, SchedulingView,
};

impl Host {
    pub(super) fn scheduling(&self) -> Reply {
        let policies = policy::KINDS.iter().map(|kind| PolicyKind {
            name: kind.name.to_owned(),
            help: kind.help.to_owned(),
        });
        Reply::Scheduling(SchedulingView {
            modules: self.kernel.scheduling().into_iter().map(module).collect(),
            context: context(self.kernel.contexts()),
            policies: policies.collect(),
        })
    }

    /// It counts at once, and from the next start on.
    pub(super) fn set_scheduling(&self, change: SchedulingChange) -> Result<Reply, Problem> {
        let changed = self.config().with_scheduling(change)?;
        changed.scheduler().apply(&self.kernel)?;
        self.keep(changed)?;
        Ok(self.scheduling())
    }
}

fn module(load: ModuleLoad) -> ModuleView {
    let ModuleLoad {
        module,
        policy,
        limit,
        waiting,
        running,
        turns,
        mean_wait_ms,
        p90_wait_ms,
    } = load;
    ModuleView {
        name: module_name(module),
        policy,
        limit,
        running,
        waiting,
        turns,
        mean_wait_ms,
        p90_wait_ms,
    }
}

fn context(load: ContextLoad) -> ContextView {
    let ContextLoad {
        limit_bytes,
        resident,
        resident_bytes,
        stored,
        switches,
        spills,
    } = load;
    ContextView {
        limit_bytes,
        resident,
        resident_bytes,
        stored,
        switches,
        spills,
    }
}
