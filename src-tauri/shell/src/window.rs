//! The main window: chat, agents, approvals, journal and settings.

use tauri::{AppHandle, Emitter, Manager, WebviewWindow};

use gtk::prelude::*;

use crate::{front, page};

/// The window's label, which its capability file names.
pub(crate) const LABEL: &str = "main";

/// Makes the window, hidden. Closing it hides it: Steward goes on in the tray.
///
/// # Errors
/// Where the window cannot be made.
pub(crate) fn create(app: &AppHandle) -> tauri::Result<()> {
    let window = page::builder(app, LABEL, "index.html")?
        .inner_size(1080.0, 720.0)
        .min_inner_size(640.0, 420.0)
        .center()
        .build()?;
    let own = window.clone();
    page::finish(&window, move || report(own.hide()))
}

/// Brings the window to the front, at one process where one is named. Main thread only.
///
/// # Errors
/// Where the window is gone.
pub(crate) fn open(app: &AppHandle, pid: Option<u64>) -> tauri::Result<()> {
    let window: WebviewWindow = app
        .get_webview_window(LABEL)
        .ok_or(tauri::Error::WindowNotFound)?;
    let top = window.gtk_window()?;
    top.deiconify();
    front::show(&top);
    app.emit_to(LABEL, "main-open", serde_json::json!({ "pid": pid }))
}

fn report(result: tauri::Result<()>) {
    if let Err(e) = result {
        eprintln!("steward-desktop: the window could not be hidden: {e}");
    }
}
