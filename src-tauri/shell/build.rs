//! Checks that the pages are built, then lets Tauri embed what the shell needs.

use std::path::Path;
use std::process::ExitCode;

const PAGES: [&str; 3] = ["launcher.html", "index.html", "approval.html"];

/// Commands named here are checked against the capability files; all of them must be.
const COMMANDS: &[&str] = &[
    "request",
    "decide",
    "launcher_height",
    "launcher_hide",
    "open_main",
    "open_approval",
    "approval_close",
    "export_journal",
    "export_stop",
];

fn main() -> ExitCode {
    println!("cargo:rerun-if-changed=ui/dist");
    println!("cargo:rerun-if-changed=icons");
    println!("cargo:rerun-if-changed=src-tauri/shell/capabilities");
    let missing = PAGES
        .into_iter()
        .find(|page| !Path::new("ui/dist").join(page).is_file());
    if let Some(page) = missing {
        println!(
            "cargo:error=the web UI is not built: `ui/dist/{page}` is missing; run `npm --prefix \
             ui ci && npm --prefix ui run build`, or `./x setup`, which does it"
        );
        return ExitCode::FAILURE;
    }
    let attributes = tauri_build::Attributes::new()
        .capabilities_path_pattern("src-tauri/shell/capabilities/**/*")
        .app_manifest(tauri_build::AppManifest::new().commands(COMMANDS));
    match tauri_build::try_build(attributes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            println!("cargo:error={e:#}");
            ExitCode::FAILURE
        }
    }
}
