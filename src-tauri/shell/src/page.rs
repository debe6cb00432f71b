//! What every window has in common: one of the program's own pages, and no way to any other.

use gtk::prelude::*;
use tauri::Manager;
use tauri::webview::{DownloadEvent, NewWindowResponse, PermissionResponse};
use tauri::{AppHandle, Url, WebviewUrl, WebviewWindow, WebviewWindowBuilder, WindowEvent, Wry};

/// Begins a hidden window that shows the page `file`.
///
/// # Errors
/// Where the system has no data folder.
pub(crate) fn builder<'a>(
    app: &'a AppHandle,
    label: &str,
    file: &str,
) -> tauri::Result<WebviewWindowBuilder<'a, Wry, AppHandle>> {
    Ok(
        WebviewWindowBuilder::new(app, label, WebviewUrl::App(file.into()))
            // Requests typed before are kept there: the data directory is closed to other users.
            .data_directory(app.path().data_dir()?.join("steward/webview"))
            .title(app.package_info().name.clone())
            .visible(false)
            .on_navigation(is_ours)
            .on_new_window(|_, _| NewWindowResponse::Deny)
            .on_download(|_, event| !matches!(event, DownloadEvent::Requested { .. }))
            .on_permission_request(|_, _| PermissionResponse::Deny)
            .on_document_title_changed(|window, title| {
                let _ = window.set_title(&title);
            }),
    )
}

/// Finishes a window: its role, by which window managers know it, is its label, and closing it
/// calls `hide` instead.
///
/// # Errors
/// Where the window is gone.
pub(crate) fn finish(
    window: &WebviewWindow,
    hide: impl Fn() + Send + 'static,
) -> tauri::Result<()> {
    let top = window.gtk_window()?;
    top.set_role(window.label());
    // It exists for the window manager from now on, so that the first show is not slower.
    top.realize();
    window.on_window_event(move |event| {
        if let WindowEvent::CloseRequested { api, .. } = event {
            api.prevent_close();
            hide();
        }
    });
    Ok(())
}

/// Whether an address is one of the program's own pages.
fn is_ours(url: &Url) -> bool {
    let embedded = url.scheme() == "tauri" && url.host_str() == Some("localhost");
    // Built without the embedded pages, they come from a running `vite dev`.
    let served = cfg!(dev) && url.origin().ascii_serialization() == "http://localhost:1420";
    embedded || served
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_embedded_pages_are_ours() {
        let rows = [
            ("tauri://localhost/launcher.html", true),
            ("tauri://localhost/index.html#chat", true),
            ("tauri://elsewhere/launcher.html", false),
            ("http://localhost/launcher.html", false),
            ("https://example.org/", false),
            ("file:///etc/passwd", false),
            ("data:text/html,x", false),
            ("about:blank", false),
        ];
        for (address, ours) in rows {
            assert_eq!(
                address.parse::<Url>().map(|url| is_ours(&url)),
                Ok(ours),
                "{address}"
            );
        }
    }
}
