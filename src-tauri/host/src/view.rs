//! From the kernel's types to what surfaces are shown.

use std::collections::HashSet;

use steward_kernel::human::{Approval, EffectKind, LineKind, Offer, Question, Risk};
use steward_kernel::{
    JournalRow, KernelEvent, ProcessInfo, ProcessState, RunId, Step, StepState, SysError,
};

use crate::clock::now_ms;
use crate::surface;
use crate::surface::{
    ApprovalView, BudgetView, DiffKind, DiffLine, EffectView, Event, Limits, LogRow, Problem,
    ProcessView, QuestionView, RiskView, ScopeView, StateView, StepView, Used,
};

impl Problem {
    /// A problem without a hint.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            hint: None,
        }
    }

    /// The same with what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<SysError> for Problem {
    fn from(error: SysError) -> Self {
        Self {
            code: error.code.as_str().to_owned(),
            message: error.message,
            hint: error.hint,
        }
    }
}

pub(crate) fn process(info: &ProcessInfo, undoable: &HashSet<RunId>) -> ProcessView {
    ProcessView {
        pid: info.pid.0,
        parent: info.parent.map(|p| p.0),
        run: info.run,
        image: info.image.clone(),
        goal: info.goal.clone(),
        state: state(info.state),
        status: info.status.clone(),
        workspace: info.workspace.to_string_lossy().into_owned(),
        tokens: info.tokens,
        steps: info.steps,
        created_ms: info.created_ms,
        ended_ms: info.ended_ms,
        undoable: info.state.is_final() && undoable.contains(&info.run),
        after: info.after,
        cwd: steward_kernel::escape::shown(&info.cwd),
        step: None,
        elapsed_ms: info
            .ended_ms
            .unwrap_or_else(now_ms)
            .saturating_sub(info.created_ms),
        priority: info.urgency.priority,
        interactive: info.urgency.interactive,
        budget: budget(info),
    }
}

fn budget(info: &ProcessInfo) -> BudgetView {
    let (limits, used) = (&info.budget, &info.used);
    BudgetView {
        limits: Limits {
            tokens: limits.tokens,
            calls: limits.calls,
            seconds: limits.seconds,
            money_micros: limits.money_micros,
            children: limits.children,
        },
        used: Used {
            tokens: used.tokens,
            calls: used.calls,
            seconds: used.seconds,
            money_micros: used.money_micros,
            children: used.children,
        },
    }
}

fn state(state: ProcessState) -> StateView {
    match state {
        ProcessState::Created => StateView::Created,
        ProcessState::Runnable => StateView::Runnable,
        ProcessState::Running => StateView::Running,
        ProcessState::WaitingEvent => StateView::WaitingEvent,
        ProcessState::WaitingTool => StateView::WaitingTool,
        ProcessState::WaitingHuman => StateView::WaitingHuman,
        ProcessState::Paused => StateView::Paused,
        ProcessState::Suspended => StateView::Suspended,
        ProcessState::Exited => StateView::Exited,
        ProcessState::Failed => StateView::Failed,
        ProcessState::Killed => StateView::Killed,
    }
}

pub(crate) fn step(step: Step) -> StepView {
    StepView {
        seq: step.seq,
        name: step.name,
        title: step.title,
        detail: step.detail,
        state: match step.state {
            StepState::Running => surface::StepState::Running,
            StepState::Waiting => surface::StepState::Waiting,
            StepState::Done => surface::StepState::Done,
            StepState::Denied => surface::StepState::Denied,
            StepState::Failed => surface::StepState::Failed,
            StepState::Unknown => surface::StepState::Unknown,
        },
        elapsed_ms: step.elapsed_ms,
    }
}

pub(crate) fn approval(asked: Approval) -> ApprovalView {
    let undoable = !matches!(
        asked.kind,
        EffectKind::Use | EffectKind::Grant | EffectKind::Other
    );
    let lines = asked.preview.lines.into_iter().map(|line| DiffLine {
        kind: match line.kind {
            LineKind::Same => DiffKind::Same,
            LineKind::Removed => DiffKind::Removed,
            LineKind::Added => DiffKind::Added,
            LineKind::Gap => DiffKind::Gap,
        },
        text: line.text,
    });
    ApprovalView {
        id: asked.id,
        pid: asked.pid.0,
        run: asked.run,
        image: asked.image,
        goal: asked.goal,
        action: asked.action,
        effect: match asked.kind {
            EffectKind::Create => EffectView::Create,
            EffectKind::Overwrite => EffectView::Overwrite,
            EffectKind::Delete => EffectView::Delete,
            EffectKind::Move => EffectView::Move,
            EffectKind::Replace => EffectView::Replace,
            EffectKind::MakeFolder => EffectView::MakeFolder,
            EffectKind::Undo => EffectView::Undo,
            EffectKind::Use | EffectKind::Grant | EffectKind::Other => EffectView::Other,
        },
        path: asked.path,
        relative: asked.relative,
        target: asked.target,
        bytes_before: asked.bytes_before,
        bytes_after: asked.bytes_after,
        sha256: asked.sha256.map(|s| s.0),
        diff: lines.collect(),
        diff_cut: asked.preview.cut,
        lines_changed: asked.preview.changed,
        lines_total: asked.preview.total,
        risks: asked.risks.into_iter().map(risk).collect(),
        undoable,
        items: asked.items,
        digest: asked.digest.0,
        asked_ms: asked.asked_ms,
        expires_ms: asked.expires_ms,
        group: Some(asked.group).filter(|group| *group != 0),
        scopes: asked.scopes.into_iter().map(scope).collect(),
    }
}

fn scope(offer: Offer) -> ScopeView {
    ScopeView {
        id: offer.id,
        words: offer.words,
    }
}

fn risk(risk: Risk) -> RiskView {
    match risk {
        Risk::Repeat => RiskView::Repeat,
        Risk::Executable => RiskView::Executable,
        Risk::Hidden => RiskView::Hidden,
        Risk::Invisible => RiskView::Invisible,
    }
}

pub(crate) fn question(asked: Question) -> QuestionView {
    let Question {
        id,
        pid,
        text,
        choices,
        asked_ms,
        run,
    } = asked;
    QuestionView {
        id,
        pid: pid.0,
        run,
        text,
        choices,
        asked_ms,
    }
}

pub(crate) fn row(row: JournalRow) -> LogRow {
    LogRow {
        id: row.id,
        at_ms: row.at_ms,
        pid: row.pid.0,
        run: row.run,
        seq: row.seq,
        kind: row.kind,
        name: row.name,
        detail: row.detail,
        resource: row.resource,
        capability: row.capability,
        decision: row.decision,
        by: row.by,
        wait_ms: row.wait_ms,
        run_ms: row.run_ms,
    }
}

/// What a kernel event is for surfaces: the end of a run is an answer and an end.
pub(crate) fn events(event: KernelEvent, undoable: &HashSet<RunId>) -> Vec<Event> {
    match event {
        KernelEvent::Token { pid, run, text } => vec![Event::Token {
            pid: pid.0,
            run,
            text,
        }],
        KernelEvent::Step {
            pid,
            run,
            step: told,
        } => {
            vec![Event::Step {
                pid: pid.0,
                run,
                step: step(told),
            }]
        }
        KernelEvent::Process(info) => vec![Event::Process {
            process: process(&info, undoable),
        }],
        KernelEvent::Approval(asked) => vec![Event::Approval(approval(*asked))],
        KernelEvent::Decided { id, approved, by } => vec![Event::Decided { id, approved, by }],
        KernelEvent::Question(asked) => vec![Event::Question(question(asked))],
        KernelEvent::Message { pid, run, text } => vec![Event::Message {
            pid: pid.0,
            run,
            text,
        }],
        KernelEvent::Ended { process, .. } if process.parent.is_some() => Vec::new(),
        KernelEvent::Ended { process, exit } => {
            let (pid, run) = (process.pid.0, process.run);
            let error = exit.error.map(Problem::from);
            vec![
                Event::Answer {
                    pid,
                    run,
                    text: exit.answer,
                },
                Event::Done {
                    pid,
                    run,
                    ok: exit.ok,
                    error,
                },
            ]
        }
    }
}
