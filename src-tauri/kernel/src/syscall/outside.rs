//! Calls that reach programs and hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Arguments of `shell.run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShellRun {
    /// The program and its arguments: a vector, never a line for a shell to take apart.
    pub argv: Vec<String>,
    /// Folder within the workspace to start in; its root where absent.
    #[serde(default)]
    pub folder: Option<String>,
    /// What it reads from its standard input.
    #[serde(default)]
    pub input: String,
    /// Milliseconds that it may run (at most an hour; a minute where absent).
    #[serde(default)]
    pub limit_ms: Option<u64>,
}

/// Arguments of `net.fetch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetFetch {
    /// GET, HEAD, POST, PUT, PATCH or DELETE.
    pub method: String,
    /// The whole address.
    pub url: String,
    /// What is sent.
    #[serde(default)]
    pub body: String,
    /// Milliseconds that it may take (at most an hour; a minute where absent).
    #[serde(default)]
    pub limit_ms: Option<u64>,
}
