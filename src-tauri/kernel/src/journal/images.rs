//! Rows about images that were registered. A version is written once and never changed: processes
//! that run from it are run again from it.

use rusqlite::{Connection, OptionalExtension};

use super::{At, Journal, Tx, failed, objects};
use crate::error::{Code, SysError};
use crate::image::Image;
use crate::provider::Digest;

const IMAGES_MOST: u64 = 1_000;

/// A registered image.
#[derive(Debug, Clone)]
pub(crate) struct ImageRow {
    pub name: String,
    pub version: u32,
    pub digest: Digest,
    pub yaml: String,
    pub at_ms: u64,
    pub by: String,
}

impl Journal {
    /// The newest version of every image, by name.
    pub(crate) async fn images(&self) -> Result<Vec<ImageRow>, SysError> {
        self.read(|db| {
            let sql = format!(
                "{SELECT} AS i WHERE version =
                   (SELECT MAX(version) FROM image WHERE name = i.name) ORDER BY name"
            );
            let mut found = db.prepare_cached(&sql).map_err(failed)?;
            found
                .query_map((), row)
                .and_then(Iterator::collect)
                .map_err(failed)
        })
        .await
    }

    /// A version of an image, the newest where none is named.
    pub(crate) async fn image(
        &self,
        name: String,
        version: Option<u32>,
    ) -> Result<Option<ImageRow>, SysError> {
        self.read(move |db| image(db, &name, version)).await
    }
}

/// Registers an image under a version that is greater than any its name had.
pub(crate) fn register(
    tx: &Tx<'_>,
    now_ms: u64,
    image: &Image,
    yaml: &str,
    by: &str,
) -> Result<ImageRow, SysError> {
    let (newest, all): (Option<u32>, u64) = tx
        .query_row(
            "SELECT (SELECT MAX(version) FROM image WHERE name = ?1), (SELECT COUNT(*) FROM image)",
            [&image.name],
            |r| Ok((r.get(0)?, r.get(1)?)),
        )
        .map_err(failed)?;
    if let Some(newest) = newest.filter(|newest| image.version <= *newest) {
        let message = format!("image `{}` has version `{newest}` already", image.name);
        return Err(SysError::new(Code::Exists, message)
            .hint(format!("give it a greater version, such as {}", newest + 1)));
    }
    if all >= IMAGES_MOST {
        let message = format!("`{IMAGES_MOST}` versions of images are the most");
        return Err(SysError::new(Code::Limit, message).hint("use an image that is there"));
    }
    let row = ImageRow {
        name: image.name.clone(),
        version: image.version,
        digest: image.digest(),
        yaml: yaml.to_owned(),
        at_ms: now_ms,
        by: by.to_owned(),
    };
    tx.execute(
        "INSERT INTO image (name, version, digest, yaml, at_ms, by_) VALUES (?,?,?,?,?,?)",
        (&row.name, row.version, &row.digest.0, yaml, row.at_ms, by),
    )
    .map_err(failed)?;
    Ok(row)
}

/// Gives a process that was just made what its image remembers.
pub(super) fn remember(tx: &Tx<'_>, exact: &str, process: &At) -> Result<(), SysError> {
    let (name, version) = parts(exact);
    // One that is built in has no version in its name, and remembers nothing.
    let Some(row) = version
        .map(|_| image(tx, name, version))
        .transpose()?
        .flatten()
    else {
        return Ok(());
    };
    match crate::image::read(&row.yaml) {
        Ok(image) => objects::seed(tx, process, &row.digest, image.memory),
        // The start of its program tells that it cannot be read.
        Err(_) => Ok(()),
    }
}

/// A name and the version behind its `@`.
pub(crate) fn parts(name: &str) -> (&str, Option<u32>) {
    match name.rsplit_once('@') {
        Some((name, version)) => (name, version.parse().ok().or(Some(0))),
        None => (name, None),
    }
}

const SELECT: &str = "SELECT name, version, digest, yaml, at_ms, by_ FROM image";

fn image(db: &Connection, name: &str, version: Option<u32>) -> Result<Option<ImageRow>, SysError> {
    let sql = format!(
        "{SELECT} WHERE name = ?1 AND version = COALESCE(?2, version) ORDER BY version DESC LIMIT 1"
    );
    db.query_row(&sql, (name, version), row)
        .optional()
        .map_err(failed)
}

fn row(r: &rusqlite::Row<'_>) -> rusqlite::Result<ImageRow> {
    Ok(ImageRow {
        name: r.get(0)?,
        version: r.get(1)?,
        digest: Digest(r.get(2)?),
        yaml: r.get(3)?,
        at_ms: r.get(4)?,
        by: r.get(5)?,
    })
}
