//! Native messages, for what must be told even where no page can be shown.

use gtk::gdk_pixbuf::{Colorspace, Pixbuf};
use gtk::glib;
use gtk::prelude::*;
use gtk::{ButtonsType, DialogFlags, MessageDialog, MessageType, Window};
use steward_host::Problem;
use tauri::AppHandle;
use tauri::image::Image;

use crate::front;
use crate::words::{Language, sentence};

static ICON: Image<'_> = tauri::include_image!("icons/128x128.png");

/// Tells a problem that Steward goes on with, on standard error and in a message that waits for
/// nobody. May be called on any thread.
pub(crate) fn warn(app: &AppHandle, problem: Problem) {
    eprintln!("steward-desktop: {}", sentence(&problem));
    let shown = app.run_on_main_thread(move || {
        let dialog = message(&problem, MessageType::Warning);
        dialog.connect_response(|dialog, _| dialog.hide());
        front::show(&dialog);
    });
    if let Err(e) = shown {
        eprintln!("steward-desktop: the message could not be shown: {e}");
    }
}

/// Tells a problem that Steward cannot go on with, and waits until the message is closed. Main
/// thread only, before there are windows.
pub(crate) fn fatal(problem: &Problem) {
    eprintln!("steward-desktop: {}", sentence(problem));
    message(problem, MessageType::Error).run();
}

fn message(problem: &Problem, kind: MessageType) -> MessageDialog {
    let dialog = MessageDialog::new(
        None::<&Window>,
        DialogFlags::empty(),
        kind,
        ButtonsType::Close,
        &capitalised(&problem.message),
    );
    dialog.set_title(Language::of_setting("system").words().name);
    dialog.set_secondary_text(problem.hint.as_deref().map(capitalised).as_deref());
    dialog.set_icon(icon().as_ref());
    dialog.set_keep_above(true);
    dialog
}

fn icon() -> Option<Pixbuf> {
    let (width, height) = (
        i32::try_from(ICON.width()).ok()?,
        i32::try_from(ICON.height()).ok()?,
    );
    let rgba = glib::Bytes::from_static(ICON.rgba());
    Some(Pixbuf::from_bytes(
        &rgba,
        Colorspace::Rgb,
        true,
        8,
        width,
        height,
        width * 4,
    ))
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
