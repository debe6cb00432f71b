//! Models that other programs have fetched, used where they lie.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Folders below which models are looked for, and entries that are looked at, at most.
const DEEP: usize = 8;
const ENTRIES: usize = 50_000;
/// Bytes of an Ollama manifest at most.
const MANIFEST: u64 = 1 << 20;
/// What Ollama calls the layer that is the model.
const MODEL_LAYER: &str = "application/vnd.ollama.image.model";
/// Where Ollama has its own library, whose models are named without it.
const OLLAMA_LIBRARY: &str = "registry.ollama.ai/library/";

/// Whose folder a model is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keeper {
    /// Steward's own.
    Steward,
    /// The cache of Hugging Face's programs.
    HuggingFace,
    /// LM Studio's.
    LmStudio,
    /// Ollama's.
    Ollama,
}

impl Keeper {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steward => "Steward",
            Self::HuggingFace => "Hugging Face",
            Self::LmStudio => "LM Studio",
            Self::Ollama => "Ollama",
        }
    }
}

/// A GGUF file that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// How it is named in commands and the configuration: `OWNER/REPO/FILE.gguf`,
    /// `lmstudio:OWNER/REPO/FILE.gguf`, `ollama:NAME:TAG`, or a file's name.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Whose folder it is in.
    pub keeper: Keeper,
}

/// Where the programs of this machine keep their models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shelves {
    own: PathBuf,
    hugging_face: Vec<PathBuf>,
    lm_studio: Vec<PathBuf>,
    ollama: Vec<PathBuf>,
}

impl Shelves {
    /// As the environment says: `HF_HUB_CACHE`, `HF_HOME` and `OLLAMA_MODELS`, else below `HOME`.
    pub fn from_env(own: PathBuf) -> Self {
        Self::of(own, |name| std::env::var_os(name))
    }

    fn of(own: PathBuf, var: impl Fn(&str) -> Option<OsString>) -> Self {
        let var = |name: &str| {
            let value = var(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let home = var("HOME");
        let at_home = |below: &str| home.as_ref().map(|home| home.join(below));
        let hugging_face = var("HF_HUB_CACHE")
            .or_else(|| Some(var("HF_HOME")?.join("hub")))
            .or_else(|| at_home(".cache/huggingface/hub"));
        let lm_studio = [
            at_home(".lmstudio/models"),
            at_home(".cache/lm-studio/models"),
        ];
        let ollama = match var("OLLAMA_MODELS") {
            Some(folder) => vec![folder],
            None => [
                at_home(".ollama/models"),
                Some(PathBuf::from("/usr/share/ollama/.ollama/models")),
            ]
            .into_iter()
            .flatten()
            .collect(),
        };
        Self {
            own,
            hugging_face: hugging_face.into_iter().collect(),
            lm_studio: lm_studio.into_iter().flatten().collect(),
            ollama,
        }
    }

    /// All models there are, each name once: of two, Steward's own.
    pub fn all(&self) -> Vec<Found> {
        let mut all: BTreeMap<String, Found> = BTreeMap::new();
        let own = std::slice::from_ref(&self.own);
        let shelves = [
            (own, Keeper::Steward),
            (&self.hugging_face[..], Keeper::HuggingFace),
            (&self.lm_studio[..], Keeper::LmStudio),
        ];
        for (shelf, keeper) in shelves
            .into_iter()
            .flat_map(|(shelves, keeper)| shelves.iter().map(move |shelf| (shelf, keeper)))
        {
            for (path, bytes) in gguf_files(shelf) {
                let below = path.strip_prefix(shelf).ok().and_then(Path::to_str);
                let name = below.and_then(|below| match keeper {
                    Keeper::HuggingFace => hub_name(below),
                    Keeper::LmStudio => Some(format!("lmstudio:{below}")),
                    Keeper::Steward | Keeper::Ollama => Some(below.to_owned()),
                });
                if let Some(name) = name {
                    all.entry(name.clone()).or_insert(Found {
                        name,
                        path,
                        bytes,
                        keeper,
                    });
                }
            }
        }
        for shelf in &self.ollama {
            for found in ollama_models(shelf) {
                all.entry(found.name.clone()).or_insert(found);
            }
        }
        all.into_values().collect()
    }

    /// A file of exactly this content: Ollama and the Hugging Face cache name files by SHA-256.
    pub fn by_content(&self, sha256: &str, bytes: u64) -> Option<PathBuf> {
        let ollama = self
            .ollama
            .iter()
            .map(|shelf| shelf.join("blobs").join(format!("sha256-{sha256}")));
        let hugging_face = self.hugging_face.iter().flat_map(|shelf| {
            let repositories = std::fs::read_dir(shelf).into_iter().flatten().flatten();
            repositories
                .take(ENTRIES)
                .map(|repository| repository.path().join("blobs").join(sha256))
        });
        ollama.chain(hugging_face).find(|path| {
            std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() == bytes)
        })
    }
}

/// `models--OWNER--REPO/snapshots/COMMIT/FILE` as `OWNER/REPO/FILE`.
fn hub_name(below: &str) -> Option<String> {
    let mut parts = below.splitn(4, '/');
    let repository = parts.next()?.strip_prefix("models--")?;
    let (owner, repo) = repository.split_once("--")?;
    if parts.next()? != "snapshots" {
        return None;
    }
    let _commit = parts.next()?;
    Some(format!("{owner}/{repo}/{}", parts.next()?))
}

/// The GGUF files below a folder, with their sizes.
fn gguf_files(shelf: &Path) -> Vec<(PathBuf, u64)> {
    let is_gguf = |path: &PathBuf| {
        let end = path.extension();
        end.is_some_and(|end| end.eq_ignore_ascii_case("gguf"))
    };
    let files = files_below(shelf).into_iter().filter(is_gguf);
    files
        .filter_map(|path| {
            let meta = std::fs::metadata(&path).ok()?;
            meta.is_file().then_some((path, meta.len()))
        })
        .collect()
}

/// What is below a folder and is none itself. Links to files are among it, links to folders are not
/// followed.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    let mut looked = 0;
    while let Some((folder, depth)) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            looked += 1;
            if looked > ENTRIES {
                return files;
            }
            match entry.file_type() {
                Ok(kind) if !kind.is_dir() => files.push(entry.path()),
                Ok(_) if depth < DEEP => folders.push((entry.path(), depth + 1)),
                _ => (),
            }
        }
    }
    files.sort();
    files
}

/// The models that Ollama's manifests name.
fn ollama_models(shelf: &Path) -> Vec<Found> {
    #[derive(Deserialize)]
    struct Manifest {
        layers: Vec<Layer>,
    }
    #[derive(Deserialize)]
    struct Layer {
        #[serde(rename = "mediaType")]
        media_type: String,
        digest: String,
    }
    let manifests = shelf.join("manifests");
    let mut found = Vec::new();
    for path in files_below(&manifests) {
        let small = std::fs::metadata(&path).is_ok_and(|meta| meta.len() <= MANIFEST);
        let text = small.then(|| std::fs::read(&path).ok()).flatten();
        let Some(manifest) = text.and_then(|text| serde_json::from_slice::<Manifest>(&text).ok())
        else {
            continue;
        };
        let below = path.strip_prefix(&manifests).ok().and_then(Path::to_str);
        let Some((name, tag)) = below.and_then(|below| below.rsplit_once('/')) else {
            continue;
        };
        let name = name.strip_prefix(OLLAMA_LIBRARY).unwrap_or(name);
        let layer = manifest
            .layers
            .iter()
            .find(|layer| layer.media_type == MODEL_LAYER);
        let digest = layer.and_then(|layer| layer.digest.strip_prefix("sha256:"));
        let Some(digest) = digest.filter(|digest| is_sha256(digest)) else {
            continue;
        };
        let blob = shelf.join("blobs").join(format!("sha256-{digest}"));
        if let Ok(meta) = std::fs::metadata(&blob)
            && meta.is_file()
        {
            found.push(Found {
                name: format!("ollama:{name}:{tag}"),
                path: blob,
                bytes: meta.len(),
                keeper: Keeper::Ollama,
            });
        }
    }
    found
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn write(path: &Path, bytes: &[u8]) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn shelves(home: &Path) -> Shelves {
        Shelves::of(home.join("own"), |name| {
            (name == "HOME").then(|| home.as_os_str().to_owned())
        })
    }

    #[test]
    fn models_of_every_program_are_found_once() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        let digest = "ab".repeat(32);
        write(&home.join("own/here.gguf"), b"1");
        write(&home.join("own/o/r/m-q8_0.gguf"), b"22");
        write(&home.join("own/o/r/m-q8_0.gguf.origin.toml"), b"");
        let hub = home.join(".cache/huggingface/hub/models--o--r");
        write(&hub.join("blobs").join(&digest), b"333");
        let snapshot = hub.join("snapshots/c0ffee");
        std::fs::create_dir_all(&snapshot).unwrap();
        for name in ["m-q8_0.gguf", "m-q4_0.gguf"] {
            let blob = Path::new("../../blobs").join(&digest);
            std::os::unix::fs::symlink(blob, snapshot.join(name)).unwrap();
        }
        write(&home.join(".lmstudio/models/p/q/x.gguf"), b"4444");
        let ollama = home.join(".ollama/models");
        let manifest = format!(
            r#"{{"layers": [{{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:{digest}"}}]}}"#
        );
        for path in [
            "registry.ollama.ai/library/small/1b",
            "registry.ollama.ai/some/one/latest",
        ] {
            write(&ollama.join("manifests").join(path), manifest.as_bytes());
        }
        write(
            &ollama.join("manifests/registry.ollama.ai/library/bad/1"),
            b"{",
        );
        let escape = manifest.replace(&digest, "../../etc/passwd");
        write(
            &ollama.join("manifests/registry.ollama.ai/library/bad/2"),
            escape.as_bytes(),
        );
        write(&ollama.join(format!("blobs/sha256-{digest}")), b"55555");

        let all = shelves(home).all();
        let told: Vec<(&str, u64, Keeper)> = all
            .iter()
            .map(|found| (found.name.as_str(), found.bytes, found.keeper))
            .collect();
        assert_eq!(
            told,
            [
                ("here.gguf", 1, Keeper::Steward),
                ("lmstudio:p/q/x.gguf", 4, Keeper::LmStudio),
                ("o/r/m-q4_0.gguf", 3, Keeper::HuggingFace),
                ("o/r/m-q8_0.gguf", 2, Keeper::Steward),
                (
                    "ollama:registry.ollama.ai/some/one:latest",
                    5,
                    Keeper::Ollama
                ),
                ("ollama:small:1b", 5, Keeper::Ollama),
            ]
        );
    }

    #[test]
    fn what_is_named_by_its_content_is_found_by_it() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        let (first, second) = ("1".repeat(64), "2".repeat(64));
        let ollama = home.join(".ollama/models/blobs");
        write(&ollama.join(format!("sha256-{first}")), b"abc");
        let hub = home.join(".cache/huggingface/hub/models--o--r/blobs");
        write(&hub.join(&second), b"abcd");
        let shelves = shelves(home);
        assert!(shelves.by_content(&first, 3).is_some());
        assert!(shelves.by_content(&second, 4).is_some());
        assert_eq!(shelves.by_content(&first, 4), None);
        assert_eq!(shelves.by_content(&"3".repeat(64), 3), None);
    }

    #[test]
    fn a_loop_of_links_ends() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        write(&own.join("a/m.gguf"), b"1");
        std::os::unix::fs::symlink(&own, own.join("a/again")).unwrap();
        assert_eq!(shelves(folder.path()).all().len(), 1);
    }
}
