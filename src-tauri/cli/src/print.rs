//! What the terminal shows: words for people, or one JSON object a line for scripts.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use steward_host::surface::{ApprovalView, QuestionView, StepState, StepView};
use steward_host::{Event, Problem, escape_lines};

use crate::approval::approval_lines;

/// Prints to standard output; notes and questions go to standard error. Words for people leave with
/// every character escaped that is not plainly visible, whoever wrote them.
pub(crate) struct Printer {
    json: bool,
    shown: Mutex<Shown>,
}

/// What of a run's end is on the screen.
#[derive(Default)]
struct Shown {
    /// The streamed part of the answer.
    streamed: String,
    /// Whether there was an answer: it tells what went wrong, too.
    answered: bool,
}

impl Printer {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            shown: Mutex::default(),
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
        self.out(&format!("{}\n", escape_lines(text)));
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
        self.note(&format!("steward: {}{hint}", problem.message));
    }

    /// A line beside the result, on standard error.
    pub(crate) fn note(&self, text: &str) {
        aside(&format!("{}\n", escape_lines(text)));
    }

    /// Shows an event of the run that is followed.
    pub(crate) fn event(&self, event: &Event) {
        if self.json {
            self.json(event);
            return;
        }
        match event {
            Event::Token { text, .. } => {
                self.shown().streamed.push_str(text);
                self.out(&escape_lines(text));
            }
            Event::Step { step, .. } => self.step(step),
            Event::Message { text, .. } => self.line(text),
            Event::Answer { text, .. } => self.answer_text(text),
            Event::Done { error, .. } => {
                let answered = std::mem::take(&mut self.shown().answered);
                if let Some(problem) = error.as_ref().filter(|_| !answered) {
                    self.problem(problem);
                }
            }
            Event::Model {
                name,
                ready: false,
                error: None,
                percent,
            } => match percent {
                None => self.note(&format!("loading {name} …")),
                Some(percent) => self.note(&format!("loading {name}, {percent} %")),
            },
            _ => {}
        }
    }

    fn step(&self, step: &StepView) {
        if step.name == "llm.chat" && step.state == StepState::Running {
            // What a model says anew begins on a line of its own.
            self.break_line();
            self.shown().streamed.clear();
        }
        let sign = match step.state {
            StepState::Running | StepState::Waiting => return,
            StepState::Done => "✓",
            StepState::Denied => "✗",
            StepState::Failed => "✗",
            StepState::Unknown => "?",
        };
        self.break_line();
        self.note(&format!("{sign} {}  {}", step.title, step.detail));
    }

    fn answer_text(&self, text: &str) {
        let streamed = {
            let mut shown = self.shown();
            shown.answered = !text.trim().is_empty();
            std::mem::take(&mut shown.streamed)
        };
        if !streamed.is_empty() && !streamed.ends_with('\n') {
            self.out("\n");
        }
        if streamed.trim() != text.trim() {
            self.line(text);
        }
    }

    /// Shows what is asked.
    pub(crate) fn approval(&self, asked: &ApprovalView) {
        self.break_line();
        for line in approval_lines(asked) {
            self.note(&line);
        }
    }

    /// Shows what a process asks.
    pub(crate) fn question(&self, asked: &QuestionView) {
        self.break_line();
        self.note(&asked.text);
        for (i, choice) in asked.choices.iter().enumerate() {
            self.note(&format!("  {} {choice}", i + 1));
        }
    }

    /// Asks for a line, which [`Keyboard`](crate::keyboard::Keyboard) gives.
    pub(crate) fn prompt(&self, prompt: &str) {
        aside(prompt);
    }

    fn break_line(&self) {
        let mut shown = self.shown();
        if !shown.streamed.is_empty() && !shown.streamed.ends_with('\n') {
            shown.streamed.push('\n');
            drop(shown);
            self.out("\n");
        }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn out(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        // A closed pipe is the reader's choice, not a fault.
        let _written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

/// To standard error as it is.
pub(crate) fn aside(text: &str) {
    // A closed pipe is the reader's choice, not a fault.
    let _written = std::io::stderr().write_all(text.as_bytes());
}
