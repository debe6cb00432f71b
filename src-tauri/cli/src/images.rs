//! `steward images`: what processes are started from.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use steward_host::surface::{ImageDetail, ImageSource, ImageView};
use steward_host::{Command, Problem, Reply};

use crate::Ended;
use crate::ask::{absolute, unexpected};
use crate::link::Link;
use crate::print::Printer;

/// Bytes of standard input that are read at most; the kernel refuses less than that.
const INPUT_MOST: u64 = 1024 * 1024;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List them.
    List,
    /// Show one with its definition.
    Show {
        /// Its name.
        name: String,
    },
    /// Register one from a YAML file.
    Register {
        /// The file; `-` reads standard input.
        file: PathBuf,
    },
    /// Print the JSON schema of such files.
    Schema,
}

pub(crate) async fn run(link: &mut Link, verb: Option<Verb>, printer: &Printer) -> Ended {
    match verb.unwrap_or(Verb::List) {
        Verb::List => list(link, printer).await,
        Verb::Show { name } => show(link, Command::Image { name }, printer).await,
        Verb::Register { file } => {
            let source = source(file)?;
            show(link, Command::RegisterImage { source }, printer).await
        }
        Verb::Schema => {
            let Reply::ImageSchema { schema } = link.request(Command::ImageSchema).await? else {
                return Err(unexpected());
            };
            printer.line(&schema);
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn list(link: &mut Link, printer: &Printer) -> Ended {
    let Reply::Images { images } = link.request(Command::Images).await? else {
        return Err(unexpected());
    };
    for image in &images {
        if printer.is_json() {
            printer.json(image);
        } else {
            printer.line(&row(image));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(image: &ImageView) -> String {
    let by = if image.built_in {
        String::new()
    } else {
        format!("  (by {})", image.by)
    };
    format!(
        "{:<12} version {}  {}{by}",
        image.name, image.version, image.about
    )
}

async fn show(link: &mut Link, command: Command, printer: &Printer) -> Ended {
    let Reply::Image(detail) = link.request(command).await? else {
        return Err(unexpected());
    };
    if printer.is_json() {
        printer.json(&detail);
        return Ok(ExitCode::SUCCESS);
    }
    let ImageDetail { image, yaml } = detail;
    printer.line(&row(&image));
    printer.line(&format!("  sha256 {}\n\n{yaml}", image.digest));
    Ok(ExitCode::SUCCESS)
}

/// Where a definition is read from. A file is opened by the kernel's provider of files.
fn source(file: PathBuf) -> Result<ImageSource, Problem> {
    if file.as_os_str() != "-" {
        return absolute(Some(file)).map(ImageSource::File);
    }
    let mut yaml = String::new();
    let mut input = std::io::stdin().lock().take(INPUT_MOST);
    input.read_to_string(&mut yaml).map_err(|e| {
        Problem::new("invalid", format!("cannot read standard input: {e}"))
            .hint("give it YAML in UTF-8")
    })?;
    Ok(ImageSource::Yaml(yaml))
}
