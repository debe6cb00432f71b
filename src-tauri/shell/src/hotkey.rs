//! The global hotkey.

use std::sync::{Mutex, PoisonError};

use global_hotkey::hotkey::{HotKey, Modifiers};
use global_hotkey::{Error, GlobalHotKeyEvent, GlobalHotKeyManager, HotKeyState};
use steward_host::Problem;
use steward_host::surface::{Check, CheckState};

use crate::display::Session;

/// Where a person binds a key by hand.
const BY_HAND: &str = "bind `steward --toggle` to a key in the system's keyboard settings";

/// The hotkey that is taken now, if one is.
pub(crate) struct Hotkey {
    /// Absent where programs cannot have hotkeys.
    manager: Option<GlobalHotKeyManager>,
    bound: Mutex<Bound>,
}

/// What came of the last try.
struct Bound {
    key: Option<HotKey>,
    outcome: Result<String, Problem>,
}

impl Hotkey {
    /// Gets ready to take a hotkey; `pressed` is called, on another thread, each time it is.
    pub(crate) fn new(session: Session, pressed: impl Fn() + Send + Sync + 'static) -> Self {
        let manager = match session {
            Session::X11 => GlobalHotKeyManager::new().ok(),
            Session::Wayland => None,
        };
        GlobalHotKeyEvent::set_event_handler(Some(move |event: GlobalHotKeyEvent| {
            if event.state == HotKeyState::Pressed {
                pressed();
            }
        }));
        Self {
            manager,
            bound: Mutex::new(Bound {
                key: None,
                outcome: Err(not_yet()),
            }),
        }
    }

    /// Takes the hotkey written as `text` and lets go of the one before. Where it cannot be taken,
    /// the one before stays.
    ///
    /// Waits up to 50 ms for the thread that listens to the keyboard.
    ///
    /// # Errors
    /// A [`Problem`] where it is no hotkey, another program has it, or the session gives none.
    pub(crate) fn bind(&self, text: &str) -> Result<(), Problem> {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let result = self.exchange(bound.key, text);
        match &result {
            Ok(key) => {
                *bound = Bound {
                    key: Some(*key),
                    outcome: Ok(text.to_owned()),
                }
            }
            Err(problem) if bound.key.is_none() => bound.outcome = Err(problem.clone()),
            Err(_) => {}
        }
        result.map(|_| ())
    }

    /// How the hotkey stands, as a check of this machine.
    pub(crate) fn check(&self) -> Check {
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        match &bound.outcome {
            Ok(text) => Check {
                name: "hotkey".to_owned(),
                state: CheckState::Works,
                found: format!("`{text}` shows and hides the launcher"),
                hint: None,
            },
            Err(problem) => Check {
                name: "hotkey".to_owned(),
                state: CheckState::Limited,
                found: problem.message.clone(),
                hint: problem.hint.clone(),
            },
        }
    }

    fn exchange(&self, before: Option<HotKey>, text: &str) -> Result<HotKey, Problem> {
        let key = parse(text)?;
        let manager = self.manager.as_ref().ok_or_else(not_here)?;
        if before == Some(key) {
            return Ok(key);
        }
        // In this order, because the crate sends the first to the X server only with the second.
        if let Some(before) = before {
            manager
                .unregister(before)
                .map_err(|error| refused(text, &error))?;
        }
        let taken = manager.register(key).map_err(|error| refused(text, &error));
        if let (Err(_), Some(before)) = (&taken, before)
            && let Err(error) = manager.register(before)
        {
            eprintln!("steward-desktop: the old hotkey could not be taken again: {error}");
        }
        taken.map(|()| key)
    }
}

/// Reads a hotkey such as `Ctrl+Shift+Space`.
fn parse(text: &str) -> Result<HotKey, Problem> {
    let key: HotKey = text.parse().map_err(|_| Problem {
        code: "invalid".to_owned(),
        message: format!("`{}` is not a hotkey", text.escape_debug()),
        hint: Some("write modifiers and one key, such as `Ctrl+Shift+Space`".to_owned()),
    })?;
    // A hotkey is taken from every program: one that is also a letter would make typing impossible.
    if (key.mods - Modifiers::SHIFT).is_empty() {
        return Err(Problem {
            code: "invalid".to_owned(),
            message: format!("`{text}` would take a key that is needed for typing"),
            hint: Some("add `Ctrl`, `Alt` or `Super`, such as `Ctrl+Shift+Space`".to_owned()),
        });
    }
    Ok(key)
}

fn refused(text: &str, error: &Error) -> Problem {
    match error {
        Error::AlreadyRegistered(_) => Problem {
            code: "taken".to_owned(),
            message: format!("the hotkey `{text}` is taken by another program"),
            hint: Some(format!("choose another one in Settings, or {BY_HAND}")),
        },
        error => Problem {
            code: "unsupported".to_owned(),
            message: format!("the hotkey `{text}` could not be set: {error}"),
            hint: Some(format!("choose another one in Settings, or {BY_HAND}")),
        },
    }
}

fn not_yet() -> Problem {
    Problem {
        code: "starting".to_owned(),
        message: "the hotkey is not set yet".to_owned(),
        hint: None,
    }
}

fn not_here() -> Problem {
    Problem {
        code: "unsupported".to_owned(),
        message: "a Wayland session gives programs no hotkey".to_owned(),
        hint: Some(BY_HAND.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]

    use super::*;

    #[test]
    fn a_hotkey_has_a_modifier_and_one_key() {
        let rows = [
            ("Ctrl+Shift+Space", None),
            ("Alt+F2", None),
            ("Super+K", None),
            ("ctrl + shift + j", None),
            ("", Some("is not a hotkey")),
            ("Ctrl+", Some("is not a hotkey")),
            ("Ctrl+A+B", Some("is not a hotkey")),
            ("Hyper\u{1b}[2J", Some("`Hyper\\u{1b}[2J` is not a hotkey")),
            ("Space", Some("needed for typing")),
            ("Shift+A", Some("needed for typing")),
        ];
        for (text, refusal) in rows {
            match (parse(text), refusal) {
                (Ok(_), None) => {}
                (Err(problem), Some(part)) => {
                    assert!(
                        problem.message.contains(part),
                        "{text}: {}",
                        problem.message
                    );
                    assert!(problem.hint.is_some(), "{text}: no hint");
                }
                (parsed, refusal) => panic!("{text}: {parsed:?}, not {refusal:?}"),
            }
        }
    }

    #[test]
    fn a_wayland_session_says_what_to_do_instead() {
        let hotkey = Hotkey::new(Session::Wayland, || {});
        let refusal = hotkey.bind("Ctrl+Shift+Space").err();
        assert_eq!(
            refusal.and_then(|problem| problem.hint).as_deref(),
            Some(BY_HAND)
        );
        assert_eq!(hotkey.check().state, CheckState::Limited);
    }
}
