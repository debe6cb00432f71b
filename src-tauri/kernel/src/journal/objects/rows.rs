//! Objects as rows: read, and made into what is told of them.

use rusqlite::{Connection, OptionalExtension};

use super::super::{failed, from_json, from_word};
use crate::error::SysError;
use crate::object::{Link, Name, Namespace, ObjectId, ObjectInfo, Origin, Version};
use crate::process::Pid;
use crate::provider::Digest;

const VERSIONS_TOLD: u32 = 100;
const LINKS_TOLD: u32 = 1_000;

pub(super) fn object(
    db: &Connection,
    id: ObjectId,
    version: Option<u32>,
) -> Result<Option<ObjectInfo>, SysError> {
    let sql = format!("{SELECT_VERSION} WHERE o.id = ?1 AND o.gone_ms IS NULL");
    db.query_row(&sql, (id.0, version), columns)
        .optional()
        .map_err(failed)?
        .map(info)
        .transpose()
}

pub(super) fn body(
    db: &Connection,
    id: ObjectId,
    version: u32,
) -> Result<Option<Vec<u8>>, SysError> {
    let sql = "SELECT body FROM object_payload WHERE object = ?1 AND version = ?2";
    db.query_row(sql, (id.0, version), |r| r.get(0))
        .optional()
        .map_err(failed)
}

pub(super) fn versions(db: &Connection, id: ObjectId) -> Result<Vec<Version>, SysError> {
    let sql = "SELECT v.version, v.sha256, v.bytes, v.pid, c.seq, v.origin, v.at_ms,
                 EXISTS (SELECT 1 FROM object_payload p
                         WHERE p.object = v.object AND p.version = v.version)
               FROM object_version v LEFT JOIN call c ON c.id = v.call
               WHERE v.object = ?1 ORDER BY v.version DESC LIMIT ?2";
    let mut found = db.prepare_cached(sql).map_err(failed)?;
    let rows: Vec<(Version, String)> = found
        .query_map((id.0, VERSIONS_TOLD), |r| {
            let version = Version {
                version: r.get(0)?,
                sha256: Digest(r.get(1)?),
                bytes: r.get(2)?,
                pid: Pid(r.get(3)?),
                call: r.get(4)?,
                origin: Origin::Call,
                at_ms: r.get(6)?,
                readable: r.get(7)?,
            };
            Ok((version, r.get(5)?))
        })
        .and_then(Iterator::collect)
        .map_err(failed)?;
    rows.into_iter()
        .map(|(version, origin)| {
            let origin = from_json(&origin)?;
            Ok(Version { origin, ..version })
        })
        .collect()
}

pub(super) fn links(db: &Connection, id: ObjectId) -> Result<Vec<Link>, SysError> {
    let sql = "SELECT from_, to_, relation FROM object_link WHERE from_ = ?1 OR to_ = ?1
               ORDER BY at_ms, from_, to_ LIMIT ?2";
    let mut found = db.prepare_cached(sql).map_err(failed)?;
    let rows: Vec<(u64, u64, String)> = found
        .query_map((id.0, LINKS_TOLD), |r| {
            Ok((r.get(0)?, r.get(1)?, r.get(2)?))
        })
        .and_then(Iterator::collect)
        .map_err(failed)?;
    rows.into_iter()
        .map(|(from, to, relation)| {
            Ok(Link {
                from: ObjectId(from),
                to: ObjectId(to),
                relation: from_word(relation)?,
            })
        })
        .collect()
}

/// A namespace, and the bounds between which all that lies below it is sorted.
pub(super) fn within(namespace: &Namespace) -> (String, String, String) {
    // `0` is what follows `/`.
    let (at, from, to) = (
        namespace.as_str(),
        format!("{namespace}/"),
        format!("{namespace}0"),
    );
    (at.to_owned(), from, to)
}

pub(super) const IS_WITHIN: &str =
    "(o.namespace = ?1 OR (o.namespace > ?2 AND o.namespace < ?3)) AND o.gone_ms IS NULL";

pub(super) const SELECT: &str =
    "SELECT o.id, o.namespace, o.name, o.kind, v.version, v.bytes, v.sha256,
    o.immutable, o.kept, o.pid, o.run, o.at_ms
  FROM object o JOIN object_version v ON v.object = o.id AND v.version = o.version";

const SELECT_VERSION: &str =
    "SELECT o.id, o.namespace, o.name, o.kind, v.version, v.bytes, v.sha256,
    o.immutable, o.kept, o.pid, o.run, o.at_ms
  FROM object o JOIN object_version v ON v.object = o.id AND v.version = COALESCE(?2, o.version)";

pub(super) struct Columns {
    id: u64,
    namespace: String,
    name: Option<String>,
    kind: String,
    version: u32,
    bytes: u64,
    sha256: String,
    immutable: bool,
    kept: bool,
    pid: u64,
    run: u64,
    at_ms: u64,
}

pub(super) fn columns(r: &rusqlite::Row<'_>) -> rusqlite::Result<Columns> {
    Ok(Columns {
        id: r.get(0)?,
        namespace: r.get(1)?,
        name: r.get(2)?,
        kind: r.get(3)?,
        version: r.get(4)?,
        bytes: r.get(5)?,
        sha256: r.get(6)?,
        immutable: r.get(7)?,
        kept: r.get(8)?,
        pid: r.get(9)?,
        run: r.get(10)?,
        at_ms: r.get(11)?,
    })
}

pub(super) fn info(row: Columns) -> Result<ObjectInfo, SysError> {
    Ok(ObjectInfo {
        id: ObjectId(row.id),
        namespace: Namespace::new(row.namespace)?,
        name: row.name.map(Name::new).transpose()?,
        kind: from_word(row.kind)?,
        version: row.version,
        bytes: row.bytes,
        sha256: Digest(row.sha256),
        immutable: row.immutable,
        kept: row.kept,
        creator: Pid(row.pid),
        run: row.run,
        created_ms: row.at_ms,
    })
}
