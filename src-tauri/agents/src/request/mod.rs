//! Reading a request: what can be found exactly is found, not guessed.
//!
//! Paths and quoted texts are marked ([`mention`]), the marked request is compared with the
//! wordings of every tool ([`frame`]), and what fits becomes a call with its arguments. Only where
//! several calls stay plausible, or none, is a model asked, and then to choose among what was found.

mod frame;
mod mention;
mod span;

use serde_json::{Map, Value};
use steward_kernel::syscall::Effect;

use crate::call::Call;
use crate::survey::Survey;
use crate::tools::{Need, Tool};
use frame::{Fit, Frame, Slot};
use mention::{Marked, Mention, MentionKind, Reach};

pub(crate) use frame::is_chinese;

/// How a candidate was found, the best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// A cue word of the tool and arguments that fit stand in the request.
    Cue,
    /// A wording of the tool is a part of the request.
    Part,
    /// A wording of the tool is the whole of the request.
    Whole,
}

/// A call that the request may mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The call.
    pub call: Call,
    /// How it was found.
    pub evidence: Evidence,
    /// How much of the request it explains.
    pub weight: usize,
    /// An argument whose name in the request means several paths, and those paths.
    pub several: Option<(String, Vec<String>)>,
}

/// One thing asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The words of the request that ask for it.
    pub text: String,
    /// What it may mean, the most plausible first. Empty where only the words themselves are left.
    pub candidates: Vec<Candidate>,
    /// Tools of which a cue was seen, but not all that they need.
    pub hints: Vec<Hint>,
}

/// A tool that was asked for without what it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// The tool.
    pub tool: &'static str,
    /// The request without the cue: what it says about the rest.
    pub rest: String,
}

/// A request as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// What is asked for, in order.
    pub parts: Vec<Part>,
}

impl Reading {
    /// Whether every part was fully understood by its wording.
    pub fn is_whole(&self) -> bool {
        self.parts.iter().all(|part| {
            part.candidates
                .first()
                .is_some_and(|best| best.evidence == Evidence::Whole)
        })
    }
}

struct ToolFrames {
    frames: Vec<Frame>,
    cues: Option<regex::Regex>,
}

/// Reads requests by the wordings of a tool table.
pub struct Reader {
    tools: Vec<&'static dyn Tool>,
    frames: Vec<ToolFrames>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tools: Vec<&str> = self.tools.iter().map(|tool| tool.card().name).collect();
        f.debug_struct("Reader")
            .field("tools", &tools)
            .finish_non_exhaustive()
    }
}

const SEPARATORS_STRONG: &str = r"(?i)\s*(?:[,，]?\s*\band then\b|[,，;]\s*then\b|[;；]|[.!?]\s+(?:then|after that)\b,?|[,，。]?\s*(?:然后|接着|之后再))\s*";
const SEPARATORS_WEAK: &str =
    r"(?i)\s*(?:[,，]\s*and\b|\band also\b|\band\b|[,，;；。]|[.!?]\s|并且|并)\s*";

impl Reader {
    /// Compiles the wordings of some tools.
    ///
    /// # Errors
    /// A wording that is not a valid pattern: a fault of the tool's.
    pub fn new(tools: Vec<&'static dyn Tool>) -> Result<Self, regex::Error> {
        let mut frames = Vec::with_capacity(tools.len());
        for tool in &tools {
            let card = tool.card();
            let compiled = card
                .frames
                .iter()
                .map(|f| Frame::compile(f))
                .collect::<Result<_, _>>()?;
            let cues = match card.cues {
                [] => None,
                cues => Some(regex::Regex::new(&format!("(?i){}", cue_pattern(cues)))?),
            };
            frames.push(ToolFrames {
                frames: compiled,
                cues,
            });
        }
        Ok(Self { tools, frames })
    }

    /// The tools, in their order.
    pub fn tools(&self) -> &[&'static dyn Tool] {
        &self.tools
    }

    /// Reads a request against the names of a workspace. `earlier` are the requests before it in
    /// the conversation, oldest first: "it" may mean a file named there.
    pub fn read(&self, request: &str, survey: &Survey, earlier: &[&str]) -> Reading {
        let before = referent(earlier, survey);
        // Wide wordings ("what is …") come after every reading of the narrow ones.
        let passes = [
            (Reach::Strict, false),
            (Reach::Loose, false),
            (Reach::Strict, true),
        ];
        for (reach, general) in passes {
            let marked = Marked::read(request, survey, reach);
            let mut pass = Pass {
                reader: self,
                marked,
                survey,
                general,
                before: before.clone(),
            };
            if let Some(parts) = pass.read() {
                return Reading { parts };
            }
        }
        let text = request.trim().to_owned();
        let mut part = Part {
            text,
            candidates: Vec::new(),
            hints: Vec::new(),
        };
        // What is only alluded to may be looked at; to be changed, it must be named.
        for (reach, reads) in [(Reach::Strict, false), (Reach::Loose, true)] {
            let marked = Marked::read(request, survey, reach);
            let before = before.clone();
            let pass = Pass {
                reader: self,
                marked,
                survey,
                general: false,
                before,
            };
            pass.read_partly(&mut part, reads);
        }
        part.candidates
            .sort_by_key(|c| std::cmp::Reverse((c.evidence, c.weight)));
        Reading { parts: vec![part] }
    }
}

/// One attempt to read a request.
struct Pass<'a> {
    reader: &'a Reader,
    marked: Marked,
    survey: &'a Survey,
    /// Whether wide wordings count.
    general: bool,
    /// What "it" means in the first clause.
    before: Option<Mention>,
}

impl Pass<'_> {
    /// The request as clauses that are each a whole wording; `None` where it is not.
    fn read(&mut self) -> Option<Vec<Part>> {
        let text = self.marked.text.clone();
        let clauses = split(&text, SEPARATORS_STRONG);
        if clauses.len() > 1
            && let Some(parts) = self.read_clauses(&clauses)
        {
            return Some(parts);
        }
        self.read_clauses(&[text.as_str()])
            .or_else(|| self.read_joined(&split(&text, SEPARATORS_WEAK), &text))
    }

    fn read_clauses(&mut self, clauses: &[&str]) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        let mut last = self.before.clone();
        for clause in clauses {
            let fitted = self.fit_clause(clause, last.as_ref())?;
            last = self.marked.subject(clause).or(last);
            parts.extend(fitted);
        }
        Some(parts)
    }

    /// The fewest neighbouring pieces joined into clauses that all fit.
    fn read_joined(&mut self, pieces: &[&str], text: &str) -> Option<Vec<Part>> {
        const PIECES_AT_MOST: usize = 8;
        if pieces.len() < 2 || pieces.len() > PIECES_AT_MOST {
            return None;
        }
        let at = |piece: &str| piece.as_ptr() as usize - text.as_ptr() as usize;
        let mut divisions: Vec<u32> = (1..1_u32 << (pieces.len() - 1)).collect();
        divisions.sort_by_key(|cuts| (cuts.count_ones(), *cuts));
        for cuts in divisions {
            let mut clauses = Vec::new();
            let mut first = 0;
            for i in 0..pieces.len() {
                if i + 1 == pieces.len() || cuts & (1 << i) != 0 {
                    clauses.push(&text[at(pieces[first])..at(pieces[i]) + pieces[i].len()]);
                    first = i + 1;
                }
            }
            if let Some(parts) = self.read_clauses(&clauses) {
                return Some(parts);
            }
        }
        None
    }

    fn fit_clause(&mut self, clause: &str, last: Option<&Mention>) -> Option<Vec<Part>> {
        if let Some(parts) = self.fit_whole(clause) {
            return Some(parts);
        }
        let mark = self.marked.adopt(last?)?;
        let with_it = put_referent(clause, mark)?;
        self.fit_whole(&with_it)
    }

    fn fit_whole(&self, clause: &str) -> Option<Vec<Part>> {
        let mut fits: Vec<(usize, Fit)> = Vec::new();
        for (tool, entry) in self.reader.frames.iter().enumerate() {
            if self.reader.tools[tool].card().general == self.general {
                let best = entry.frames.iter().filter_map(|f| f.fit(clause));
                fits.extend(best.max_by_key(|f| f.weight).map(|fit| (tool, fit)));
            }
        }
        fits.sort_by_key(|(tool, fit)| (std::cmp::Reverse(fit.weight), *tool));
        let whole = |tool: usize, fit: &Fit| self.candidate(tool, fit, Evidence::Whole, clause);
        let (tool, best) = fits.first()?;
        if let Some(single) = one_by_one(best) {
            let parts = single.iter().filter_map(|fit| {
                let candidate = whole(*tool, fit)?;
                let text = candidate.call.describe();
                Some(Part {
                    text,
                    candidates: vec![candidate],
                    hints: Vec::new(),
                })
            });
            return Some(parts.collect());
        }
        let candidates: Vec<Candidate> = fits
            .iter()
            .filter_map(|(tool, fit)| whole(*tool, fit))
            .collect();
        let text = self.marked.restore(clause).trim().to_owned();
        (!candidates.is_empty()).then(|| {
            vec![Part {
                text,
                candidates,
                hints: Vec::new(),
            }]
        })
    }

    /// What parts of the request, and cue words in it, may mean for the tools of an effect. Wide
    /// wordings were tried before.
    fn read_partly(&self, part: &mut Part, reads: bool) {
        let text = &self.marked.text;
        for (tool, entry) in self.reader.frames.iter().enumerate() {
            let card = self.reader.tools[tool].card();
            if card.general || (card.effect == Effect::Read) != reads {
                continue;
            }
            let within = entry.frames.iter().filter_map(|f| f.fit_within(text));
            let within = within.max_by_key(|f| f.weight);
            let fitted = within.and_then(|fit| self.candidate(tool, &fit, Evidence::Part, text));
            if let Some(candidate) = fitted {
                part.candidates.push(candidate);
                continue;
            }
            let Some(cue) = entry.cues.as_ref().and_then(|cues| cues.find(text)) else {
                continue;
            };
            let at_hand = self.arguments_at_hand(card.needs, cue.len());
            match at_hand.and_then(|fit| self.candidate(tool, &fit, Evidence::Cue, text)) {
                Some(candidate) => part.candidates.push(candidate),
                None if card.needs.is_empty() => {}
                None => part.hints.push(Hint {
                    tool: card.name,
                    rest: self.marked.restore(&text.replace(cue.as_str(), " ")),
                }),
            }
        }
    }

    /// Mentions in their order as the arguments of a tool whose cue was seen.
    fn arguments_at_hand(&self, needs: &[(&str, Need)], cue: usize) -> Option<Fit> {
        let mut marks = self
            .marked
            .text
            .chars()
            .filter(|c| self.marked.mention(*c).is_some());
        let mut slots = Vec::new();
        for (name, need) in needs {
            let mark = marks.next()?;
            let quote = self.marked.mention(mark)?.kind == MentionKind::Quote;
            let slot = match need {
                Need::Path if !quote => Slot::Old,
                Need::Target if !quote => Slot::New,
                Need::Text if quote => Slot::Text,
                _ => return None,
            };
            slots.push(((*name).to_owned(), slot, mark.to_string()));
        }
        (!slots.is_empty()).then_some(Fit { slots, weight: cue })
    }

    fn candidate(
        &self,
        tool: usize,
        fit: &Fit,
        evidence: Evidence,
        clause: &str,
    ) -> Option<Candidate> {
        let tool = self.reader.tools[tool];
        let mut arguments = Map::new();
        let mut several = None;
        for (name, slot, captured) in &fit.slots {
            let value = self.marked.value(captured);
            let mut marks = captured.trim().chars();
            let first = marks.next().and_then(|c| self.marked.mention(c));
            let single = first.filter(|_| marks.next().is_none());
            let named = single.map_or_else(|| value.clone(), |mention| mention.value.clone());
            let value = match slot {
                Slot::Old | Slot::Folder => {
                    let meant = self.survey.meant(&named);
                    if meant.len() > 1 {
                        let paths = meant.iter().map(|found| found.path.clone()).collect();
                        several = Some((name.clone(), paths));
                    }
                    meant.first().map_or(named, |found| found.path.clone())
                }
                Slot::New | Slot::Name => match self.survey.at(&named) {
                    Some(found) => found.path.clone(),
                    None if single.is_some_and(|m| m.kind == MentionKind::Folder) => named + "/",
                    None => named,
                },
                // "save it as …" gives no text, and a path is no text unless it is quoted.
                Slot::Text if is_pronoun(&value) || single.is_some_and(|m| !m.quoted) => {
                    return None;
                }
                Slot::Text | Slot::Words | Slot::Form => value,
            };
            arguments.insert(name.clone(), Value::String(value));
        }
        if let Some(whole) = tool.card().whole {
            let text = || Value::String(self.marked.restore(clause).trim().to_owned());
            arguments.entry(whole).or_insert_with(text);
        }
        let arguments = tool.complete(arguments, self.survey)?;
        let call = Call {
            tool: tool.card().name.to_owned(),
            arguments,
        };
        tool.check(&call.arguments).ok()?;
        Some(Candidate {
            call,
            evidence,
            weight: fit.weight,
            several,
        })
    }
}

/// A fit whose path slot holds a list, as one fit for each path.
fn one_by_one(fit: &Fit) -> Option<Vec<Fit>> {
    let marks = |text: &str| -> Vec<char> {
        text.chars()
            .filter(|c| mention::FILES.contains(c) || mention::FOLDERS.contains(c))
            .collect()
    };
    let (at, list) = fit
        .slots
        .iter()
        .enumerate()
        .find_map(|(i, (_, slot, text))| {
            let list = marks(text);
            (*slot == Slot::Old && list.len() > 1).then_some((i, list))
        })?;
    let single = list.into_iter().map(|mark| {
        let mut fit = fit.clone();
        fit.slots[at].2 = mark.to_string();
        fit
    });
    Some(single.collect())
}

/// The path that the conversation was about last.
fn referent(earlier: &[&str], survey: &Survey) -> Option<Mention> {
    earlier.iter().rev().find_map(|request| {
        let marked = Marked::read(request, survey, Reach::Strict);
        marked.subject(&marked.text)
    })
}

fn is_pronoun(text: &str) -> bool {
    const PRONOUNS: [&str; 10] = [
        "it", "this", "that", "them", "these", "those", "它", "这个", "那个", "这些",
    ];
    PRONOUNS.contains(&text.trim().to_lowercase().as_str())
}

fn put_referent(clause: &str, mark: char) -> Option<String> {
    static PRONOUN: std::sync::LazyLock<Option<regex::Regex>> = std::sync::LazyLock::new(|| {
        regex::Regex::new(concat!(
            r"(?i)\b(?:(?:this|that|the|the same) (?:file|document|one)|it|this|that)\b",
            r"|(?:这个|那个|该|此)(?:文件夹|文件|文档)|它|这个|那个",
        ))
        .ok()
    });
    let found = PRONOUN.as_ref()?.find(clause)?;
    Some(format!(
        "{}{mark}{}",
        &clause[..found.start()],
        &clause[found.end()..]
    ))
}

fn split<'a>(text: &'a str, separators: &str) -> Vec<&'a str> {
    let Ok(separators) = regex::Regex::new(separators) else {
        return vec![text];
    };
    separators
        .split(text)
        .map(str::trim)
        .filter(|piece| !piece.is_empty())
        .collect()
}

fn cue_pattern(cues: &[&str]) -> String {
    let (chinese, english): (Vec<&str>, Vec<&str>) = cues.iter().partition(|cue| is_chinese(cue));
    let english = (!english.is_empty()).then(|| format!(r"\b(?:{})\b", english.join("|")));
    let chinese = (!chinese.is_empty()).then(|| chinese.join("|"));
    english
        .into_iter()
        .chain(chinese)
        .collect::<Vec<_>>()
        .join("|")
}
