//! `object.import` and `object.export`: between files and objects, past the model. Neither gives
//! back what it moved.

use std::sync::Arc;

use super::{fits, recorded};
use crate::capability::Right;
use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::journal::objects::{self, NewObject};
use crate::object::call::{ObjectExport, ObjectImport};
use crate::object::{OBJECT_MOST, ObjectInfo, Origin};
use crate::primitive::change::{Wanted, written};
use crate::primitive::{Ctx, Outcome, Primitive, json};
use crate::provider::Change;
use crate::syscall::Written;

impl Primitive for ObjectImport {
    fn subject(&self) -> String {
        shown(&self.path)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<ObjectInfo>, SysError> {
        let namespace = self.namespace.unwrap_or_else(|| ctx.own_namespace());
        ctx.may(&namespace, Right::Write).await?;
        let need = ctx.reading(&self.path, OBJECT_MOST, 1);
        ctx.check_need(need.clone()).await?;
        let _slot = ctx.turn().await?;
        ctx.check_again(need).await?;
        let path = self.path.clone();
        let file = ctx
            .blocking(move |files, root| files.read(&root, &path, 0, OBJECT_MOST))
            .await?;
        fits(file.total)?;
        let Some(sha256) = file.sha256 else {
            let message = format!("`{}` changed while it was read", shown(&self.path));
            return Err(SysError::new(Code::Conflict, message).hint("import it again"));
        };
        let by = ctx.may_still(&namespace, Right::Write).await?;
        let new = NewObject {
            namespace,
            name: self.name,
            kind: self.kind,
            immutable: false,
            body: file.bytes,
            origin: Origin::File {
                path: self.path,
                sha256,
            },
            made_from: Vec::new(),
        };
        let call = ctx.row.id;
        ctx.settle(move |tx, at| {
            let object = objects::create(tx, call, at, &new)?;
            let detail = format!("{} bytes", object.bytes);
            let record = recorded(&object, by);
            Ok(Outcome::new(object, detail).record(record))
        })
        .await
    }
}

impl Primitive for ObjectExport {
    fn subject(&self) -> String {
        format!("{} to {}", self.object, shown(&self.path))
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Written>, SysError> {
        let content = self.content(ctx).await;
        if let Err(error) = &content
            && ctx.settle_unknown().await?
        {
            // What was to be written is no longer there to be asked about.
            let message = format!(
                "it is not known whether `{}` was written before the program ended, and now {}",
                shown(&self.path),
                error.message
            );
            return Err(SysError::new(Code::Unknown, message).hint("look at the file"));
        }
        let (object, bytes) = content?;
        let change = Change::Write {
            path: self.path,
            bytes: Arc::new(bytes),
        };
        let wanted = Wanted {
            change,
            base: self.base,
        };
        let (plan, detail) = wanted.carry_out(ctx, |plan| json(&written(plan))).await?;
        let record = format!(", object {} version {}", object.id, object.version);
        Ok(Outcome::new(written(&plan), detail).record(record))
    }
}

impl ObjectExport {
    async fn content(&self, ctx: &Ctx) -> Result<(ObjectInfo, Vec<u8>), SysError> {
        ctx.may_reach(&self.object, Right::Read).await?;
        let reached = ctx.reach(&self.object, self.version, Right::Read).await?;
        let bytes = ctx.body(&reached.object).await?;
        Ok((reached.object, bytes))
    }
}
