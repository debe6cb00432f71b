//! The words the shell itself shows: the tray's menu and native messages. Pages have their own.

use std::env;

use steward_host::Problem;

/// A language of the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// English.
    English,
    /// Chinese.
    Chinese,
}

/// One language's words.
#[derive(Debug)]
pub(crate) struct Words {
    /// The program's name.
    pub(crate) name: &'static str,
    /// Menu: opens the main window.
    pub(crate) open: &'static str,
    /// Menu: shows the launcher.
    pub(crate) launcher: &'static str,
    /// Menu: ends Steward.
    pub(crate) quit: &'static str,
}

const ENGLISH: Words = Words {
    name: "Steward",
    open: "Open Steward",
    launcher: "Show the launcher",
    quit: "Quit Steward",
};

const CHINESE: Words = Words {
    name: "管家",
    open: "打开管家",
    launcher: "显示启动器",
    quit: "退出管家",
};

impl Language {
    /// The language of a settings value: `en`, `zh`, or anything else for the system's.
    pub(crate) fn of_setting(value: &str) -> Self {
        match value {
            "en" => Self::English,
            "zh" => Self::Chinese,
            _ => Self::of_locale(|name| env::var(name).ok()),
        }
    }

    /// The language of the locale's variables, in the order POSIX gives them.
    fn of_locale(variable: impl Fn(&str) -> Option<String>) -> Self {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"]
            .into_iter()
            .filter_map(variable)
            .find(|value| !value.is_empty())
            .unwrap_or_default();
        if locale.starts_with("zh") {
            Self::Chinese
        } else {
            Self::English
        }
    }

    /// Its words.
    pub(crate) fn words(self) -> &'static Words {
        match self {
            Self::English => &ENGLISH,
            Self::Chinese => &CHINESE,
        }
    }
}

/// A problem as one sentence, for a terminal or a native message.
pub(crate) fn sentence(problem: &Problem) -> String {
    match &problem.hint {
        Some(hint) => format!("{}; {hint}", problem.message),
        None => problem.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_is_read_in_posix_order() {
        let rows: [(&[(&str, &str)], Language); 5] = [
            (&[], Language::English),
            (&[("LANG", "zh_CN.UTF-8")], Language::Chinese),
            (
                &[("LC_ALL", "C.UTF-8"), ("LANG", "zh_CN.UTF-8")],
                Language::English,
            ),
            (
                &[("LC_ALL", ""), ("LC_MESSAGES", "zh_TW"), ("LANG", "C")],
                Language::Chinese,
            ),
            (&[("LANG", "en_GB.UTF-8")], Language::English),
        ];
        for (variables, language) in rows {
            let found = Language::of_locale(|name| {
                variables
                    .iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| (*value).to_owned())
            });
            assert_eq!(found, language, "{variables:?}");
        }
    }

    #[test]
    fn a_setting_overrides_the_locale() {
        assert_eq!(Language::of_setting("zh"), Language::Chinese);
        assert_eq!(Language::of_setting("en"), Language::English);
    }
}
