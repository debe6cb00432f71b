//! `steward log`: what was done, whether it is told as it was written, and the same for other
//! programs.
#![allow(
    clippy::disallowed_methods,
    reason = "the file of an export, which whoever runs this names"
)]

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand, ValueEnum, value_parser};
use steward_host::audit::{Format, Span};
use steward_host::surface::{LogQuery, LogRow};
use steward_host::{Command, Paths, Problem, Reply};

use crate::Ended;
use crate::args::number;
use crate::ask::unexpected;
use crate::link::Link;
use crate::print::Printer;
use crate::show::clock;

/// Which rows to show, or what else to do with the journal.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct LogArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<LogVerb>,
    /// Only this process.
    #[arg(long, value_parser = number())]
    pid: Option<u64>,
    /// Only this run.
    #[arg(long, value_parser = number())]
    run: Option<u64>,
    /// Only what this capability covered.
    #[arg(long, value_parser = number())]
    capability: Option<u64>,
    /// Only this system call, such as `fs.write`; `fs.*` for all that begin so.
    #[arg(long)]
    call: Option<String>,
    /// Only what was done to this, such as a path, and to what is below it.
    #[arg(long)]
    resource: Option<String>,
    /// Only rows that were decided so.
    #[arg(long, value_enum)]
    decision: Option<Decision>,
    /// Only what this one decided, such as `terminal`.
    #[arg(long)]
    by: Option<String>,
    /// Only from this time on: `2026-12-01`, `2026-12-01T08:30:00Z`, or `2h` ago.
    #[arg(long, value_parser = moment)]
    since: Option<u64>,
    /// Only up to this time.
    #[arg(long, value_parser = moment)]
    until: Option<u64>,
    /// Only rows before this one, for the next page.
    #[arg(long, value_name = "ROW", value_parser = number())]
    before: Option<u64>,
    /// Only rows with this text.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Rows at most.
    #[arg(long, default_value_t = 100, value_parser = limit())]
    limit: u64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LogVerb {
    /// Check that no row was changed, put in or taken out; exit code 1 where one was.
    Verify,
    /// Write the journal out for other programs.
    Export {
        /// One row a line, or one trace of OpenTelemetry spans a line.
        #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
        format: ExportFormat,
        /// Only from this time on.
        #[arg(long, value_parser = moment)]
        since: Option<u64>,
        /// Only up to this time.
        #[arg(long, value_parser = moment)]
        until: Option<u64>,
        /// The file to write; the standard output where absent.
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// JSON lines.
    Jsonl,
    /// OTLP/JSON, with the names of the GenAI conventions.
    Otel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Decision {
    /// A right covered it.
    Allow,
    /// The person was asked.
    Ask,
    /// A right was missing.
    Deny,
    /// The person said yes.
    Yes,
    /// The person said no.
    No,
    /// Nobody answered in time.
    Expired,
}

impl Decision {
    fn word(self) -> &'static str {
        match self {
            Decision::Allow => "allow",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
            Decision::Yes => "yes",
            Decision::No => "no",
            Decision::Expired => "expired",
        }
    }
}

fn limit() -> RangedU64ValueParser {
    value_parser!(u64).range(1..=10_000)
}

/// A moment in Unix milliseconds: a date, a time, or how long ago.
fn moment(text: &str) -> Result<u64, String> {
    let now = jiff::Timestamp::now();
    let found = match ago(text) {
        Some(seconds) => now.as_second().checked_sub(seconds),
        None => text
            .parse::<jiff::Timestamp>()
            .ok()
            .or_else(|| format!("{text}T00:00:00Z").parse().ok())
            .map(|time| time.as_second()),
    };
    found
        .and_then(|seconds| u64::try_from(seconds).ok())
        .and_then(|seconds| seconds.checked_mul(1000))
        .ok_or_else(|| {
            format!("`{text}` is no time; write `2026-12-01`, `2026-12-01T08:30:00Z` or `2h`")
        })
}

/// Seconds of `45s`, `30m`, `2h`, `3d`.
fn ago(text: &str) -> Option<i64> {
    let unit = text.chars().last()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    let count: u32 = text.strip_suffix(unit)?.parse().ok()?;
    i64::from(count).checked_mul(seconds)
}

pub(crate) async fn show(link: &mut Link, args: LogArgs, printer: &Printer) -> Ended {
    let query = LogQuery {
        pid: args.pid,
        run: args.run,
        capability: args.capability,
        call: args.call,
        resource: args.resource.map(absolute),
        decision: args.decision.map(|decision| decision.word().to_owned()),
        by: args.by,
        since_ms: args.since,
        until_ms: args.until,
        before: args.before,
        text: args.search,
        limit: u32::try_from(args.limit).ok(),
    };
    let Reply::Log { rows } = link.request(Command::Log(query)).await? else {
        return Err(unexpected());
    };
    for row in rows.iter().rev() {
        if printer.is_json() {
            printer.json(row);
        } else {
            printer.line(&line(row));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A path as the journal has it; what begins otherwise is no path that this terminal knows of.
fn absolute(resource: String) -> String {
    if !resource.starts_with("./") && !resource.starts_with("../") && resource != "." {
        return resource;
    }
    std::path::absolute(&resource).map_or(resource, |path| path.to_string_lossy().into_owned())
}

fn line(row: &LogRow) -> String {
    let seq = row.seq.map_or(String::new(), |seq| format!(".{seq}"));
    let decided = match (&row.decision, &row.by) {
        (Some(decision), Some(by)) => format!("  [{decision} by {by}]"),
        (Some(decision), None) => format!("  [{decision}]"),
        _ => String::new(),
    };
    format!(
        "{}  {:>5}{seq:<4} {:<9} {:<14} {}{decided}",
        clock(row.at_ms),
        row.pid,
        row.kind,
        row.name,
        row.detail
    )
}

/// What needs no running kernel: the files tell it all.
pub(crate) fn without_kernel(verb: &LogVerb, printer: &Printer) -> Ended {
    let paths = Paths::from_env()?;
    match verb {
        LogVerb::Verify => verify(&paths, printer),
        LogVerb::Export {
            format,
            since,
            until,
            output,
        } => {
            let format = match format {
                ExportFormat::Jsonl => Format::Jsonl,
                ExportFormat::Otel => Format::Otel,
            };
            let span = Span {
                since_ms: *since,
                until_ms: *until,
            };
            export(&paths, format, span, output.as_ref(), printer)
        }
    }
}

fn verify(paths: &Paths, printer: &Printer) -> Ended {
    let found = steward_host::audit::verify(paths)?;
    if printer.is_json() {
        printer.json(&found);
    } else {
        for finding in &found.findings {
            printer.line(&format!("✗ {}", finding.words));
        }
        if found.left_out > 0 {
            printer.line(&format!("✗ … and {} more", found.left_out));
        }
        let (rows, signing) = (found.rows, found.signing());
        printer.line(&match found.whole {
            true => format!("✓ the journal is whole: {rows} rows, {signing}"),
            false => format!("✗ the journal is not whole: {rows} rows, {signing}"),
        });
    }
    Ok(ExitCode::from(u8::from(!found.whole)))
}

fn export(
    paths: &Paths,
    format: Format,
    span: Span,
    output: Option<&PathBuf>,
    printer: &Printer,
) -> Ended {
    let count = match output {
        None => {
            let mut out = std::io::BufWriter::new(std::io::stdout().lock());
            steward_host::audit::export(paths, format, span, &mut out)?
        }
        Some(file) => {
            let unwritten = |e: std::io::Error| {
                let shown = steward_host::escape_line(&file.to_string_lossy());
                Problem::new("unavailable", format!("cannot write `{shown}`: {e}"))
                    .hint("choose another file with --output")
            };
            let mut out = std::io::BufWriter::new(std::fs::File::create(file).map_err(unwritten)?);
            let count = steward_host::audit::export(paths, format, span, &mut out)?;
            out.flush().map_err(unwritten)?;
            count
        }
    };
    printer.note(&format!("{count} rows written"));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn a_moment_is_a_date_a_time_or_how_long_ago() {
        assert_eq!(moment("1970-01-02").unwrap(), 86_400_000);
        assert_eq!(moment("1970-01-01T00:01:00Z").unwrap(), 60_000);
        assert_eq!(moment("1970-01-01T01:00:00+01:00").unwrap(), 0);
        let now = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap();
        let hours = moment("2h").unwrap();
        assert!(now.abs_diff(hours + 7_200_000) < 60_000);
        for wrong in [
            "",
            "h",
            "yesterday",
            "2w",
            "-3h",
            "1960-01-01",
            "2026-13-01",
        ] {
            assert!(moment(wrong).unwrap_err().contains("is no time"), "{wrong}");
        }
    }

    #[test]
    fn only_what_is_written_as_a_path_here_is_made_absolute() {
        assert_eq!(absolute("the cores".to_owned()), "the cores");
        assert_eq!(absolute("/a/b".to_owned()), "/a/b");
        assert!(absolute("./a".to_owned()).starts_with('/'));
    }
}
