//! `steward sched`: the queues of calls, and who goes first.

use std::process::ExitCode;

use clap::Subcommand;
use steward_host::surface::{SchedulingChange, SchedulingView};
use steward_host::{Command, Reply};

use crate::Ended;
use crate::ask::unexpected;
use crate::link::Link;
use crate::print::Printer;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Change who goes first, how many run at once, or how much memory waiting generations hold.
    /// It counts at once, and is kept in the settings.
    #[command(arg_required_else_help = true)]
    Set {
        /// The policy, such as fifo or "round_robin(quantum=16)"; `steward sched` lists them.
        policy: Option<String>,
        /// Calls of a module that may run at once, such as llm=1; can be given for each module.
        #[arg(long = "limit", value_name = "MODULE=NUMBER", value_parser = limit)]
        limits: Vec<(String, u32)>,
        /// MiB of memory that waiting generations may hold before they go to disk.
        #[arg(long, value_name = "MIB")]
        context_mib: Option<u64>,
    },
}

fn limit(text: &str) -> Result<(String, u32), String> {
    let told = || "write it as MODULE=NUMBER, such as llm=1".to_owned();
    let (module, number) = text.split_once('=').ok_or_else(told)?;
    Ok((module.to_owned(), number.parse().map_err(|_| told())?))
}

pub(crate) async fn run(link: &mut Link, verb: Option<Verb>, printer: &Printer) -> Ended {
    let command = match verb {
        None => Command::Scheduling,
        Some(Verb::Set {
            policy,
            limits,
            context_mib,
        }) => Command::SetScheduling(SchedulingChange {
            policy,
            limits: (!limits.is_empty()).then(|| limits.into_iter().collect()),
            context_mib,
        }),
    };
    let Reply::Scheduling(scheduling) = link.request(command).await? else {
        return Err(unexpected());
    };
    if printer.is_json() {
        printer.json(&scheduling);
    } else {
        lines(&scheduling)
            .iter()
            .for_each(|line| printer.line(line));
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(scheduling: &SchedulingView) -> Vec<String> {
    let mut lines =
        vec!["module    limit  running  waiting  turns  wait  p90     policy".to_owned()];
    lines.extend(scheduling.modules.iter().map(|module| {
        format!(
            "{:<9} {:>5}  {:>7}  {:>7}  {:>5}  {:>4.0}  {:>3} ms  {}",
            module.name,
            module.limit,
            module.running,
            module.waiting,
            module.turns,
            module.mean_wait_ms,
            module.p90_wait_ms,
            module.policy
        )
    }));
    let context = &scheduling.context;
    lines.push(format!(
        "\ngenerations that wait: {} in memory ({} of {} MiB), {} on disk; {} switches, {} to disk",
        context.resident,
        context.resident_bytes >> 20,
        context.limit_bytes >> 20,
        context.stored,
        context.switches,
        context.spills
    ));
    lines.push("\npolicies:".to_owned());
    let policies = scheduling.policies.iter();
    lines.extend(policies.map(|policy| format!("  {:<12} {}", policy.name, policy.help)));
    lines
}
