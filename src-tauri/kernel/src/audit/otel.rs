//! Rows of the journal as OpenTelemetry spans: a trace is a run, a process is an `invoke_agent`
//! span, a call of a core is a `chat` span, every other call an `execute_tool` span.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::{Map, Value as Json};
use sha2::{Digest as _, Sha256};

use super::JournalRow;
use crate::process::{Pid, RunId};

/// The conventions that the attributes follow.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.41.0";
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
const FAILED: u8 = 2;

/// What a span tells of a process beyond its rows.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    /// Its image.
    pub image: String,
    /// The process that made it.
    pub parent: Option<Pid>,
}

/// Puts rows together to spans; a trace is given out when its run has ended.
pub(crate) struct Spans {
    agents: HashMap<Pid, Agent>,
    /// The id of each run's trace: from the hash of its first row, so that another export of the
    /// same journal has the same ids, and one of another journal has others.
    traces: HashMap<RunId, [u8; 16]>,
    open: BTreeMap<RunId, Run>,
}

#[derive(Default)]
struct Run {
    processes: BTreeMap<Pid, Vec<JournalRow>>,
    calls: BTreeMap<(Pid, u64), Vec<JournalRow>>,
}

impl Spans {
    pub(crate) fn new(agents: HashMap<Pid, Agent>) -> Self {
        Self {
            agents,
            traces: HashMap::new(),
            open: BTreeMap::new(),
        }
    }

    /// Takes the next row; gives the trace of a run that has ended with it.
    pub(crate) fn row(&mut self, row: JournalRow) -> Option<impl Serialize + use<>> {
        // What the kernel says of itself belongs to no agent.
        if row.pid == Pid(0) {
            return None;
        }
        self.traces.entry(row.run).or_insert_with(|| {
            let mut id = [0; 16];
            id.copy_from_slice(&Sha256::digest(row.hash.0)[..16]);
            id
        });
        let run = row.run;
        let ends = row.pid.0 == run && is_end(&row);
        let open = self.open.entry(run).or_default();
        match row.seq {
            Some(seq) => open.calls.entry((row.pid, seq)).or_default().push(row),
            None => open.processes.entry(row.pid).or_default().push(row),
        }
        ends.then(|| self.close(run)).flatten()
    }

    /// Gives the traces of runs that have not ended.
    pub(crate) fn finish(mut self) -> Vec<impl Serialize> {
        let open: Vec<RunId> = self.open.keys().copied().collect();
        open.into_iter().filter_map(|run| self.close(run)).collect()
    }

    fn close(&mut self, run: RunId) -> Option<TracesData> {
        let rows = self.open.remove(&run)?;
        let trace = *self.traces.get(&run)?;
        let context = Context {
            trace,
            run,
            agents: &self.agents,
        };
        let processes = rows.processes.iter();
        let mut spans: Vec<Span> = processes
            .filter_map(|(pid, rows)| context.process(*pid, rows))
            .collect();
        let calls = rows.calls.iter();
        spans.extend(calls.filter_map(|((pid, seq), rows)| context.call(*pid, *seq, rows)));
        Some(TracesData::new(spans))
    }
}

fn is_end(row: &JournalRow) -> bool {
    row.kind == "process" && matches!(row.name.as_str(), "exited" | "failed" | "killed")
}

struct Context<'a> {
    trace: [u8; 16],
    run: RunId,
    agents: &'a HashMap<Pid, Agent>,
}

impl Context<'_> {
    fn process(&self, pid: Pid, rows: &[JournalRow]) -> Option<Span> {
        let (first, last) = (rows.first()?, rows.last()?);
        let agent = self.agents.get(&pid);
        let image = agent.map_or("unknown", |agent| agent.image.as_str());
        let mut attributes = self.common(pid, "invoke_agent");
        attributes.push(text("gen_ai.agent.name", image));
        attributes.push(text("gen_ai.provider.name", "steward"));
        let parent = agent
            .and_then(|agent| agent.parent)
            .map(|parent| self.span_id(parent, None));
        let failed = is_end(last) && last.name != "exited";
        if failed {
            attributes.push(text("error.type", &last.name));
        }
        Some(Span {
            trace_id: hex::encode(self.trace),
            span_id: self.span_id(pid, None),
            parent_span_id: parent,
            name: format!("invoke_agent {image}"),
            kind: INTERNAL,
            start_time_unix_nano: nanos(first.at_ms),
            end_time_unix_nano: nanos(last.at_ms.max(first.at_ms)),
            attributes,
            events: rows.iter().map(Event::of).collect(),
            status: Status::of(failed, &last.detail),
        })
    }

    fn call(&self, pid: Pid, seq: u64, rows: &[JournalRow]) -> Option<Span> {
        let (first, last) = (rows.first()?, rows.last()?);
        let newest =
            |column: fn(&JournalRow) -> Option<&String>| rows.iter().rev().find_map(column);
        let number = |column: fn(&JournalRow) -> Option<u64>| rows.iter().rev().find_map(column);
        let facts = newest(|row| row.facts.as_ref());
        let facts: Map<String, Json> = facts
            .and_then(|facts| serde_json::from_str(facts).ok())
            .unwrap_or_default();
        let (operation, name, kind) = match first.name.as_str() {
            "llm.chat" => {
                let model = facts.get("model").and_then(Json::as_str);
                (
                    "chat",
                    model.map_or("chat".to_owned(), |m| format!("chat {m}")),
                    CLIENT,
                )
            }
            tool => ("execute_tool", format!("execute_tool {tool}"), INTERNAL),
        };
        let mut attributes = self.common(pid, operation);
        if operation == "chat" {
            attributes.push(text("gen_ai.provider.name", "steward"));
        } else {
            attributes.push(text("gen_ai.tool.name", &first.name));
            attributes.push(text("gen_ai.tool.type", "function"));
            attributes.push(text("gen_ai.tool.call.id", &format!("{pid}.{seq}")));
        }
        let texts = [
            ("steward.resource", newest(|row| row.resource.as_ref())),
            ("steward.decision", newest(|row| row.decision.as_ref())),
            ("steward.decided_by", newest(|row| row.by.as_ref())),
        ];
        attributes.extend(texts.iter().filter_map(|(key, t)| Some(text(key, (*t)?))));
        let numbers = [
            ("steward.capability", number(|row| row.capability)),
            ("steward.wait_ms", number(|row| row.wait_ms)),
            ("steward.run_ms", number(|row| row.run_ms)),
        ];
        attributes.extend(numbers.iter().filter_map(|(key, n)| Some(int(key, (*n)?))));
        attributes.extend(facts.iter().filter_map(|(key, value)| fact(key, value)));
        let ended = (last.kind == "outcome").then(|| word(&last.detail));
        let failed = ended.is_some_and(|word| word != "done");
        attributes.extend(
            ended
                .filter(|_| failed)
                .map(|word| text("error.type", word)),
        );
        // Of a call that only looks there is one row, written when it ended.
        let lasted = match rows {
            [only] => only.wait_ms.unwrap_or(0) + only.run_ms.unwrap_or(0),
            _ => 0,
        };
        Some(Span {
            trace_id: hex::encode(self.trace),
            span_id: self.span_id(pid, Some(seq)),
            parent_span_id: Some(self.span_id(pid, None)),
            name,
            kind,
            start_time_unix_nano: nanos(first.at_ms.saturating_sub(lasted)),
            end_time_unix_nano: nanos(last.at_ms.max(first.at_ms)),
            attributes,
            events: rows.iter().map(Event::of).collect(),
            status: Status::of(failed, &last.detail),
        })
    }

    fn common(&self, pid: Pid, operation: &str) -> Vec<Attribute> {
        vec![
            text("gen_ai.operation.name", operation),
            text("gen_ai.agent.id", &pid.to_string()),
            text("gen_ai.conversation.id", &self.run.to_string()),
        ]
    }

    /// A process, or one of its calls.
    fn span_id(&self, pid: Pid, seq: Option<u64>) -> String {
        let mut hash = Sha256::new();
        hash.update(self.trace);
        hash.update(pid.0.to_be_bytes());
        hash.update(seq.map_or(0, |seq| seq + 1).to_be_bytes());
        hex::encode(&hash.finalize()[..8])
    }
}

/// Figures under the names that the conventions have for them, the rest under ours.
fn fact(key: &str, value: &Json) -> Option<Attribute> {
    let name = match key {
        "model" => "gen_ai.request.model",
        "input_tokens" => "gen_ai.usage.input_tokens",
        "output_tokens" => "gen_ai.usage.output_tokens",
        "cached_tokens" => "gen_ai.usage.cache_read.input_tokens",
        "max_tokens" => "gen_ai.request.max_tokens",
        "temperature" => "gen_ai.request.temperature",
        "finish" => {
            let value = AnyValue::Array {
                values: vec![AnyValue::of(value)?],
            };
            let key = "gen_ai.response.finish_reasons".to_owned();
            return Some(Attribute { key, value });
        }
        other => &format!("steward.{other}"),
    };
    let (key, value) = (name.to_owned(), AnyValue::of(value)?);
    Some(Attribute { key, value })
}

/// How a call ended, by the first word of its outcome.
fn word(detail: &str) -> &str {
    detail.split(':').next().unwrap_or(detail)
}

fn nanos(ms: u64) -> String {
    (u128::from(ms) * 1_000_000).to_string()
}

fn text(key: &str, value: &str) -> Attribute {
    Attribute {
        key: key.to_owned(),
        value: AnyValue::String(value.to_owned()),
    }
}

fn int(key: &str, value: u64) -> Attribute {
    Attribute {
        key: key.to_owned(),
        value: AnyValue::Int(value.to_string()),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TracesData {
    resource_spans: [ResourceSpans; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans {
    resource: Resource,
    scope_spans: [ScopeSpans; 1],
    schema_url: &'static str,
}

#[derive(Serialize)]
struct Resource {
    attributes: Vec<Attribute>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ScopeSpans {
    scope: Scope,
    spans: Vec<Span>,
    schema_url: &'static str,
}

#[derive(Serialize)]
struct Scope {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Span {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    name: String,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<Attribute>,
    events: Vec<Event>,
    status: Status,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    time_unix_nano: String,
    name: String,
    attributes: Vec<Attribute>,
}

#[derive(Serialize)]
struct Status {
    code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Serialize)]
struct Attribute {
    key: String,
    value: AnyValue,
}

#[derive(Serialize)]
enum AnyValue {
    #[serde(rename = "stringValue")]
    String(String),
    #[serde(rename = "boolValue")]
    Bool(bool),
    /// Of 64 bits, and so a text in JSON.
    #[serde(rename = "intValue")]
    Int(String),
    #[serde(rename = "doubleValue")]
    Double(f64),
    #[serde(rename = "arrayValue")]
    Array { values: Vec<AnyValue> },
}

impl TracesData {
    fn new(spans: Vec<Span>) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let attributes = vec![
            text("service.name", "steward"),
            text("service.version", version),
        ];
        let scope = Scope {
            name: "steward.kernel",
            version,
        };
        let scope_spans = [ScopeSpans {
            scope,
            spans,
            schema_url: SCHEMA,
        }];
        Self {
            resource_spans: [ResourceSpans {
                resource: Resource { attributes },
                scope_spans,
                schema_url: SCHEMA,
            }],
        }
    }
}

impl Event {
    /// A row of a call or process: its intent, its approval, the decision and by whom.
    fn of(row: &JournalRow) -> Self {
        let mut attributes = vec![
            int("steward.row", row.id),
            text("steward.detail", &row.detail),
        ];
        let decided = [
            ("steward.decision", &row.decision),
            ("steward.decided_by", &row.by),
        ];
        attributes.extend(
            decided
                .iter()
                .filter_map(|(key, t)| Some(text(key, t.as_ref()?))),
        );
        Self {
            time_unix_nano: nanos(row.at_ms),
            name: match row.kind.as_str() {
                "process" => format!("process.{}", row.name),
                kind => kind.to_owned(),
            },
            attributes,
        }
    }
}

impl Status {
    fn of(failed: bool, detail: &str) -> Self {
        Self {
            code: if failed { FAILED } else { 0 },
            message: failed.then(|| detail.to_owned()),
        }
    }
}

impl AnyValue {
    fn of(value: &Json) -> Option<Self> {
        Some(match value {
            Json::String(text) => Self::String(text.clone()),
            Json::Bool(flag) => Self::Bool(*flag),
            Json::Number(number) if number.is_f64() => Self::Double(number.as_f64()?),
            Json::Number(number) => Self::Int(number.to_string()),
            Json::Array(values) => Self::Array {
                values: values.iter().filter_map(Self::of).collect(),
            },
            Json::Null | Json::Object(_) => return None,
        })
    }
}

#[cfg(test)]
mod tests;
