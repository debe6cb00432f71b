//! `object.materialize`: a bounded context for a model.

use super::{Reached, as_text};
use crate::capability::Right;
use crate::error::{Code, SysError};
use crate::object::call::{ObjectMaterialize, ObjectRef};
use crate::object::compose::{Context, Fitting, Piece};
use crate::object::{ContextPolicy, ObjectInfo};
use crate::primitive::{Ctx, Outcome, Primitive};

/// Tokens of a context at most.
const TOKENS_MOST: u32 = 1_000_000;
/// Bytes of a view's objects together at most: all of them are read and counted.
const BYTES_MOST: u64 = 8 * 1024 * 1024;

impl Primitive for ObjectMaterialize {
    fn subject(&self) -> String {
        match &self.view {
            Some(view) => format!("view {view}"),
            None => format!("{} objects", self.objects.len()),
        }
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Context>, SysError> {
        if self.view.is_some() != self.objects.is_empty() {
            let message = "a context is made of one view, or of objects";
            return Err(SysError::new(Code::Invalid, message).hint("name either, not both"));
        }
        if let Some(view) = &self.view {
            ctx.may(&ctx.namespace_of(view), Right::Read).await?;
        }
        let (objects, policy) = self.chosen(ctx).await?;
        ctx.may_show(&objects).await?;
        let _slot = ctx.turn().await?;
        let budget = self.tokens.unwrap_or(policy.tokens);
        if !(1..=TOKENS_MOST).contains(&budget) {
            return Err(
                SysError::new(Code::Invalid, format!("`tokens` is `{budget}`"))
                    .hint(format!("use a number from 1 to {TOKENS_MOST}")),
            );
        }
        let reached = ctx.in_order(&objects).await?;
        let pieces = ctx.pieces(&reached).await?;
        let context = ctx.fit(&pieces, &policy, budget).await?;
        let shown = context.shown.len();
        let detail = match pieces.len() - shown {
            0 => format!("{} tokens of {shown} objects", context.tokens),
            out => format!(
                "{} tokens of {shown} objects, {out} left out",
                context.tokens
            ),
        };
        let record = format!(
            ", {budget} at most, sha256 {}",
            super::super::short(&crate::human::sha256(context.text.as_bytes()))
        );
        Ok(Outcome::new(context, detail).record(record))
    }
}

impl ObjectMaterialize {
    /// The objects to be shown, and how.
    async fn chosen(&self, ctx: &Ctx) -> Result<(Vec<ObjectRef>, ContextPolicy), SysError> {
        let Some(named) = &self.view else {
            return Ok((self.objects.clone(), ctx.policy(self.policy.clone()).await));
        };
        let namespace = ctx.namespace_of(named);
        ctx.may(&namespace, Right::Read).await?;
        let found = ctx
            .inner
            .journal
            .view(namespace.clone(), named.name.clone());
        let view = found.await?.ok_or_else(|| {
            let name = crate::escape::shown(named.name.as_str());
            let message = format!("there is no view `{name}` in `{namespace}`");
            SysError::new(Code::NotFound, message).hint("make it with object.view")
        })?;
        let policy = ctx.policy(self.policy.clone().or(view.policy)).await;
        let mut objects = Vec::with_capacity(view.objects.len());
        for id in view.objects {
            // An object may have gone since the view was made.
            if ctx.inner.journal.object(id, None).await?.is_some() {
                objects.push(ObjectRef::Handle(id));
            }
        }
        Ok((objects, policy))
    }
}

impl Ctx {
    /// The policy given, or that of the caller's image.
    async fn policy(&self, given: Option<ContextPolicy>) -> ContextPolicy {
        match given {
            Some(policy) => policy,
            None => self.inner.context_of(&self.info.image).await,
        }
    }

    async fn pieces(&self, reached: &[Reached]) -> Result<Vec<Piece>, SysError> {
        let bytes: u64 = reached.iter().map(|reached| reached.object.bytes).sum();
        if bytes > BYTES_MOST {
            let message = format!("the objects have `{bytes}` bytes, `{BYTES_MOST}` is the most");
            return Err(SysError::new(Code::Limit, message).hint("leave out the largest of them"));
        }
        let mut pieces = Vec::with_capacity(reached.len());
        for Reached { object, .. } in reached {
            pieces.push(self.piece(object).await?);
        }
        Ok(pieces)
    }

    async fn piece(&self, object: &ObjectInfo) -> Result<Piece, SysError> {
        let core = &self.inner.providers.core;
        let text = as_text(object, self.body(object).await?)?;
        let mut piece = Piece {
            object: object.id,
            kind: object.kind,
            name: object.name.as_ref().map(|name| name.as_str().to_owned()),
            version: object.version,
            tokens: core.count_tokens(text.clone()).await?,
            text,
            heading_tokens: 0,
        };
        piece.heading_tokens = core.count_tokens(piece.heading()).await?;
        Ok(piece)
    }

    async fn fit(
        &self,
        pieces: &[Piece],
        policy: &ContextPolicy,
        budget: u32,
    ) -> Result<Context, SysError> {
        let mut fitting = Fitting::new(pieces, policy, budget);
        loop {
            let draft = fitting.draft();
            let text = draft.text().to_owned();
            let tokens = match text.is_empty() {
                true => 0,
                false => self.inner.providers.core.count_tokens(text).await?,
            };
            if let Ok(context) = fitting.settle(draft, tokens) {
                return Ok(context);
            }
        }
    }
}
