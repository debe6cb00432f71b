//! What constraints match: paths, argument vectors, hosts and methods. A pattern is checked when it
//! is made, so that a capability never holds one that cannot be read.

use std::borrow::Cow;
use std::fmt;

use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of one pattern at most.
pub const PATTERN_MOST: usize = 1024;

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoPattern(String);

impl fmt::Display for NoPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn refuse<T>(text: &str, why: &str) -> Result<T, NoPattern> {
    let shown: String = text.chars().take(64).collect();
    Err(NoPattern(format!(
        "`{}` {why}",
        crate::escape::shown(&shown)
    )))
}

fn bounded(text: &str) -> Result<(), NoPattern> {
    if text.is_empty() {
        return refuse(text, "is empty");
    }
    if text.len() > PATTERN_MOST {
        return refuse(text, &format!("is longer than {PATTERN_MOST} bytes"));
    }
    if text.contains('\0') {
        return refuse(text, "contains a NUL");
    }
    Ok(())
}

/// A pattern over paths of a workspace: `*` and `?` within one name, `**` over any, `[…]` and `{…}`.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct PathGlob {
    text: String,
    #[schemars(skip)]
    matcher: GlobMatcher,
}

/// Over everything.
const ALL: &str = "**";

impl PathGlob {
    /// Whether it covers a normal path (see [`normal_path`]).
    pub fn covers(&self, path: &str) -> bool {
        self.text == ALL || self.matcher.is_match(path)
    }

    /// Whether every path that this covers is provably covered by `other` too.
    pub fn within(&self, other: &Self) -> bool {
        if other.text == ALL || self.text == other.text {
            return true;
        }
        let literal = self.literal();
        if literal.len() == self.text.len() {
            return other.covers(literal);
        }
        // All that this covers begins with its literal part.
        match other.text.strip_suffix(ALL) {
            Some(folder) => {
                folder.ends_with('/')
                    && other.literal().len() == folder.len()
                    && literal.starts_with(folder)
            }
            None => false,
        }
    }

    /// The part before the first character that is not itself.
    fn literal(&self) -> &str {
        let end = self
            .text
            .find(['*', '?', '[', ']', '{', '}', '\\'])
            .unwrap_or(self.text.len());
        self.text.get(..end).unwrap_or_default()
    }
}

impl TryFrom<String> for PathGlob {
    type Error = NoPattern;

    fn try_from(text: String) -> Result<Self, NoPattern> {
        bounded(&text)?;
        if text.starts_with('/') {
            return refuse(&text, "is absolute; paths are within the workspace");
        }
        if text.split('/').any(|name| matches!(name, "" | "." | "..")) {
            return refuse(&text, "has an empty name, `.` or `..` in it");
        }
        let glob = GlobBuilder::new(&text)
            .literal_separator(true)
            .backslash_escape(true)
            .build();
        match glob {
            Ok(glob) => Ok(Self {
                matcher: glob.compile_matcher(),
                text,
            }),
            Err(error) => refuse(&text, &format!("is no pattern: {}", error.kind())),
        }
    }
}

impl From<PathGlob> for String {
    fn from(glob: PathGlob) -> Self {
        glob.text
    }
}

impl fmt::Debug for PathGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl fmt::Display for PathGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for PathGlob {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for PathGlob {}

/// A path of a workspace without empty names and `.`; nothing where it leads upwards or is absolute.
pub(crate) fn normal_path(path: &str) -> Option<Cow<'_, str>> {
    if path.starts_with('/') {
        return None;
    }
    let odd = |name: &str| matches!(name, "" | ".");
    let mut names = path.split('/');
    if names.clone().any(|name| name == "..") {
        return None;
    }
    if path.is_empty() || !names.any(odd) {
        return Some(Cow::Borrowed(path));
    }
    let kept: Vec<&str> = path.split('/').filter(|name| !odd(name)).collect();
    Some(Cow::Owned(kept.join("/")))
}

/// A pattern over argument vectors: the program in full, then one entry an argument, in which `*`
/// stands for any characters; a last `...` stands for any further arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct ArgvPattern(Vec<String>);

const REST: &str = "...";
const ARGUMENTS_MOST: usize = 64;

impl ArgvPattern {
    /// Whether it covers an argument vector.
    pub fn covers(&self, argv: &[String]) -> bool {
        let (fixed, open) = self.parts();
        let enough = match open {
            true => argv.len() >= fixed.len(),
            false => argv.len() == fixed.len(),
        };
        enough
            && fixed
                .iter()
                .zip(argv)
                .all(|(pattern, argument)| star_covers(pattern, argument))
    }

    /// Whether every argument vector that this covers is provably covered by `other` too.
    pub fn within(&self, other: &Self) -> bool {
        let ((mine, open), (theirs, theirs_open)) = (self.parts(), other.parts());
        let length = match theirs_open {
            true => mine.len() >= theirs.len(),
            false => mine.len() == theirs.len() && !open,
        };
        length
            && theirs.iter().zip(mine).all(|(their, my)| {
                their == my || their == "*" || (!my.contains('*') && star_covers(their, my))
            })
    }

    fn parts(&self) -> (&[String], bool) {
        match self.0.split_last() {
            Some((last, fixed)) if last == REST => (fixed, true),
            _ => (&self.0, false),
        }
    }
}

impl TryFrom<Vec<String>> for ArgvPattern {
    type Error = NoPattern;

    fn try_from(arguments: Vec<String>) -> Result<Self, NoPattern> {
        let Some(program) = arguments.first() else {
            return Err(NoPattern("a pattern of arguments is empty".to_owned()));
        };
        bounded(program)?;
        if program.contains('*') || program == REST {
            return refuse(program, "does not name one program in full");
        }
        if arguments.len() > ARGUMENTS_MOST {
            let message = format!("a pattern of arguments has more than {ARGUMENTS_MOST}");
            return Err(NoPattern(message));
        }
        for argument in arguments.iter().filter(|a| !a.is_empty()) {
            bounded(argument)?;
        }
        let last = arguments.len() - 1;
        if let Some(early) = arguments.iter().take(last).find(|a| *a == REST) {
            return refuse(early, "stands before the last argument");
        }
        Ok(Self(arguments))
    }
}

impl From<ArgvPattern> for Vec<String> {
    fn from(pattern: ArgvPattern) -> Self {
        pattern.0
    }
}

impl fmt::Display for ArgvPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

/// Whether a text fits a pattern in which `*` stands for any characters.
fn star_covers(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = rest.get(at + piece.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A host by name or address, or all hosts beneath a domain (`*.example.org`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern(String);

impl HostPattern {
    /// Whether it covers a host.
    pub fn covers(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        match self.domain() {
            Some(domain) => host.len() > domain.len() && host.ends_with(domain),
            None => host == self.0,
        }
    }

    /// Whether every host that this covers is covered by `other` too.
    pub fn within(&self, other: &Self) -> bool {
        match (self.domain(), other.domain()) {
            (Some(mine), Some(theirs)) => mine.ends_with(theirs),
            (Some(_), None) => false,
            (None, _) => other.covers(&self.0),
        }
    }

    /// `.example.org` of `*.example.org`.
    fn domain(&self) -> Option<&str> {
        self.0.strip_prefix('*')
    }
}

impl TryFrom<String> for HostPattern {
    type Error = NoPattern;

    fn try_from(text: String) -> Result<Self, NoPattern> {
        bounded(&text)?;
        let host = text.to_ascii_lowercase();
        let name = host.strip_prefix("*.").unwrap_or(&host);
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':' | '_');
        if !name.chars().all(fits) {
            return refuse(
                &text,
                "is no host name; write it in ASCII, without a scheme",
            );
        }
        if name.is_empty() || name.starts_with('.') || name.ends_with('.') || name.contains("..") {
            return refuse(&text, "is no host name");
        }
        Ok(Self(host))
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        pattern.0
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A method of HTTP, such as `GET`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Method(String);

impl Method {
    /// Whether it is this one. Methods tell upper from lower case.
    pub fn covers(&self, method: &str) -> bool {
        self.0 == method
    }
}

impl TryFrom<String> for Method {
    type Error = NoPattern;

    fn try_from(text: String) -> Result<Self, NoPattern> {
        bounded(&text)?;
        let fits = |c: char| c.is_ascii_uppercase() || c == '-';
        match text.len() <= 32 && text.chars().all(fits) {
            true => Ok(Self(text)),
            false => refuse(&text, "is no method in capital letters"),
        }
    }
}

impl From<Method> for String {
    fn from(method: Method) -> Self {
        method.0
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn glob(text: &str) -> PathGlob {
        PathGlob::try_from(text.to_owned()).unwrap()
    }

    fn argv(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn globs_cover_paths() {
        let rows = [
            ("**", "", true),
            ("**", "a/b", true),
            ("*", "a", true),
            ("*", "a/b", false),
            ("docs/**", "docs/a/b", true),
            ("docs/**", "docs", false),
            ("docs/**", "docsx/a", false),
            ("*.md", "a.md", true),
            ("*.md", "docs/a.md", false),
            ("**/*.md", "docs/a.md", true),
            ("**/*.md", "a.md", true),
            ("{a,b}/c", "b/c", true),
            ("a\\*", "ab", false),
            ("a\\*", "a*", true),
        ];
        for (pattern, path, covers) in rows {
            assert_eq!(glob(pattern).covers(path), covers, "{pattern} on {path:?}");
        }
        for bad in ["", "/a", "a//b", "a/../b", "./a", "a/", "[", "{a", "a\0"] {
            assert!(PathGlob::try_from(bad.to_owned()).is_err(), "{bad:?}");
        }
        assert!(PathGlob::try_from("a".repeat(PATTERN_MOST + 1)).is_err());
    }

    #[test]
    fn a_glob_within_another_is_proven_or_not_claimed() {
        let rows = [
            ("docs/a.md", "docs/**", true),
            ("docs/*.md", "docs/**", true),
            ("docs/**", "docs/**", true),
            ("docs/**", "**", true),
            ("docs/in/**", "docs/**", true),
            ("**", "docs/**", false),
            ("d*/x", "docs/**", false),
            ("docs", "docs/**", false),
            ("docsx/**", "docs/**", false),
            ("a/b.md", "**/*.md", true),
            // True, but not proven.
            ("a/*.md", "**/*.md", false),
            ("{a,b}/x", "a/**", false),
            ("\\*/x", "a/**", false),
        ];
        for (mine, theirs, within) in rows {
            assert_eq!(
                glob(mine).within(&glob(theirs)),
                within,
                "{mine} in {theirs}"
            );
        }
    }

    #[test]
    fn paths_are_normalised_before_they_are_matched() {
        let rows = [
            ("a/b", Some("a/b")),
            ("./a//b/.", Some("a/b")),
            ("", Some("")),
            (".", Some("")),
            ("a/../b", None),
            ("..", None),
            ("/a", None),
        ];
        for (path, normal) in rows {
            assert_eq!(normal_path(path).as_deref(), normal, "{path:?}");
        }
    }

    #[test]
    fn argument_vectors_are_covered_whole() {
        let rows = [
            ("git status", "git status", true),
            ("git status", "git status -s", false),
            ("git status ...", "git status -s --long", true),
            ("git status ...", "git status", true),
            ("git * ...", "git", false),
            ("git log -*", "git log -5", true),
            ("git log -*", "git log 5", false),
            ("tar x*y*z", "tar xaybz", true),
            ("tar x*y*z", "tar xz", false),
            ("tar ab*ba", "tar aba", false),
            ("git status", "/usr/bin/git status", false),
        ];
        for (pattern, call, covers) in rows {
            let made = ArgvPattern::try_from(argv(pattern)).unwrap();
            assert_eq!(made.covers(&argv(call)), covers, "{pattern} on {call}");
        }
        for bad in ["* x", "... x", "git ... x", ""] {
            assert!(ArgvPattern::try_from(argv(bad)).is_err(), "{bad}");
        }
        let rows = [
            ("git status", "git ...", true),
            ("git status ...", "git * ...", true),
            ("git ...", "git status ...", false),
            ("git ...", "git *", false),
            ("git -*", "git *", true),
            ("git -*", "git --*", false),
            ("git --x", "git --*", true),
        ];
        for (mine, theirs, within) in rows {
            let made = |text| ArgvPattern::try_from(argv(text)).unwrap();
            assert_eq!(
                made(mine).within(&made(theirs)),
                within,
                "{mine} in {theirs}"
            );
        }
    }

    #[test]
    fn hosts_are_covered_by_name_or_by_domain() {
        let host = |text: &str| HostPattern::try_from(text.to_owned());
        let rows = [
            ("example.org", "Example.org.", true),
            ("example.org", "a.example.org", false),
            ("*.example.org", "a.example.org", true),
            ("*.example.org", "example.org", false),
            ("*.example.org", "badexample.org", false),
            ("*.Example.org", "a.example.org", true),
        ];
        for (pattern, name, covers) in rows {
            assert_eq!(host(pattern).unwrap().covers(name), covers, "{pattern}");
        }
        for bad in ["", "*", "*.", "http://a", "a b", "ä.org", "a..b", "*.*.a"] {
            assert!(host(bad).is_err(), "{bad}");
        }
        let within = |mine, theirs| host(mine).unwrap().within(&host(theirs).unwrap());
        assert!(within("*.a.example.org", "*.example.org"));
        assert!(within("a.example.org", "*.example.org"));
        assert!(!within("*.example.org", "*.a.example.org"));
        assert!(!within("*.example.org", "a.example.org"));
    }
}
