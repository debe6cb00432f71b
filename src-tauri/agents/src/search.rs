//! Finding passages in the workspace's files, by Okapi BM25 (Robertson and Walker, 1994) over light
//! stems; Chinese by pairs of characters.

use std::collections::BTreeMap;

use steward_kernel::syscall::FsRead;
use steward_kernel::{Code, SysError};

use crate::model::sentences;
use crate::survey::last_part;
use crate::tools::Desk;

const FILES_AT_MOST: usize = 48;
const BYTES_AT_MOST: u64 = 64 << 10;

/// A file's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A sentence or line of a file that fits a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Passage {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) score: f64,
    /// Share of the question's weight that the passage and its file's name and title have, 0 to 1.
    pub(crate) coverage: f64,
}

/// Texts of the workspace's files, within a bound; what is no text is passed over.
pub(crate) async fn documents(desk: &Desk<'_>) -> Result<Vec<Document>, SysError> {
    const NO_TEXT: &str = "png jpg jpeg gif webp bmp ico pdf zip gz xz 7z tar mp3 mp4 wav mov docx xlsx \
        pptx gguf db";
    let readable = desk.survey.files().filter(|found| {
        let extension = found
            .name()
            .rsplit_once('.')
            .map_or("", |(_, extension)| extension);
        !found.name().starts_with('.') && !listed(NO_TEXT, &extension.to_lowercase())
    });
    let mut documents = Vec::new();
    for found in readable.take(FILES_AT_MOST) {
        let read = FsRead {
            path: found.path.clone(),
            limit: Some(BYTES_AT_MOST),
        };
        match desk.sys.call(read).await {
            Ok(file) => documents.push(Document {
                path: found.path.clone(),
                text: file.text,
            }),
            Err(error) if matches!(error.code, Code::Interrupted | Code::Denied) => {
                return Err(error);
            }
            Err(_) => {}
        }
    }
    Ok(documents)
}

/// The passages that fit a question best, the best first.
pub(crate) fn passages(documents: &[Document], question: &str) -> Vec<Passage> {
    let wanted = terms(question);
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut units: Vec<Unit<'_>> = Vec::new();
    for document in documents {
        let title = title(document);
        let mut first = true;
        // A heading is part of the title; alone it answers nothing.
        let lines = document.text.lines().filter(|line| !line.starts_with('#'));
        for sentence in lines.flat_map(sentences) {
            let text = sentence.trim().trim_start_matches(['-', '*', '>', ' ']);
            if !text.is_empty() {
                units.push(Unit {
                    document,
                    text,
                    terms: terms(text),
                    title: title.clone(),
                    first,
                });
                first = false;
            }
        }
    }
    rank(&units, &wanted, question)
}

struct Unit<'a> {
    document: &'a Document,
    text: &'a str,
    terms: Vec<String>,
    title: Vec<String>,
    /// Whether it is the first of its file, which stands for what the title says.
    first: bool,
}

fn rank(units: &[Unit<'_>], wanted: &[String], question: &str) -> Vec<Passage> {
    const K1: f64 = 1.2;
    const B: f64 = 0.5;
    const TITLE: f64 = 0.6;
    let count = units.len().max(1) as f64;
    let average = units.iter().map(|u| u.terms.len()).sum::<usize>() as f64 / count;
    let weights: BTreeMap<&str, f64> = wanted
        .iter()
        .map(|term| {
            let holding = units.iter().filter(|u| u.terms.contains(term)).count() as f64;
            (
                term.as_str(),
                (1.0 + (count - holding + 0.5) / (holding + 0.5)).ln(),
            )
        })
        .collect();
    let all: f64 = weights.values().sum();
    let kind = Kind::of(question);
    let mut found: Vec<Passage> = Vec::new();
    for unit in units {
        let (mut score, mut covered, mut own) = (0.0, 0.0, 0.0);
        for (term, weight) in &weights {
            let times = unit.terms.iter().filter(|t| t == term).count() as f64;
            let length = 1.0 - B + B * unit.terms.len() as f64 / average.max(1.0);
            if times > 0.0 {
                score += weight * times * (K1 + 1.0) / (times + K1 * length);
                own += weight;
                covered += weight;
            } else if unit.title.iter().any(|t| t == term) {
                score += weight * TITLE;
                covered += weight;
            }
        }
        if own > 0.0 || (unit.first && covered > 0.0) {
            let path = unit.document.path.clone();
            let fits = if kind.fits(unit.text) { 1.25 } else { 1.0 };
            let coverage = covered / all.max(f64::MIN_POSITIVE);
            found.push(Passage {
                path,
                text: unit.text.to_owned(),
                score: score * fits,
                coverage,
            });
        }
    }
    found.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| a.path.cmp(&b.path))
    });
    found
}

/// Files whose name, title and text together fit a few words best, with their best passage.
pub(crate) fn files(documents: &[Document], query: &str) -> Vec<Passage> {
    let wanted = terms(query);
    let units: Vec<Unit<'_>> = documents
        .iter()
        .map(|document| {
            let mut all = terms(&document.text);
            // A word of the name counts as much as three of the text.
            let names = title(document);
            all.extend(names.iter().chain(&names).chain(&names).cloned());
            Unit {
                document,
                text: "",
                terms: all,
                title: Vec::new(),
                first: false,
            }
        })
        .collect();
    let mut ranked = rank(&units, &wanted, "");
    for file in &mut ranked {
        let own = documents
            .iter()
            .filter(|d| d.path == file.path)
            .cloned()
            .collect::<Vec<_>>();
        file.text = passages(&own, query).first().map_or_else(
            || {
                own.first()
                    .and_then(|d| d.text.lines().find(|l| !l.trim().is_empty()))
                    .unwrap_or_default()
                    .trim()
                    .to_owned()
            },
            |passage| passage.text.clone(),
        );
    }
    ranked
}

/// What form an answer to a question has.
enum Kind {
    Time,
    Amount,
    Person,
    Any,
}

impl Kind {
    fn of(question: &str) -> Self {
        let question = question.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| question.contains(word));
        if has(&[
            "when",
            "what day",
            "what date",
            "what time",
            "什么时候",
            "几点",
            "哪天",
            "几号",
            "何时",
        ]) {
            Kind::Time
        } else if has(&[
            "how much", "how many", "price", "cost", "deposit", "budget", "多少", "几个",
        ]) {
            Kind::Amount
        } else if has(&["who ", "whose", "谁"]) {
            Kind::Person
        } else {
            Kind::Any
        }
    }

    fn fits(&self, text: &str) -> bool {
        match self {
            Kind::Time | Kind::Amount => text.chars().any(|c| c.is_ascii_digit()),
            Kind::Person => text
                .split_whitespace()
                .skip(1)
                .any(|w| w.starts_with(char::is_uppercase)),
            Kind::Any => false,
        }
    }
}

fn title(document: &Document) -> Vec<String> {
    let name = last_part(&document.path).replace(['-', '_', '.'], " ");
    let folder = document
        .path
        .rsplit_once('/')
        .map_or("", |(folder, _)| folder)
        .replace('/', " ");
    let heading = document
        .text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    let heading = if heading.starts_with('#') {
        heading
    } else {
        ""
    };
    terms(&format!("{name} {folder} {heading}"))
}

/// The words of a text that carry meaning, as light stems; Chinese as pairs of characters.
pub(crate) fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    let mut word = String::new();
    let mut han: Vec<char> = Vec::new();
    let mut chars = text.chars().chain([' ']).peekable();
    while let Some(c) = chars.next() {
        // Within a number a comma parts thousands and a point is a part of it.
        let number = word.ends_with(|c: char| c.is_ascii_digit())
            && chars.peek().is_some_and(char::is_ascii_digit);
        if number && c == ',' {
            continue;
        }
        let is_han = ('\u{4E00}'..='\u{9FFF}').contains(&c);
        if !is_han && !han.is_empty() {
            push_pairs(&mut terms, &han);
            han.clear();
        }
        if is_han || !(c.is_alphanumeric() || matches!(c, '\'' | '’') || (number && c == '.')) {
            if !word.is_empty() {
                terms.extend(stem(&word));
                word.clear();
            }
            if is_han {
                han.push(c);
            }
        } else {
            word.extend(c.to_lowercase());
        }
    }
    terms
}

fn listed(words: &str, word: &str) -> bool {
    words.split(' ').any(|listed| listed == word)
}

fn push_pairs(terms: &mut Vec<String>, han: &[char]) {
    const STOP: &str = "的了是在我你他她它吗呢吧啊和与及就都也很这那有没么什谁哪几把将请";
    let kept: Vec<char> = han.iter().copied().filter(|c| !STOP.contains(*c)).collect();
    if let [one] = kept[..] {
        terms.push(one.to_string());
    }
    terms.extend(kept.windows(2).map(|pair| pair.iter().collect::<String>()));
}

fn stem(word: &str) -> Option<String> {
    const STOP: &str = "a an the and or of in on at to for from by with about is are was were be been \
        am do does did has have had i me my mine you your we our us he she it its his \
        her they them their this that these those there here what when where who whose \
        whom which why how much many long can could should would will shall may must \
        please tell show give find file files document documents any some one ones if \
        not say says";
    let word = word.trim_matches(['\'', '’']);
    let word = word
        .strip_suffix("'s")
        .or_else(|| word.strip_suffix("’s"))
        .unwrap_or(word);
    if word.is_empty() || listed(STOP, word) {
        return None;
    }
    for ending in ["ings", "ing", "ies", "ed", "es", "s", "e", "y"] {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.chars().count() >= 3
            && word.is_ascii()
        {
            return Some(stem.to_owned());
        }
    }
    Some(word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shelf() -> Vec<Document> {
        [
            (
                "garden.md",
                "# Garden\n\nThe pear tree was planted in 2019. It needs water twice a week.",
            ),
            (
                "bills/heating.txt",
                "The heating bill of 240 euros is due on 3 May. Pay by transfer.",
            ),
            ("bills/phone.txt", "The phone costs 12 euros a month."),
            ("tasks.txt", "pay the heating bill\nwater the pear tree"),
            ("食谱.md", "红烧肉需要五花肉和冰糖。炖一个小时。"),
        ]
        .map(|(path, text)| Document {
            path: path.to_owned(),
            text: text.to_owned(),
        })
        .to_vec()
    }

    #[test]
    fn questions_find_their_sentence() {
        for (question, expected) in [
            (
                "When is the heating bill due?",
                "The heating bill of 240 euros is due on 3 May.",
            ),
            (
                "how much does the phone cost",
                "The phone costs 12 euros a month.",
            ),
            (
                "when was the pear tree planted?",
                "The pear tree was planted in 2019.",
            ),
            ("红烧肉需要什么？", "红烧肉需要五花肉和冰糖。"),
        ] {
            let best = passages(&shelf(), question)
                .into_iter()
                .next()
                .map(|p| p.text);
            assert_eq!(best.as_deref(), Some(expected), "{question}");
        }
    }

    #[test]
    fn what_stands_nowhere_is_not_found() {
        assert_eq!(passages(&shelf(), "what is the capital of France?"), []);
    }

    #[test]
    fn words_find_their_file() {
        for (query, expected) in [
            ("phone contract", "bills/phone.txt"),
            ("where pear trees were planted", "garden.md"),
        ] {
            assert_eq!(
                files(&shelf(), query).first().map(|p| p.path.as_str()),
                Some(expected)
            );
        }
    }
}
