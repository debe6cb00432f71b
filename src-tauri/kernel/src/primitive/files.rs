//! `fs.read`, `fs.list`, `fs.stat`: looking at a workspace.

use std::path::Path;

use super::noted::at_path;
use super::{Ctx, Outcome, Primitive, by, short};
use crate::capability::{Facts, Need, Right};
use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::provider::{FileKind, FileStat, Listing};
use crate::syscall::{FileText, FsList, FsRead, FsStat};

const READ_DEFAULT: u64 = 256 * 1024;
const READ_MOST: u64 = 1024 * 1024;
const LIST_DEFAULT: u32 = 1_000;
const LIST_MOST: u32 = 10_000;

impl Primitive for FsRead {
    fn subject(&self) -> String {
        shown(&self.path)
    }

    fn resource(&self, workspace: &Path) -> Option<String> {
        Some(at_path(workspace, &self.path))
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<FileText>, SysError> {
        let limit = bounded("limit", self.limit.unwrap_or(READ_DEFAULT), READ_MOST)?;
        let path = ctx.path(&self.path)?;
        let need = ctx.reading(&path, limit, 1);
        ctx.check_need(need.clone()).await?;
        let _slot = ctx.turn().await?;
        let verdict = ctx.check_again(need).await?;
        let file = ctx
            .blocking(move |files, root| files.read(&root, &path, 0, limit))
            .await?;
        let cut = file.total > file.bytes.len() as u64;
        let text = text(file.bytes, cut, &self.path)?;
        let sha = file.sha256.as_ref();
        let digest = sha.map_or(String::new(), |s| format!(", sha256 {}", short(s)));
        let part = if cut {
            format!(", the first {} read", text.len())
        } else {
            String::new()
        };
        let detail = format!("{} bytes{part}", file.total);
        let record = format!("{digest}{}", by(verdict));
        let sha256 = file.sha256.map(|s| s.0);
        Ok(Outcome::new(
            FileText {
                text,
                total: file.total,
                cut,
                sha256,
            },
            detail,
        )
        .record(record))
    }
}

impl Primitive for FsList {
    fn subject(&self) -> String {
        shown(&self.path)
    }

    fn resource(&self, workspace: &Path) -> Option<String> {
        Some(at_path(workspace, &self.path))
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Listing>, SysError> {
        let limit = self.limit.unwrap_or(LIST_DEFAULT);
        let limit = bounded("limit", limit.into(), LIST_MOST.into())?;
        let path = ctx.path(&self.path)?;
        let need = ctx.reading(&path, 0, limit);
        ctx.check_need(need.clone()).await?;
        let _slot = ctx.turn().await?;
        let verdict = ctx.check_again(need).await?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let listing = ctx
            .blocking(move |files, root| files.list(&root, &path, limit))
            .await?;
        let more = match listing.left_out {
            0 => String::new(),
            n => format!(", {n} left out"),
        };
        let count = match listing.entries.len() {
            1 => "1 entry".to_owned(),
            n => format!("{n} entries"),
        };
        Ok(Outcome::new(listing, format!("{count}{more}")).record(by(verdict)))
    }
}

impl Primitive for FsStat {
    fn subject(&self) -> String {
        shown(&self.path)
    }

    fn resource(&self, workspace: &Path) -> Option<String> {
        Some(at_path(workspace, &self.path))
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<FileStat>, SysError> {
        let path = ctx.path(&self.path)?;
        let need = ctx.reading(&path, 0, 1);
        ctx.check_need(need.clone()).await?;
        let _slot = ctx.turn().await?;
        let verdict = ctx.check_again(need).await?;
        let stat = ctx
            .blocking(move |files, root| files.stat(&root, &path))
            .await?;
        let what = match stat.kind {
            FileKind::File => format!("file, {} bytes", stat.bytes),
            FileKind::Folder => "folder".to_owned(),
        };
        Ok(Outcome::new(stat, what).record(by(verdict)))
    }
}

impl Ctx {
    /// What looking at a path needs.
    pub(super) fn reading(&self, path: &str, bytes: u64, count: u64) -> Need {
        let facts = Facts {
            path: Some(path.to_owned()),
            bytes: Some(bytes),
            count: Some(count),
            ..Facts::default()
        };
        Need::new(self.workspace(), Right::Read).with(facts)
    }
}

pub(super) fn bounded(what: &str, value: u64, most: u64) -> Result<u64, SysError> {
    if (1..=most).contains(&value) {
        return Ok(value);
    }
    Err(
        SysError::new(Code::Invalid, format!("`{what}` is `{value}`"))
            .hint(format!("use a number from 1 to {most}")),
    )
}

fn text(bytes: Vec<u8>, cut: bool, path: &str) -> Result<String, SysError> {
    let whole = match std::str::from_utf8(&bytes) {
        Ok(_) => bytes.len(),
        // A cut in the middle of a character is the cut's fault, not the file's.
        Err(e) if cut && e.error_len().is_none() => e.valid_up_to(),
        Err(_) => 0,
    };
    let readable = !bytes[..whole].contains(&0);
    if (whole == 0 && !bytes.is_empty()) || !readable {
        return Err(SysError::new(
            Code::Invalid,
            format!("`{}` is not a text file in UTF-8", shown(path)),
        )
        .hint("choose a text file"));
    }
    let mut bytes = bytes;
    bytes.truncate(whole);
    String::from_utf8(bytes).map_err(|e| SysError::new(Code::Internal, e.to_string()))
}
