//! The desktop as a whole: windows, hotkey and tray around a running host.

use std::sync::Arc;

use steward_host::surface::Settings;
use steward_host::{Command, Host, Reply, Surface};
use tauri::{App, AppHandle, Manager, RunEvent};

use crate::args::Show;
use crate::display::Session;
use crate::export::Exporting;
use crate::hotkey::Hotkey;
use crate::words::Language;
use crate::{commands, dialog, export, launcher, notice, relay, tray, window};

/// What the commands work on.
pub(crate) struct Desktop {
    /// The kernel, in this program.
    pub(crate) host: Arc<Host>,
    /// The global hotkey.
    pub(crate) hotkey: Hotkey,
    /// The export of the journal that runs.
    pub(crate) exporting: Exporting,
}

/// Runs the desktop until the person quits it.
///
/// # Errors
/// Where the windows cannot be made.
pub(crate) fn run(show: Show, session: Session, host: Arc<Host>) -> tauri::Result<()> {
    let app = tauri::Builder::default()
        .invoke_handler(tauri::generate_handler![
            commands::request,
            commands::decide,
            commands::launcher_height,
            commands::launcher_hide,
            commands::open_main,
            commands::open_approval,
            commands::approval_close,
            export::export_journal,
            export::export_stop,
        ])
        .setup(move |app| Ok(set_up(app, show, session, host)?))
        .build(tauri::generate_context!())?;
    app.run(|_, event| {
        // Windows are hidden, never closed, so that without a code nobody asked to end.
        if let RunEvent::ExitRequested {
            code: None, api, ..
        } = event
        {
            api.prevent_exit();
        }
    });
    Ok(())
}

impl Desktop {
    /// Reads the settings and puts them on; what stands in the way is told.
    pub(crate) async fn read_settings(&self, app: &AppHandle) {
        match self.host.handle(Command::Settings, Surface::Window).await {
            Reply::Settings(settings) => {
                if let Err(problem) = self.hotkey.bind(&settings.hotkey) {
                    notice::warn(app, problem);
                }
                self.wear(app, &settings);
            }
            Reply::Error(problem) => notice::warn(app, problem),
            _ => {}
        }
    }

    /// Puts the settings on that show outside of the pages.
    pub(crate) fn wear(&self, app: &AppHandle, settings: &Settings) {
        let words = Language::of_setting(&settings.language).words();
        let on_main = app.clone();
        let labelled = app.run_on_main_thread(move || {
            if let Err(reason) = tray::label(&on_main, words) {
                eprintln!("steward-desktop: there is no tray icon: {reason}");
            }
        });
        if let Err(e) = labelled {
            eprintln!("steward-desktop: there is no tray icon: {e}");
        }
    }
}

fn set_up(app: &App, show: Show, session: Session, host: Arc<Host>) -> tauri::Result<()> {
    let handle = app.handle().clone();
    let hotkey = Hotkey::new(session, move || launcher::toggle(&handle));
    let handle = app.handle().clone();
    host.on_toggle(move || launcher::toggle(&handle));
    tauri::async_runtime::spawn(relay::run(app.handle().clone(), host.subscribe()));
    app.manage(Desktop {
        host,
        hotkey,
        exporting: Exporting::default(),
    });
    let app = app.handle();
    launcher::create(app, make_the_rest)?;
    match show {
        Show::Window => {
            window::create(app)?;
            window::open(app, None)
        }
        Show::Launcher => launcher::show(app),
        Show::Nothing => Ok(()),
    }
}

/// Makes the windows that are not seen at once: each starts a process, and the launcher's own page
/// comes before them.
fn make_the_rest(app: &AppHandle) {
    let made = dialog::create(app).and_then(|()| match app.get_webview_window(window::LABEL) {
        Some(_) => Ok(()),
        None => window::create(app),
    });
    if let Err(e) = made {
        eprintln!("steward-desktop: a window could not be made: {e}");
    }
    tauri::async_runtime::spawn(settle(app.clone()));
}

/// What the windows need not wait for.
async fn settle(app: AppHandle) {
    let desktop = app.state::<Desktop>();
    desktop.read_settings(&app).await;
    // What waited when Steward ended waits again.
    let waiting = desktop
        .host
        .handle(Command::Approvals, Surface::Window)
        .await;
    if let Reply::Approvals { approvals } = waiting
        && let Some(oldest) = approvals.first()
    {
        dialog::asked(&app, oldest.id);
    }
}
