//! `steward grants` and `steward policy`: what you said once for many times.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use steward_host::surface::{PolicyChange, PolicyRule, PolicyScope};
use steward_host::{Command, Problem, Reply};

use crate::Ended;
use crate::args::number;
use crate::ask::{absolute, unexpected};
use crate::link::Link;
use crate::print::Printer;
use crate::show::{clock, done};

#[derive(Debug, Subcommand)]
pub(crate) enum GrantsVerb {
    /// Take a standing answer back: from then on you are asked again.
    Revoke {
        /// Its number, as `steward grants` shows it.
        #[arg(value_parser = number())]
        id: u64,
    },
}

pub(crate) async fn grants(link: &mut Link, verb: Option<GrantsVerb>, printer: &Printer) -> Ended {
    if let Some(GrantsVerb::Revoke { id }) = verb {
        link.request(Command::RevokeGrant { id }).await?;
        printer.note(&format!("standing answer {id} counts no more"));
        done(printer);
        return Ok(ExitCode::SUCCESS);
    }
    let Reply::Grants { grants } = link.request(Command::Grants).await? else {
        return Err(unexpected());
    };
    for grant in &grants {
        if printer.is_json() {
            printer.json(grant);
            continue;
        }
        let back = grant
            .revoked_ms
            .map_or_else(String::new, |ms| format!(", revoked {}", clock(ms)));
        printer.line(&format!(
            "{:>5}  {}  (in the {}, {}, used {} times{back})",
            grant.id,
            grant.words,
            grant.by,
            clock(grant.issued_ms),
            grant.uses
        ));
    }
    if grants.is_empty() && !printer.is_json() {
        printer.note("no standing answer; `always` to an approval gives one");
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyVerb {
    /// Set how a system call is answered; without a scope, everywhere.
    Set {
        /// The system call, such as fs.write.
        action: String,
        /// How it is answered.
        #[arg(value_enum)]
        rule: Rule,
        #[command(flatten)]
        scope: Scope,
    },
}

/// How a system call that needs a yes is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rule {
    /// Yes, without asking.
    AlwaysAllow,
    /// No, without asking.
    AlwaysDeny,
    /// You are asked each time.
    AskEachTime,
    /// Yes to the next one, without asking.
    AllowOnce,
}

/// Where a policy counts: all that is given must hold.
#[derive(Debug, clap::Args)]
pub(crate) struct Scope {
    /// In this workspace.
    #[arg(long, value_name = "DIR")]
    within: Option<PathBuf>,
    /// In this folder of the workspace, and below it.
    #[arg(
        long,
        value_name = "FOLDER",
        requires = "within",
        conflicts_with = "path"
    )]
    folder: Option<String>,
    /// At this path of the workspace.
    #[arg(long, value_name = "PATH", requires = "within")]
    path: Option<String>,
    /// For processes of this image.
    #[arg(long, value_name = "NAME")]
    image: Option<String>,
    /// In this run.
    #[arg(long, value_parser = number())]
    run: Option<u64>,
    /// For this process.
    #[arg(long, value_parser = number())]
    pid: Option<u64>,
}

impl Scope {
    fn view(self) -> Result<PolicyScope, Problem> {
        let Self {
            within,
            folder,
            path,
            image,
            run,
            pid,
        } = self;
        Ok(PolicyScope {
            workspace: within.map(|folder| absolute(Some(folder))).transpose()?,
            path,
            folder,
            image,
            run,
            pid,
        })
    }
}

pub(crate) async fn policy(link: &mut Link, verb: Option<PolicyVerb>, printer: &Printer) -> Ended {
    let command = match verb {
        None => Command::Policies,
        Some(PolicyVerb::Set {
            action,
            rule,
            scope,
        }) => Command::SetPolicy(PolicyChange {
            action,
            scope: scope.view()?,
            rule: match rule {
                Rule::AlwaysAllow => PolicyRule::AlwaysAllow,
                Rule::AlwaysDeny => PolicyRule::AlwaysDeny,
                Rule::AskEachTime => PolicyRule::AskEachTime,
                Rule::AllowOnce => PolicyRule::AllowOnce,
            },
        }),
    };
    let Reply::Policies { policies } = link.request(command).await? else {
        return Err(unexpected());
    };
    for policy in &policies {
        if printer.is_json() {
            printer.json(policy);
        } else {
            printer.line(&format!(
                "{:>5}  {:<14} {}  (in the {}, {})",
                policy.id,
                policy.action,
                policy.words,
                policy.by,
                clock(policy.set_ms)
            ));
        }
    }
    if policies.is_empty() && !printer.is_json() {
        printer.note("no policy is set: what cannot be mended is asked about each time");
    }
    Ok(ExitCode::SUCCESS)
}
