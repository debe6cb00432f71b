//! The desktop as a whole: windows first, then the host behind them.

use std::sync::Arc;

use steward_host::surface::Settings;
use steward_host::{Command, Host, Problem, Reply, Surface};
use tauri::{App, AppHandle, Manager, RunEvent};
use tokio::sync::SetOnce;

use crate::args::{self, Show, Start};
use crate::display::Session;
use crate::hotkey::Hotkey;
use crate::words::Language;
use crate::{commands, dialog, launcher, notice, relay, tray, window};

/// What the commands work on.
pub(crate) struct Desktop {
    host: SetOnce<Result<Arc<Host>, Problem>>,
    /// The global hotkey.
    pub(crate) hotkey: Hotkey,
}

/// Runs the desktop until the person quits it.
///
/// # Errors
/// Where the windows cannot be made.
pub(crate) fn run(show: Show, session: Session) -> tauri::Result<()> {
    let app = tauri::Builder::default()
        .plugin(tauri_plugin_single_instance::init(|app, argv, _| {
            second_start(app, argv)
        }))
        .invoke_handler(tauri::generate_handler![
            commands::request,
            commands::decide,
            commands::launcher_height,
            commands::launcher_hide,
            commands::open_main,
            commands::open_approval,
            commands::approval_close,
        ])
        .setup(move |app| Ok(set_up(app, show, session)?))
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
    /// The host, once it is open.
    ///
    /// # Errors
    /// Why it could not be opened.
    pub(crate) async fn host(&self) -> Result<&Arc<Host>, Problem> {
        self.host.wait().await.as_ref().map_err(Clone::clone)
    }

    /// Reads the settings and puts them on; what stands in the way is told.
    pub(crate) async fn read_settings(&self, app: &AppHandle, host: &Host) {
        match host.handle(Command::Settings, Surface::Window).await {
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

fn set_up(app: &App, show: Show, session: Session) -> tauri::Result<()> {
    let handle = app.handle().clone();
    let hotkey = Hotkey::new(session, move || launcher::toggle(&handle));
    app.manage(Desktop {
        host: SetOnce::new(),
        hotkey,
    });
    launcher::create(app)?;
    dialog::create(app)?;
    window::create(app)?;
    match show {
        Show::Window => window::open(app.handle(), None)?,
        Show::Launcher => launcher::show(app.handle())?,
        Show::Nothing => {}
    }
    tauri::async_runtime::spawn(open_host(app.handle().clone()));
    Ok(())
}

/// Opens the host while the pages load. Their requests wait for it.
async fn open_host(app: AppHandle) {
    let desktop = app.state::<Desktop>();
    let opened = Host::open().await;
    let result = opened.clone();
    if desktop.host.set(opened).is_err() {
        return;
    }
    match result {
        Ok(host) => serve(&app, &desktop, &host).await,
        Err(problem) => notice::fatal(&app, problem),
    }
}

async fn serve(app: &AppHandle, desktop: &Desktop, host: &Arc<Host>) {
    tauri::async_runtime::spawn(relay::run(app.clone(), host.subscribe()));
    let on_toggle = app.clone();
    host.on_toggle(move || launcher::toggle(&on_toggle));
    desktop.read_settings(app, host).await;
    // What waited when Steward ended waits again.
    let waiting = host.handle(Command::Approvals, Surface::Window).await;
    if let Reply::Approvals { approvals } = waiting
        && let Some(oldest) = approvals.first()
    {
        dialog::asked(app, oldest.id);
    }
}

fn second_start(app: &AppHandle, argv: Vec<String>) {
    match args::parse(argv.into_iter().skip(1)) {
        Ok(Start::Show(Show::Window | Show::Launcher)) => launcher::toggle(app),
        Ok(Start::Show(Show::Nothing) | Start::Print(_)) | Err(_) => {}
    }
}
