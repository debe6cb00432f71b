//! A generation of the local engine: run off the async threads, a slice at a time.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use steward_engine::{EngineError, GenerateRequest, Session};
use steward_kernel::SysError;
use steward_kernel::provider::{Cancel, Generation, Progress, TokenSink};
use tokio::sync::mpsc;

use crate::local::{CancelOnDrop, Loader, broke_down, explained, reply};

pub(crate) struct LocalGeneration {
    loader: Arc<Loader>,
    state: State,
    resident: u64,
}

enum State {
    /// Not begun: what is asked for.
    New(Box<GenerateRequest>),
    /// Locked by whichever thread works on it. A slice whose caller has gone ends it soon.
    Begun(Arc<Mutex<Session>>),
}

impl LocalGeneration {
    pub(crate) fn new(loader: Arc<Loader>, request: GenerateRequest) -> Self {
        Self {
            loader,
            state: State::New(Box::new(request)),
            resident: size_of::<Self>() as u64,
        }
    }

    pub(crate) fn restored(loader: Arc<Loader>, session: Session) -> Self {
        Self {
            loader,
            resident: session.resident_bytes(),
            state: State::Begun(Arc::new(Mutex::new(session))),
        }
    }

    /// The session, begun. The model is loaded for it if it has to be.
    async fn session(&mut self, cancel: &Cancel) -> Result<Arc<Mutex<Session>>, SysError> {
        let request = match &self.state {
            State::Begun(session) => return Ok(Arc::clone(session)),
            State::New(request) => GenerateRequest::clone(request),
        };
        let engine = self.loader.ready(cancel).await?;
        let session = off_thread(move || engine.begin(request)).await?;
        let session = Arc::new(Mutex::new(session));
        self.state = State::Begun(Arc::clone(&session));
        Ok(session)
    }
}

#[async_trait]
impl Generation for LocalGeneration {
    async fn run(
        &mut self,
        quantum: Option<u32>,
        sink: &TokenSink,
        yield_now: &Cancel,
        cancel: &Cancel,
    ) -> Result<Progress, SysError> {
        let session = self.session(cancel).await?;
        let (pause, stop) = (steward_engine::Cancel::new(), steward_engine::Cancel::new());
        let _gone = CancelOnDrop(stop.clone());
        let (speak, mut heard) = mpsc::unbounded_channel::<String>();
        let flags = (pause.clone(), stop.clone());
        let mut work = Box::pin(off_thread(move || {
            let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
            let progress = session.run(quantum, &flags.0, &flags.1, &mut |event| {
                if !event.text.is_empty() {
                    // Nobody hears only when nobody waits for the reply either.
                    let _ = speak.send(event.text.to_owned());
                }
            })?;
            Ok((progress, session.resident_bytes()))
        }));
        let done = loop {
            tokio::select! {
                biased;
                Some(text) = heard.recv() => sink(&text),
                done = &mut work => break done,
                () = cancel.cancelled(), if !stop.is_cancelled() => stop.cancel(),
                () = yield_now.cancelled(), if !pause.is_cancelled() => pause.cancel(),
            }
        };
        while let Ok(text) = heard.try_recv() {
            sink(&text);
        }
        let (progress, resident) = done?;
        self.resident = resident;
        Ok(match progress {
            steward_engine::Progress::Paused => Progress::Paused,
            steward_engine::Progress::Done(generation) => Progress::Done(reply(generation)),
        })
    }

    fn resident_bytes(&self) -> u64 {
        self.resident
    }

    async fn snapshot(&mut self) -> Result<Vec<u8>, SysError> {
        let session = self.session(&Cancel::default()).await?;
        off_thread(move || {
            let session = session.lock().unwrap_or_else(PoisonError::into_inner);
            session.snapshot()
        })
        .await
    }
}

async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, EngineError> + Send + 'static,
) -> Result<T, SysError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|e| broke_down(&e))?.map_err(|e| explained(&e))
}
