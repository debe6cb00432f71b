//! What the terminal shows: words for people, or one JSON object a line for scripts.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;

use steward_host::surface::{
    ApprovalView, DiffKind, EffectView, QuestionView, RiskView, StepState, StepView,
};
use steward_host::{Event, Problem};
use tokio::io::{AsyncBufReadExt, BufReader};

/// Prints to standard output; notes and questions go to standard error.
pub(crate) struct Printer {
    json: bool,
    /// The streamed part of an answer that is on the screen.
    streamed: Mutex<String>,
}

impl Printer {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            streamed: Mutex::default(),
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// One JSON object on a line.
    pub(crate) fn json(&self, value: &impl serde::Serialize) {
        if let Ok(line) = serde_json::to_string(value) {
            self.out(&format!("{line}\n"));
        }
    }

    /// A line of a table or a text.
    pub(crate) fn line(&self, text: &str) {
        self.out(&format!("{text}\n"));
    }

    pub(crate) fn problem(&self, problem: &Problem) {
        if self.json {
            self.json(&serde_json::json!({ "type": "error", "error": problem }));
        }
        let hint = problem
            .hint
            .as_ref()
            .map(|hint| format!("\n  {hint}"))
            .unwrap_or_default();
        eprintln!("steward: {}{hint}", problem.message);
    }

    pub(crate) fn note(&self, text: &str) {
        eprintln!("{text}");
    }

    /// Shows an event of the run that is followed.
    pub(crate) fn event(&self, event: &Event) {
        if self.json {
            self.json(event);
            return;
        }
        match event {
            Event::Token { text, .. } => {
                self.streamed().push_str(text);
                self.out(&steward_host::escape_lines(text));
            }
            Event::Step { step, .. } => self.step(step),
            Event::Message { text, .. } => self.line(text),
            Event::Answer { text, .. } => self.answer_text(text),
            Event::Done {
                error: Some(problem),
                ..
            } => self.problem(problem),
            Event::Model {
                name,
                ready: false,
                error: None,
            } => self.note(&format!("loading {name} …")),
            _ => {}
        }
    }

    fn step(&self, step: &StepView) {
        let sign = match step.state {
            StepState::Running | StepState::Waiting => return,
            StepState::Done => "✓",
            StepState::Denied => "✗",
            StepState::Failed => "✗",
            StepState::Unknown => "?",
        };
        self.break_line();
        eprintln!("{sign} {}  {}", step.title, step.detail);
    }

    fn answer_text(&self, text: &str) {
        let shown = std::mem::take(&mut *self.streamed());
        if shown.trim() == text.trim() && !shown.is_empty() {
            self.out("\n");
        } else {
            if !shown.is_empty() && !shown.ends_with('\n') {
                self.out("\n");
            }
            self.line(&steward_host::escape_lines(text));
        }
    }

    /// Shows an approval and asks for the answer; `None` where nobody is at the terminal.
    pub(crate) async fn yes_or_no(&self, asked: &ApprovalView) -> Option<bool> {
        self.break_line();
        for line in approval_lines(asked) {
            eprintln!("{line}");
        }
        if !std::io::stdin().is_terminal() {
            return None;
        }
        loop {
            match self.ask("yes or no? ").await?.trim() {
                "yes" | "y" | "是" | "好" => return Some(true),
                "no" | "n" | "否" | "不" => return Some(false),
                _ => {}
            }
        }
    }

    /// Asks a question of a process; `None` where nobody is at the terminal.
    pub(crate) async fn answer(&self, asked: &QuestionView) -> Option<String> {
        self.break_line();
        eprintln!("{}", asked.text);
        for (i, choice) in asked.choices.iter().enumerate() {
            eprintln!("  {} {choice}", i + 1);
        }
        if !std::io::stdin().is_terminal() {
            return None;
        }
        let text = self.ask("> ").await?.trim().to_owned();
        let chosen = text
            .parse::<usize>()
            .ok()
            .and_then(|n| asked.choices.get(n.wrapping_sub(1)));
        Some(chosen.cloned().unwrap_or(text))
    }

    /// A line from the terminal; `None` at its end.
    pub(crate) async fn ask(&self, prompt: &str) -> Option<String> {
        eprint!("{prompt}");
        let _flushed = std::io::stderr().flush();
        let mut line = String::new();
        let read = BufReader::new(tokio::io::stdin())
            .read_line(&mut line)
            .await;
        matches!(read, Ok(n) if n > 0).then_some(line)
    }

    fn break_line(&self) {
        let mut streamed = self.streamed();
        if !streamed.is_empty() && !streamed.ends_with('\n') {
            streamed.push('\n');
            drop(streamed);
            self.out("\n");
        }
    }

    fn streamed(&self) -> std::sync::MutexGuard<'_, String> {
        self.streamed
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn out(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        // A closed pipe is the reader's choice, not a fault.
        let _written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

/// An approval in words: the question, the facts, the change.
pub(crate) fn approval_lines(asked: &ApprovalView) -> Vec<String> {
    let name = if asked.relative.is_empty() {
        &asked.path
    } else {
        &asked.relative
    };
    let question = match asked.effect {
        EffectView::Create => format!("Create {name}?"),
        EffectView::Overwrite => format!("Overwrite {name}?"),
        EffectView::Delete => format!("Delete {name}?"),
        EffectView::Move => format!("Move {name}?"),
        EffectView::Replace => format!("Move {name} onto a file that is there?"),
        EffectView::MakeFolder => format!("Make the folder {name}?"),
        EffectView::Undo => format!("Undo run {}?", asked.relative),
        EffectView::Other => asked.path.clone(),
    };
    let mut lines = vec![
        String::new(),
        format!("Approval {}: {question}", asked.id),
        format!(
            "  for      {} (pid {}, {})",
            asked.goal, asked.pid, asked.image
        ),
        format!("  path     {}", asked.path),
    ];
    if let Some(target) = &asked.target {
        lines.push(format!("  to       {target}"));
    }
    let size = |bytes: Option<u64>| bytes.map_or("nothing".to_owned(), |n| format!("{n} bytes"));
    if asked.bytes_before.is_some() || asked.bytes_after.is_some() {
        lines.push(format!(
            "  change   {} → {}",
            size(asked.bytes_before),
            size(asked.bytes_after)
        ));
    }
    if let Some(sha256) = &asked.sha256 {
        lines.push(format!("  sha256   {sha256}"));
    }
    lines.extend(
        asked
            .risks
            .iter()
            .map(|risk| format!("  note     {}", risk_words(*risk))),
    );
    lines.extend(asked.items.iter().map(|item| format!("  · {item}")));
    lines.extend(asked.diff.iter().map(|line| match line.kind {
        DiffKind::Same => format!("    {}", line.text),
        DiffKind::Removed => format!("  - {}", line.text),
        DiffKind::Added => format!("  + {}", line.text),
        DiffKind::Gap => format!("    … {} lines", line.text),
    }));
    if asked.diff_cut {
        lines.push("    … (more is not shown)".to_owned());
    }
    let undo = if asked.undoable {
        "the old version is kept; undo can put it back"
    } else {
        "none"
    };
    lines.push(format!("  undo     {undo}"));
    lines
}

fn risk_words(risk: RiskView) -> &'static str {
    match risk {
        RiskView::Repeat => {
            "this may have happened already before Steward ended; a yes does it again"
        }
        RiskView::Executable => "this file can be run as a program",
        RiskView::Hidden => "this is a hidden file; programs read such files by themselves",
        RiskView::Invisible => {
            "there are characters in it that cannot be seen; they are shown escaped"
        }
    }
}
