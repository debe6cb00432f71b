//! What works on this machine, and what to do about what does not.

use crate::host::{Attached, Host, Resume, attach};
use crate::models::{Chosen, fitness_of};
use crate::paths::Paths;
use crate::settings::Config;
use crate::surface::{Check, CheckState, Fit};

/// Checks that need no running kernel.
pub fn doctor(paths: &Paths) -> Vec<Check> {
    let config = Config::load(paths);
    let mut checks = vec![
        model(config.as_ref().ok()),
        data(paths),
        crate::witness::check(paths),
        display(),
        hotkey(),
        processor(),
    ];
    if let Err(problem) = config {
        let hint = problem.hint.as_deref().unwrap_or_default();
        checks.insert(
            0,
            check("settings", CheckState::Missing, problem.message, hint),
        );
    }
    checks
}

/// The checks of [`doctor`], and whether a kernel starts on the data directory or runs there already.
/// Nothing that had not ended runs on.
pub async fn diagnose(paths: &Paths) -> Vec<Check> {
    let mut checks = doctor(paths);
    let found = match attach(Resume::Nothing).await {
        Ok(Attached::Own(_)) => check("kernel", CheckState::Works, "the journal is whole", ""),
        Ok(Attached::Other(_)) => {
            let found = "another Steward runs and has the data directory";
            check("kernel", CheckState::Works, found, "")
        }
        Err(problem) => {
            let hint = problem.hint.unwrap_or_default();
            check("kernel", CheckState::Missing, problem.message, &hint)
        }
    };
    checks.push(found);
    checks
}

impl Host {
    pub(crate) fn checks(&self) -> Vec<Check> {
        doctor(self.paths())
    }
}

fn check(name: &str, state: CheckState, found: impl Into<String>, hint: &str) -> Check {
    let hint = (!hint.is_empty()).then(|| hint.to_owned());
    Check {
        name: name.to_owned(),
        state,
        found: found.into(),
        hint,
    }
}

fn model(config: Option<&Config>) -> Check {
    let chosen = crate::models::Models::from_env()
        .and_then(|models| models.chosen(config.unwrap_or(&Config::default())));
    match chosen {
        Ok(Chosen {
            name,
            file: Ok(path),
            ..
        }) => {
            let fits = fitness_of(&path);
            let shown = steward_kernel::escape::shown(&path.to_string_lossy());
            let found = format!("{name} at `{shown}`: {}", fits.why);
            match fits.fits {
                Fit::Fits => check("model", CheckState::Works, found, ""),
                Fit::Tight => {
                    let hint = "end other programs if the machine becomes slow";
                    check("model", CheckState::Limited, found, hint)
                }
                Fit::DoesNotFit | Fit::Unusable => {
                    let hint = "choose another one: `steward models use NAME`";
                    check("model", CheckState::Missing, found, hint)
                }
            }
        }
        Ok(Chosen {
            file: Err(problem), ..
        })
        | Err(problem) => {
            let hint = problem.hint.clone().unwrap_or_default();
            check("model", CheckState::Missing, problem.message, &hint)
        }
    }
}

fn data(paths: &Paths) -> Check {
    let shown = steward_kernel::escape::shown(&paths.data.to_string_lossy());
    let probe = paths.data.join(".doctor");
    let tried = crate::paths::make_private(&paths.data)
        .and_then(|()| std::fs::write(&probe, b"probe"))
        .and_then(|()| std::fs::remove_file(&probe));
    match tried {
        Ok(()) => check(
            "data",
            CheckState::Works,
            format!("`{shown}` can be written"),
            "",
        ),
        Err(e) => check(
            "data",
            CheckState::Missing,
            format!("`{shown}` cannot be written: {e}"),
            "make room or check who owns it, or set XDG_DATA_HOME to another folder",
        ),
    }
}

fn set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|v| !v.is_empty())
}

fn display() -> Check {
    if set("WAYLAND_DISPLAY") || set("DISPLAY") {
        return check("display", CheckState::Works, "there is a display", "");
    }
    check(
        "display",
        CheckState::Limited,
        "there is no display (neither DISPLAY nor WAYLAND_DISPLAY is set)",
        "use `steward` in the terminal, or start it in a desktop session",
    )
}

fn hotkey() -> Check {
    if set("WAYLAND_DISPLAY") {
        return check(
            "hotkey",
            CheckState::Limited,
            "under Wayland a program cannot take a key for itself",
            "bind a key to `steward --toggle` in your desktop's keyboard settings",
        );
    }
    if set("DISPLAY") {
        return check("hotkey", CheckState::Works, "X11: a key can be taken", "");
    }
    check("hotkey", CheckState::Limited, "there is no display", "")
}

fn processor() -> Check {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let fast = fast_kernels();
    let found = format!("{cores} cores, {}", if fast { "AVX2" } else { "no AVX2" });
    if fast {
        check("processor", CheckState::Works, found, "")
    } else {
        check(
            "processor",
            CheckState::Limited,
            found,
            "answers come slowly on this processor",
        )
    }
}

#[cfg(target_arch = "x86_64")]
fn fast_kernels() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}

#[cfg(not(target_arch = "x86_64"))]
fn fast_kernels() -> bool {
    false
}

/// Whether this session is a Wayland one, where no program can take a hotkey.
pub fn is_wayland() -> bool {
    set("WAYLAND_DISPLAY")
}

/// Whether there is a display at all.
pub fn has_display() -> bool {
    set("WAYLAND_DISPLAY") || set("DISPLAY")
}
