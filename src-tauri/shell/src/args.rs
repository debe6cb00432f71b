//! The command line.

/// What a command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Print this and end.
    Print(String),
    /// Run, beginning with this.
    Show(Show),
}

/// What is seen first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    /// The main window; where Steward runs already, the launcher instead.
    Window,
    /// The launcher.
    Launcher,
    /// Nothing but the tray: for a start together with the session.
    Nothing,
}

const HELP: &str = "\
Steward's desktop: press the hotkey, say what should be done.

Usage: steward-desktop [OPTION]

  --toggle     show or hide the launcher; bind this to a key where Steward cannot have a hotkey
  --hidden     start without a window
  --version    print the version
  --help       print this

A second start shows or hides the launcher of the one that runs.
Without a display, use the terminal: `steward ask \"…\"`.";

/// Reads the arguments after the program's name.
///
/// # Errors
/// A sentence for a person, where an argument is unknown or there is more than one.
pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Start, String> {
    let Some(first) = args.next() else {
        return Ok(Start::Show(Show::Window));
    };
    if let Some(extra) = args.next() {
        return Err(format!(
            "`{extra}` is one argument too many; see `steward-desktop --help`"
        ));
    }
    match first.as_str() {
        "--toggle" => Ok(Start::Show(Show::Launcher)),
        "--hidden" => Ok(Start::Show(Show::Nothing)),
        "--version" | "-V" => Ok(Start::Print(
            concat!("steward-desktop ", env!("CARGO_PKG_VERSION")).to_owned(),
        )),
        "--help" | "-h" => Ok(Start::Print(HELP.to_owned())),
        other => Err(format!(
            "`{other}` is not an option; see `steward-desktop --help`"
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]

    use super::*;

    #[test]
    fn a_command_line_says_what_is_seen_first() {
        let rows: [(&[&str], Result<Show, &str>); 6] = [
            (&[], Ok(Show::Window)),
            (&["--toggle"], Ok(Show::Launcher)),
            (&["--hidden"], Ok(Show::Nothing)),
            (&["--hiden"], Err("`--hiden`")),
            (&["notes.md"], Err("`notes.md`")),
            (
                &["--toggle", "--hidden"],
                Err("`--hidden` is one argument too many"),
            ),
        ];
        for (args, outcome) in rows {
            let parsed = parse(args.iter().map(|arg| (*arg).to_owned()));
            match (parsed, outcome) {
                (Ok(Start::Show(show)), Ok(expected)) => assert_eq!(show, expected, "{args:?}"),
                (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
                (parsed, outcome) => panic!("{args:?}: {parsed:?}, not {outcome:?}"),
            }
        }
    }

    #[test]
    fn help_and_version_are_printed() {
        for (arg, part) in [("--help", "Usage: "), ("-V", env!("CARGO_PKG_VERSION"))] {
            let parsed = parse([arg.to_owned()].into_iter());
            assert!(
                matches!(&parsed, Ok(Start::Print(text)) if text.contains(part)),
                "{parsed:?}"
            );
        }
    }
}
