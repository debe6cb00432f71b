//! Steward's desktop shell: windows, hotkey, tray, and the commands its pages may call.
//!
//! It decides nothing. Requests go to the host and come back; events go from the host to the
//! pages; what is written here is only when a window is seen and where. The one rule of its own is
//! who may speak for the person: `decide` is allowed to the approval window alone, by the
//! capability files beside this source and once more in the command.

mod app;
mod args;
mod commands;
mod dialog;
mod display;
mod export;
mod front;
mod hotkey;
mod launcher;
mod notice;
mod page;
mod relay;
mod tray;
mod window;
mod words;

use std::process::ExitCode;

use steward_host::{Attached, Client, Command, Problem, Reply, Resume};

use args::{Show, Start};

/// Exit status for a command line that makes no sense.
const USAGE: u8 = 2;
/// Exit status where there is no display to open a window on.
const NO_DISPLAY: u8 = 3;

/// Runs the desktop until the person quits it.
///
/// The exit status is 0 after a quit or where another instance took over, 1 where the desktop
/// could not start, 2 for a wrong command line and 3 where there is no display.
pub fn run() -> ExitCode {
    let show = match args::parse(std::env::args().skip(1)) {
        Ok(Start::Print(text)) => {
            println!("{text}");
            return ExitCode::SUCCESS;
        }
        Ok(Start::Show(show)) => show,
        Err(message) => return failed(&message, USAGE),
    };
    let session = match display::open() {
        Ok(session) => session,
        Err(message) => return failed(&message, NO_DISPLAY),
    };
    let result = match tauri::async_runtime::block_on(steward_host::attach(Resume::All)) {
        Ok(Attached::Own(host)) => app::run(show, session, host).map_err(|e| Problem {
            code: "unavailable".to_owned(),
            message: format!("the windows could not be made: {e}"),
            hint: None,
        }),
        Ok(Attached::Other(first)) => second(show, &first),
        Err(problem) => Err(problem),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            notice::fatal(&problem);
            ExitCode::FAILURE
        }
    }
}

/// A second start: the first one shows or hides its launcher.
fn second(show: Show, first: &Client) -> Result<(), Problem> {
    if show == Show::Nothing {
        return Ok(());
    }
    match tauri::async_runtime::block_on(first.request(&Command::Toggle)) {
        Reply::Error(_) => Err(Problem {
            code: "exists".to_owned(),
            message: "Steward runs already, in a terminal".to_owned(),
            hint: Some(
                "wait until it is done there or end it, then start the desktop again".to_owned(),
            ),
        }),
        _ => Ok(()),
    }
}

fn failed(message: &str, status: u8) -> ExitCode {
    eprintln!("steward-desktop: {message}");
    ExitCode::from(status)
}
