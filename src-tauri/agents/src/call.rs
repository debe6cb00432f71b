//! Tool calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One call of a tool: what the reader finds, and what a model writes under a grammar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// Its arguments, of the tool's JSON schema.
    pub arguments: Map<String, Value>,
}

impl Call {
    /// A call with arguments given as JSON.
    pub fn new(tool: &str, arguments: Value) -> Self {
        let arguments = match arguments {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        Self {
            tool: tool.to_owned(),
            arguments,
        }
    }

    /// An argument that is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.arguments.get(name).and_then(Value::as_str)
    }

    /// The call in one line, for a log or a model.
    pub fn describe(&self) -> String {
        let arguments: Vec<String> = self.arguments.values().map(ToString::to_string).collect();
        format!("{} {}", self.tool, arguments.join(" "))
            .trim_end()
            .to_owned()
    }
}
