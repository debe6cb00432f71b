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

use args::Start;

/// Exit status for a command line that makes no sense.
const USAGE: u8 = 2;
/// Exit status where there is no display to open a window on.
const NO_DISPLAY: u8 = 3;

/// Runs the desktop until the person quits it.
///
/// The exit status is 0 after a quit or where another instance took over, 1 where the desktop
/// could not start, 2 for a wrong command line and 3 where there is no display.
pub fn run() -> ExitCode {
    let start = match args::parse(std::env::args().skip(1)) {
        Ok(Start::Print(text)) => {
            println!("{text}");
            return ExitCode::SUCCESS;
        }
        Ok(Start::Show(show)) => show,
        Err(message) => {
            eprintln!("steward-desktop: {message}");
            return ExitCode::from(USAGE);
        }
    };
    let session = match display::open() {
        Ok(session) => session,
        Err(message) => {
            eprintln!("steward-desktop: {message}");
            return ExitCode::from(NO_DISPLAY);
        }
    };
    match app::run(start, session) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("steward-desktop: the desktop could not start: {e}");
            ExitCode::FAILURE
        }
    }
}
