//! The object calls: what processes remember, looked at and changed under the rights to its
//! namespace.
//!
//! A name is no right: what may not be read is denied whether it is there or not, and a handle that
//! is none is told in the same words as one that is not the caller's.

mod files;
mod look;
mod make;
mod merge;
mod show;

use super::{Ctx, Outcome, json};
use crate::capability::{Need, Resource, Right, Verdict};
use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::journal::{At, CallState, Ended, Tx, objects};
use crate::object::call::{Named, ObjectRef};
use crate::object::{Namespace, OBJECT_MOST, ObjectId, ObjectInfo};

/// An object that the caller may reach, and by which right.
struct Reached {
    object: ObjectInfo,
    by: Verdict,
}

impl Ctx {
    fn own_namespace(&self) -> Namespace {
        Namespace::of_process(self.info.pid)
    }

    fn namespace_of(&self, named: &Named) -> Namespace {
        named
            .namespace
            .clone()
            .unwrap_or_else(|| self.own_namespace())
    }

    /// Lets it through, or asks the person where that is what is said.
    pub(super) async fn may(
        &self,
        namespace: &Namespace,
        right: Right,
    ) -> Result<Verdict, SysError> {
        self.check_need(need(namespace, right)).await
    }

    /// The same when the call's turn has come: nothing is asked any more.
    async fn may_still(&self, namespace: &Namespace, right: Right) -> Result<Verdict, SysError> {
        self.check_again(need(namespace, right)).await
    }

    /// Checks the right to an object, before the call waits for its turn.
    async fn may_reach(&self, object: &ObjectRef, right: Right) -> Result<(), SysError> {
        let namespace = self.lives_in(object).await?;
        self.may(&namespace, right)
            .await
            .map(drop)
            .map_err(|error| told_of(object, error))
    }

    /// An object at a version, once the call's turn has come.
    async fn reach(
        &self,
        object: &ObjectRef,
        version: Option<u32>,
        right: Right,
    ) -> Result<Reached, SysError> {
        let namespace = self.lives_in(object).await?;
        let by = self.may_still(&namespace, right).await;
        let by = by.map_err(|error| told_of(object, error))?;
        let journal = &self.inner.journal;
        let id = match object {
            ObjectRef::Handle(id) => *id,
            ObjectRef::Named(named) => {
                let found = journal.object_named(namespace.clone(), named.name.clone());
                found.await?.ok_or_else(|| {
                    let name = shown(named.name.as_str());
                    let message = format!("there is no `{name}` in `{namespace}`");
                    SysError::new(Code::NotFound, message).hint("list objects with object.list")
                })?
            }
        };
        let found = journal.object(id, version).await?;
        let object = found.ok_or_else(|| match version {
            Some(version) => {
                let message = format!("object `{id}` has no version `{version}`, or is gone");
                SysError::new(Code::NotFound, message).hint("look at it with object.inspect")
            }
            None => objects::gone(id),
        })?;
        Ok(Reached { object, by })
    }

    async fn lives_in(&self, object: &ObjectRef) -> Result<Namespace, SysError> {
        match object {
            ObjectRef::Named(named) => Ok(self.namespace_of(named)),
            ObjectRef::Handle(id) => {
                let namespace = self.inner.journal.object_namespace(*id).await?;
                namespace.ok_or_else(|| not_yours(*id))
            }
        }
    }

    /// The content of an object.
    async fn body(&self, object: &ObjectInfo) -> Result<Vec<u8>, SysError> {
        let body = self.inner.journal.object_body(object.id, object.version);
        body.await?.ok_or_else(|| {
            let (id, version) = (object.id, object.version);
            let message = format!("the content of version `{version}` of object `{id}` is gone");
            SysError::new(Code::NotFound, message).hint("read a newer version")
        })
    }

    /// Changes objects and ends the call, all or nothing.
    pub(super) async fn settle<T>(
        &self,
        work: impl FnOnce(&Tx<'_>, &At) -> Result<Outcome<T>, SysError> + Send + 'static,
    ) -> Result<Outcome<T>, SysError>
    where
        T: serde::Serialize + Send + 'static,
    {
        let (at, uses) = (self.at(), self.uses());
        let counted = !uses.is_empty();
        let done = self
            .inner
            .journal
            .settle(self.row.id, at.clone(), move |tx| {
                let done = work(tx, &at)?;
                uses.take(tx)?;
                let ended = Ended {
                    state: CallState::Done,
                    result: Ok(json(&done.output)?),
                    detail: done.detail.clone(),
                    record: format!("{}{}", done.detail, done.record),
                    tokens: 0,
                };
                Ok((done, ended))
            })
            .await?;
        if counted {
            self.uses_taken();
        }
        self.recorded
            .store(true, std::sync::atomic::Ordering::Release);
        Ok(done)
    }
}

fn need(namespace: &Namespace, right: Right) -> Need {
    let namespace = namespace.as_str().to_owned();
    Need::new(Resource::Objects { namespace }, right)
}

/// A handle that is denied is told as one that is none.
fn told_of(object: &ObjectRef, error: SysError) -> SysError {
    match object {
        ObjectRef::Handle(id) if error.code == Code::Denied => not_yours(*id),
        _ => error,
    }
}

fn not_yours(id: ObjectId) -> SysError {
    let message = format!("object `{id}` is not there, or not for this process");
    SysError::new(Code::Denied, message).hint("list objects with object.list")
}

fn fits(bytes: u64) -> Result<(), SysError> {
    if bytes <= OBJECT_MOST {
        return Ok(());
    }
    let message = format!("the content has `{bytes}` bytes, `{OBJECT_MOST}` is the most");
    Err(SysError::new(Code::Limit, message).hint("make several objects of it"))
}

fn as_text(object: &ObjectInfo, body: Vec<u8>) -> Result<String, SysError> {
    let text = String::from_utf8(body)
        .ok()
        .filter(|text| !text.contains('\0'));
    text.ok_or_else(|| {
        let message = format!("object `{}` is no text in UTF-8", object.id);
        SysError::new(Code::Invalid, message).hint("write it to a file with object.export")
    })
}

/// An object in the journal: by handle, version, size and digest.
fn recorded(object: &ObjectInfo, by: Verdict) -> String {
    let digest = super::short(&object.sha256);
    format!(
        ": object {} version {} in {}, sha256 {digest}{}",
        object.id,
        object.version,
        object.namespace,
        super::by(by)
    )
}
