//! `object.create`, `object.update`, `object.delete`, `object.keep`, `object.link`, `object.view`.

use super::{Reached, fits, recorded};
use crate::capability::Right;
use crate::error::{Code, SysError};
use crate::journal::objects::{self, NewObject};
use crate::object::call::{
    ObjectCreate, ObjectDelete, ObjectKeep, ObjectLink, ObjectRef, ObjectUpdate, ObjectView,
    ViewInfo,
};
use crate::object::{Link, ObjectId, ObjectInfo, Origin, View};
use crate::primitive::{Ctx, Outcome, Primitive, by, short};

const MADE_FROM_MOST: usize = 16;
pub(super) const VIEW_MOST: usize = 256;

impl Primitive for ObjectCreate {
    fn subject(&self) -> String {
        let sha = crate::human::sha256(self.text.as_bytes());
        let (kind, bytes) = (self.kind.as_str(), self.text.len());
        format!("{kind}, {bytes} bytes, sha256 {}", short(&sha))
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<ObjectInfo>, SysError> {
        fits(self.text.len() as u64)?;
        if self.made_from.len() > MADE_FROM_MOST {
            let message = format!("it is made from `{}` objects", self.made_from.len());
            return Err(
                SysError::new(Code::Limit, message).hint(format!("name {MADE_FROM_MOST} at most"))
            );
        }
        let namespace = self.namespace.unwrap_or_else(|| ctx.own_namespace());
        ctx.may(&namespace, Right::Write).await?;
        for parent in &self.made_from {
            ctx.may_reach(&ObjectRef::Handle(*parent), Right::Link)
                .await?;
        }
        let _slot = ctx.turn().await?;
        for parent in &self.made_from {
            ctx.reach(&ObjectRef::Handle(*parent), None, Right::Link)
                .await?;
        }
        let by = ctx.may_still(&namespace, Right::Write).await?;
        let new = NewObject {
            namespace,
            name: self.name,
            kind: self.kind,
            immutable: self.immutable,
            body: self.text.into_bytes(),
            origin: Origin::Call,
            made_from: self.made_from,
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

impl Primitive for ObjectUpdate {
    fn subject(&self) -> String {
        let sha = crate::human::sha256(self.text.as_bytes());
        let (object, bytes) = (&self.object, self.text.len());
        format!("{object}, {bytes} bytes, sha256 {}", short(&sha))
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<ObjectInfo>, SysError> {
        fits(self.text.len() as u64)?;
        ctx.may_reach(&self.object, Right::Write).await?;
        let _slot = ctx.turn().await?;
        let Reached { object, by } = ctx.reach(&self.object, None, Right::Write).await?;
        let (call, base, text) = (ctx.row.id, self.base, self.text);
        ctx.settle(move |tx, at| {
            let object = objects::update(tx, call, at, object.id, base, text.as_bytes())?;
            let detail = format!("version {}, {} bytes", object.version, object.bytes);
            let record = recorded(&object, by);
            Ok(Outcome::new(object, detail).record(record))
        })
        .await
    }
}

impl Primitive for ObjectDelete {
    fn subject(&self) -> String {
        self.object.to_string()
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<()>, SysError> {
        ctx.may_reach(&self.object, Right::Delete).await?;
        let _slot = ctx.turn().await?;
        let Reached { object, by } = ctx.reach(&self.object, None, Right::Delete).await?;
        ctx.settle(move |tx, at| {
            objects::delete(tx, object.id, at.now_ms)?;
            Ok(Outcome::new((), "deleted").record(recorded(&object, by)))
        })
        .await
    }
}

impl Primitive for ObjectKeep {
    fn subject(&self) -> String {
        self.object.to_string()
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<ObjectInfo>, SysError> {
        ctx.may_reach(&self.object, Right::Write).await?;
        let _slot = ctx.turn().await?;
        let Reached { object, by } = ctx.reach(&self.object, None, Right::Write).await?;
        ctx.settle(move |tx, at| {
            let object = objects::keep(tx, at, object.id)?;
            let record = recorded(&object, by);
            Ok(Outcome::new(object, "kept").record(record))
        })
        .await
    }
}

impl Primitive for ObjectLink {
    fn subject(&self) -> String {
        format!("{} {} {}", self.from, self.relation.as_str(), self.to)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Link>, SysError> {
        ctx.may_reach(&self.from, Right::Link).await?;
        ctx.may_reach(&self.to, Right::Link).await?;
        let _slot = ctx.turn().await?;
        let from = ctx.reach(&self.from, None, Right::Link).await?;
        let to = ctx.reach(&self.to, None, Right::Link).await?;
        let link = Link {
            from: from.object.id,
            to: to.object.id,
            relation: self.relation,
        };
        if link.from == link.to {
            let message = format!("object `{}` cannot be linked to itself", link.from);
            return Err(SysError::new(Code::Invalid, message).hint("name two objects"));
        }
        let call = ctx.row.id;
        ctx.settle(move |tx, at| {
            objects::add_link(tx, call, at, link)?;
            let record = format!(": object {} to {}{}", link.from, link.to, by(from.by));
            Ok(Outcome::new(link, "linked").record(record))
        })
        .await
    }
}

impl Primitive for ObjectView {
    fn subject(&self) -> String {
        let name = crate::escape::shown(self.name.as_str());
        format!("{name}, {} objects", self.objects.len())
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<ViewInfo>, SysError> {
        let namespace = self.namespace.unwrap_or_else(|| ctx.own_namespace());
        ctx.may(&namespace, Right::Write).await?;
        ctx.may_show(&self.objects).await?;
        let _slot = ctx.turn().await?;
        let objects = ctx.in_order(&self.objects).await?;
        let ids: Vec<ObjectId> = objects.iter().map(|reached| reached.object.id).collect();
        let verdict = ctx.may_still(&namespace, Right::Write).await?;
        let name = self.name;
        let order = match &self.policy {
            Some(policy) => policy.in_words(),
            None => ctx.inner.context_of(&ctx.info.image).await.in_words(),
        };
        let view = View {
            objects: ids.clone(),
            policy: self.policy,
        };
        ctx.settle(move |tx, at| {
            objects::keep_view(tx, at, &namespace, &name, &view)?;
            let detail = format!("{} objects", ids.len());
            let info = ViewInfo {
                namespace,
                name,
                objects: ids,
                order,
            };
            Ok(Outcome::new(info, detail).record(by(verdict)))
        })
        .await
    }
}

impl Ctx {
    /// Checks the right to show each of these objects, before the call waits for its turn.
    pub(super) async fn may_show(&self, named: &[ObjectRef]) -> Result<(), SysError> {
        if named.len() > VIEW_MOST {
            let count = named.len();
            let message = format!("`{count}` objects are named, `{VIEW_MOST}` is the most");
            return Err(SysError::new(Code::Limit, message).hint("summarise the oldest of them"));
        }
        for object in named {
            self.may_reach(object, Right::Materialize).await?;
        }
        Ok(())
    }

    /// Objects that the caller may show to a model, each once, in the order given.
    pub(super) async fn in_order(&self, named: &[ObjectRef]) -> Result<Vec<Reached>, SysError> {
        let mut all: Vec<Reached> = Vec::with_capacity(named.len());
        for object in named {
            let reached = self.reach(object, None, Right::Materialize).await?;
            if all.iter().all(|other| other.object.id != reached.object.id) {
                all.push(reached);
            }
        }
        Ok(all)
    }
}
