//! The launcher: a line in front of everything, for one request and its answer.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gtk::prelude::*;
use gtk::{ApplicationWindow, gdk, glib};
use tauri::webview::PageLoadEvent;
use tauri::{AppHandle, Emitter, Manager, WebviewWindow};

use crate::front::{self, Area};
use crate::page;

/// The window's label, which its capability file names.
pub(crate) const LABEL: &str = "launcher";

const WIDTH: i32 = 680;
const LEAST_HEIGHT: i32 = 56;

/// A hotkey is heard at most 50 ms after it is pressed; a person who works elsewhere first takes
/// longer than this.
const HOTKEY_HEARD_WITHIN: Duration = Duration::from_millis(250);

#[derive(Default)]
struct Launcher {
    /// Whether it is meant to be seen. While it warms up it is mapped, but not shown.
    shown: AtomicBool,
    /// Whether its page has been loaded.
    loaded: AtomicBool,
    /// When it last lost the keyboard.
    left: Mutex<Option<Instant>>,
}

/// Makes the launcher, hidden; `loaded` is called once its page is there. It must be the first
/// window made: WebDriver binds to that one.
///
/// # Errors
/// Where the window cannot be made.
pub(crate) fn create(app: &AppHandle, loaded: fn(&AppHandle)) -> tauri::Result<()> {
    app.manage(Launcher::default());
    let window = page::builder(app, LABEL, "launcher.html")?
        .inner_size(f64::from(WIDTH), f64::from(LEAST_HEIGHT))
        .decorations(false)
        .transparent(true)
        .always_on_top(true)
        .visible_on_all_workspaces(true)
        .skip_taskbar(true)
        .focused(false)
        .on_page_load(move |window, load| {
            let app = window.app_handle();
            if load.event() == PageLoadEvent::Finished
                && !app.state::<Launcher>().loaded.swap(true, Ordering::Relaxed)
            {
                report(warm_up(&window));
                loaded(app);
            }
        })
        .build()?;
    let handle = app.clone();
    page::finish(&window, move || report(hide(&handle)))?;
    let handle = app.clone();
    window
        .gtk_window()?
        .connect_is_active_notify(move |window| {
            if !window.is_active() {
                let launcher = handle.state::<Launcher>();
                *launcher.left.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(Instant::now());
            }
        });
    resize(&window, LEAST_HEIGHT)
}

/// Shows the launcher where it is hidden or behind another window, hides it where it is in front.
/// May be called on any thread.
pub(crate) fn toggle(app: &AppHandle) {
    let on_main = app.clone();
    report(app.run_on_main_thread(move || {
        report(if is_in_front(&on_main) {
            hide(&on_main)
        } else {
            show(&on_main)
        });
    }));
}

/// Shows the launcher in the upper third of the monitor with the pointer. Main thread only.
///
/// # Errors
/// Where the window is gone.
pub(crate) fn show(app: &AppHandle) -> tauri::Result<()> {
    let window = gtk_window(app)?;
    app.state::<Launcher>().shown.store(true, Ordering::Relaxed);
    window.set_opacity(1.0);
    window.set_focus_on_map(true);
    if let Some(area) = front::area() {
        let (x, y) = place(area);
        window.move_(x, y);
    }
    front::show(&window);
    app.emit_to(LABEL, "launcher-shown", ())
}

/// Hides the launcher. Main thread only.
///
/// # Errors
/// Where the window is gone.
pub(crate) fn hide(app: &AppHandle) -> tauri::Result<()> {
    let window = gtk_window(app)?;
    app.state::<Launcher>()
        .shown
        .store(false, Ordering::Relaxed);
    window.hide();
    app.emit_to(LABEL, "launcher-hidden", ())
}

/// Gives the keyboard back to the launcher, where it is still shown. Main thread only.
///
/// # Errors
/// Where the window is gone.
pub(crate) fn come_back(app: &AppHandle) -> tauri::Result<()> {
    if app.state::<Launcher>().shown.load(Ordering::Relaxed) {
        front::show(&gtk_window(app)?);
    }
    Ok(())
}

/// Gives the launcher the height of its content, within the screen. Main thread only.
///
/// # Errors
/// Where the window is gone.
pub(crate) fn grow(app: &AppHandle, height: f64) -> tauri::Result<()> {
    let most = front::area().map_or(LEAST_HEIGHT, most_height);
    resize(&webview(app)?, fit(height, most))
}

/// Whether the launcher is shown and has the keyboard, or had it until the hotkey was pressed: the
/// X server takes the keyboard away from a window for as long as a hotkey is held. Main thread only.
pub(crate) fn is_in_front(app: &AppHandle) -> bool {
    let launcher = app.state::<Launcher>();
    let left = *launcher.left.lock().unwrap_or_else(PoisonError::into_inner);
    launcher.shown.load(Ordering::Relaxed)
        && (gtk_window(app).is_ok_and(|window| window.is_active())
            || left.is_some_and(|left| left.elapsed() < HOTKEY_HEARD_WITHIN))
}

/// The first show of a window costs a third of a second; later ones a few milliseconds. So the
/// first one happens here, unseen, and ends when the page has been painted.
fn warm_up(window: &WebviewWindow) -> tauri::Result<()> {
    let app = window.app_handle().clone();
    if app.state::<Launcher>().shown.load(Ordering::Relaxed) {
        return Ok(());
    }
    let top = window.clone();
    window.with_webview(move |webview| {
        let Ok(top) = top.gtk_window() else { return };
        let page = webview.inner();
        let watch = Rc::new(Cell::new(None));
        let own = Rc::clone(&watch);
        watch.set(Some(page.connect_draw(move |page, _| {
            if let Some(watch) = own.take() {
                page.disconnect(watch);
                let app = app.clone();
                glib::idle_add_local_once(move || end_warm_up(&app));
            }
            glib::Propagation::Proceed
        })));
        top.set_opacity(0.0);
        top.set_focus_on_map(false);
        top.show_all();
    })
}

fn end_warm_up(app: &AppHandle) {
    if !app.state::<Launcher>().shown.load(Ordering::Relaxed) {
        report(hide(app));
    }
}

/// Only the launcher itself changes its size. GTK would give a window that cannot be resized the
/// size of its page, which never shrinks again; one whose least size is its largest keeps to it.
fn resize(window: &WebviewWindow, height: i32) -> tauri::Result<()> {
    let top = window.gtk_window()?;
    let sides = gdk::Geometry::new(
        WIDTH,
        height,
        WIDTH,
        height,
        0,
        0,
        0,
        0,
        0.0,
        0.0,
        gdk::Gravity::NorthWest,
    );
    let given = gdk::WindowHints::MIN_SIZE | gdk::WindowHints::MAX_SIZE;
    top.set_geometry_hints(None::<&gtk::Widget>, Some(&sides), given);
    top.resize(WIDTH, height);
    Ok(())
}

fn place(area: Area) -> (i32, i32) {
    (area.x + (area.width - WIDTH) / 2, area.y + area.height / 5)
}

fn most_height(area: Area) -> i32 {
    area.height * 3 / 5
}

fn fit(height: f64, most: i32) -> i32 {
    // A page's number: `as` takes NaN to 0 and what is too large to the largest.
    (height.ceil() as i32).clamp(LEAST_HEIGHT, most.max(LEAST_HEIGHT))
}

fn webview(app: &AppHandle) -> tauri::Result<WebviewWindow> {
    app.get_webview_window(LABEL)
        .ok_or(tauri::Error::WindowNotFound)
}

fn gtk_window(app: &AppHandle) -> tauri::Result<ApplicationWindow> {
    webview(app)?.gtk_window()
}

fn report(result: tauri::Result<()>) {
    if let Err(e) = result {
        eprintln!("steward-desktop: the launcher could not be shown or hidden: {e}");
    }
}
