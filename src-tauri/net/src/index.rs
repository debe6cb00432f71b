//! Finding a wheel in a Python package index, by its JSON form (PEP 691).

use std::collections::HashMap;
use std::io::Read;

use serde::Deserialize;
use url::Url;

use crate::error::Error;
use crate::http::{Client, Failed, shown, unexpected};

/// Where to look where the environment says nothing else.
pub(crate) const PYPI: &str = "https://pypi.org/simple";
const JSON: &str = "application/vnd.pypi.simple.v1+json";
/// Bytes of an index page at most.
const MAX_PAGE: u64 = 32 * 1024 * 1024;

/// A wheel, as the index tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wheel {
    pub(crate) filename: String,
    pub(crate) url: Url,
    pub(crate) bytes: Option<u64>,
    pub(crate) sha256: Option<String>,
}

/// The index that the environment names: `STEWARD_PYPI_INDEX`, else `PIP_INDEX_URL`, else PyPI.
pub(crate) fn from_env(var: impl Fn(&str) -> Option<String>) -> String {
    ["STEWARD_PYPI_INDEX", "PIP_INDEX_URL"]
        .iter()
        .filter_map(|name| var(name))
        .find(|value| !value.trim().is_empty())
        .map_or_else(|| PYPI.to_owned(), |value| value.trim().to_owned())
}

/// An index's address, checked.
pub(crate) fn parse(text: &str) -> Result<Url, Error> {
    let url = Url::parse(&format!("{}/", text.trim_end_matches('/')));
    url.map_err(|e| Error::Address {
        url: text.to_owned(),
        why: e.to_string(),
    })
}

/// Asks the index for the wheel of exactly this version.
pub(crate) fn find(
    client: &Client,
    index: &Url,
    package: &str,
    version: &str,
) -> Result<Wheel, Failed> {
    let page = index
        .join(&format!("{}/", normalised(package)))
        .map_err(|e| {
            Failed::Error(Error::Address {
                url: shown(index),
                why: e.to_string(),
            })
        })?;
    let response = client.get(&page, JSON, 0)?;
    let none = || Error::NoWheel {
        index: shown(index),
        package: package.to_owned(),
        version: version.to_owned(),
    };
    match response.status().as_u16() {
        200 => {}
        404 => return Err(Failed::Error(none())),
        _ => return Err(Failed::Error(unexpected(&page, &response))),
    }
    let mut text = Vec::new();
    let read = response
        .into_body()
        .into_reader()
        .take(MAX_PAGE)
        .read_to_end(&mut text);
    read.map_err(|e| Failed::Offline(e.to_string()))?;
    choose(&text, &page, package, version)
        .map_err(|why| {
            Failed::Error(Error::Answer {
                url: shown(&page),
                answer: why,
            })
        })?
        .ok_or_else(|| Failed::Error(none()))
}

/// The wheel in an index page. An `Err` says what is wrong with the page.
fn choose(page: &[u8], base: &Url, package: &str, version: &str) -> Result<Option<Wheel>, String> {
    #[derive(Deserialize)]
    struct Page {
        files: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        filename: String,
        url: String,
        #[serde(default)]
        hashes: HashMap<String, String>,
        size: Option<u64>,
    }
    let page: Page = serde_json::from_slice(page)
        .map_err(|e| format!("a page that is not the JSON of a package index ({e})"))?;
    let wanted = normalised(package);
    for entry in page.files {
        let Some(stem) = entry.filename.strip_suffix(".whl") else {
            continue;
        };
        let mut parts = stem.split('-');
        let (name, of) = (
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or_default(),
        );
        // It is shown to people: a name of other characters is none of ours.
        let plain = entry.filename.bytes().all(|b| b.is_ascii_graphic());
        if !plain || normalised(name) != wanted || of != version {
            continue;
        }
        let url = base
            .join(&entry.url)
            .map_err(|e| format!("a file without an address ({e})"))?;
        let sha256 = entry
            .hashes
            .get("sha256")
            .map(|hash| hash.to_ascii_lowercase());
        return Ok(Some(Wheel {
            filename: entry.filename,
            url,
            bytes: entry.size,
            sha256,
        }));
    }
    Ok(None)
}

/// A package's name as the index has it (PEP 503).
fn normalised(name: &str) -> String {
    let parts: Vec<&str> = name
        .split(['-', '_', '.'])
        .filter(|part| !part.is_empty())
        .collect();
    parts.join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn the_index_is_the_one_that_the_environment_names() {
        let rows: &[(&[(&str, &str)], &str)] = &[
            (&[], PYPI),
            (
                &[("PIP_INDEX_URL", "https://pip/simple")],
                "https://pip/simple",
            ),
            (
                &[
                    ("PIP_INDEX_URL", "https://pip"),
                    ("STEWARD_PYPI_INDEX", "https://own"),
                ],
                "https://own",
            ),
            (
                &[
                    ("STEWARD_PYPI_INDEX", " "),
                    ("PIP_INDEX_URL", "https://pip"),
                ],
                "https://pip",
            ),
        ];
        for (environment, outcome) in rows {
            let var = |name: &str| {
                environment
                    .iter()
                    .find(|(n, _)| *n == name)
                    .map(|(_, v)| (*v).to_owned())
            };
            assert_eq!(from_env(var), *outcome);
        }
    }

    #[test]
    fn the_wheel_of_exactly_the_version_is_chosen() {
        let page = br#"{"meta": {"api-version": "1.1"}, "name": "a-b", "files": [
            {"filename": "a_b-1.0.tar.gz", "url": "https://f/a_b-1.0.tar.gz", "hashes": {}},
            {"filename": "a_b-1.0.1-py3-none-any.whl", "url": "other.whl", "hashes": {}},
            {"filename": "A.B-1.0-py3-none-any.whl", "url": "../../packages/w.whl", "hashes": {"sha256": "AB"}, "size": 7}
        ]}"#;
        let base = Url::parse("https://index/simple/a-b/").unwrap();
        let wheel = Wheel {
            filename: "A.B-1.0-py3-none-any.whl".to_owned(),
            url: Url::parse("https://index/packages/w.whl").unwrap(),
            bytes: Some(7),
            sha256: Some("ab".to_owned()),
        };
        assert_eq!(choose(page, &base, "a-b", "1.0"), Ok(Some(wheel)));
        assert_eq!(choose(page, &base, "a-b", "2.0"), Ok(None));
        assert_eq!(choose(page, &base, "b", "1.0"), Ok(None));
        let html = choose(b"<html>", &base, "a-b", "1.0").unwrap_err();
        assert!(html.contains("not the JSON of a package index"), "{html}");
    }
}
