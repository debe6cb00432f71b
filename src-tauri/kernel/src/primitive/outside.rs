//! `shell.run`, `net.fetch`, `random.bytes`: what lies outside the workspace.
//!
//! A program and a request go one way: what would happen is put down in full, the person is asked
//! where that is what is said, and it happens once, between an `executing` and an `outcome` row.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::Serialize;
use url::Url;

use super::change::cannot_be_repeated;
use super::person::Asking;
use super::{Ctx, Outcome, Primitive, by, ended_as, json};
use crate::capability::{Facts, Need, Resource, Right, Stance};
use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::executor;
use crate::human::{self, Approval, EffectKind, Preview, Risk};
use crate::journal::{At, CallState, Ended};
use crate::outside::{Command, Fetched, Ran, Request};
use crate::process::folder_within;
use crate::provider::Cancel;
use crate::syscall::{NetFetch, RandomBytes, ShellRun};

const ARGUMENTS_MOST: usize = 256;
const ARGUMENT_BYTES_MOST: usize = 64 * 1024;
const INPUT_MOST: usize = 1024 * 1024;
const OUTPUT_MOST: u64 = 256 * 1024;
const LIMIT_MS: u64 = 60_000;
const LIMIT_MS_MOST: u64 = 60 * 60 * 1000;
const URL_MOST: usize = 8 * 1024;
const RANDOM_MOST: u32 = 1024;

impl Primitive for ShellRun {
    fn subject(&self) -> String {
        let program = self.argv.first().map_or("", String::as_str);
        format!("{}, {} arguments", shown(program), self.argv.len())
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Ran>, SysError> {
        let command = self.command(ctx)?;
        let facts = Facts {
            path: Some(command.folder.clone()),
            argv: Some(command.argv.clone()),
            bytes: Some(command.input.len() as u64),
            ..Facts::default()
        };
        let folder = ctx.info.workspace.join(&command.folder);
        let line = words(&command.argv);
        let effect = Effect {
            need: Need::new(Resource::Shell, Right::Execute).with(facts),
            bound: json(&(&command, &folder))?,
            preview: format!("{line}\nin {}\n{}", folder.display(), command.input),
            path: line,
        };
        let root = ctx.info.workspace.clone();
        let shell = ctx.inner.providers.shell.clone().ok_or_else(|| {
            SysError::new(Code::Unavailable, "programs cannot be run confined here")
                .hint("do it without another program")
        });
        let run =
            shell.map(|shell| move |cancel| async move { shell.run(&root, command, cancel).await });
        let ran = effect.carry_out(ctx, run, |ran: &Ran| ran.told()).await?;
        let detail = ran.told();
        Ok(Outcome::new(ran, detail))
    }
}

impl ShellRun {
    fn command(&self, ctx: &Ctx) -> Result<Command, SysError> {
        let bytes: usize = self.argv.iter().map(String::len).sum();
        let fits = (1..=ARGUMENTS_MOST).contains(&self.argv.len()) && bytes <= ARGUMENT_BYTES_MOST;
        if !fits || self.input.len() > INPUT_MOST {
            let message = format!(
                "a program has 1 to `{ARGUMENTS_MOST}` arguments of `{ARGUMENT_BYTES_MOST}` bytes in all, and reads `{INPUT_MOST}` bytes at most"
            );
            return Err(SysError::new(Code::Invalid, message).hint("put long data into a file"));
        }
        if let Some(odd) = self.argv.iter().find(|part| part.contains('\0')) {
            let message = format!("the argument `{}` holds a NUL character", shown(odd));
            return Err(SysError::new(Code::Invalid, message).hint("leave it out"));
        }
        Ok(Command {
            argv: self.argv.clone(),
            folder: folder_within(&ctx.info.cwd, self.folder.as_deref().unwrap_or_default())?,
            // A program gets none of the kernel's own environment.
            env: BTreeMap::new(),
            input: self.input.clone(),
            limit_ms: limit(self.limit_ms)?,
            output_most: OUTPUT_MOST,
        })
    }
}

impl Ran {
    fn told(&self) -> String {
        let end = match (self.timed_out, self.status) {
            (true, _) => "stopped when its time was over".to_owned(),
            (_, Some(status)) => format!("exit status {status}"),
            (_, None) => "ended by a signal".to_owned(),
        };
        let cut = if self.cut { ", cut" } else { "" };
        format!(
            "{end}, {} bytes of output{cut}",
            self.output.len() + self.errors.len()
        )
    }
}

impl Primitive for NetFetch {
    fn subject(&self) -> String {
        let host = Url::parse(&self.url).ok();
        let host = host.as_ref().and_then(Url::host_str).unwrap_or("no host");
        format!(
            "{} {}, {} bytes",
            shown(&self.method),
            shown(host),
            self.body.len()
        )
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Fetched>, SysError> {
        let (request, host) = self.request()?;
        let facts = Facts {
            host: Some(host),
            method: Some(request.method.clone()),
            bytes: Some(request.body.len() as u64),
            ..Facts::default()
        };
        let effect = Effect {
            need: Need::new(Resource::Network, Right::Use).with(facts),
            bound: json(&request)?,
            preview: format!("{} {}\n{}", request.method, request.url, request.body),
            path: request.url.clone(),
        };
        let network = ctx.inner.providers.network.clone().ok_or_else(|| {
            SysError::new(Code::Unavailable, "there is no way out to the network")
                .hint("do it without the network")
        });
        let fetch = network
            .map(|network| move |cancel| async move { network.fetch(request, cancel).await });
        let told = |fetched: &Fetched| {
            let cut = if fetched.cut { ", cut" } else { "" };
            format!(
                "status {}, {} bytes{cut}",
                fetched.status,
                fetched.body.len()
            )
        };
        let fetched = effect.carry_out(ctx, fetch, told).await?;
        let detail = told(&fetched);
        Ok(Outcome::new(fetched, detail))
    }
}

impl NetFetch {
    fn request(&self) -> Result<(Request, String), SysError> {
        let invalid = |what: String, hint: &str| SysError::new(Code::Invalid, what).hint(hint);
        if self.url.len() > URL_MOST || self.body.len() > INPUT_MOST {
            return Err(invalid(
                format!("an address has `{URL_MOST}` bytes at most, and a body `{INPUT_MOST}`"),
                "send less",
            ));
        }
        let url = Url::parse(&self.url).map_err(|e| {
            let what = format!("`{}` is no address: {e}", shown(&self.url));
            invalid(what, "write it out, such as `https://example.org/page`")
        })?;
        let host = url
            .host_str()
            .filter(|_| matches!(url.scheme(), "https" | "http"));
        let Some(host) = host.map(str::to_owned) else {
            return Err(invalid(
                format!("`{}` is not an address of the web", shown(&self.url)),
                "use one that begins with https://",
            ));
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid(
                "an address carries no name and no password".to_owned(),
                "leave out what stands before the `@`",
            ));
        }
        let method = self.method.to_ascii_uppercase();
        if !matches!(
            method.as_str(),
            "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE"
        ) {
            let what = format!("`{}` is no method", shown(&self.method));
            return Err(invalid(what, "use GET, HEAD, POST, PUT, PATCH or DELETE"));
        }
        let request = Request {
            method,
            url: url.to_string(),
            headers: BTreeMap::new(),
            body: self.body.clone(),
            limit_ms: limit(self.limit_ms)?,
            answer_most: OUTPUT_MOST,
        };
        Ok((request, host))
    }
}

impl Primitive for RandomBytes {
    fn subject(&self) -> String {
        format!("{} bytes", self.count)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<String>, SysError> {
        if !(1..=RANDOM_MOST).contains(&self.count) {
            let message = format!("`count` is `{}`", self.count);
            return Err(SysError::new(Code::Invalid, message)
                .hint(format!("use a number from 1 to {RANDOM_MOST}")));
        }
        ctx.check(Resource::Clock, Right::Use).await?;
        let mut bytes = vec![0; self.count as usize];
        ctx.inner.providers.random.fill(&mut bytes)?;
        Ok(Outcome::new(
            hex::encode(bytes),
            format!("{} bytes", self.count),
        ))
    }
}

/// Something that happens outside, as it is asked about.
struct Effect {
    need: Need,
    /// All that a yes is bound to.
    bound: serde_json::Value,
    path: String,
    preview: String,
}

impl Effect {
    /// `act` is how it is done, or why it cannot be here.
    async fn carry_out<T, R>(
        self,
        ctx: &Ctx,
        act: Result<impl FnOnce(Cancel) -> R, SysError>,
        told: impl Fn(&T) -> String + Send + 'static,
    ) -> Result<T, SysError>
    where
        T: Serialize + Send + 'static,
        R: Future<Output = Result<T, SysError>> + Send + 'static,
    {
        let repeat = ctx.settle_unknown().await?;
        let (needs, kind) = ([self.need.clone()], Some(EffectKind::Use));
        let ruled = ctx.rule(&needs, kind).await;
        let (verdict, act) = match ruled.and_then(|verdict| Ok((verdict, act?))) {
            Err(error) if repeat => return Err(cannot_be_repeated(&error)),
            may => may?,
        };
        let mut once = None;
        if verdict.stance == Stance::Ask || repeat {
            let decision = ctx
                .ask_for_yes(self.asking(ctx, verdict.by, repeat))
                .await?;
            once = Some(decision.or_refused(|| refused(ctx.name, repeat))?);
        }
        let slot = ctx.turn().await?;
        let verdict = ctx.rule(&needs, kind).await?;
        let record = match once {
            Some(capability) => format!("{}, by your yes (capability {capability})", self.path),
            None => format!("{}{}", self.path, by(verdict)),
        };
        let authority = ctx.authority(needs.to_vec(), kind, once);
        let (inner, live) = (Arc::clone(&ctx.inner), Arc::clone(&ctx.live));
        let (call, at) = (ctx.row.id, ctx.at());
        let work = act(live.attention.cancel());
        let acting = async move {
            let _acting = live.acting.lock().await;
            let _slot = slot;
            let journal = &inner.journal;
            if !journal
                .executing(call, at.clone(), authority, None, record.clone())
                .await?
            {
                return Err(
                    SysError::new(Code::Denied, "what allowed it was used or taken back")
                        .hint("ask again"),
                );
            }
            let done = work.await;
            let at = At {
                now_ms: inner.providers.clock.now_ms(),
                ..at
            };
            let ended = match &done {
                Ok(value) => Ended {
                    state: CallState::Done,
                    result: Ok(json(value)?),
                    detail: told(value),
                    record: format!("{}; {record}", told(value)),
                    tokens: 0,
                },
                Err(error) => Ended {
                    state: ended_as(error.code),
                    result: Err(error.clone()),
                    detail: shown(&error.message),
                    record: shown(&error.message),
                    tokens: 0,
                },
            };
            journal.outcome(call, at, ended, false).await?;
            Ok(done)
        };
        let executor = &ctx.inner.providers.executor;
        let acted = executor::detached(executor, "an effect", acting).await?;
        ctx.taken_with_the_effect();
        ctx.inner.rights_changed(None);
        ctx.inner.standing_changed();
        let done = acted?;
        ctx.recorded.store(true, Ordering::Release);
        done
    }

    fn asking(&self, ctx: &Ctx, by: crate::capability::CapabilityId, repeat: bool) -> Asking {
        let digest = human::binding(ctx.info.pid, ctx.row.seq, ctx.name, &(&self.bound, repeat));
        let mut risks = Vec::new();
        if repeat {
            risks.push(Risk::Repeat);
        }
        if crate::escape::has_invisible(&self.preview) {
            risks.push(Risk::Invisible);
        }
        Asking {
            approval: Approval {
                path: shown(&self.path),
                preview: Preview::between(None, Some(self.preview.as_bytes())),
                risks,
                ..ctx.approval(EffectKind::Use, digest)
            },
            by,
            paths: Vec::new(),
            lifetime_ms: None,
        }
    }
}

/// An argument vector as it can be read back: each argument with a blank, a quote or nothing in it
/// stands in quotes.
fn words(argv: &[String]) -> String {
    let plain = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_alphanumeric() || "-_./=:,+@%".contains(c))
    };
    let word = |part: &String| match plain(part) {
        true => part.clone(),
        false => format!("'{}'", part.replace('\'', "'\\''")),
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn limit(ms: Option<u64>) -> Result<u64, SysError> {
    let ms = ms.unwrap_or(LIMIT_MS);
    if (1..=LIMIT_MS_MOST).contains(&ms) {
        return Ok(ms);
    }
    Err(
        SysError::new(Code::Invalid, format!("`limit_ms` is `{ms}`"))
            .hint(format!("use a number from 1 to {LIMIT_MS_MOST}")),
    )
}

fn refused(name: &str, repeat: bool) -> SysError {
    if repeat {
        let message = format!("it is not known whether `{name}` happened before the program ended");
        return SysError::new(Code::Unknown, message).hint("it was not done again");
    }
    SysError::new(Code::Refused, format!("the person said no to `{name}`"))
        .hint("do it without this, or ask what they want")
}
