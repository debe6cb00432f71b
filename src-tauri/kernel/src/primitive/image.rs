//! `image.list`, `image.inspect`, `image.register`.

use super::{Ctx, Outcome, Primitive, by, short};
use crate::capability::{Need, Resource, Right};
use crate::error::SysError;
use crate::escape::shown;
use crate::image::call::{ImageDetail, ImageInfo, ImageInspect, ImageList, ImageRegister};
use crate::journal::images;

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
        let image = ctx.inner.readable(&self.yaml)?;
        let (yaml, issuer) = (self.yaml, format!("pid {}", ctx.info.pid));
        ctx.settle(move |tx, at| {
            let row = images::register(tx, at.now_ms, &image, &yaml, &issuer)?;
            let info = ImageInfo::of(&row, &image);
            let detail = format!("{} version {}", info.name, info.version);
            let record = format!(", digest {}{}", short(&info.digest), by(verdict));
            Ok(Outcome::new(info, detail).record(record))
        })
        .await
    }
}
