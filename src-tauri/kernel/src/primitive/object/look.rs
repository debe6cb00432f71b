//! `object.read`, `object.inspect`, `object.list`, `object.diff`.

use similar::TextDiff;

use super::{Reached, as_text, recorded};
use crate::capability::Right;
use crate::error::{Code, SysError};
use crate::journal::objects::ObjectQuery;
use crate::object::call::{
    Difference, ObjectDiff, ObjectHistory, ObjectInspect, ObjectList, ObjectRead, ObjectText,
    Objects,
};
use crate::primitive::{Ctx, Outcome, Primitive, by};

const READ_DEFAULT: u64 = 256 * 1024;
const READ_MOST: u64 = 1024 * 1024;
const LIST_DEFAULT: u32 = 100;
const LIST_MOST: u32 = 1_000;
/// Bytes that are compared at most, and bytes of a comparison that are told.
const DIFF_MOST: u64 = 256 * 1024;
const DIFF_TOLD: usize = 64 * 1024;

impl Primitive for ObjectRead {
    fn subject(&self) -> String {
        self.object.to_string()
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<ObjectText>, SysError> {
        let limit = super::super::bounded("limit", self.limit.unwrap_or(READ_DEFAULT), READ_MOST)?;
        ctx.may_reach(&self.object, Right::Read).await?;
        let _slot = ctx.turn().await?;
        let Reached { object, by } = ctx.reach(&self.object, self.version, Right::Read).await?;
        let mut text = as_text(&object, ctx.body(&object).await?)?;
        let cut = text.len() as u64 > limit;
        if cut {
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            text.truncate(text.floor_char_boundary(limit));
        }
        let detail = match cut {
            true => format!("{} bytes, the first {} read", object.bytes, text.len()),
            false => format!("{} bytes", object.bytes),
        };
        let record = recorded(&object, by);
        Ok(Outcome::new(ObjectText { object, text, cut }, detail).record(record))
    }
}

impl Primitive for ObjectInspect {
    fn subject(&self) -> String {
        self.object.to_string()
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<ObjectHistory>, SysError> {
        ctx.may_reach(&self.object, Right::Read).await?;
        let _slot = ctx.turn().await?;
        let Reached { object, by } = ctx.reach(&self.object, None, Right::Read).await?;
        let (versions, links) = ctx.inner.journal.object_history(object.id).await?;
        let detail = format!("version {}, {} links", object.version, links.len());
        let record = recorded(&object, by);
        let history = ObjectHistory {
            object,
            versions,
            links,
        };
        Ok(Outcome::new(history, detail).record(record))
    }
}

impl Primitive for ObjectList {
    fn subject(&self) -> String {
        self.namespace
            .as_ref()
            .map_or(String::new(), |n| n.to_string())
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Objects>, SysError> {
        let limit = self.limit.unwrap_or(LIST_DEFAULT);
        if !(1..=LIST_MOST).contains(&limit) {
            return Err(
                SysError::new(Code::Invalid, format!("`limit` is `{limit}`"))
                    .hint(format!("use a number from 1 to {LIST_MOST}")),
            );
        }
        let namespace = self.namespace.unwrap_or_else(|| ctx.own_namespace());
        ctx.may(&namespace, Right::Read).await?;
        let _slot = ctx.turn().await?;
        let verdict = ctx.may_still(&namespace, Right::Read).await?;
        // What lies below may be denied where what lies above is not: then it is not there.
        let namespaces = ctx.inner.journal.namespaces(namespace).await?;
        let mut allowed = Vec::with_capacity(namespaces.len());
        for namespace in namespaces {
            if ctx.may_still(&namespace, Right::Read).await.is_ok() {
                allowed.push(namespace);
            }
        }
        let query = ObjectQuery {
            namespaces: allowed,
            kind: self.kind,
            limit,
        };
        let (objects, left_out) = ctx.inner.journal.objects(query).await?;
        let detail = match left_out {
            0 => format!("{} objects", objects.len()),
            more => format!("{} objects, {more} left out", objects.len()),
        };
        let found = Objects { objects, left_out };
        Ok(Outcome::new(found, detail).record(by(verdict)))
    }
}

impl Primitive for ObjectDiff {
    fn subject(&self) -> String {
        match &self.with {
            Some(with) => format!("{} with {with}", self.object),
            None => self.object.to_string(),
        }
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Difference>, SysError> {
        ctx.may_reach(&self.object, Right::Diff).await?;
        if let Some(with) = &self.with {
            ctx.may_reach(with, Right::Diff).await?;
        }
        let _slot = ctx.turn().await?;
        let Reached { object, by } = ctx.reach(&self.object, self.version, Right::Diff).await?;
        let with = self.with.as_ref().unwrap_or(&self.object);
        let before = match (self.with.is_none(), self.with_version) {
            (true, None) => Some(object.version.saturating_sub(1).max(1)),
            (_, version) => version,
        };
        let other = ctx.reach(with, before, Right::Diff).await?.object;
        if let Some(long) = [&object, &other].into_iter().find(|o| o.bytes > DIFF_MOST) {
            let message = format!("object `{}` has `{}` bytes", long.id, long.bytes);
            return Err(SysError::new(Code::Limit, message)
                .hint(format!("compare objects of {DIFF_MOST} bytes at most")));
        }
        let old = as_text(&other, ctx.body(&other).await?)?;
        let new = as_text(&object, ctx.body(&object).await?)?;
        let mut text = TextDiff::from_lines(&old, &new)
            .unified_diff()
            .context_radius(3)
            .to_string();
        let cut = text.len() > DIFF_TOLD;
        text.truncate(text.floor_char_boundary(DIFF_TOLD));
        let same = object.sha256 == other.sha256;
        let detail = if same { "the same" } else { "they differ" };
        let with = format!(
            " with object {} version {}{}",
            other.id,
            other.version,
            super::super::by(by)
        );
        let record = format!(": object {} version {}{with}", object.id, object.version);
        Ok(Outcome::new(Difference { same, text, cut }, detail).record(record))
    }
}
