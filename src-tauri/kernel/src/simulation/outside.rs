//! Programs and hosts that are written beforehand.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::error::{Code, SysError};
use crate::outside::{Command, Fetched, Network, Ran, Random, Request, Shell};
use crate::provider::Cancel;

/// Knows programs by their argument vectors and hosts by their addresses, says what was written of
/// each, and remembers what it was asked.
#[derive(Clone, Default)]
pub struct ScriptedOutside {
    script: Arc<Mutex<Script>>,
}

#[derive(Default)]
struct Script {
    programs: BTreeMap<Vec<String>, Ran>,
    pages: BTreeMap<String, Fetched>,
    ran: Vec<Command>,
    fetched: Vec<Request>,
}

impl ScriptedOutside {
    /// A program that ends with that status and says that.
    #[must_use]
    pub fn program(self, argv: &[&str], status: i32, output: &str) -> Self {
        let ran = Ran {
            status: Some(status),
            output: output.to_owned(),
            errors: String::new(),
            cut: false,
            timed_out: false,
        };
        let argv = argv.iter().map(|part| (*part).to_owned()).collect();
        self.lock().programs.insert(argv, ran);
        self
    }

    /// A page at an address.
    #[must_use]
    pub fn page(self, url: &str, body: &str) -> Self {
        let page = Fetched {
            status: 200,
            media_type: "text/plain".to_owned(),
            body: body.to_owned(),
            cut: false,
        };
        self.lock().pages.insert(url.to_owned(), page);
        self
    }

    /// Programs that were run, in order.
    pub fn ran(&self) -> Vec<Command> {
        self.lock().ran.clone()
    }

    /// Requests that were made, in order.
    pub fn fetched(&self) -> Vec<Request> {
        self.lock().fetched.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Shell for ScriptedOutside {
    async fn run(&self, _: &Path, command: Command, _: Cancel) -> Result<Ran, SysError> {
        let mut script = self.lock();
        let ran = script.programs.get(&command.argv).cloned();
        script.ran.push(command);
        ran.ok_or_else(|| {
            SysError::new(Code::NotFound, "the script knows no such program")
                .hint("write down what it says")
        })
    }
}

#[async_trait]
impl Network for ScriptedOutside {
    async fn fetch(&self, request: Request, _: Cancel) -> Result<Fetched, SysError> {
        let mut script = self.lock();
        let page = script.pages.get(&request.url).cloned();
        script.fetched.push(request);
        page.ok_or_else(|| {
            SysError::new(Code::NotFound, "the script knows no such page")
                .hint("write down what it says")
        })
    }
}

/// Chance that a seed decides.
pub struct SeededRandom(Mutex<fastrand::Rng>);

impl SeededRandom {
    /// The same bytes for the same seed.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }
}

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), SysError> {
        let mut random = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        random.fill(bytes);
        Ok(())
    }
}
