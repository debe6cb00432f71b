//! Rows about objects: what they are, how they came to be, and apart from both what they hold.
//!
//! Contents stand in `object_payload` and nowhere else; they are wiped when an object goes. An
//! object goes when it is deleted and, unless it is kept, with whom its namespace belongs to: those
//! of `proc/PID` with that process, those of `run/RUN` with the run's first process.

mod change;
mod rows;

use rusqlite::OptionalExtension;

use super::{Journal, Tx, failed, from_json, to_json};
use crate::capability::{Grant, Resource, Right};
use crate::error::{Code, SysError};
use crate::object::{
    Link, Name, Namespace, ObjectId, ObjectInfo, ObjectKind, Origin, Version, View,
};
use crate::process::{Pid, RunId};

pub(crate) use change::{add_link, create, delete, keep, keep_view, merge, seed, update};
use rows::{Columns, IS_WITHIN, SELECT, body, columns, info, links, object, versions, within};

/// An object about to be made.
#[derive(Debug)]
pub(crate) struct NewObject {
    pub namespace: Namespace,
    pub name: Option<Name>,
    pub kind: ObjectKind,
    pub immutable: bool,
    pub body: Vec<u8>,
    pub origin: Origin,
    pub made_from: Vec<ObjectId>,
}

/// Which objects a list tells.
#[derive(Debug, Clone)]
pub(crate) struct ObjectQuery {
    pub namespaces: Vec<Namespace>,
    pub kind: Option<ObjectKind>,
    pub limit: u32,
}

impl Journal {
    /// The namespace of an object, also of one that is gone.
    pub(crate) async fn object_namespace(
        &self,
        id: ObjectId,
    ) -> Result<Option<Namespace>, SysError> {
        self.read(move |db| {
            db.query_row("SELECT namespace FROM object WHERE id = ?1", [id.0], |r| {
                r.get::<_, String>(0)
            })
            .optional()
            .map_err(failed)?
            .map(Namespace::new)
            .transpose()
        })
        .await
    }

    /// An object by its name, if it is there.
    pub(crate) async fn object_named(
        &self,
        namespace: Namespace,
        name: Name,
    ) -> Result<Option<ObjectId>, SysError> {
        self.read(move |db| {
            let sql =
                "SELECT id FROM object WHERE namespace = ?1 AND name = ?2 AND gone_ms IS NULL";
            db.query_row(sql, (namespace.as_str(), name.as_str()), |r| r.get(0))
                .optional()
                .map(|id| id.map(ObjectId))
                .map_err(failed)
        })
        .await
    }

    /// A version of an object, the newest where none is named, if both are there.
    pub(crate) async fn object(
        &self,
        id: ObjectId,
        version: Option<u32>,
    ) -> Result<Option<ObjectInfo>, SysError> {
        self.read(move |db| object(db, id, version)).await
    }

    /// The content of a version; none where it is gone.
    pub(crate) async fn object_body(
        &self,
        id: ObjectId,
        version: u32,
    ) -> Result<Option<Vec<u8>>, SysError> {
        self.read(move |db| body(db, id, version)).await
    }

    /// A namespace and those below it that have objects.
    pub(crate) async fn namespaces(&self, of: Namespace) -> Result<Vec<Namespace>, SysError> {
        self.read(move |db| {
            let sql = format!("SELECT DISTINCT o.namespace FROM object o WHERE {IS_WITHIN}");
            let mut found = db.prepare_cached(&sql).map_err(failed)?;
            let names: Vec<String> = found
                .query_map(within(&of), |r| r.get(0))
                .and_then(Iterator::collect)
                .map_err(failed)?;
            names.into_iter().map(Namespace::new).collect()
        })
        .await
    }

    /// Objects of exactly these namespaces, oldest first, and how many more there are.
    pub(crate) async fn objects(
        &self,
        query: ObjectQuery,
    ) -> Result<(Vec<ObjectInfo>, u64), SysError> {
        self.read(move |db| {
            let kind = query.kind.map(ObjectKind::as_str);
            let namespaces = to_json(&query.namespaces)?;
            let rest = "WHERE o.namespace IN (SELECT value FROM json_each(?1))
                          AND o.gone_ms IS NULL AND (?2 IS NULL OR o.kind = ?2)";
            let mut found = db
                .prepare_cached(&format!("{SELECT} {rest} ORDER BY o.id LIMIT ?3"))
                .map_err(failed)?;
            let rows: Vec<Columns> = found
                .query_map((&namespaces, kind, query.limit), columns)
                .and_then(Iterator::collect)
                .map_err(failed)?;
            let count = format!("SELECT COUNT(*) FROM object o {rest}");
            let all: u64 = db
                .query_row(&count, (&namespaces, kind), |r| r.get(0))
                .map_err(failed)?;
            let told = rows.len() as u64;
            let objects = rows.into_iter().map(info).collect::<Result<_, _>>()?;
            Ok((objects, all.saturating_sub(told)))
        })
        .await
    }

    /// The versions of an object, newest first, and its ties.
    pub(crate) async fn object_history(
        &self,
        id: ObjectId,
    ) -> Result<(Vec<Version>, Vec<Link>), SysError> {
        self.read(move |db| Ok((versions(db, id)?, links(db, id)?)))
            .await
    }

    /// A view that was kept.
    pub(crate) async fn view(
        &self,
        namespace: Namespace,
        name: Name,
    ) -> Result<Option<View>, SysError> {
        self.read(move |db| {
            let sql =
                "SELECT spec FROM view WHERE namespace = ?1 AND name = ?2 AND gone_ms IS NULL";
            let spec: Option<String> = db
                .query_row(sql, (namespace.as_str(), name.as_str()), |r| r.get(0))
                .optional()
                .map_err(failed)?;
            spec.map(|spec| from_json(&spec)).transpose()
        })
        .await
    }
}

/// The rights that a process has to its own objects, and a run's first process to those of the run:
/// capabilities like any other, which can be passed on and taken back.
pub(super) fn own_grants(pid: Pid, is_first: bool) -> Vec<Grant> {
    let mut own = vec![Namespace::of_process(pid)];
    if is_first {
        own.push(Namespace::of_run(pid.0));
    }
    let rights = [
        Right::Read,
        Right::Write,
        Right::Delete,
        Right::Link,
        Right::Diff,
        Right::Materialize,
    ];
    let grant = |namespace: Namespace| {
        let namespace = namespace.into();
        Grant::allow(Resource::Objects { namespace }, rights)
    };
    own.into_iter().map(grant).collect()
}

/// Takes away what lived with a process that ends: contents first of all.
pub(super) fn free(tx: &Tx<'_>, pid: Pid, run: RunId, now_ms: u64) -> Result<(), SysError> {
    let mut gone = vec![Namespace::of_process(pid)];
    if run == pid.0 {
        gone.push(Namespace::of_run(run));
    }
    for namespace in &gone {
        let (at, from, to) = within(namespace);
        for sql in [
            "DELETE FROM object_payload WHERE object IN (SELECT o.id FROM object o
               WHERE (o.namespace = ?1 OR (o.namespace > ?2 AND o.namespace < ?3))
                 AND o.gone_ms IS NULL AND o.kept = 0)",
            "DELETE FROM view
               WHERE namespace = ?1 OR (namespace > ?2 AND namespace < ?3)",
        ] {
            tx.execute(sql, (&at, &from, &to)).map_err(failed)?;
        }
        tx.execute(
            "UPDATE object SET gone_ms = ?4, bytes = 0
             WHERE (namespace = ?1 OR (namespace > ?2 AND namespace < ?3))
               AND gone_ms IS NULL AND kept = 0",
            (&at, &from, &to, now_ms),
        )
        .map_err(failed)?;
    }
    Ok(())
}

/// What is told of an object that is not there (any more).
pub(crate) fn gone(id: ObjectId) -> SysError {
    SysError::new(Code::NotFound, format!("object `{id}` is gone"))
        .hint("list objects with object.list")
}
