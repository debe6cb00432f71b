//! The tray icon and its menu.

use std::panic::{self, AssertUnwindSafe};

use tauri::image::Image;
use tauri::menu::{Menu, MenuBuilder, MenuEvent, MenuItemBuilder};
use tauri::tray::TrayIconBuilder;
use tauri::{AppHandle, Wry};

use crate::words::Words;
use crate::{launcher, window};

const ICON: Image<'_> = tauri::include_image!("icons/tray.png");
const ID: &str = "steward";
const OPEN: &str = "open";
const LAUNCHER: &str = "launcher";
const QUIT: &str = "quit";

/// Puts the icon into the tray, or gives the one that is there other words. Main thread only.
///
/// # Errors
/// Where the system's indicator library is missing or refuses. Steward works without a tray.
pub(crate) fn label(app: &AppHandle, words: &Words) -> Result<(), String> {
    let menu = menu(app, words).map_err(|e| e.to_string())?;
    if let Some(tray) = app.tray_by_id(ID) {
        return tray.set_menu(Some(menu)).map_err(|e| e.to_string());
    }
    let tray = TrayIconBuilder::with_id(ID)
        .icon(ICON)
        .menu(&menu)
        .on_menu_event(chosen);
    // The tray's library is opened only now, and its loader panics where it is not installed.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let built = panic::catch_unwind(AssertUnwindSafe(|| tray.build(app)));
    panic::set_hook(hook);
    match built {
        Ok(built) => built.map(|_| ()).map_err(|e| e.to_string()),
        Err(_) => Err("install `libayatana-appindicator3-1` to have one".to_owned()),
    }
}

fn menu(app: &AppHandle, words: &Words) -> tauri::Result<Menu<Wry>> {
    let item = |id, text| MenuItemBuilder::with_id(id, text).build(app);
    MenuBuilder::new(app)
        .item(&item(OPEN, words.open)?)
        .item(&item(LAUNCHER, words.launcher)?)
        .separator()
        .item(&item(QUIT, words.quit)?)
        .build()
}

fn chosen(app: &AppHandle, event: MenuEvent) {
    let result = match event.id().as_ref() {
        OPEN => window::open(app, None),
        LAUNCHER => launcher::show(app),
        QUIT => {
            app.exit(0);
            Ok(())
        }
        _ => Ok(()),
    };
    if let Err(e) = result {
        eprintln!("steward-desktop: the tray's menu could not do that: {e}");
    }
}
