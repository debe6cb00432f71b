//! What a grant holds for, beyond its resource: every constraint that is there must hold.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::patterns::{ArgvPattern, HostPattern, Method, PathGlob, normal_path};
use crate::error::{Code, SysError};

/// Bytes of constraints as JSON at most.
pub const CONSTRAINTS_MOST: usize = 64 * 1024;
/// Patterns of one kind at most.
pub const PATTERNS_MOST: usize = 64;

/// Patterns of one kind of which one must fit: 1 to [`PATTERNS_MOST`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<T>", into = "Vec<T>")]
#[serde(bound(
    serialize = "T: Serialize + Clone",
    deserialize = "T: Deserialize<'de>"
))]
#[schemars(with = "Vec<T>")]
pub struct AnyOf<T>(Vec<T>);

impl<T> AnyOf<T> {
    fn within(&self, other: &Self, is_in: impl Fn(&T, &T) -> bool) -> bool {
        let covered = |mine: &T| other.0.iter().any(|theirs| is_in(mine, theirs));
        self.0.iter().all(covered)
    }
}

impl<T> TryFrom<Vec<T>> for AnyOf<T> {
    type Error = String;

    fn try_from(patterns: Vec<T>) -> Result<Self, String> {
        match patterns.len() {
            0 => Err("the list is empty: leave it out, or name at least one".to_owned()),
            1..=PATTERNS_MOST => Ok(Self(patterns)),
            n => Err(format!(
                "the list has `{n}` patterns, `{PATTERNS_MOST}` is the most"
            )),
        }
    }
}

impl<T> From<AnyOf<T>> for Vec<T> {
    fn from(patterns: AnyOf<T>) -> Self {
        patterns.0
    }
}

impl<T: fmt::Display> fmt::Display for AnyOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, pattern) in self.0.iter().enumerate() {
            let before = if place == 0 { "" } else { " or " };
            let pattern = pattern.to_string();
            write!(f, "{before}`{}`", crate::escape::shown(&pattern))?;
        }
        Ok(())
    }
}

/// A part of every day, by the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "DailyText", into = "DailyText")]
#[schemars(with = "DailyText")]
pub struct Daily {
    /// Minutes from midnight, UTC.
    from: u32,
    /// How many minutes.
    length: u32,
    offset: i32,
}

/// A part of every day, as written.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DailyText {
    /// `HH:MM` when it begins.
    from: String,
    /// `HH:MM` when it ends; the next day where that is earlier.
    to: String,
    /// Minutes that this clock is ahead of UTC.
    #[serde(default)]
    utc_offset_minutes: i32,
}

const DAY: u32 = 24 * 60;

impl Daily {
    fn covers(self, wall_ms: u64) -> bool {
        let minute = u32::try_from(wall_ms / 60_000 % u64::from(DAY)).unwrap_or_default();
        self.since(minute) < self.length
    }

    fn within(self, other: Self) -> bool {
        other.since(self.from) + self.length <= other.length
    }

    /// Minutes from its beginning to a minute of the day.
    fn since(self, minute: u32) -> u32 {
        (minute + DAY - self.from) % DAY
    }

    fn local(self, minute: u32) -> String {
        let minute = (i64::from(minute) + i64::from(self.offset)).rem_euclid(i64::from(DAY));
        format!("{:02}:{:02}", minute / 60, minute % 60)
    }
}

impl TryFrom<DailyText> for Daily {
    type Error = String;

    fn try_from(text: DailyText) -> Result<Self, String> {
        let minute = |clock: &str| {
            let (hours, minutes) = clock.split_once(':')?;
            let two = |part: &str| match part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit())
            {
                true => part.parse::<u32>().ok(),
                false => None,
            };
            let (hours, minutes) = (two(hours)?, two(minutes)?);
            (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
        };
        let read = |clock: &str| {
            let shown = crate::escape::shown(clock.get(..16).unwrap_or(clock));
            minute(clock).ok_or_else(|| format!("`{shown}` is no time of day such as `09:30`"))
        };
        let (from, to, offset) = (read(&text.from)?, read(&text.to)?, text.utc_offset_minutes);
        if from == to {
            return Err("the time begins when it ends".to_owned());
        }
        if !(-14 * 60..=14 * 60).contains(&offset) {
            return Err(format!("`{offset}` minutes is no offset from UTC"));
        }
        let utc = (i64::from(from) - i64::from(offset)).rem_euclid(i64::from(DAY));
        Ok(Self {
            from: u32::try_from(utc).unwrap_or_default(),
            length: (to + DAY - from) % DAY,
            offset,
        })
    }
}

impl From<Daily> for DailyText {
    fn from(daily: Daily) -> Self {
        Self {
            from: daily.local(daily.from),
            to: daily.local(daily.from + daily.length),
            utc_offset_minutes: daily.offset,
        }
    }
}

impl fmt::Display for Daily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.local(self.from), self.local(self.from + self.length));
        write!(f, "from {from} to {to}")?;
        match self.offset {
            0 => f.write_str(" UTC"),
            offset => write!(
                f,
                " UTC{}{:02}:{:02}",
                if offset < 0 { '-' } else { '+' },
                offset.abs() / 60,
                offset.abs() % 60
            ),
        }
    }
}

/// What must hold of a call, beyond resource and right. All that are there must hold; a call of
/// which the fact is not known does not hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Constraints {
    /// Globs of paths within the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<AnyOf<PathGlob>>,
    /// Patterns of whole argument vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argv: Option<AnyOf<ArgvPattern>>,
    /// Hosts by name, or all beneath a domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<AnyOf<HostPattern>>,
    /// Methods of HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub methods: Option<AnyOf<Method>>,
    /// Bytes of one call at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Things that one call touches at most: files, entries, objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_count: Option<u64>,
    /// A part of every day, by the wall clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daily: Option<Daily>,
    /// Not before, Unix milliseconds by the wall clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before_ms: Option<u64>,
    /// Not from then on, Unix milliseconds by the wall clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_after_ms: Option<u64>,
}

/// What is known of a call when its rights are checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Path within the workspace.
    pub path: Option<String>,
    /// The whole argument vector.
    pub argv: Option<Vec<String>>,
    /// The host.
    pub host: Option<String>,
    /// The method of HTTP.
    pub method: Option<String>,
    /// Bytes read or written at most.
    pub bytes: Option<u64>,
    /// Things it touches at most.
    pub count: Option<u64>,
}

/// Whether constraints hold of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holds {
    /// All of them.
    Yes,
    /// One does not; which, in words.
    No(String),
    /// None fails, but of one the fact is not known; which, in words.
    Unknown(&'static str),
}

impl Constraints {
    /// Reads constraints from JSON text: bounded, no unknown or doubled names, and an error names
    /// the place.
    ///
    /// # Errors
    /// [`Code::Limit`] where it is too long, [`Code::Invalid`] where it does not fit.
    pub fn parse(json: &str) -> Result<Self, SysError> {
        if json.len() > CONSTRAINTS_MOST {
            let message = format!(
                "the constraints have `{}` bytes, `{CONSTRAINTS_MOST}` is the most",
                json.len()
            );
            return Err(SysError::new(Code::Limit, message).hint("use fewer patterns"));
        }
        let mut text = serde_json::Deserializer::from_str(json);
        let read = serde_path_to_error::deserialize(&mut text).map_err(|error| {
            let place = error.path().to_string();
            unreadable(&place, error.inner())
        })?;
        text.end().map_err(|error| unreadable(".", &error))?;
        Ok(read)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether all hold of a call, at a wall time.
    pub fn hold(&self, facts: &Facts, wall_ms: u64) -> Holds {
        if self.is_empty() {
            return Holds::Yes;
        }
        let checks = [
            self.path(facts),
            one_of("the command", &self.argv, &facts.argv, |pattern, argv| {
                pattern.covers(argv)
            }),
            one_of("the host", &self.hosts, &facts.host, |pattern, host| {
                pattern.covers(host)
            }),
            one_of("the method", &self.methods, &facts.method, |one, method| {
                one.covers(method)
            }),
            at_most("the number of bytes", self.max_bytes, facts.bytes),
            at_most("the number of things", self.max_count, facts.count),
            self.time(wall_ms),
        ];
        let mut unknown = None;
        for check in checks {
            match check {
                Holds::Yes => {}
                Holds::No(_) => return check,
                Holds::Unknown(_) => unknown = unknown.or(Some(check)),
            }
        }
        unknown.unwrap_or(Holds::Yes)
    }

    fn path(&self, facts: &Facts) -> Holds {
        let Some(globs) = &self.paths else {
            return Holds::Yes;
        };
        let Some(path) = &facts.path else {
            return Holds::Unknown("the path");
        };
        // What leads upwards leads nowhere that a glob could cover.
        let covered = |path: &str| globs.0.iter().any(|glob| glob.covers(path));
        match normal_path(path) {
            Some(normal) if covered(&normal) => Holds::Yes,
            _ => Holds::No(format!(
                "the path `{}` is not in {globs}",
                crate::escape::shown(path)
            )),
        }
    }

    fn time(&self, wall_ms: u64) -> Holds {
        if let Some(daily) = self.daily.filter(|daily| !daily.covers(wall_ms)) {
            return Holds::No(format!("it holds {daily} only"));
        }
        if self.not_before_ms.is_some_and(|from| wall_ms < from) {
            return Holds::No("its time has not come".to_owned());
        }
        if self.not_after_ms.is_some_and(|to| wall_ms >= to) {
            return Holds::No("its time is over".to_owned());
        }
        Holds::Yes
    }

    /// Whether these are provably at least as tight as `other`: what holds of these holds of it.
    pub fn within(&self, other: &Self) -> bool {
        tighter(&self.paths, &other.paths, |a, b| {
            a.within(b, PathGlob::within)
        }) && tighter(&self.argv, &other.argv, |a, b| {
            a.within(b, ArgvPattern::within)
        }) && tighter(&self.hosts, &other.hosts, |a, b| {
            a.within(b, HostPattern::within)
        }) && tighter(&self.methods, &other.methods, |a, b| {
            a.within(b, |a, b| a == b)
        }) && tighter(&self.max_bytes, &other.max_bytes, |a, b| a <= b)
            && tighter(&self.max_count, &other.max_count, |a, b| a <= b)
            && tighter(&self.daily, &other.daily, |a, b| a.within(*b))
            && tighter(&self.not_before_ms, &other.not_before_ms, |a, b| a >= b)
            && tighter(&self.not_after_ms, &other.not_after_ms, |a, b| a <= b)
    }

    /// These, with what they leave open taken from `other`.
    pub fn or(self, other: &Self) -> Self {
        Self {
            paths: self.paths.or_else(|| other.paths.clone()),
            argv: self.argv.or_else(|| other.argv.clone()),
            hosts: self.hosts.or_else(|| other.hosts.clone()),
            methods: self.methods.or_else(|| other.methods.clone()),
            max_bytes: self.max_bytes.or(other.max_bytes),
            max_count: self.max_count.or(other.max_count),
            daily: self.daily.or(other.daily),
            not_before_ms: self.not_before_ms.or(other.not_before_ms),
            not_after_ms: self.not_after_ms.or(other.not_after_ms),
        }
    }
}

impl fmt::Display for Constraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.paths.as_ref().map(|p| format!("paths {p}")),
            self.argv.as_ref().map(|p| format!("arguments {p}")),
            self.hosts.as_ref().map(|p| format!("hosts {p}")),
            self.methods.as_ref().map(|p| format!("methods {p}")),
            self.max_bytes.map(|n| format!("at most {n} bytes")),
            self.max_count.map(|n| format!("at most {n} things a call")),
            self.daily.map(|daily| daily.to_string()),
            self.not_before_ms.map(|ms| format!("not before {ms}")),
            self.not_after_ms.map(|ms| format!("not from {ms} on")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(&parts.join(", "))
    }
}

fn unreadable(place: &str, error: &serde_json::Error) -> SysError {
    let message = match place {
        "." => format!("the constraints do not fit: {error}"),
        place => format!("the constraints do not fit at `{place}`: {error}"),
    };
    SysError::new(Code::Invalid, message)
        .hint("use the fields of the JSON schema of constraints; leave out what is not meant")
}

fn one_of<T: fmt::Display, F>(
    what: &'static str,
    patterns: &Option<AnyOf<T>>,
    fact: &Option<F>,
    covers: impl Fn(&T, &F) -> bool,
) -> Holds {
    match (patterns, fact) {
        (None, _) => Holds::Yes,
        (Some(_), None) => Holds::Unknown(what),
        (Some(patterns), Some(fact)) if patterns.0.iter().any(|p| covers(p, fact)) => Holds::Yes,
        (Some(patterns), Some(_)) => Holds::No(format!("{what} is not {patterns}")),
    }
}

fn at_most(what: &'static str, most: Option<u64>, fact: Option<u64>) -> Holds {
    match (most, fact) {
        (None, _) => Holds::Yes,
        (Some(_), None) => Holds::Unknown(what),
        (Some(most), Some(fact)) if fact <= most => Holds::Yes,
        (Some(most), Some(fact)) => Holds::No(format!("{what}, {fact}, is over {most}")),
    }
}

fn tighter<T>(mine: &Option<T>, theirs: &Option<T>, is_in: impl Fn(&T, &T) -> bool) -> bool {
    match (mine, theirs) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(mine), Some(theirs)) => is_in(mine, theirs),
    }
}

#[cfg(test)]
mod tests;
