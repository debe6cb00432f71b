//! `process.merge`: a child's objects become its parent's.

use super::recorded;
use crate::capability::{Resource, Right};
use crate::error::{Code, SysError};
use crate::journal::objects::{self, ObjectQuery};
use crate::object::call::ProcessMerge;
use crate::object::{Namespace, ObjectId, ObjectInfo};
use crate::primitive::{Ctx, Outcome, Primitive};

/// Objects taken over by one call at most.
const MERGE_MOST: u32 = 1_000;

impl Primitive for ProcessMerge {
    fn subject(&self) -> String {
        match self.objects.len() {
            0 => format!("process {}, all objects", self.child),
            n => format!("process {}, {n} objects", self.child),
        }
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Vec<ObjectInfo>>, SysError> {
        ctx.check(Resource::Processes, Right::Use).await?;
        ctx.own_child(self.child).await?;
        let (from, into) = (Namespace::of_process(self.child), ctx.own_namespace());
        ctx.may(&into, Right::Write).await?;
        let _slot = ctx.turn().await?;
        let by = ctx.may_still(&into, Right::Write).await?;
        let objects = self.chosen(ctx, &from).await?;
        let call = ctx.row.id;
        ctx.settle(move |tx, at| {
            let merged = objects::merge(tx, call, at, &objects, &from, &into)?;
            let detail = format!("{} objects", merged.len());
            let record = merged.iter().map(|object| recorded(object, by)).collect();
            Ok(Outcome::new(merged, detail).record(record))
        })
        .await
    }
}

impl ProcessMerge {
    /// What is taken over: the objects named, or all that are there.
    async fn chosen(&self, ctx: &Ctx, from: &Namespace) -> Result<Vec<ObjectId>, SysError> {
        let journal = &ctx.inner.journal;
        if self.objects.is_empty() {
            let query = ObjectQuery {
                namespaces: journal.namespaces(from.clone()).await?,
                kind: None,
                limit: MERGE_MOST,
            };
            let (objects, left_out) = journal.objects(query).await?;
            if left_out > 0 {
                let all = objects.len() as u64 + left_out;
                return Err(too_many(all));
            }
            return Ok(objects.into_iter().map(|object| object.id).collect());
        }
        if self.objects.len() > MERGE_MOST as usize {
            return Err(too_many(self.objects.len() as u64));
        }
        for id in &self.objects {
            let namespace = journal.object_namespace(*id).await?;
            if !namespace.is_some_and(|namespace| from.covers(&namespace)) {
                let message = format!("object `{id}` is not one of process `{}`", self.child);
                return Err(SysError::new(Code::Denied, message)
                    .hint("name objects that the child has made for itself"));
            }
        }
        Ok(self.objects.clone())
    }
}

fn too_many(count: u64) -> SysError {
    let message = format!("`{count}` objects are to be taken over, `{MERGE_MOST}` is the most");
    SysError::new(Code::Limit, message).hint("name those that matter")
}
