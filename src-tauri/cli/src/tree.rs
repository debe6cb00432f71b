//! `steward ps --tree`: processes below those that started them.

use std::collections::HashMap;
use std::process::ExitCode;

use steward_host::surface::ProcessView;
use steward_host::{Command, Reply};

use crate::Ended;
use crate::approval::shortened;
use crate::ask::unexpected;
use crate::link::Link;
use crate::print::Printer;
use crate::show::{nothing_runs, state_words};

pub(crate) async fn processes(link: &mut Link, all: bool, printer: &Printer) -> Ended {
    let Reply::Processes { processes } = link.request(Command::Processes).await? else {
        return Err(unexpected());
    };
    let shown: Vec<ProcessView> = processes
        .into_iter()
        .filter(|p| all || p.ended_ms.is_none())
        .collect();
    for (branch, process) in forest(&shown) {
        if printer.is_json() {
            printer.json(process);
        } else {
            printer.line(&format!("{branch}{}", row(process)));
        }
    }
    nothing_runs(shown.is_empty(), all, printer);
    Ok(ExitCode::SUCCESS)
}

/// Every process once, with the branch to draw before it: the newest run first, and within it
/// children in the order in which they were made. A process whose parent is not shown stands by
/// itself.
fn forest(processes: &[ProcessView]) -> Vec<(String, &ProcessView)> {
    let shown: HashMap<u64, &ProcessView> = processes.iter().map(|p| (p.pid, p)).collect();
    let mut children: HashMap<Option<u64>, Vec<&ProcessView>> = HashMap::new();
    for process in processes {
        let parent = process.parent.filter(|parent| shown.contains_key(parent));
        children.entry(parent).or_default().push(process);
    }
    for below in children.values_mut() {
        below.sort_by_key(|process| process.pid);
    }
    let mut rows = Vec::with_capacity(processes.len());
    // What is still to be drawn, the next one last: a process, the branch before it and the one
    // before its children.
    let mut next: Vec<(&ProcessView, String, String)> = children
        .remove(&None)
        .into_iter()
        .flatten()
        .map(|root| (root, String::new(), String::new()))
        .collect();
    while let Some((process, branch, below)) = next.pop() {
        rows.push((branch, process));
        let mine = children.remove(&Some(process.pid)).unwrap_or_default();
        let count = mine.len();
        for (at, child) in mine.into_iter().enumerate().rev() {
            let (turn, rail) = if at + 1 == count {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            next.push((child, format!("{below}{turn}"), format!("{below}{rail}")));
        }
    }
    rows
}

fn row(process: &ProcessView) -> String {
    let ProcessView {
        pid, image, goal, ..
    } = process;
    let state = state_words(process.state);
    let used = spent(process);
    let now = doing(process).map_or_else(String::new, |now| format!("  [{now}]"));
    format!("{pid} {image}  {state}, {used}{now}  {}", shortened(goal))
}

/// What it does now: its own words, or the step it is at.
fn doing(process: &ProcessView) -> Option<&str> {
    let own = Some(process.status.as_str()).filter(|status| !status.is_empty());
    own.or(process.step.as_deref())
        .filter(|_| process.ended_ms.is_none())
}

/// What it and its children have used, and of how much.
fn spent(process: &ProcessView) -> String {
    let (used, limits) = (&process.budget.used, &process.budget.limits);
    let of = |used: u64, limit: Option<u64>, unit: &str| match limit {
        Some(limit) => format!("{used}/{limit} {unit}"),
        None => format!("{used} {unit}"),
    };
    let mut parts = vec![
        of(used.calls, limits.calls, "calls"),
        of(used.tokens, limits.tokens, "tokens"),
    ];
    let seconds = process.elapsed_ms / 1000;
    parts.push(of(seconds, limits.seconds, "s"));
    if used.money_micros > 0 || limits.money_micros.is_some() {
        let money = |micros: u64| format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
        parts.push(match limits.money_micros {
            Some(limit) => format!("{}/{} of money", money(used.money_micros), money(limit)),
            None => format!("{} of money", money(used.money_micros)),
        });
    }
    if used.children > 0 || limits.children.is_some() {
        parts.push(of(used.children, limits.children, "children"));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use steward_host::surface::{BudgetView, Limits, StateView, Used};

    use super::*;

    fn process(pid: u64, parent: Option<u64>) -> ProcessView {
        ProcessView {
            pid,
            parent,
            run: 1,
            image: "base".to_owned(),
            goal: format!("goal {pid}"),
            state: StateView::Running,
            status: String::new(),
            workspace: "/w".to_owned(),
            tokens: 0,
            steps: 0,
            created_ms: 0,
            ended_ms: None,
            undoable: false,
            after: None,
            cwd: String::new(),
            step: None,
            elapsed_ms: 0,
            priority: 4,
            interactive: true,
            budget: BudgetView::default(),
        }
    }

    #[test]
    fn children_stand_below_their_parents_and_the_newest_run_comes_first() {
        type Row = (&'static [(u64, Option<u64>)], &'static [&'static str]);
        let table: [Row; 4] = [
            (&[], &[]),
            (&[(2, None), (1, None)], &["2", "1"]),
            (
                &[
                    (6, Some(2)),
                    (5, None),
                    (4, Some(3)),
                    (3, Some(1)),
                    (2, Some(1)),
                    (1, None),
                ],
                &["5", "1", "├─ 2", "│  └─ 6", "└─ 3", "   └─ 4"],
            ),
            // The parent has ended and is not shown.
            (&[(9, Some(7)), (8, Some(7))], &["9", "8"]),
        ];
        for (made, drawn) in table {
            let processes: Vec<_> = made.iter().map(|(pid, up)| process(*pid, *up)).collect();
            let rows: Vec<_> = forest(&processes)
                .iter()
                .map(|(branch, process)| format!("{branch}{}", process.pid))
                .collect();
            assert_eq!(rows, drawn);
        }
    }

    #[test]
    fn a_row_tells_what_is_done_and_what_may_be_used() {
        let mut shown = process(3, None);
        shown.step = Some("read notes.md".to_owned());
        shown.elapsed_ms = 61_000;
        shown.budget = BudgetView {
            limits: Limits {
                tokens: Some(4_000),
                money_micros: Some(1_500_000),
                ..Limits::default()
            },
            used: Used {
                tokens: 812,
                calls: 7,
                seconds: 61,
                money_micros: 20,
                children: 2,
            },
        };
        assert_eq!(
            row(&shown),
            "3 base  running, 7 calls, 812/4000 tokens, 61 s, 0.000020/1.500000 of money, \
             2 children  [read notes.md]  goal 3"
        );
        shown.status = "reading".to_owned();
        assert!(row(&shown).contains("[reading]"));
        shown.ended_ms = Some(1);
        assert!(!row(&shown).contains('['));
    }
}
