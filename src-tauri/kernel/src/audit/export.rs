//! The journal for other programs: JSON lines, or OpenTelemetry spans.

use std::collections::HashMap;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::JournalRow;
use super::otel::{Agent, Spans};
use crate::process::Pid;

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// One row a line, with its hash.
    Jsonl,
    /// One run a line, as an OTLP/JSON `TracesData` with the semantic conventions for generative AI.
    Otel,
}

/// Which rows are exported, by their time in Unix milliseconds: from one to the other, both with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// From the first row on, where absent.
    pub since_ms: Option<u64>,
    /// Up to the last row, where absent.
    pub until_ms: Option<u64>,
}

/// Writes rows as they come, in order.
pub(crate) struct Exporter<'a> {
    out: &'a mut dyn Write,
    form: Form,
}

enum Form {
    Jsonl,
    Otel(Spans),
}

impl<'a> Exporter<'a> {
    /// What is written goes to `out`; `agents` are the processes that rows may be about.
    pub(crate) fn new(format: Format, agents: HashMap<Pid, Agent>, out: &'a mut dyn Write) -> Self {
        let form = match format {
            Format::Jsonl => Form::Jsonl,
            Format::Otel => Form::Otel(Spans::new(agents)),
        };
        Self { out, form }
    }

    pub(crate) fn row(&mut self, row: JournalRow) -> io::Result<()> {
        match &mut self.form {
            Form::Jsonl => line(self.out, &row),
            Form::Otel(spans) => match spans.row(row) {
                Some(trace) => line(self.out, &trace),
                None => Ok(()),
            },
        }
    }

    /// Writes what has begun and not ended.
    pub(crate) fn finish(self) -> io::Result<()> {
        if let Form::Otel(spans) = self.form {
            for trace in spans.finish() {
                line(self.out, &trace)?;
            }
        }
        self.out.flush()
    }
}

fn line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}
