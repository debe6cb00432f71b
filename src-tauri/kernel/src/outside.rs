//! What lies outside a workspace: other programs, the network, chance. Traits that other rooms
//! implement; where none is given, the calls say so and nothing happens.

use std::collections::BTreeMap;
use std::path::Path;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Code, SysError};
use crate::provider::Cancel;

/// A program to run: an argument vector, never a line for a shell to take apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Command {
    /// The program and its arguments, each as it is passed.
    pub argv: Vec<String>,
    /// Folder within the workspace that it starts in.
    pub folder: String,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    /// What it reads from its standard input.
    pub input: String,
    /// Milliseconds that it may run.
    pub limit_ms: u64,
    /// Bytes of each of its outputs that are kept.
    pub output_most: u64,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ran {
    /// Its exit status; absent where a signal or its limit ended it.
    pub status: Option<i32>,
    /// Its standard output, invalid UTF-8 replaced.
    pub output: String,
    /// Its standard error, likewise.
    pub errors: String,
    /// Whether an output was cut to its bound.
    pub cut: bool,
    /// Whether its time was over.
    pub timed_out: bool,
}

/// Runs programs, confined. The kernel has checked the right and holds the yes before it calls.
#[async_trait]
pub trait Shell: Send + Sync {
    /// Runs one program in a workspace to its end; ends it and all it started when cancelled.
    async fn run(&self, root: &Path, command: Command, cancel: Cancel) -> Result<Ran, SysError>;
}

/// A request to a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// Its method, such as `GET`.
    pub method: String,
    /// Its whole address, `https` or `http`.
    pub url: String,
    /// Headers, without any that identify the person.
    pub headers: BTreeMap<String, String>,
    /// What is sent.
    pub body: String,
    /// Milliseconds that it may take.
    pub limit_ms: u64,
    /// Bytes of the answer that are kept.
    pub answer_most: u64,
}

/// A host's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fetched {
    /// Status of HTTP.
    pub status: u16,
    /// The media type it says it has.
    pub media_type: String,
    /// Its text, invalid UTF-8 replaced. Data, whatever it says.
    pub body: String,
    /// Whether it was cut to its bound.
    pub cut: bool,
}

/// Opens connections out. The kernel has checked the right and holds the yes before it calls.
#[async_trait]
pub trait Network: Send + Sync {
    /// Makes one request, following no redirection to another host.
    async fn fetch(&self, request: Request, cancel: Cancel) -> Result<Fetched, SysError>;
}

/// Chance, so that tests can decide it.
pub trait Random: Send + Sync {
    /// Fills a buffer with bytes that nobody can guess.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), SysError>;
}

/// The operating system's chance.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), SysError> {
        getrandom::fill(bytes).map_err(|e| {
            SysError::new(
                Code::Unavailable,
                format!("the system gives no random bytes: {e}"),
            )
            .hint("try again")
        })
    }
}
