//! How the attention of a step is cut into tasks for the threads.
//!
//! Columns that see the same pages are taken through them together, so that a beginning that many
//! sequences share is read once ("cascade" attention, Juravsky et al. 2024). A column's segments
//! are merged in their order, whatever tasks they fell to: the cut changes no result.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::attention::SEGMENT;
use crate::kv::PageMemory;

use super::Run;

/// Columns of a task at most.
pub(super) const TOGETHER: usize = 4;

/// Tasks for each thread below which long tasks are cut up.
const PER_THREAD: usize = 4;

/// One column: a token of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) run: usize,
    pub(super) position: usize,
}

impl Column {
    /// Segments that it sees at least a part of.
    fn segments(self) -> usize {
        (self.position + 1).div_ceil(SEGMENT)
    }
}

/// Some columns and the segments that they are taken through; the pages are those of the first.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) columns: Vec<usize>,
    pub(super) segments: Range<usize>,
}

/// The tasks of a step, the same for all layers.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) columns: Vec<Column>,
    pub(super) tasks: Vec<Task>,
    /// Of each column, where its results are, by segment: a task, and the place in the task.
    pub(super) parts: Vec<Vec<(usize, usize)>>,
    /// Columns of the largest task.
    pub(super) together: usize,
}

impl Plan {
    /// A plan for `runs` on `threads`, with `heads` KV heads to share out.
    pub(super) fn new(runs: &[Run<'_>], heads: usize, threads: usize) -> Self {
        let mut columns = Vec::new();
        let mut tasks = Vec::new();
        let mut single = Vec::new();
        for (run, Run { tokens, cache, .. }) in runs.iter().enumerate() {
            let first = columns.len();
            let positions = cache.len()..cache.len() + tokens.len();
            columns.extend(positions.map(|position| Column { run, position }));
            match tokens.len() {
                0 => (),
                1 => single.push(first),
                count => tasks.extend((first..first + count).step_by(TOGETHER).map(|at| {
                    let last = (at + TOGETHER).min(first + count);
                    Task {
                        segments: 0..columns[last - 1].segments(),
                        columns: (at..last).collect(),
                    }
                })),
            }
        }
        share_segments(runs, &columns, &single, &mut tasks);
        if tasks.len() * heads < PER_THREAD * threads {
            tasks = tasks.into_iter().flat_map(Task::cut).collect();
        }
        let mut plan = Self {
            parts: vec![Vec::new(); columns.len()],
            together: tasks
                .iter()
                .map(|task| task.columns.len())
                .max()
                .unwrap_or(0),
            columns,
            tasks,
        };
        plan.find_parts();
        plan
    }

    fn find_parts(&mut self) {
        let mut order: Vec<usize> = (0..self.tasks.len()).collect();
        order.sort_by_key(|&task| self.tasks[task].segments.start);
        for task in order {
            for (place, &column) in self.tasks[task].columns.iter().enumerate() {
                self.parts[column].push((task, place));
            }
        }
    }
}

impl Task {
    /// A task for each segment.
    fn cut(self) -> impl Iterator<Item = Self> {
        let Self { columns, segments } = self;
        segments.map(move |segment| Self {
            columns: columns.clone(),
            segments: segment..segment + 1,
        })
    }
}

/// Tasks for columns that are alone in their runs: one for each whole segment of pages that some of
/// them share, and for each column what it has for itself.
fn share_segments(runs: &[Run<'_>], columns: &[Column], single: &[usize], tasks: &mut Vec<Task>) {
    let mut own: Vec<usize> = vec![0; single.len()];
    let mut together: Vec<Vec<usize>> = vec![(0..single.len()).collect()];
    let mut segment = 0;
    // Who shares a segment has shared all before it.
    while !together.is_empty() && single.len() > 1 {
        let mut next = Vec::new();
        for group in together {
            let mut by_pages: BTreeMap<Vec<*const PageMemory>, Vec<usize>> = BTreeMap::new();
            for index in group {
                let column = columns[single[index]];
                if column.position + 1 < (segment + 1) * SEGMENT {
                    continue;
                }
                let pages = runs[column.run]
                    .cache
                    .pages(segment * SEGMENT..(segment + 1) * SEGMENT);
                let pages = pages.iter().map(Arc::as_ptr).collect();
                by_pages.entry(pages).or_default().push(index);
            }
            for group in by_pages.into_values().filter(|group| group.len() > 1) {
                for some in group.chunks(TOGETHER) {
                    tasks.push(Task {
                        columns: some.iter().map(|&index| single[index]).collect(),
                        segments: segment..segment + 1,
                    });
                }
                for &index in &group {
                    own[index] = segment + 1;
                }
                next.push(group);
            }
        }
        together = next;
        segment += 1;
    }
    for (&column, own) in single.iter().zip(own) {
        let segments = own..columns[column].segments();
        if !segments.is_empty() {
            tasks.push(Task {
                columns: vec![column],
                segments,
            });
        }
    }
}
