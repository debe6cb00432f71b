//! Finding mentions in a request.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::mention::{MENTIONS_AT_MOST, Marked, Mention, MentionKind, Reach, mark_of};
use crate::survey::Survey;

struct Span {
    range: Range<usize>,
    mention: Mention,
}

/// Where mentions stand in a request; none overlaps another.
pub(super) struct Spans<'a> {
    text: &'a str,
    found: Vec<Span>,
}

impl<'a> Spans<'a> {
    /// The mentions of a request: quoted, there, written like a path, named, and with
    /// [`Reach::Loose`] only alluded to. What was found first is not taken twice.
    pub(super) fn find(text: &'a str, survey: &Survey, reach: Reach) -> Self {
        let found = Vec::new();
        let mut spans = Self { text, found };
        spans.quoted(survey);
        spans.existing(survey);
        spans.written(survey);
        spans.named();
        if reach == Reach::Loose {
            spans.alluded(survey);
        }
        spans
    }

    fn free(&self, range: &Range<usize>) -> bool {
        self.found
            .iter()
            .all(|s| range.end <= s.range.start || s.range.end <= range.start)
    }

    fn push(&mut self, range: Range<usize>, value: &str, kind: MentionKind, quoted: bool) {
        if self.found.len() < MENTIONS_AT_MOST / 2 && self.free(&range) && !value.is_empty() {
            let raw = self.text[range.clone()].to_owned();
            let mention = Mention {
                raw,
                value: value.to_owned(),
                kind,
                quoted,
            };
            self.found.push(Span { range, mention });
        }
    }

    fn quoted(&mut self, survey: &Survey) {
        static QUOTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(concat!(
                r#""([^"]+)"|“([^”]+)”|「([^」]+)」|『([^』]+)』|《([^》]+)》|‘([^’]+)’|`([^`]+)`"#,
                r#"|(?:^|[\s(:：,，\p{Han}])'([^']*(?:[\p{L}]'[\p{L}][^']*)*)'(?:$|[\s).,:;!?，。\p{Han}])"#,
            ))
            .ok()
        });
        let Some(quoted) = QUOTED.as_ref() else {
            return;
        };
        let mut at = 0;
        while let Some(found) = quoted.captures_at(self.text, at) {
            let Some(inner) = found.iter().skip(1).flatten().next() else {
                break;
            };
            let before = self.text[..inner.start()]
                .chars()
                .next_back()
                .map_or(0, char::len_utf8);
            let after = self.text[inner.end()..]
                .chars()
                .next()
                .map_or(0, char::len_utf8);
            let range = inner.start() - before..inner.end() + after;
            at = range.end;
            let value = inner.as_str();
            let kind = match survey.meant(value).first() {
                Some(there) if there.folder => MentionKind::Folder,
                Some(_) => MentionKind::File,
                None if value.len() <= 120 && looks_like_quoted_path(value.trim()) => {
                    MentionKind::File
                }
                None => MentionKind::Quote,
            };
            self.push(range, value, kind, true);
        }
    }

    /// Names that are there, the longest first: those with an extension or a `/`, wherever they
    /// stand; folders where the word "folder" stands beside them.
    fn existing(&mut self, survey: &Survey) {
        let mut names: Vec<(&str, bool)> = Vec::new();
        for found in survey.entries() {
            names.push((&found.path, found.folder));
            names.push((found.name(), found.folder));
        }
        names.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then(a.cmp(b)));
        names.dedup();
        let lower = self.text.to_lowercase();
        if lower.len() != self.text.len() {
            return self.existing_to_the_letter(&names);
        }
        for (name, folder) in names {
            self.occurrences(&lower, &name.to_lowercase(), name, folder);
        }
    }

    /// For the rare text whose lower case has another length: byte offsets would not agree.
    fn existing_to_the_letter(&mut self, names: &[(&str, bool)]) {
        let text = self.text;
        for (name, folder) in names {
            self.occurrences(text, name, name, *folder);
        }
    }

    fn occurrences(&mut self, text: &str, needle: &str, name: &str, folder: bool) {
        let plain = !name.contains(['.', '/']);
        for (start, _) in text.match_indices(needle).take(8) {
            let mut end = start + needle.len();
            if !stands_alone(text, start, end) {
                continue;
            }
            if folder && text[end..].starts_with('/') {
                end += 1;
            } else if plain && !(folder && beside_folder_noun(text, start, end)) {
                continue;
            }
            let kind = if folder {
                MentionKind::Folder
            } else {
                MentionKind::File
            };
            let value = self.text[start..end].trim_end_matches('/').to_owned();
            self.push(start..end, &value, kind, false);
        }
    }

    /// Words written like paths, whether or not anything is there.
    fn written(&mut self, survey: &Survey) {
        static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(
                r"\w+://\S+|[[:alnum:]\u{C0}-\u{24F}_.~@+%#/\\-]*[[:alnum:]\u{C0}-\u{24F}_~./\\-]",
            )
            .ok()
        });
        static CHINESE: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(r"[\p{Han}\w/-]*\p{Han}[\p{Han}\w/-]*\.[A-Za-z][A-Za-z0-9]{0,7}\b").ok()
        });
        for found in CHINESE
            .as_ref()
            .into_iter()
            .flat_map(|r| r.find_iter(self.text))
        {
            let start = found.start() + leading_words(found.as_str());
            self.push(
                start..found.end(),
                &self.text[start..found.end()],
                MentionKind::File,
                false,
            );
        }
        for found in WORD
            .as_ref()
            .into_iter()
            .flat_map(|r| r.find_iter(self.text))
        {
            let up = found.as_str().ends_with("..");
            let word = if up {
                found.as_str()
            } else {
                found.as_str().trim_end_matches('.')
            };
            if word.contains("://") {
                continue;
            }
            let head = word.split('/').next().unwrap_or(word);
            let below = word.contains('/') && survey.at(head).is_some_and(|found| found.folder);
            if below || looks_like_path(word) {
                let folder = word.ends_with('/') || word.ends_with("..");
                let kind = if folder {
                    MentionKind::Folder
                } else {
                    MentionKind::File
                };
                let value = if word.len() > 1 {
                    word.trim_end_matches('/')
                } else {
                    word
                };
                self.push(
                    found.start()..found.start() + word.len(),
                    value,
                    kind,
                    false,
                );
            }
        }
    }

    /// "a folder called trips", "the music folder", "新建文件夹 旅行".
    fn named(&mut self) {
        const NOUN: &str = "(?P<noun>folder|directory|dir|file|document)";
        static NAMED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
            [
                format!(r"(?i)\b{NOUN}\s+(?:called|named|titled)\s+(?P<name>[\w-]+(?: [\w-]+){{0,3}})\s*[.!?]*$"),
                format!(r"(?i)\b{NOUN}\s+(?:called|named|titled)\s+(?P<name>[\w-]+)"),
                format!(r"(?i)\b(?:the|my|our)\s+(?P<name>[\w-]+)\s+{NOUN}\b"),
                r"(?i)\b(?:create|make|add|new|mkdir)\s+(?:a\s+|the\s+)?(?:new\s+)?(?P<noun>folder|directory|dir)\s+(?P<name>[\w-]+)".to_owned(),
                r"(?P<noun>文件夹|目录|文件)\s*(?:，|,)?\s*(?:名为|叫做|叫|名叫|名字叫)\s*(?P<name>[\p{Han}\w-]+)".to_owned(),
                r"(?:名为|叫做|叫|名叫)\s*(?P<name>[\p{Han}\w-]+?)\s*的\s*(?P<noun>文件夹|目录|文件)".to_owned(),
                r"(?:新建|创建|建立|建)\s*(?:一个)?(?:新的?)?\s*(?P<noun>文件夹|目录)\s*(?P<name>[\p{Han}\w-]+)".to_owned(),
            ]
            .iter()
            .filter_map(|pattern| Regex::new(pattern).ok())
            .collect()
        });
        const NO_NAME: &str = "new empty same current whole entire called named in for with and to is parent \
        home other text that first last this";
        for pattern in NAMED.iter() {
            for found in pattern.captures_iter(self.text) {
                let (Some(name), Some(noun)) = (found.name("name"), found.name("noun")) else {
                    continue;
                };
                let folder = matches!(
                    noun.as_str().to_lowercase().as_str(),
                    "folder" | "directory" | "dir" | "文件夹" | "目录"
                );
                let plain_file = !folder && noun.start() > name.start();
                if NO_NAME
                    .split(' ')
                    .any(|no| no == name.as_str().to_lowercase())
                    || plain_file
                {
                    continue;
                }
                let kind = if folder {
                    MentionKind::Folder
                } else {
                    MentionKind::File
                };
                self.push(name.range(), name.as_str(), kind, false);
            }
        }
    }

    /// Words that are a file's stem or a folder's name: "my notes", "in letters".
    fn alluded(&mut self, survey: &Survey) {
        let mut names: Vec<(Vec<&str>, &crate::survey::Found)> = survey
            .entries()
            .iter()
            .map(|found| {
                (
                    found
                        .stem()
                        .split(['-', '_', ' ', '.'])
                        .filter(|w| !w.is_empty())
                        .collect(),
                    found,
                )
            })
            .collect();
        names.sort_by(|a, b| b.1.stem().len().cmp(&a.1.stem().len()).then(a.1.cmp(b.1)));
        for (words, found) in names {
            if words.is_empty() || found.stem().chars().count() < 2 {
                continue;
            }
            let chinese = super::frame::is_chinese(found.stem());
            let joined = words
                .iter()
                .map(|w| regex::escape(w))
                .collect::<Vec<_>>()
                .join(r"[\s_.-]*");
            let edge = if chinese { "" } else { r"\b" };
            let Ok(pattern) = Regex::new(&format!("(?i){edge}{joined}{edge}")) else {
                continue;
            };
            let Some(at) = pattern.find(self.text) else {
                continue;
            };
            let kind = if found.folder {
                MentionKind::Folder
            } else {
                MentionKind::File
            };
            // A stem that several files share stays a name that means all of them.
            let shared = survey.meant(found.stem()).len() > 1;
            let value = if shared { found.stem() } else { &found.path };
            self.push(at.range(), value, kind, false);
        }
    }

    /// The text with a mark for each mention, which also takes in "the file", "called", "folder".
    pub(super) fn mark(mut self) -> Marked {
        self.found.sort_by_key(|span| span.range.start);
        let mut marked = Marked::default();
        let mut done = 0;
        let starts: Vec<usize> = self.found.iter().skip(1).map(|s| s.range.start).collect();
        for (i, mut span) in std::mem::take(&mut self.found).into_iter().enumerate() {
            if span.mention.kind != MentionKind::Quote
                || names_noun_before(&self.text[done..span.range.start])
            {
                let (before, folder_before) = absorbed_before(&self.text[done..span.range.start]);
                let next = starts.get(i).copied().unwrap_or(self.text.len());
                let (after, folder_after) = absorbed_after(&self.text[span.range.end..next]);
                span.range = span.range.start - before..span.range.end + after;
                span.mention.raw = self.text[span.range.clone()].to_owned();
                span.mention.kind = match span.mention.kind {
                    _ if folder_before || folder_after => MentionKind::Folder,
                    MentionKind::Quote => MentionKind::File,
                    kind => kind,
                };
            }
            marked.text.push_str(&self.text[done..span.range.start]);
            marked
                .text
                .push(mark_of(span.mention.kind, marked.mentions.len()));
            done = span.range.end;
            marked.mentions.push(span.mention);
        }
        marked.text.push_str(&self.text[done..]);
        marked
    }
}

/// Whether what stands before a quoted text makes it a name: "a folder called …", "文件夹…".
fn names_noun_before(before: &str) -> bool {
    static NOUN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?i)(?:\b(?:folder|directory|dir|file)(?:\s+(?:called|named))?\s+|(?:文件夹|目录|名为|叫做|叫)\s*)$").ok()
    });
    NOUN.as_ref().is_some_and(|noun| noun.is_match(before))
}

/// Bytes before a name that belong to it ("the file called "), and whether they say it is a folder.
fn absorbed_before(before: &str) -> (usize, bool) {
    static ENGLISH: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(concat!(
            r"(?i)(?:\b(?:the|a|an|my|our|this|that|new|empty|existing|whole|entire|text(?:\s+file)|markdown)\s+)*",
            r"(?:\b(?:(?P<folder>folder|directory|dir)|file|document)\s+)?(?:\b(?:called|named|titled)\s+)?$",
        ))
        .ok()
    });
    static CHINESE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(concat!(
            r"(?:一个|这个|那个|新的)*\s*(?:(?P<folder>文件夹|目录)|文件|文档)?",
            r"\s*(?:[，,]?\s*(?:名为|叫做|名叫|名字叫|叫))?\s*$",
        ))
        .ok()
    });
    [&ENGLISH, &CHINESE]
        .into_iter()
        .filter_map(|pattern| pattern.as_ref()?.captures(before))
        .map(|found| {
            let mut words = found.get(0).map_or("", |m| m.as_str()).trim_start();
            // "改名为" is a verb, "名为" belongs to the name.
            if before[..before.len() - words.len()].ends_with(['改', '更', '命']) {
                words = words.trim_start_matches("名为");
            }
            (words.len(), found.name("folder").is_some())
        })
        .max_by_key(|(bytes, _)| *bytes)
        .unwrap_or((0, false))
}

/// Bytes after a name that belong to it (" folder"), and whether they say it is a folder.
fn absorbed_after(after: &str) -> (usize, bool) {
    static AFTER: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?i)^\s*(?:这个|那个)?\s*(?:(?P<folder>(?:folder|directory|dir)\b|文件夹|目录)|(?:file|document|recipe|list|letter|report|notes?|log|poem|table|spreadsheet)\b|(?:文件|文档))").ok()
    });
    match AFTER.as_ref().and_then(|pattern| pattern.captures(after)) {
        Some(found) => (
            found.get(0).map_or(0, |m| m.len()),
            found.name("folder").is_some(),
        ),
        None => (0, false),
    }
}

fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let joins = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '-' | '~' | '\\');
    let before = text[..start].chars().next_back();
    let mut after = text[end..].chars();
    let next = after.next();
    let then = after.next();
    let runs_on = match next {
        Some('.') => then.is_some_and(|c| c.is_ascii_alphanumeric()),
        Some('/') => then.is_some_and(joins),
        Some(c) => joins(c),
        None => false,
    };
    !before.is_some_and(|c| joins(c) || c == '.') && !runs_on
}

fn beside_folder_noun(text: &str, start: usize, end: usize) -> bool {
    static BEFORE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?:\b(?:folder|directory|dir)(?:\s+(?:called|named))?\s+|(?:文件夹|目录)\s*)$")
            .ok()
    });
    static AFTER: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"^\s*(?:这个|那个)?\s*(?:(?:folder|directory|dir)\b|文件夹|目录)").ok()
    });
    BEFORE.as_ref().is_some_and(|r| r.is_match(&text[..start]))
        || AFTER.as_ref().is_some_and(|r| r.is_match(&text[end..]))
}

/// Bytes of verbs and prepositions that a Chinese name written without spaces begins with.
fn leading_words(run: &str) -> usize {
    const WITHIN: &str = "保存为 保存到 另存为 存为 存到 写入 写到 写进 重命名为 改名为 命名为 移动到 \
        复制到 拷贝到 创建 新建 删除 删掉 读取 打开 总结 概括 里的 里面的";
    const LEADING: &str = "请 帮我 帮 我 把 将 在 到 给 往 从 和 与 为 成 叫 名为 一下 然后 并 再 看看 看 \
        读 列出 查看 显示 复制 移动 文件";
    let mut start = WITHIN
        .split(' ')
        .filter_map(|w| run.rfind(w).map(|at| at + w.len()))
        .max()
        .unwrap_or(0);
    while let Some(word) = LEADING
        .split(' ')
        .filter(|w| run[start..].starts_with(*w))
        .max_by_key(|w| w.len())
    {
        let stem = &run[start + word.len()..];
        if stem.starts_with('.') || stem.is_empty() {
            break;
        }
        start += word.len();
    }
    start
}

/// Whether a text is written like a path: `a/b.txt`, `b.txt`, `../b`, `letters/`.
fn looks_like_path(word: &str) -> bool {
    static EXTENSION: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^[^\s/]*[\p{L}\p{N}_)\]-]\.[A-Za-z][A-Za-z0-9]{0,7}$").ok());
    static ROOTED: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^(?:~|\.{1,2})?[/\\][^/\s]|^\.\.$|[\p{L}\p{N}_]/$").ok());
    let last = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let abbreviation = matches!(
        word.to_lowercase().as_str(),
        "e.g" | "i.e" | "a.m" | "p.m" | "u.s"
    );
    let by_form = EXTENSION.as_ref().is_some_and(|e| e.is_match(last));
    !abbreviation && (by_form || ROOTED.as_ref().is_some_and(|r| r.is_match(word)))
}

/// In quotes a path may have spaces.
fn looks_like_quoted_path(text: &str) -> bool {
    static SPACED: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^[^\n]*[\p{L}\p{N}_)\]-]\.[A-Za-z][A-Za-z0-9]{1,4}$").ok());
    looks_like_path(text) || SPACED.as_ref().is_some_and(|spaced| spaced.is_match(text))
}
