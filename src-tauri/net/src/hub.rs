//! Models from Hugging Face, by repository and file.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::download::{Progress, put};
use crate::error::Error;
use crate::http::{Client, Failed, shown, unexpected};
use crate::models::sha256;
use crate::transfer::{Part, Remote, Transfer};

/// Where to look where the environment says nothing else.
const ENDPOINT: &str = "https://huggingface.co";
/// Bytes of a repository's description at most.
const MAX_PAGE: u64 = 32 * 1024 * 1024;
/// Bytes of a model at most.
const MAX_BYTES: u64 = 1 << 40;
/// Files that are named where one has to be chosen.
const NAMED: usize = 40;

/// A repository, and which file of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubRef {
    owner: String,
    repo: String,
    pick: Pick,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pick {
    /// The only one there is.
    Only,
    /// The only one with this in its name, such as `Q4_K_M`.
    Like(String),
    /// Exactly this one.
    File(String),
}

impl HubRef {
    /// Reads `OWNER/REPO`, `OWNER/REPO:Q4_K_M`, `OWNER/REPO/FILE.gguf`, or such a file's address;
    /// `None` for what has not two parts.
    ///
    /// # Errors
    /// [`Error::Reference`] for a name that no repository or file can have.
    pub fn parse(text: &str) -> Result<Option<Self>, Error> {
        let mut path = text;
        for start in ["https://", "huggingface.co/", "hf.co/"] {
            path = path.strip_prefix(start).unwrap_or(path);
        }
        let mut parts = path.splitn(3, '/');
        let (Some(owner), Some(repo)) = (parts.next(), parts.next()) else {
            return Ok(None);
        };
        let (repo, tag) = match repo.split_once(':') {
            Some((repo, tag)) => (repo, Some(tag)),
            None => (repo, None),
        };
        let file = parts.next().map(|file| {
            let address = file.strip_prefix("resolve/main/");
            address
                .or_else(|| file.strip_prefix("blob/main/"))
                .unwrap_or(file)
        });
        let refuse = |why: &str| {
            Err(Error::Reference {
                text: text.to_owned(),
                why: why.to_owned(),
            })
        };
        if !is_name(owner) || !is_name(repo) {
            return refuse("an owner or a repository is of letters, digits, `.`, `_` and `-`");
        }
        let pick = match (file, tag) {
            (Some(_), Some(_)) => return refuse("it names both a file and what a file is like"),
            (Some(file), None) if is_path(file) => Pick::File(file.to_owned()),
            (Some(_), None) => return refuse("the file is not a `.gguf` of the repository"),
            (None, Some(tag)) if is_name(tag) => Pick::Like(tag.to_owned()),
            (None, Some(_)) => return refuse("what follows the colon is no part of a file's name"),
            (None, None) => Pick::Only,
        };
        Ok(Some(Self {
            owner: owner.to_owned(),
            repo: repo.to_owned(),
            pick,
        }))
    }

    /// `OWNER/REPO`.
    fn repository(&self) -> String {
        format!("{}/{}", self.owner, self.repo)
    }
}

fn is_name(text: &str) -> bool {
    (1..=96).contains(&text.len())
        && !text.starts_with(['.', '-'])
        && !text.contains("..")
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// A file's path in a repository: nothing in it leads anywhere else on a disk.
fn is_path(text: &str) -> bool {
    text.len() <= 512
        && text.to_ascii_lowercase().ends_with(".gguf")
        && text.split('/').count() <= 4
        && text.split('/').all(is_name)
}

/// What is kept beside a model that came from a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// `OWNER/REPO/FILE`.
    pub source: String,
    /// The commit that it was taken from.
    pub revision: String,
    /// Size of the file.
    pub bytes: u64,
    /// SHA-256 of the file.
    pub sha256: String,
    /// The licence that the repository names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
}

impl Origin {
    /// What is kept beside a file; `None` where nothing is, or nothing that can be read.
    pub fn beside(file: &Path) -> Option<Self> {
        toml::from_str(&std::fs::read_to_string(origin_path(file)).ok()?).ok()
    }

    /// Compares a file with what was kept of it.
    ///
    /// # Errors
    /// It cannot be read, or has another SHA-256.
    pub fn verify(&self, file: &Path) -> Result<(), Error> {
        let got = self.digest(file, &mut |_| {})?;
        if got == self.sha256 {
            return Ok(());
        }
        Err(Error::Hash {
            what: format!("`{}`", file.display()),
            expected: self.sha256.clone(),
            got,
            hint: format!("run `steward models get {}` to fetch it anew", self.source),
        })
    }

    /// Whether a file has the size and the SHA-256; what cannot be read has not.
    fn is(&self, file: &Path, progress: &mut dyn FnMut(Progress)) -> bool {
        std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.len() == self.bytes)
            && self
                .digest(file, progress)
                .is_ok_and(|got| got == self.sha256)
    }

    fn digest(&self, file: &Path, progress: &mut dyn FnMut(Progress)) -> Result<String, Error> {
        let open = std::fs::File::open(file).map_err(Error::disk("open", file))?;
        let total = self.bytes;
        let digest = sha256(open, |done| progress(Progress::Checking { done, total }));
        digest.map_err(Error::disk("read", file))
    }
}

fn origin_path(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".origin.toml");
    PathBuf::from(name)
}

/// Fetches models from a hub into a folder.
pub struct Hub {
    endpoint: Url,
    client: Client,
    models: PathBuf,
}

/// A repository's description.
#[derive(Debug, Deserialize)]
struct Page {
    sha: String,
    #[serde(rename = "cardData", default)]
    card: Option<Card>,
    #[serde(default)]
    siblings: Vec<Sibling>,
}

#[derive(Debug, Deserialize)]
struct Card {
    #[serde(default)]
    license: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct Sibling {
    rfilename: String,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    lfs: Option<Lfs>,
}

#[derive(Debug, Deserialize)]
struct Lfs {
    sha256: String,
    size: u64,
}

impl Hub {
    /// As the environment says: `HF_ENDPOINT` where it is not huggingface.co, `HF_TOKEN` for
    /// repositories that ask for consent. The token goes to the endpoint and nowhere else.
    pub fn from_env(models: PathBuf) -> Result<Self, Error> {
        let var = |name| {
            let value = std::env::var(name).ok();
            value
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
        };
        let endpoint = var("HF_ENDPOINT");
        Self::new(
            endpoint.as_deref().unwrap_or(ENDPOINT),
            var("HF_TOKEN").as_deref(),
            models,
        )
    }

    /// The hub at `endpoint`: by HTTPS, or by HTTP where it is on this computer.
    pub fn new(endpoint: &str, token: Option<&str>, models: PathBuf) -> Result<Self, Error> {
        let endpoint = crate::index::parse(endpoint)?;
        Ok(Self {
            client: Client::new(&endpoint)?.with_token(token),
            endpoint,
            models,
        })
    }

    /// Fetches a model; its path, `OWNER/REPO/FILE` in the models folder. Nothing is fetched where
    /// it is there and right.
    ///
    /// What has come stays in `<file>.part` when this ends early, and the next call goes on from
    /// there; the model appears under its name only whole and with the SHA-256 that the hub tells.
    ///
    /// # Errors
    /// [`Error::NoRepository`], [`Error::Choose`] where it is not clear which file is meant, and
    /// those of the connection and the disk.
    pub fn fetch(
        &self,
        wanted: &HubRef,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<PathBuf, Error> {
        progress(Progress::Looking);
        let page = self.page(wanted)?;
        let file = choose(wanted, &page)?;
        let source = format!("{}/{}", wanted.repository(), file.rfilename);
        let path = self.models.join(&source);
        let lfs = file.lfs.as_ref().ok_or_else(|| Error::Answer {
            url: shown(&self.endpoint),
            answer: format!("no SHA-256 for `{source}`"),
        })?;
        let origin = Origin {
            source: source.clone(),
            revision: page.sha.clone(),
            bytes: file.size.unwrap_or(lfs.size),
            sha256: lfs.sha256.to_ascii_lowercase(),
            licence: page.licence(),
        };
        if origin.is(&path, progress) {
            return Ok(path);
        }
        let folder = path.parent().unwrap_or(&self.models).to_owned();
        std::fs::create_dir_all(&folder).map_err(Error::disk("make the folder", &folder))?;
        let remote = Remote {
            url: self.address(&["resolve", &page.sha, &file.rfilename], wanted)?,
            filename: file.rfilename.clone(),
            bytes: Some(origin.bytes),
            sha256: Some(origin.sha256.clone()),
            most: origin.bytes.min(MAX_BYTES),
            by_hand: (file.rfilename.clone(), path.clone()),
            model: source,
        };
        let new = path.with_extension("gguf.part");
        let mut part = Part::open(new.clone(), &remote.model)?;
        let transfer = Transfer {
            client: &self.client,
            remote: &remote,
            cancel,
        };
        transfer.complete(&mut part, progress)?;
        part.check(&remote, progress)?;
        keep(&origin, &path)?;
        put(&new, &path, &folder)?;
        Ok(path)
    }

    fn page(&self, wanted: &HubRef) -> Result<Page, Error> {
        let mut url = self.endpoint.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts
                .pop_if_empty()
                .extend(["api", "models", &wanted.owner, &wanted.repo]);
        }
        url.set_query(Some("blobs=true"));
        let offline = |why: String| Error::Offline {
            url: shown(&url),
            why,
            by_hand: ("the file".to_owned(), self.models.join(wanted.repository())),
        };
        let response = match self.client.get(&url, "application/json", 0) {
            Ok(response) => response,
            Err(Failed::Offline(why)) => return Err(offline(why)),
            Err(Failed::Error(error)) => return Err(error),
        };
        match response.status().as_u16() {
            200 => {}
            401 | 403 | 404 => {
                return Err(Error::NoRepository {
                    repository: wanted.repository(),
                    endpoint: shown(&self.endpoint),
                });
            }
            _ => return Err(unexpected(&url, &response)),
        }
        let mut text = Vec::new();
        let mut body = response.into_body().into_reader().take(MAX_PAGE);
        body.read_to_end(&mut text)
            .map_err(|e| offline(e.to_string()))?;
        let nonsense = |why: String| Error::Answer {
            url: shown(&url),
            answer: format!("what is no description of a repository ({why})"),
        };
        let page: Page = serde_json::from_slice(&text).map_err(|e| nonsense(e.to_string()))?;
        if !is_name(&page.sha) {
            return Err(nonsense("it names no commit".to_owned()));
        }
        Ok(page)
    }

    fn address(&self, rest: &[&str], wanted: &HubRef) -> Result<Url, Error> {
        let mut url = self.endpoint.clone();
        match url.path_segments_mut() {
            Ok(mut parts) => {
                parts.pop_if_empty().extend([&wanted.owner, &wanted.repo]);
                parts.extend(rest.iter().flat_map(|part| part.split('/')));
            }
            Err(()) => {
                return Err(Error::Address {
                    url: shown(&self.endpoint),
                    why: "it has no path".to_owned(),
                });
            }
        }
        Ok(url)
    }
}

impl Page {
    fn licence(&self) -> Option<String> {
        let said = self.card.as_ref()?.license.as_ref()?;
        let said = said.as_str().or_else(|| said.get(0)?.as_str())?;
        is_name(said).then(|| said.to_owned())
    }
}

/// The file that is meant. What is in several parts cannot be used.
fn choose<'a>(wanted: &HubRef, page: &'a Page) -> Result<&'a Sibling, Error> {
    let usable = |sibling: &&Sibling| is_path(&sibling.rfilename);
    let fits = |sibling: &&Sibling| match &wanted.pick {
        Pick::Only => true,
        Pick::File(file) => sibling.rfilename == *file,
        Pick::Like(tag) => {
            let name = sibling.rfilename.to_ascii_lowercase();
            name.contains(&tag.to_ascii_lowercase())
        }
    };
    let all: Vec<&Sibling> = page.siblings.iter().filter(usable).collect();
    let fitting: Vec<&Sibling> = all.iter().copied().filter(|s| fits(s)).collect();
    let named: &[&Sibling] = if fitting.is_empty() { &all } else { &fitting };
    match fitting[..] {
        [file] if is_split(&file.rfilename) => Err(Error::Split {
            file: file.rfilename.clone(),
        }),
        [file] => Ok(file),
        _ => Err(Error::Choose {
            repository: wanted.repository(),
            fitting: fitting.len(),
            files: named
                .iter()
                .take(NAMED)
                .map(|sibling| sibling.rfilename.clone())
                .collect(),
        }),
    }
}

/// Whether it is one part of several: `…-00001-of-00003.gguf`.
fn is_split(name: &str) -> bool {
    let stem = name.trim_end_matches(".gguf");
    let mut parts = stem.rsplit('-');
    let number = |part: Option<&str>| {
        part.is_some_and(|part| part.len() == 5 && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    number(parts.next()) && parts.next() == Some("of") && number(parts.next())
}

fn keep(origin: &Origin, file: &Path) -> Result<(), Error> {
    let path = origin_path(file);
    let text = toml::to_string(origin).map_err(std::io::Error::other);
    text.and_then(|text| std::fs::write(&path, text))
        .map_err(Error::disk("write", &path))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn of(owner: &str, repo: &str, pick: Pick) -> Option<HubRef> {
        Some(HubRef {
            owner: owner.to_owned(),
            repo: repo.to_owned(),
            pick,
        })
    }

    #[test]
    fn a_file_is_named_in_several_ways() {
        let file = || Pick::File("a-q8_0.gguf".to_owned());
        let rows = [
            ("some-model", None),
            ("o/r", of("o", "r", Pick::Only)),
            ("o/r:Q4_K_M", of("o", "r", Pick::Like("Q4_K_M".to_owned()))),
            ("o/r/a-q8_0.gguf", of("o", "r", file())),
            ("hf.co/o/r/a-q8_0.gguf", of("o", "r", file())),
            (
                "https://huggingface.co/o/r/resolve/main/a-q8_0.gguf",
                of("o", "r", file()),
            ),
            (
                "https://huggingface.co/o/r/blob/main/a-q8_0.gguf",
                of("o", "r", file()),
            ),
            (
                "o/r/sub/a.gguf",
                of("o", "r", Pick::File("sub/a.gguf".to_owned())),
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(HubRef::parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_leads_elsewhere_is_refused() {
        for text in [
            "/etc/passwd",
            "../x",
            "o/..",
            "o/r/../../x.gguf",
            "o/r//x.gguf",
            "o/r/x.bin",
            "o/r:a/b.gguf",
            "o/r:",
            "o /r",
            "o/r/a b.gguf",
            "o/r/.hidden.gguf",
            "o/\u{202e}r",
        ] {
            let refused = HubRef::parse(text);
            assert!(matches!(refused, Err(Error::Reference { .. })), "{text}");
        }
    }

    #[test]
    fn parts_of_a_file_are_known() {
        assert!(is_split("m-00001-of-00003.gguf"));
        assert!(!is_split("m-1-of-3.gguf"));
        assert!(!is_split("Qwen3-0.6B-Q8_0.gguf"));
    }
}
