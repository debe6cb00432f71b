//! Path strings from outside, checked before the operating system sees them.

use steward_kernel::{Code, SysError};

/// Bytes of one name, as Linux file systems have it.
const MAX_NAME: usize = 255;
/// Bytes of a whole path.
const MAX_PATH: usize = 4095;
/// Characters of a path that an error shows.
const MAX_SHOWN: usize = 200;

/// A path within a workspace: relative, without `.`, `..`, empty or over-long names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkspacePath(String);

impl WorkspacePath {
    /// Checks and normalises. The empty path and `.` are the workspace's root.
    pub(crate) fn parse(text: &str) -> Result<Self, SysError> {
        let invalid =
            |why: &str| SysError::new(Code::Invalid, format!("the path `{}` {why}", shown(text)));
        if text.contains('\0') {
            return Err(invalid("contains a NUL").hint("leave it out"));
        }
        if text.len() > MAX_PATH {
            return Err(
                invalid(&format!("is longer than {MAX_PATH} bytes")).hint("use a shorter path")
            );
        }
        let confined = |why: &str| {
            SysError::new(Code::Confined, format!("the path `{}` {why}", shown(text)))
                .hint("use a path relative to the workspace, without `..`")
        };
        if text.starts_with('/') {
            return Err(confined("is absolute"));
        }
        let mut names = Vec::new();
        for name in text.split('/') {
            match name {
                "" | "." => {}
                ".." => return Err(confined("leads upwards")),
                name if name.len() > MAX_NAME => {
                    return Err(invalid(&format!("has a name longer than {MAX_NAME} bytes"))
                        .hint("choose a shorter name"));
                }
                name => names.push(name),
            }
        }
        Ok(Self(names.join("/")))
    }

    /// [`WorkspacePath::parse`] for a path that a change names: not the root.
    pub(crate) fn parse_entry(text: &str) -> Result<Self, SysError> {
        let path = Self::parse(text)?;
        if path.is_root() {
            return Err(SysError::new(
                Code::Invalid,
                format!("the path `{}` names the workspace itself", shown(text)),
            )
            .hint("name a file or folder in it"));
        }
        Ok(path)
    }

    pub(crate) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Names joined by `/`; empty for the root.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// What to give the operating system.
    pub(crate) fn to_open(&self) -> &str {
        if self.is_root() { "." } else { &self.0 }
    }

    /// The folder's path and the name in it.
    pub(crate) fn split(&self) -> (&str, &str) {
        self.0.rsplit_once('/').unwrap_or(("", &self.0))
    }

    /// Whether `other` is this path or lies beneath it.
    pub(crate) fn holds(&self, other: &Self) -> bool {
        match other.0.strip_prefix(&self.0) {
            Some(rest) => self.is_root() || rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }

    /// For error messages: escaped and bounded.
    pub(crate) fn shown(&self) -> String {
        if self.is_root() {
            ".".to_owned()
        } else {
            shown(&self.0)
        }
    }
}

/// Text from outside for a message: what cannot be seen or would steer a terminal is escaped, and
/// it is cut after a bounded length.
pub(crate) fn shown(text: &str) -> String {
    let cut: String = text.chars().take(MAX_SHOWN).collect();
    let mut out = cut
        .escape_debug()
        .to_string()
        .replace("\\'", "'")
        .replace("\\\"", "\"");
    if cut.len() < text.len() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn paths_are_normalised_or_refused() {
        let long = "n".repeat(256);
        let longest = "n".repeat(255);
        let deep = "d/".repeat(2048);
        let rows: &[(&str, Result<&str, Code>)] = &[
            ("", Ok("")),
            (".", Ok("")),
            ("./", Ok("")),
            ("a", Ok("a")),
            ("a/", Ok("a")),
            ("./a//b/./c", Ok("a/b/c")),
            ("a\nb", Ok("a\nb")),
            ("…/笔记.md", Ok("…/笔记.md")),
            ("...", Ok("...")),
            (&longest, Ok(&longest)),
            (&long, Err(Code::Invalid)),
            (&deep, Err(Code::Invalid)),
            ("a\0b", Err(Code::Invalid)),
            ("/etc/passwd", Err(Code::Confined)),
            ("//a", Err(Code::Confined)),
            ("..", Err(Code::Confined)),
            ("../out/f", Err(Code::Confined)),
            ("d/../../x", Err(Code::Confined)),
            ("d/../x", Err(Code::Confined)),
        ];
        for (input, outcome) in rows {
            let got = WorkspacePath::parse(input);
            let got = got.as_ref().map(WorkspacePath::as_str).map_err(|e| e.code);
            assert_eq!(got, *outcome, "{input:?}");
        }
    }

    #[test]
    fn what_cannot_be_seen_is_shown_escaped() {
        let rows = [
            ("it's \"fine\"", "it's \"fine\""),
            ("笔记 é.md", "笔记 é.md"),
            ("a\nb\x1b[2J", "a\\nb\\u{1b}[2J"),
            ("\u{202e}gpj.exe", "\\u{202e}gpj.exe"),
            ("a\u{200b}b\u{e0041}", "a\\u{200b}b\\u{e0041}"),
            ("back\\slash", "back\\\\slash"),
        ];
        for (input, outcome) in rows {
            assert_eq!(shown(input), outcome);
        }
        assert_eq!(shown(&"x".repeat(300)).chars().count(), MAX_SHOWN + 1);
    }

    #[test]
    fn a_folder_holds_what_is_beneath_it() {
        let rows = [
            ("a", "a", true),
            ("a", "a/b", true),
            ("a", "ab", false),
            ("", "a", true),
            ("a/b", "a", false),
        ];
        for (folder, path, outcome) in rows {
            let folder = WorkspacePath::parse(folder).unwrap();
            let path = WorkspacePath::parse(path).unwrap();
            assert_eq!(folder.holds(&path), outcome, "{folder:?} {path:?}");
        }
    }
}
