//! What the person is told, in the language they asked in.

use steward_kernel::{Code, SysError};

/// The language of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// English.
    English,
    /// Chinese.
    Chinese,
}

impl Language {
    /// The language a request is written in.
    pub fn of(request: &str) -> Self {
        if crate::request::is_chinese(request) {
            Language::Chinese
        } else {
            Language::English
        }
    }

    /// The one of two wordings that is in this language.
    pub fn say(self, english: impl Into<String>, chinese: impl Into<String>) -> String {
        match self {
            Language::English => english.into(),
            Language::Chinese => chinese.into(),
        }
    }

    /// A path as it is shown, the workspace's root by its name.
    pub(crate) fn folder(self, path: &str) -> String {
        if path.is_empty() || path == "." {
            self.say("this folder", "这个文件夹")
        } else {
            format!("{path}/")
        }
    }

    pub(crate) fn bytes(self, bytes: u64) -> String {
        self.say(
            if bytes == 1 {
                "1 byte".to_owned()
            } else {
                format!("{bytes} bytes")
            },
            format!("{bytes} 字节"),
        )
    }

    /// Why something was not done, from an error that is not the person's refusal.
    pub(crate) fn failure(self, error: &SysError, close: &[&str]) -> String {
        let mut text = match error.code {
            Code::Confined => self.say(
                format!(
                    "I can't do that: {}. I only reach files inside this workspace.",
                    error.message
                ),
                format!(
                    "这个做不到：{}。我只能使用这个工作区里的文件。",
                    error.message
                ),
            ),
            _ => self.say(
                format!("That did not work: {}.", error.message),
                format!("没有成功：{}。", error.message),
            ),
        };
        if !close.is_empty() {
            let names = close
                .iter()
                .map(|n| format!("`{n}`"))
                .collect::<Vec<_>>()
                .join(", ");
            text.push_str(&self.say(
                format!(" Close to it: {names}."),
                format!("名字相近的有：{names}。"),
            ));
        } else if let Some(hint) = &error.hint {
            text.push_str(&self.say(format!(" Next: {hint}."), format!("下一步：{hint}。")));
        }
        text
    }

    /// The person said no.
    pub(crate) fn refused(self, what: &str) -> String {
        self.say(
            format!("Left as it was: you said no to “{what}”, so nothing was changed by it."),
            format!("保持原样：您没有同意“{what}”，所以没有做任何改动。"),
        )
    }
}
