//! `image.list`, `image.inspect`, `image.register`, `image.commit`.

use super::{Ctx, Outcome, Primitive, by, short};
use crate::capability::{Need, Resource, Right, Verdict};
use crate::checkpoint::Scene;
use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::image::Seed;
use crate::image::call::{
    ImageCommit, ImageDetail, ImageInfo, ImageInspect, ImageList, ImageRegister,
};
use crate::journal::images;
use crate::object::{Name, Namespace, ObjectId, ObjectKind};
use crate::process::Pid;

impl Primitive for ImageList {
    fn subject(&self) -> String {
        String::new()
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<Vec<ImageInfo>>, SysError> {
        ctx.check(Resource::Images, Right::Read).await?;
        let _slot = ctx.turn().await?;
        let verdict = ctx
            .check_again(Need::new(Resource::Images, Right::Read))
            .await?;
        let list = ctx.inner.registry().await?;
        let detail = format!("{} images", list.len());
        Ok(Outcome::new(list, detail).record(by(verdict)))
    }
}

impl Primitive for ImageInspect {
    fn subject(&self) -> String {
        shown(&self.name)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<ImageDetail>, SysError> {
        ctx.check(Resource::Images, Right::Read).await?;
        let _slot = ctx.turn().await?;
        let verdict = ctx
            .check_again(Need::new(Resource::Images, Right::Read))
            .await?;
        let found = ctx.inner.registered(&self.name, self.version).await?;
        let detail = format!("version {}", found.info.version);
        let record = format!(", digest {}{}", short(&found.info.digest), by(verdict));
        Ok(Outcome::new(found, detail).record(record))
    }
}

impl Primitive for ImageRegister {
    fn subject(&self) -> String {
        let sha = crate::human::sha256(self.yaml.as_bytes());
        format!("{} bytes, sha256 {}", self.yaml.len(), short(&sha))
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<ImageInfo>, SysError> {
        ctx.check(Resource::Images, Right::Admin).await?;
        let _slot = ctx.turn().await?;
        let verdict = ctx
            .check_again(Need::new(Resource::Images, Right::Admin))
            .await?;
        ctx.register(self.yaml, verdict).await
    }
}

impl Primitive for ImageCommit {
    fn subject(&self) -> String {
        format!("{} of checkpoint {}", shown(&self.name), self.checkpoint)
    }

    async fn perform(self, ctx: &Ctx) -> Result<Outcome<ImageInfo>, SysError> {
        ctx.check(Resource::Images, Right::Admin).await?;
        let found = ctx.detail(self.checkpoint).await?;
        let memory = ctx.remembered(&found.scene, found.checkpoint.pid).await?;
        let _slot = ctx.turn().await?;
        let verdict = ctx
            .check_again(Need::new(Resource::Images, Right::Admin))
            .await?;
        let mut image = ctx.inner.exactly(&found.scene.image).await?.image;
        image.version = match self.version {
            Some(version) => version,
            None => ctx.inner.next_version(&self.name).await?,
        };
        image.name = self.name;
        image.about = self.about.unwrap_or(image.about);
        image.budget = found.scene.budget;
        image.memory = memory;
        ctx.register(image.to_yaml(), verdict).await
    }
}

impl Ctx {
    async fn register(
        &self,
        yaml: String,
        verdict: Verdict,
    ) -> Result<Outcome<ImageInfo>, SysError> {
        let image = self.inner.readable(&yaml)?;
        let issuer = format!("pid {}", self.info.pid);
        self.settle(move |tx, at| {
            let row = images::register(tx, at.now_ms, &image, &yaml, &issuer)?;
            let info = ImageInfo::of(&row, &image);
            let detail = format!("{} version {}", info.name, info.version);
            let record = format!(", digest {}{}", short(&info.digest), by(verdict));
            Ok(Outcome::new(info, detail).record(record))
        })
        .await
    }

    /// The texts that a process had in its own namespace at a checkpoint. Its goal is no memory.
    async fn remembered(&self, scene: &Scene, pid: Pid) -> Result<Vec<Seed>, SysError> {
        let own = Namespace::of_process(pid);
        self.may(&own, Right::Read).await?;
        let journal = &self.inner.journal;
        let mut memory = Vec::new();
        for then in &scene.objects {
            let version = u32::try_from(then.version).unwrap_or(u32::MAX);
            let (id, namespace) = (ObjectId(then.id), Namespace::new(then.namespace.clone())?);
            if !own.covers(&namespace) {
                continue;
            }
            let object = journal.object(id, Some(version)).await?;
            let body = journal.object_body(id, version).await?;
            let (Some(object), Some(body)) = (object, body) else {
                let message = format!("object `{id}` of the checkpoint is gone");
                return Err(SysError::new(Code::NotFound, message)
                    .hint("keep it with object.keep before its process ends"));
            };
            let Ok(text) = String::from_utf8(body) else {
                continue;
            };
            if object.kind == ObjectKind::Goal {
                continue;
            }
            let unnamed = || Name::new(format!("{} {id}", object.kind.as_str()));
            memory.push(Seed {
                kind: object.kind,
                name: object.name.clone().map_or_else(unnamed, Ok)?,
                text,
            });
        }
        Ok(memory)
    }
}
