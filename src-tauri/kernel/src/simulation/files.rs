//! A file system in memory, with the rules of a real one that a kernel depends on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::human::sha256;
use crate::provider::{
    Change, Digest, Entry, FileBytes, FileKind, FileStat, Files, Listing, PathState, Plan, Target,
};

const FILE_MODE: u32 = 0o644;
const FOLDER_MODE: u32 = 0o755;

#[derive(Clone)]
enum Node {
    File(Arc<Vec<u8>>, u32),
    Folder,
}

#[derive(Default)]
struct Disk {
    nodes: BTreeMap<(PathBuf, String), Node>,
    versions: BTreeMap<Digest, Arc<Vec<u8>>>,
    applied: Vec<Plan>,
}

/// Files of any number of workspaces. There are no links here, and no devices.
#[derive(Clone, Default)]
pub struct MemoryFiles {
    disk: Arc<Mutex<Disk>>,
}

impl MemoryFiles {
    /// Puts a file there, as somebody else on the machine does.
    pub fn put(&self, root: &Path, path: &str, bytes: impl Into<Vec<u8>>) {
        let mut disk = self.lock();
        for folder in parents(path) {
            disk.nodes.insert((root.to_owned(), folder), Node::Folder);
        }
        let node = Node::File(Arc::new(bytes.into()), FILE_MODE);
        disk.nodes.insert((root.to_owned(), path.to_owned()), node);
    }

    /// A file's bytes, where there is one.
    pub fn bytes(&self, root: &Path, path: &str) -> Option<Vec<u8>> {
        match self.lock().node(root, path) {
            Some(Node::File(bytes, _)) => Some(bytes.to_vec()),
            _ => None,
        }
    }

    /// Every change that was applied, in order.
    pub fn applied(&self) -> Vec<Plan> {
        self.lock().applied.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk {
    fn node(&self, root: &Path, path: &str) -> Option<Node> {
        if path.is_empty() {
            return Some(Node::Folder);
        }
        self.nodes.get(&(root.to_owned(), path.to_owned())).cloned()
    }

    fn state(&self, root: &Path, path: &str) -> PathState {
        match self.node(root, path) {
            None => PathState::Absent,
            Some(Node::Folder) => PathState::Folder { mode: FOLDER_MODE },
            Some(Node::File(bytes, mode)) => PathState::File {
                sha256: sha256(&bytes),
                bytes: bytes.len() as u64,
                mode,
            },
        }
    }

    fn below<'a>(
        &'a self,
        root: &'a Path,
        path: &str,
    ) -> impl Iterator<Item = (&'a str, &'a Node)> {
        let prefix = if path.is_empty() {
            String::new()
        } else {
            format!("{path}/")
        };
        let here = self.nodes.iter().filter(move |((of, _), _)| of == root);
        here.filter_map(move |((_, at), node)| {
            let rest = at.strip_prefix(&prefix)?;
            (!rest.is_empty()).then_some((rest, node))
        })
    }

    fn plan(&mut self, root: &Path, change: &Change) -> Result<Plan, SysError> {
        let (path, to) = match change {
            Change::Write { path, .. }
            | Change::Mkdir { path }
            | Change::Delete { path }
            | Change::Restore { path, .. } => (inside(path)?, None),
            Change::Move { from, to } => (inside(from)?, Some(inside(to)?)),
        };
        let before = self.state(root, &path);
        let after = match (change, &before) {
            (Change::Write { .. } | Change::Restore { .. }, PathState::Folder { .. }) => {
                return Err(refused(Code::Exists, &path, "is a folder"));
            }
            (Change::Write { bytes, .. }, before) => PathState::File {
                sha256: sha256(bytes),
                bytes: bytes.len() as u64,
                mode: match before {
                    PathState::File { mode, .. } => *mode,
                    _ => FILE_MODE,
                },
            },
            (Change::Restore { sha256, mode, .. }, _) => PathState::File {
                sha256: sha256.clone(),
                bytes: self.version(sha256)?.len() as u64,
                mode: *mode,
            },
            (Change::Mkdir { .. }, PathState::Absent) => PathState::Folder { mode: FOLDER_MODE },
            (Change::Mkdir { .. }, _) => return Err(refused(Code::Exists, &path, "is there")),
            (_, PathState::Absent) => return Err(refused(Code::NotFound, &path, "is not there")),
            (Change::Delete { .. }, PathState::Folder { .. })
                if self.below(root, &path).next().is_some() =>
            {
                return Err(refused(
                    Code::Invalid,
                    &path,
                    "is a folder that is not empty",
                ));
            }
            _ => PathState::Absent,
        };
        let target = to.map(|to| Target {
            absolute: root.join(&to).to_string_lossy().into_owned(),
            before: self.state(root, &to),
            path: to,
        });
        if let Some(Target {
            path,
            before: PathState::Folder { .. },
            ..
        }) = &target
        {
            return Err(refused(Code::Exists, path, "is a folder"));
        }
        for state in [Some(&before), target.as_ref().map(|t| &t.before)]
            .into_iter()
            .flatten()
        {
            self.keep(root, state, &path, target.as_ref());
        }
        let goes = target.as_ref().map_or(&path, |t| &t.path);
        let makes = match change {
            Change::Delete { .. } => Vec::new(),
            _ => parents(goes)
                .filter(|folder| self.node(root, folder).is_none())
                .collect(),
        };
        Ok(Plan {
            absolute: root.join(&path).to_string_lossy().into_owned(),
            path,
            before,
            after,
            target,
            makes,
        })
    }

    /// Keeps the bytes that a change would remove.
    fn keep(&mut self, root: &Path, state: &PathState, path: &str, target: Option<&Target>) {
        if let PathState::File { sha256, .. } = state {
            for at in [Some(path), target.map(|t| t.path.as_str())]
                .into_iter()
                .flatten()
            {
                if let Some(Node::File(bytes, _)) = self.node(root, at) {
                    self.versions.insert(crate::human::sha256(&bytes), bytes);
                }
            }
            debug_assert!(self.versions.contains_key(sha256));
        }
    }

    fn version(&self, digest: &Digest) -> Result<Arc<Vec<u8>>, SysError> {
        self.versions
            .get(digest)
            .cloned()
            .ok_or_else(|| SysError::new(Code::NotFound, format!("version `{digest}` is not kept")))
    }

    fn apply(&mut self, root: &Path, change: &Change, plan: &Plan) -> Result<(), SysError> {
        if self.plan(root, change)? != *plan {
            return Err(refused(
                Code::Conflict,
                &plan.path,
                "changed since it was looked at",
            ));
        }
        let key = |path: &str| (root.to_owned(), path.to_owned());
        for folder in &plan.makes {
            self.nodes.insert(key(folder), Node::Folder);
        }
        match change {
            Change::Write { bytes, .. } => {
                let mode = match plan.after {
                    PathState::File { mode, .. } => mode,
                    _ => FILE_MODE,
                };
                self.nodes
                    .insert(key(&plan.path), Node::File(Arc::clone(bytes), mode));
            }
            Change::Restore { sha256, mode, .. } => {
                let bytes = self.version(sha256)?;
                self.nodes.insert(key(&plan.path), Node::File(bytes, *mode));
            }
            Change::Mkdir { .. } => {
                self.nodes.insert(key(&plan.path), Node::Folder);
            }
            Change::Delete { .. } => {
                self.nodes.remove(&key(&plan.path));
            }
            Change::Move { .. } => {
                let to = plan.target.as_ref().map_or("", |t| t.path.as_str());
                let inside: Vec<String> = self
                    .below(root, &plan.path)
                    .map(|(rest, _)| rest.to_owned())
                    .collect();
                for rest in inside {
                    if let Some(node) = self.nodes.remove(&key(&format!("{}/{rest}", plan.path))) {
                        self.nodes.insert(key(&format!("{to}/{rest}")), node);
                    }
                }
                if let Some(node) = self.nodes.remove(&key(&plan.path)) {
                    self.nodes.insert(key(to), node);
                }
            }
        }
        self.applied.push(plan.clone());
        Ok(())
    }
}

impl Files for MemoryFiles {
    fn workspace(&self, root: &Path) -> Result<PathBuf, SysError> {
        Ok(root.to_owned())
    }

    fn stat(&self, root: &Path, path: &str) -> Result<FileStat, SysError> {
        let path = inside(path)?;
        let (kind, bytes, mode) = match self.lock().node(root, &path) {
            None => return Err(refused(Code::NotFound, &path, "is not there")),
            Some(Node::Folder) => (FileKind::Folder, 0, FOLDER_MODE),
            Some(Node::File(bytes, mode)) => (FileKind::File, bytes.len() as u64, mode),
        };
        Ok(FileStat {
            path,
            kind,
            bytes,
            modified_ms: 0,
            mode,
        })
    }

    fn state(&self, root: &Path, path: &str) -> Result<PathState, SysError> {
        Ok(self.lock().state(root, &inside(path)?))
    }

    fn read(
        &self,
        root: &Path,
        path: &str,
        offset: u64,
        limit: u64,
    ) -> Result<FileBytes, SysError> {
        let path = inside(path)?;
        let Some(Node::File(bytes, _)) = self.lock().node(root, &path) else {
            return Err(refused(Code::NotFound, &path, "is no file that is there"));
        };
        let total = bytes.len();
        let from = usize::try_from(offset).unwrap_or(total).min(total);
        let most = usize::try_from(limit).unwrap_or(total).min(total - from);
        Ok(FileBytes {
            bytes: bytes[from..from + most].to_vec(),
            total: total as u64,
            sha256: (most == total).then(|| sha256(&bytes)),
        })
    }

    fn list(&self, root: &Path, path: &str, limit: usize) -> Result<Listing, SysError> {
        let path = inside(path)?;
        let disk = self.lock();
        if !matches!(disk.node(root, &path), Some(Node::Folder)) {
            return Err(refused(Code::NotFound, &path, "is no folder that is there"));
        }
        let mut entries: Vec<Entry> = disk
            .below(root, &path)
            .filter(|(rest, _)| !rest.contains('/'))
            .map(|(name, node)| Entry {
                name: name.to_owned(),
                kind: Some(match node {
                    Node::Folder => FileKind::Folder,
                    Node::File(..) => FileKind::File,
                }),
                bytes: match node {
                    Node::Folder => 0,
                    Node::File(bytes, _) => bytes.len() as u64,
                },
            })
            .collect();
        let left_out = entries.len().saturating_sub(limit) as u64;
        entries.truncate(limit);
        Ok(Listing {
            path,
            entries,
            left_out,
        })
    }

    fn plan(&self, root: &Path, change: &Change) -> Result<Plan, SysError> {
        self.lock().plan(root, change)
    }

    fn apply(&self, root: &Path, change: &Change, plan: &Plan) -> Result<(), SysError> {
        self.lock().apply(root, change, plan)
    }

    fn version(&self, sha256: &Digest, limit: u64) -> Result<Vec<u8>, SysError> {
        let bytes = self.lock().version(sha256)?;
        let most = usize::try_from(limit)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        Ok(bytes[..most].to_vec())
    }
}

/// A path within a workspace, normalised; one that leads out is refused.
fn inside(path: &str) -> Result<String, SysError> {
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !matches!(*part, "" | "."))
        .collect();
    if path.starts_with('/') || parts.contains(&"..") {
        return Err(refused(Code::Confined, path, "leads out of the workspace"));
    }
    Ok(parts.join("/"))
}

/// The folders above a path, outermost first.
fn parents(path: &str) -> impl Iterator<Item = String> {
    path.match_indices('/')
        .map(|(end, _)| path[..end].to_owned())
        .collect::<Vec<_>>()
        .into_iter()
}

fn refused(code: Code, path: &str, why: &str) -> SysError {
    SysError::new(code, format!("`{}` {why}", shown(path))).hint("look at the folder first")
}
