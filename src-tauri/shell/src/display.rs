//! Whether there is a display, and what kind of session it belongs to.

use std::env;

use gtk::gdk;
use gtk::prelude::*;

/// The kind of session, as far as the shell has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Session {
    /// An X11 session: a program may take a hotkey and place its windows.
    X11,
    /// A Wayland session: it may not.
    Wayland,
}

/// Opens the display.
///
/// # Errors
/// A sentence for a person, where there is none.
pub(crate) fn open() -> Result<Session, String> {
    gtk::init().map_err(|_| no_display())?;
    let wayland = gdk::Display::default().is_some_and(|display| display.backend().is_wayland());
    // Under XWayland a program sees only the keys of X11 windows, so a hotkey does not work there
    // either, although taking it succeeds.
    let within_wayland = env::var_os("WAYLAND_DISPLAY").is_some_and(|name| !name.is_empty())
        || env::var_os("XDG_SESSION_TYPE").is_some_and(|kind| kind == "wayland");
    Ok(if wayland || within_wayland {
        Session::Wayland
    } else {
        Session::X11
    })
}

fn no_display() -> String {
    let named = |name| env::var(name).ok().filter(|value| !value.is_empty());
    let found = match (named("WAYLAND_DISPLAY"), named("DISPLAY")) {
        (None, None) => "neither `WAYLAND_DISPLAY` nor `DISPLAY` is set".to_owned(),
        (Some(name), _) | (None, Some(name)) => format!("`{name}` does not answer"),
    };
    format!("there is no display: {found}; use the terminal instead: `steward ask \"…\"`")
}
