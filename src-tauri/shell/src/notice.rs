//! Native messages, for what must be told even where no page can be shown.

use gtk::prelude::*;
use gtk::{ButtonsType, DialogFlags, MessageDialog, MessageType, Window};
use steward_host::Problem;
use tauri::AppHandle;

use crate::front;
use crate::words::{Language, sentence};

/// Tells a problem that Steward goes on with, on standard error and in a message that waits for
/// nobody. May be called on any thread.
pub(crate) fn warn(app: &AppHandle, problem: Problem) {
    tell(app, problem, MessageType::Warning, |_| {});
}

/// Tells a problem that Steward cannot go on with, and ends it once the message is closed. May be
/// called on any thread.
pub(crate) fn fatal(app: &AppHandle, problem: Problem) {
    tell(app, problem, MessageType::Error, |app| app.exit(1));
}

fn tell(app: &AppHandle, problem: Problem, kind: MessageType, closed: fn(&AppHandle)) {
    eprintln!("steward-desktop: {}", sentence(&problem));
    let on_main = app.clone();
    let shown = app.run_on_main_thread(move || {
        let dialog = MessageDialog::new(
            None::<&Window>,
            DialogFlags::empty(),
            kind,
            ButtonsType::Close,
            &capitalised(&problem.message),
        );
        dialog.set_title(Language::of_setting("system").words().name);
        dialog.set_secondary_text(problem.hint.as_deref().map(capitalised).as_deref());
        dialog.connect_response(move |dialog, _| {
            dialog.hide();
            closed(&on_main);
        });
        dialog.set_keep_above(true);
        front::show(&dialog);
    });
    if let Err(e) = shown {
        eprintln!("steward-desktop: the message could not be shown: {e}");
        closed(app);
    }
}

/// Errors are written in lower case; in a message they stand alone, as sentences.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_reads_as_a_sentence() {
        for (text, sentence) in [
            ("the disk is full", "The disk is full."),
            ("`/x` is not readable", "`/x` is not readable."),
            ("", ""),
        ] {
            assert_eq!(capitalised(text), sentence);
        }
    }
}
