#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::super::chain::Hash;
use super::super::export::{Exporter, Format};
use super::*;

struct Story(Vec<JournalRow>);

impl Story {
    fn add(
        &mut self,
        pid: u64,
        seq: Option<u64>,
        kind: &str,
        name: &str,
        detail: &str,
    ) -> &mut JournalRow {
        let id = self.0.len() as u64 + 1;
        self.0.push(JournalRow {
            id,
            at_ms: 1000 * id,
            pid: Pid(pid),
            run: 1,
            seq,
            kind: kind.to_owned(),
            name: name.to_owned(),
            detail: detail.to_owned(),
            resource: None,
            capability: None,
            decision: None,
            by: None,
            wait_ms: None,
            run_ms: None,
            facts: None,
            hash: Hash([id as u8; 32]),
        });
        self.0.last_mut().unwrap()
    }
}

/// A parent that asks a core and writes a file that the person refuses, and its child.
fn story() -> Vec<JournalRow> {
    let mut story = Story(Vec::new());
    story.add(1, None, "process", "created", "image base");
    story.add(1, Some(1), "intent", "llm.chat", "1 message");
    let row = story.add(1, Some(1), "outcome", "llm.chat", "done: 12 tokens read");
    row.facts = Some(
        r#"{"model":"m-1","input_tokens":12,"output_tokens":3,"finish":"stop","temperature":0.5}"#
            .to_owned(),
    );
    (row.wait_ms, row.run_ms, row.capability) = (Some(5), Some(7), Some(3));
    story.add(2, None, "process", "created", "image reviewer");
    story
        .add(2, Some(1), "outcome", "fs.read", "done: 7 bytes")
        .run_ms = Some(400);
    story.add(2, None, "process", "exited", "ok true");
    let row = story.add(1, Some(2), "intent", "fs.write", "notes.md");
    row.resource = Some("notes.md".to_owned());
    let row = story.add(1, Some(2), "decision", "fs.write", "refused");
    (row.decision, row.by) = (Some("refused".to_owned()), Some("terminal".to_owned()));
    story.add(
        1,
        Some(2),
        "outcome",
        "fs.write",
        "denied: the person said no",
    );
    story.add(1, None, "process", "failed", "refused: no");
    story.0
}

fn traces(rows: Vec<JournalRow>) -> Vec<Json> {
    let agent = |image: &str, parent| Agent {
        image: image.to_owned(),
        parent,
    };
    let agents = HashMap::from([
        (Pid(1), agent("base", None)),
        (Pid(2), agent("reviewer", Some(Pid(1)))),
    ]);
    let mut out = Vec::new();
    let mut exporter = Exporter::new(Format::Otel, agents, &mut out);
    for row in rows {
        exporter.row(row).unwrap();
    }
    exporter.finish().unwrap();
    let text = String::from_utf8(out).unwrap();
    text.lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect()
}

fn spans(trace: &Json) -> &Vec<Json> {
    trace["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array()
        .unwrap()
}

fn named<'a>(trace: &'a Json, name: &str) -> &'a Json {
    spans(trace)
        .iter()
        .find(|span| span["name"] == name)
        .unwrap()
}

fn attribute<'a>(of: &'a Json, key: &str) -> &'a Json {
    let all = of["attributes"].as_array().unwrap();
    let found = all.iter().find(|a| a["key"] == key);
    &found.unwrap_or_else(|| panic!("no attribute {key} in {of}"))["value"]
}

#[test]
fn a_run_is_a_trace_of_agents_cores_and_tools() {
    let traces = traces(story());
    let [trace] = traces.as_slice() else {
        panic!("{} traces", traces.len());
    };
    let base = named(trace, "invoke_agent base");
    let child = named(trace, "invoke_agent reviewer");
    let chat = named(trace, "chat m-1");
    let read = named(trace, "execute_tool fs.read");
    let write = named(trace, "execute_tool fs.write");
    assert_eq!(spans(trace).len(), 5);
    assert!(base.get("parentSpanId").is_none());
    assert_eq!(child["parentSpanId"], base["spanId"]);
    assert_eq!(chat["parentSpanId"], base["spanId"]);
    assert_eq!(read["parentSpanId"], child["spanId"]);
    for (key, value) in [
        (
            "gen_ai.operation.name",
            serde_json::json!({"stringValue": "chat"}),
        ),
        (
            "gen_ai.request.model",
            serde_json::json!({"stringValue": "m-1"}),
        ),
        (
            "gen_ai.usage.input_tokens",
            serde_json::json!({"intValue": "12"}),
        ),
        (
            "gen_ai.usage.output_tokens",
            serde_json::json!({"intValue": "3"}),
        ),
        (
            "gen_ai.request.temperature",
            serde_json::json!({"doubleValue": 0.5}),
        ),
        ("gen_ai.agent.id", serde_json::json!({"stringValue": "1"})),
        ("steward.capability", serde_json::json!({"intValue": "3"})),
        (
            "gen_ai.response.finish_reasons",
            serde_json::json!({"arrayValue": {"values": [{"stringValue": "stop"}]}}),
        ),
    ] {
        assert_eq!(attribute(chat, key), &value, "{key}");
    }
    assert_eq!(read["startTimeUnixNano"], "4600000000");
    assert_eq!(read["endTimeUnixNano"], "5000000000");
    assert_eq!(write["status"]["code"], 2);
    assert_eq!(attribute(write, "error.type")["stringValue"], "denied");
    assert_eq!(
        attribute(write, "steward.decided_by")["stringValue"],
        "terminal"
    );
    assert_eq!(write["events"][1]["name"], "decision");
    assert_eq!(base["status"]["code"], 2);
}

#[test]
fn every_span_has_the_form_that_otlp_asks_for() {
    let is_hex = |value: &Json, digits: usize| {
        let text = value.as_str().unwrap();
        text.len() == digits
            && text.chars().all(|c| c.is_ascii_hexdigit())
            && text.chars().any(|c| c != '0')
    };
    let nanos = |value: &Json| value.as_str().unwrap().parse::<u64>().unwrap();
    let traces = traces(story());
    for span in spans(&traces[0]) {
        assert!(
            is_hex(&span["traceId"], 32) && is_hex(&span["spanId"], 16),
            "{span}"
        );
        assert!(nanos(&span["startTimeUnixNano"]) <= nanos(&span["endTimeUnixNano"]));
        assert!((1..=5).contains(&span["kind"].as_u64().unwrap()));
        let events = span["events"].as_array().unwrap();
        events
            .iter()
            .for_each(|event| assert!(nanos(&event["timeUnixNano"]) > 0));
        for attribute in span["attributes"].as_array().unwrap() {
            let value = attribute["value"].as_object().unwrap();
            let kinds = [
                "stringValue",
                "intValue",
                "doubleValue",
                "boolValue",
                "arrayValue",
            ];
            assert!(value.len() == 1 && kinds.iter().any(|k| value.contains_key(*k)));
        }
    }
    let mut ids: Vec<_> = spans(&traces[0])
        .iter()
        .map(|s| s["spanId"].to_string())
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5, "two spans have one id");
}

#[test]
fn what_has_not_ended_is_told_too_and_ids_stay() {
    let whole = traces(story());
    let cut = traces(story().into_iter().take(5).collect());
    assert_eq!(
        named(&cut[0], "invoke_agent base")["spanId"],
        named(&whole[0], "invoke_agent base")["spanId"]
    );
    assert_eq!(named(&cut[0], "invoke_agent base")["status"]["code"], 0);
}
