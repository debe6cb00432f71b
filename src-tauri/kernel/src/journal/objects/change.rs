//! Changes to objects, each within the transaction that ends its call.

use rusqlite::Connection;

use super::super::{At, CallId, Tx, failed, to_json, word};
use super::rows::{body, object, within};
use super::{NewObject, gone};
use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::human::sha256;
use crate::image::Seed;
use crate::object::{
    Link, NAMESPACE_BYTES_MOST, NAMESPACE_OBJECTS_MOST, Name, Namespace, ObjectId, ObjectInfo,
    Origin, Relation, VERSIONS_KEPT, View,
};
use crate::process::Pid;
use crate::provider::Digest;

/// What each process of an image knows from its start.
pub(crate) fn seed(
    tx: &Tx<'_>,
    process: &At,
    digest: &Digest,
    memory: Vec<Seed>,
) -> Result<(), SysError> {
    for seed in memory {
        let new = NewObject {
            namespace: Namespace::of_process(process.pid),
            name: Some(seed.name),
            kind: seed.kind,
            immutable: false,
            body: seed.text.into_bytes(),
            origin: Origin::Image {
                digest: digest.clone(),
            },
            made_from: Vec::new(),
        };
        make(tx, None, process, &new)?;
    }
    Ok(())
}

/// Makes an object and its first version.
pub(crate) fn create(
    tx: &Tx<'_>,
    call: CallId,
    at: &At,
    new: &NewObject,
) -> Result<ObjectInfo, SysError> {
    let id = make(tx, Some(call), at, new)?;
    for parent in &new.made_from {
        let link = Link {
            from: id,
            to: *parent,
            relation: Relation::MadeFrom,
        };
        add_link(tx, call, at, link)?;
    }
    there(tx, id)
}

fn make(tx: &Tx<'_>, call: Option<CallId>, at: &At, new: &NewObject) -> Result<ObjectId, SysError> {
    is_alive(tx, at.pid)?;
    if let Some(name) = &new.name
        && is_taken(tx, &new.namespace, name)?
    {
        let (name, namespace) = (shown(name.as_str()), &new.namespace);
        let message = format!("`{name}` is there already in `{namespace}`");
        return Err(SysError::new(Code::Exists, message).hint("update it, or use another name"));
    }
    has_room(tx, &new.namespace, new.body.len() as u64, true)?;
    tx.execute(
        "INSERT INTO object (namespace, name, kind, pid, run, version, bytes, immutable, at_ms)
         VALUES (?,?,?,?,?,0,0,?,?)",
        (
            new.namespace.as_str(),
            new.name.as_ref().map(Name::as_str),
            word(&new.kind),
            at.pid.0,
            at.run,
            new.immutable,
            at.now_ms,
        ),
    )
    .map_err(failed)?;
    let id = ObjectId(tx.last_insert_rowid().unsigned_abs());
    add_version(tx, call, at, id, 1, &new.body, &new.origin)?;
    Ok(id)
}

/// Gives an object its next version.
pub(crate) fn update(
    tx: &Tx<'_>,
    call: CallId,
    at: &At,
    id: ObjectId,
    base: Option<u32>,
    body: &[u8],
) -> Result<ObjectInfo, SysError> {
    is_alive(tx, at.pid)?;
    let now = there(tx, id)?;
    if now.immutable {
        return Err(SysError::new(
            Code::Invalid,
            format!("object `{id}` takes no further version"),
        )
        .hint("make another object, and link it as one that supersedes this"));
    }
    if base.is_some_and(|base| base != now.version) {
        let message = format!("object `{id}` has version `{}` by now", now.version);
        return Err(SysError::new(Code::Conflict, message)
            .hint("read it again and change what is there now"));
    }
    has_room(tx, &now.namespace, body.len() as u64, false)?;
    add_version(tx, Some(call), at, id, now.version + 1, body, &Origin::Call)?;
    there(tx, id)
}

/// Takes objects of one namespace over into another, as new ones with the same content; those that
/// are none, or whose content is gone, are left out.
pub(crate) fn merge(
    tx: &Tx<'_>,
    call: CallId,
    at: &At,
    objects: &[ObjectId],
    from: &Namespace,
    into: &Namespace,
) -> Result<Vec<ObjectInfo>, SysError> {
    let mut merged = Vec::new();
    for id in objects {
        let Some(old) = object(tx, *id, None)?.filter(|old| from.covers(&old.namespace)) else {
            continue;
        };
        let Some(body) = body(tx, *id, old.version)? else {
            continue;
        };
        let is_free = |name: &Name| is_taken(tx, into, name).map(|taken| !taken);
        let name = match old.name {
            Some(name) if is_free(&name)? => Some(name),
            _ => None,
        };
        let new = NewObject {
            namespace: into.clone(),
            name,
            kind: old.kind,
            immutable: old.immutable,
            body,
            origin: Origin::Merge { object: *id },
            made_from: vec![*id],
        };
        merged.push(create(tx, call, at, &new)?);
    }
    Ok(merged)
}

fn is_taken(tx: &Tx<'_>, namespace: &Namespace, name: &Name) -> Result<bool, SysError> {
    let sql = "SELECT COUNT(*) > 0 FROM object
               WHERE namespace = ?1 AND name = ?2 AND gone_ms IS NULL";
    tx.query_row(sql, (namespace.as_str(), name.as_str()), |r| r.get(0))
        .map_err(failed)
}

/// Takes an object away; how it came to be stays.
pub(crate) fn delete(tx: &Tx<'_>, id: ObjectId, now_ms: u64) -> Result<(), SysError> {
    there(tx, id)?;
    tx.execute("DELETE FROM object_payload WHERE object = ?1", [id.0])
        .map_err(failed)?;
    tx.execute(
        "UPDATE object SET gone_ms = ?2, bytes = 0 WHERE id = ?1",
        (id.0, now_ms),
    )
    .map(drop)
    .map_err(failed)
}

/// Marks an object as one that stays when its process ends.
pub(crate) fn keep(tx: &Tx<'_>, at: &At, id: ObjectId) -> Result<ObjectInfo, SysError> {
    is_alive(tx, at.pid)?;
    there(tx, id)?;
    tx.execute("UPDATE object SET kept = 1 WHERE id = ?1", [id.0])
        .map_err(failed)?;
    there(tx, id)
}

/// Ties an object to another, once.
pub(crate) fn add_link(tx: &Tx<'_>, call: CallId, at: &At, link: Link) -> Result<(), SysError> {
    tx.execute(
        "INSERT INTO object_link (from_, to_, relation, call, at_ms) VALUES (?,?,?,?,?)
         ON CONFLICT DO NOTHING",
        (
            link.from.0,
            link.to.0,
            link.relation.as_str(),
            call,
            at.now_ms,
        ),
    )
    .map(drop)
    .map_err(failed)
}

/// Keeps a view; one of the same name is replaced.
pub(crate) fn keep_view(
    tx: &Tx<'_>,
    at: &At,
    namespace: &Namespace,
    name: &Name,
    view: &View,
) -> Result<(), SysError> {
    is_alive(tx, at.pid)?;
    let key = (namespace.as_str(), name.as_str());
    tx.execute(
        "DELETE FROM view WHERE namespace = ?1 AND name = ?2 AND gone_ms IS NULL",
        key,
    )
    .map_err(failed)?;
    let views: u64 = tx
        .query_row(
            "SELECT COUNT(*) FROM view WHERE namespace = ?1",
            [key.0],
            |r| r.get(0),
        )
        .map_err(failed)?;
    if views >= NAMESPACE_OBJECTS_MOST {
        return Err(too_many(namespace, "views", NAMESPACE_OBJECTS_MOST));
    }
    tx.execute(
        "INSERT INTO view (namespace, name, spec, pid, at_ms) VALUES (?,?,?,?,?)",
        (key.0, key.1, to_json(view)?, at.pid.0, at.now_ms),
    )
    .map(drop)
    .map_err(failed)
}

fn add_version(
    tx: &Tx<'_>,
    call: Option<CallId>,
    at: &At,
    id: ObjectId,
    version: u32,
    body: &[u8],
    origin: &Origin,
) -> Result<(), SysError> {
    tx.execute(
        "INSERT INTO object_version (object, version, sha256, bytes, pid, call, origin, at_ms)
         VALUES (?,?,?,?,?,?,?,?)",
        (
            id.0,
            version,
            sha256(body).0,
            body.len(),
            at.pid.0,
            call,
            to_json(origin)?,
            at.now_ms,
        ),
    )
    .map_err(failed)?;
    tx.execute(
        "INSERT INTO object_payload (object, version, body) VALUES (?,?,?)",
        (id.0, version, body),
    )
    .map_err(failed)?;
    tx.execute(
        "DELETE FROM object_payload WHERE object = ?1 AND version + ?3 <= ?2",
        (id.0, version, VERSIONS_KEPT),
    )
    .map_err(failed)?;
    tx.execute(
        "UPDATE object SET version = ?2, bytes =
           (SELECT SUM(LENGTH(body)) FROM object_payload WHERE object = ?1) WHERE id = ?1",
        (id.0, version),
    )
    .map(drop)
    .map_err(failed)
}

fn is_alive(tx: &Tx<'_>, pid: Pid) -> Result<(), SysError> {
    let ended: bool = tx
        .query_row(
            "SELECT state IN ('exited','failed','killed') FROM process WHERE pid = ?1",
            [pid.0],
            |r| r.get(0),
        )
        .map_err(failed)?;
    if ended {
        return Err(SysError::new(Code::Interrupted, "the process has ended"));
    }
    Ok(())
}

/// Bounds what stands in all of a process's, a run's or a shared name's namespaces together.
fn has_room(
    tx: &Tx<'_>,
    namespace: &Namespace,
    bytes: u64,
    one_more: bool,
) -> Result<(), SysError> {
    let (at, from, to) = within(&namespace.root());
    let (objects, there): (u64, u64) = tx
        .query_row(
            "SELECT COUNT(*), COALESCE(SUM(bytes), 0) FROM object
             WHERE (namespace = ?1 OR (namespace > ?2 AND namespace < ?3)) AND gone_ms IS NULL",
            (at, from, to),
            |r| Ok((r.get(0)?, r.get(1)?)),
        )
        .map_err(failed)?;
    if one_more && objects >= NAMESPACE_OBJECTS_MOST {
        return Err(too_many(namespace, "objects", NAMESPACE_OBJECTS_MOST));
    }
    if there + bytes > NAMESPACE_BYTES_MOST {
        return Err(too_many(namespace, "bytes", NAMESPACE_BYTES_MOST));
    }
    Ok(())
}

fn too_many(namespace: &Namespace, what: &str, most: u64) -> SysError {
    let message = format!("`{}` holds `{most}` {what} at most", namespace.root());
    SysError::new(Code::Limit, message).hint("delete what is no longer needed")
}

fn there(db: &Connection, id: ObjectId) -> Result<ObjectInfo, SysError> {
    object(db, id, None)?.ok_or_else(|| gone(id))
}
