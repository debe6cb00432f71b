//! The approval dialog: always in front, opened by the kernel's question or by the person.
//!
//! Hiding it, by whatever way, answers nothing; only its page's `decide` does.

use std::sync::atomic::{AtomicBool, Ordering};

use gtk::gdk;
use gtk::prelude::*;
use tauri::{AppHandle, Emitter, Manager, WebviewWindow};

use crate::{front, launcher, page};

/// The window's label, which its capability file names.
pub(crate) const LABEL: &str = "approval";

const WIDTH: i32 = 680;
const HEIGHT: i32 = 520;

/// Whether the dialog came up over the launcher, which then gets the keyboard back. Window managers
/// give it to no window that is not in their taskbar.
#[derive(Default)]
struct OverLauncher(AtomicBool);

/// Makes the dialog, hidden.
///
/// # Errors
/// Where the window cannot be made.
pub(crate) fn create(app: &AppHandle) -> tauri::Result<()> {
    app.manage(OverLauncher::default());
    let window = page::builder(app, LABEL, "approval.html")?
        .inner_size(f64::from(WIDTH), f64::from(HEIGHT))
        .min_inner_size(480.0, 360.0)
        .always_on_top(true)
        .visible_on_all_workspaces(true)
        .skip_taskbar(true)
        .build()?;
    window
        .gtk_window()?
        .set_type_hint(gdk::WindowTypeHint::Dialog);
    let handle = app.clone();
    page::finish(&window, move || report(hide(&handle)))
}

/// A process asks. The dialog comes up; where it is up already, what the person reads there stays.
/// May be called on any thread.
pub(crate) fn asked(app: &AppHandle, id: u64) {
    let on_main = app.clone();
    report(app.run_on_main_thread(move || {
        // Before it is made, what waits is asked for once it is.
        if window(&on_main).is_err() {
            return;
        }
        let up = window(&on_main)
            .and_then(|it| it.gtk_window())
            .is_ok_and(|it| it.is_visible());
        if !up {
            report(open(&on_main, Some(id)));
        }
    }));
}

/// Brings the dialog to the front, at one approval or at the oldest. Main thread only.
///
/// # Errors
/// Where the window is gone.
pub(crate) fn open(app: &AppHandle, id: Option<u64>) -> tauri::Result<()> {
    let window = window(app)?.gtk_window()?;
    if !window.is_visible() {
        let over = launcher::is_in_front(app);
        app.state::<OverLauncher>().0.store(over, Ordering::Relaxed);
        if let Some(area) = front::area() {
            let (width, height) = window.size();
            window.move_(
                area.x + (area.width - width) / 2,
                area.y + (area.height - height) / 2,
            );
        }
    }
    app.emit_to(LABEL, "approval-open", serde_json::json!({ "id": id }))?;
    front::show(&window);
    Ok(())
}

/// Hides the dialog. Main thread only.
///
/// # Errors
/// Where the window is gone.
pub(crate) fn hide(app: &AppHandle) -> tauri::Result<()> {
    window(app)?.gtk_window()?.hide();
    if app.state::<OverLauncher>().0.swap(false, Ordering::Relaxed) {
        launcher::come_back(app)?;
    }
    Ok(())
}

fn window(app: &AppHandle) -> tauri::Result<WebviewWindow> {
    app.get_webview_window(LABEL)
        .ok_or(tauri::Error::WindowNotFound)
}

fn report(result: tauri::Result<()>) {
    if let Err(e) = result {
        eprintln!("steward-desktop: the approval dialog could not be shown or hidden: {e}");
    }
}
