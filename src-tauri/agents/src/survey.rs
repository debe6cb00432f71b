//! What stands in the workspace: the names a request can mean.

use steward_kernel::provider::FileKind;
use steward_kernel::syscall::FsList;
use steward_kernel::{Sys, SysError};

/// Folders that hold no documents of the person.
const PASSED_OVER: [&str; 4] = ["node_modules", "target", "__pycache__", "venv"];
const FOLDERS_AT_MOST: usize = 32;
const ENTRIES_AT_MOST: usize = 2_000;

/// Names in the workspace. They are data: they are compared with, never read as words of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    entries: Vec<Found>,
    /// Whether every folder was looked into.
    pub complete: bool,
}

/// One file or folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// Path within the workspace, `/`-separated.
    pub path: String,
    /// Whether it is a folder.
    pub folder: bool,
    /// Bytes of a file.
    pub bytes: u64,
}

impl Found {
    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The name without its extension.
    pub fn stem(&self) -> &str {
        match self.name().rsplit_once('.') {
            Some((stem, _)) if !stem.is_empty() && !self.folder => stem,
            _ => self.name(),
        }
    }
}

impl Survey {
    /// A survey of paths known already; a folder's path ends in `/`.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let mut survey = Self {
            entries: Vec::new(),
            complete: true,
        };
        for path in paths {
            let folder = path.ends_with('/');
            survey.add(Found {
                path: path.trim_end_matches('/').to_owned(),
                folder,
                bytes: 0,
            });
        }
        survey.entries.sort();
        survey
    }

    /// Walks the workspace, the nearest folders first, within a bound.
    pub async fn walk(sys: &Sys) -> Result<Self, SysError> {
        let mut survey = Self {
            entries: Vec::new(),
            complete: true,
        };
        let mut waiting = std::collections::VecDeque::from([String::new()]);
        let mut looked = 0;
        while let Some(folder) = waiting.pop_front() {
            if looked == FOLDERS_AT_MOST || survey.entries.len() >= ENTRIES_AT_MOST {
                survey.complete = false;
                break;
            }
            looked += 1;
            let listing = match sys
                .call(FsList {
                    path: folder.clone(),
                    limit: Some(500),
                })
                .await
            {
                Ok(listing) => listing,
                Err(error) if folder.is_empty() => return Err(error),
                Err(_) => {
                    survey.complete = false;
                    continue;
                }
            };
            survey.complete &= listing.left_out == 0;
            for entry in listing.entries {
                let Some(kind) = entry.kind else { continue };
                let hidden = entry.name.starts_with('.');
                let path = if folder.is_empty() {
                    entry.name
                } else {
                    format!("{folder}/{}", entry.name)
                };
                let found = Found {
                    path,
                    folder: kind == FileKind::Folder,
                    bytes: entry.bytes,
                };
                if found.folder && !hidden && !PASSED_OVER.contains(&found.name()) {
                    waiting.push_back(found.path.clone());
                }
                survey.add(found);
            }
        }
        survey.entries.sort();
        Ok(survey)
    }

    fn add(&mut self, found: Found) {
        if self.entries.len() < ENTRIES_AT_MOST {
            self.entries.push(found);
        }
    }

    /// Everything found, sorted by path.
    pub fn entries(&self) -> &[Found] {
        &self.entries
    }

    /// The files found.
    pub fn files(&self) -> impl Iterator<Item = &Found> {
        self.entries.iter().filter(|found| !found.folder)
    }

    /// The entry at exactly this path, letter case aside where nothing fits better.
    pub fn at(&self, path: &str) -> Option<&Found> {
        self.entries
            .iter()
            .find(|found| found.path == path)
            .or_else(|| {
                let path = path.to_lowercase();
                self.entries
                    .iter()
                    .find(|found| found.path.to_lowercase() == path)
            })
    }

    /// What a name can mean: the path itself, else entries of that name, else of that stem.
    pub fn meant(&self, name: &str) -> Vec<&Found> {
        if let Some(found) = self.at(name) {
            return vec![found];
        }
        if name.contains('/') {
            return Vec::new();
        }
        let name = name.to_lowercase();
        let named = |of: fn(&Found) -> &str| -> Vec<&Found> {
            self.entries
                .iter()
                .filter(|found| of(found).to_lowercase() == name)
                .collect()
        };
        let by_name = named(Found::name);
        if by_name.is_empty() {
            named(Found::stem)
        } else {
            by_name
        }
    }

    /// At most three existing paths whose name is close to one that is not there.
    pub fn close_to(&self, name: &str) -> Vec<&str> {
        let wanted = last_part(name).to_lowercase();
        let stem = wanted.split('.').next().unwrap_or(&wanted).to_owned();
        let mut near: Vec<(usize, &str)> = self
            .entries
            .iter()
            .filter_map(|found| {
                let there = found.name().to_lowercase();
                let distance = edits(&wanted, &there);
                let alike = distance * 3 <= wanted.chars().count().max(3)
                    || (stem.chars().count() >= 3 && there.contains(&stem));
                alike.then_some((distance, found.path.as_str()))
            })
            .collect();
        near.sort_unstable();
        near.truncate(3);
        near.into_iter().map(|(_, path)| path).collect()
    }
}

/// The last part of a path.
pub(crate) fn last_part(path: &str) -> &str {
    path.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(path)
}

/// Levenshtein distance, of at most 64 characters each.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(x != *y))
                .min(above + 1)
                .min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_its_path_then_a_name_then_a_stem() {
        let survey = Survey::of(["notes.md", "old/notes.md", "letters/", "letters/lease.txt"]);
        let meant = |name| {
            survey
                .meant(name)
                .iter()
                .map(|f| f.path.as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(meant("notes.md"), ["notes.md"]);
        assert_eq!(meant("LEASE.TXT"), ["letters/lease.txt"]);
        assert_eq!(meant("notes"), ["notes.md", "old/notes.md"]);
        assert_eq!(meant("letters"), ["letters"]);
        assert_eq!(meant("elsewhere/lease.txt"), [""; 0]);
        assert_eq!(survey.close_to("nots.md"), ["notes.md", "old/notes.md"]);
        assert_eq!(survey.close_to("completely-else.pdf"), [""; 0]);
    }
}
