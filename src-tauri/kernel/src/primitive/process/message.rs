//! `process.send`, `process.receive`: messages between processes.
//!
//! A message is on disk when `send` returns, and is received once: what took it is written down
//! together with its result.

use serde_json::Value;

use super::birth::bounded;
use crate::capability::{Resource, Right};
use crate::error::{Code, SysError};
use crate::journal::{Message, put_message, take_message};
use crate::primitive::{Ctx, Outcome, Primitive};
use crate::process::ProcessState;
use crate::syscall::{ProcessReceive, ProcessSend, Received};

/// Memo of a waiting call: Unix milliseconds when it ends without a message.
const DUE: &str = "due";
const YEAR_MS: u64 = 366 * 24 * 60 * 60 * 1000;

impl Primitive for ProcessSend {
    fn subject(&self) -> String {
        format!("to process {}, {} bytes", self.to, self.text.len())
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<()>, SysError> {
        bounded("message", &self.text)?;
        self.may(ctx).await?;
        let message = Message {
            from: Some(ctx.info.pid),
            to: self.to,
            text: self.text,
        };
        let to = self.to;
        let done = ctx
            .settle(move |tx, at| {
                let id = put_message(tx, &message, at.now_ms)?;
                Ok(Outcome::new((), format!("message {id}")))
            })
            .await?;
        ctx.inner.deliver(to);
        Ok(done)
    }
}

impl ProcessSend {
    /// One writes to one's parent and children; to others with a right to that.
    async fn may(&self, ctx: &Ctx) -> Result<(), SysError> {
        if let Some(to) = ctx.inner.journal.process(self.to).await? {
            let family = to.parent == Some(ctx.info.pid) || ctx.info.parent == Some(to.pid);
            if family {
                ctx.check(Resource::Processes, Right::Use).await?;
                return Ok(());
            }
            let same = to.run == ctx.info.run;
            if same && ctx.check(Resource::Processes, Right::Write).await.is_ok() {
                return Ok(());
            }
        }
        let one = Resource::Process { pid: self.to };
        ctx.check(one, Right::Write).await.map(drop)
    }
}

impl Primitive for ProcessReceive {
    fn subject(&self) -> String {
        match self.timeout_ms {
            Some(ms) => format!("within {ms} ms"),
            None => String::new(),
        }
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Option<Received>>, SysError> {
        if self.timeout_ms.is_some_and(|ms| ms > YEAR_MS) {
            let message = "the time to wait is more than a year";
            return Err(
                SysError::new(Code::Invalid, message).hint("wait a shorter time, or without end")
            );
        }
        ctx.check(Resource::Processes, Right::Use).await?;
        let left = match self.timeout_ms {
            Some(ms) => Some(ctx.time_left(ms).await?),
            None => None,
        };
        let clock = &ctx.inner.providers.clock;
        let over = async {
            match left {
                Some(ms) => clock.sleep_ms(ms).await,
                None => std::future::pending().await,
            }
        };
        let mut over = std::pin::pin!(over);
        let journal = &ctx.inner.journal;
        ctx.enter_state(ProcessState::WaitingEvent);
        while !journal.has_message(ctx.info.pid).await? {
            let arrives = ctx.live.mail.notified();
            let arrived = ctx.waiting(async {
                tokio::select! {
                    biased;
                    () = arrives => true,
                    () = &mut over => false,
                }
            });
            if !arrived.await? {
                return Ok(Outcome::new(None, "nothing came"));
            }
        }
        let call = ctx.row.id;
        ctx.settle(move |tx, at| {
            let message = take_message(tx, at.pid, call)?;
            let from = match message.from {
                Some(pid) => format!("process {pid}"),
                None => "the person".to_owned(),
            };
            let bytes = message.text.len();
            let detail = format!("message {} from {from}, {bytes} bytes", message.id);
            Ok(Outcome::new(Some(message), detail))
        })
        .await
    }
}

impl Ctx {
    /// What is left of a time to wait, restarts counted in. While the program runs the monotonic
    /// clock counts; across a restart only the wall clock can tell, and one set back never makes
    /// the wait longer than it was.
    pub(in crate::primitive) async fn time_left(&self, ms: u64) -> Result<u64, SysError> {
        let clock = &self.inner.providers.clock;
        if let Some(due) = self.memo(DUE).and_then(Value::as_u64) {
            return Ok(due.saturating_sub(clock.now_ms()).min(ms));
        }
        let due = clock.now_ms().saturating_add(ms);
        let memo = self.memo_with(DUE, due.into());
        let journal = &self.inner.journal;
        journal.remember(self.row.id, self.info.pid, memo).await?;
        Ok(ms)
    }
}
