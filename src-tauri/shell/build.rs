//! Build script of the desktop shell.
fn main() {
    tauri_build::build();
}
