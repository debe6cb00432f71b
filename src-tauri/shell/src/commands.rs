//! The commands that pages may call; which page may call which is in the capability files.

use steward_host::surface::{Decide, SettingsChange};
use steward_host::{Command, Problem, Reply, Surface};
use tauri::{AppHandle, State, WebviewWindow};

use crate::app::Desktop;
use crate::{dialog, launcher, window};

/// Anything but a decision.
#[tauri::command]
pub(crate) async fn request(
    app: AppHandle,
    desktop: State<'_, Desktop>,
    command: Command,
) -> Result<Reply, Problem> {
    match command {
        Command::Decide(_) => Err(not_by_request(
            "decide",
            "an answer is given in the approval dialog",
        )),
        Command::Watch => Err(not_by_request("watch", "listen to `host-event` instead")),
        Command::ChangeSettings(change) => change_settings(&app, &desktop, change).await,
        Command::Doctor => {
            let mut reply = desktop.host.handle(Command::Doctor, Surface::Window).await;
            if let Reply::Doctor { checks } = &mut reply {
                checks.retain(|check| check.name != "hotkey");
                checks.push(desktop.hotkey.check());
            }
            Ok(reply)
        }
        command => Ok(desktop.host.handle(command, Surface::Window).await),
    }
}

/// The person's answer to one approval. Only the approval window speaks for the person.
#[tauri::command]
pub(crate) async fn decide(
    caller: WebviewWindow,
    desktop: State<'_, Desktop>,
    decision: Decide,
) -> Result<Reply, Problem> {
    if caller.label() != dialog::LABEL {
        return Err(not_by_request(
            "decide",
            "an answer is given in the approval dialog",
        ));
    }
    Ok(desktop
        .host
        .handle(Command::Decide(decision), Surface::Dialog)
        .await)
}

/// The launcher's content has this height, in logical pixels.
#[tauri::command]
pub(crate) fn launcher_height(app: AppHandle, height: f64) -> Result<(), Problem> {
    launcher::grow(&app, height).map_err(|e| shell(&e))
}

/// Hides the launcher.
#[tauri::command]
pub(crate) fn launcher_hide(app: AppHandle) -> Result<(), Problem> {
    launcher::hide(&app).map_err(|e| shell(&e))
}

/// Opens the main window, at a process where one is named.
#[tauri::command]
pub(crate) fn open_main(app: AppHandle, pid: Option<u64>) -> Result<(), Problem> {
    window::open(&app, pid).map_err(|e| shell(&e))
}

/// Opens the approval dialog, at an approval where one is named.
#[tauri::command]
pub(crate) fn open_approval(app: AppHandle, id: Option<u64>) -> Result<(), Problem> {
    dialog::open(&app, id).map_err(|e| shell(&e))
}

/// Hides the approval dialog. What waits goes on waiting.
#[tauri::command]
pub(crate) fn approval_close(app: AppHandle) -> Result<(), Problem> {
    dialog::hide(&app).map_err(|e| shell(&e))
}

/// A hotkey that cannot be taken is not stored either.
async fn change_settings(
    app: &AppHandle,
    desktop: &Desktop,
    change: SettingsChange,
) -> Result<Reply, Problem> {
    if let Some(hotkey) = &change.hotkey {
        desktop.hotkey.bind(hotkey)?;
    }
    let reply = desktop
        .host
        .handle(Command::ChangeSettings(change), Surface::Window)
        .await;
    match &reply {
        Reply::Settings(settings) => desktop.wear(app, settings),
        // Not stored: what is stored counts again.
        _ => desktop.read_settings(app).await,
    }
    Ok(reply)
}

fn not_by_request(command: &str, hint: &str) -> Problem {
    Problem {
        code: "denied".to_owned(),
        message: format!("`{command}` is not for this window to ask"),
        hint: Some(hint.to_owned()),
    }
}

fn shell(error: &tauri::Error) -> Problem {
    Problem {
        code: "shell".to_owned(),
        message: error.to_string(),
        hint: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    #[test]
    fn only_the_approval_window_may_decide() -> Result<(), serde_json::Error> {
        let files = [
            (
                include_str!("../capabilities/launcher.json"),
                "launcher",
                false,
            ),
            (include_str!("../capabilities/main.json"), "main", false),
            (
                include_str!("../capabilities/approval.json"),
                "approval",
                true,
            ),
        ];
        for (text, window, decides) in files {
            let file: Value = serde_json::from_str(text)?;
            assert_eq!(file["windows"], serde_json::json!([window]));
            let granted = file["permissions"].as_array().into_iter().flatten();
            let found = granted
                .filter(|it| it.as_str() == Some("allow-decide"))
                .count();
            assert_eq!(found, usize::from(decides), "{window}");
        }
        Ok(())
    }
}
