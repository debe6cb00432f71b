//! The registry: images that are built in and images that were registered, under one kind of name.
//!
//! A process keeps the exact image that it was started from: one that is built in by its name, one
//! that was registered by `NAME@VERSION`. So it is run again from the same after a restart, whatever
//! was registered since.

use std::sync::Arc;

use super::call::{ImageDetail, ImageInfo};
use super::{Image, read};
use crate::error::{Code, SysError};
use crate::escape::shown;
use crate::journal::images::{self, ImageRow, parts};
use crate::journal::{Audit, Row, append};
use crate::kernel::{Inner, Kernel};
use crate::object::ContextPolicy;
use crate::process::Pid;
use crate::program::Program;

impl ImageInfo {
    pub(crate) fn of(row: &ImageRow, image: &Image) -> Self {
        Self {
            name: row.name.clone(),
            version: row.version,
            digest: row.digest.clone(),
            about: image.about.clone(),
            built_in: false,
            by: row.by.clone(),
            at_ms: Some(row.at_ms),
        }
    }

    fn built_in(image: &Image) -> Self {
        Self {
            name: image.name.clone(),
            version: image.version,
            digest: image.digest(),
            about: image.about.clone(),
            built_in: true,
            by: "built in".to_owned(),
            at_ms: None,
        }
    }
}

impl Kernel {
    /// The images there are, those built in first.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn images(&self) -> Result<Vec<ImageInfo>, SysError> {
        self.inner.registry().await
    }

    /// An image with what it says; its newest version where none is named.
    ///
    /// # Errors
    /// [`Code::NotFound`] where there is none.
    pub async fn image(&self, name: &str, version: Option<u32>) -> Result<ImageDetail, SysError> {
        self.inner.registered(name, version).await
    }

    /// Registers an image in the person's name.
    ///
    /// # Errors
    /// It cannot be read, asks for what is not there, or has a version that is not new.
    pub async fn register_image(&self, yaml: &str) -> Result<ImageInfo, SysError> {
        let image = self.inner.readable(yaml)?;
        let now = self.inner.providers.clock.now_ms();
        let yaml = yaml.to_owned();
        let write = self.inner.journal.write(move |tx| {
            let row = images::register(tx, now, &image, &yaml, "person")?;
            let info = ImageInfo::of(&row, &image);
            append(tx, &registration(&info, now))?;
            Ok(info)
        });
        write.await
    }
}

impl Inner {
    pub(crate) async fn registry(&self) -> Result<Vec<ImageInfo>, SysError> {
        let mut all: Vec<ImageInfo> = self
            .built_in()
            .map(|(_, i)| ImageInfo::built_in(&i))
            .collect();
        for row in self.journal.images().await? {
            let image = read(&row.yaml).map_err(super::ImageError::into_sys)?;
            all.push(ImageInfo::of(&row, &image));
        }
        Ok(all)
    }

    pub(crate) async fn registered(
        &self,
        name: &str,
        version: Option<u32>,
    ) -> Result<ImageDetail, SysError> {
        let is = |image: &Image| image.name == name && version.is_none_or(|v| v == image.version);
        if let Some((yaml, image)) = self.built_in().find(|(_, image)| is(image)) {
            return Ok(ImageDetail {
                info: ImageInfo::built_in(&image),
                image,
                yaml: yaml.to_owned(),
            });
        }
        let row = self.journal.image(name.to_owned(), version).await?;
        let row = row.ok_or_else(|| no_image(name, version))?;
        let image = read(&row.yaml).map_err(super::ImageError::into_sys)?;
        Ok(ImageDetail {
            info: ImageInfo::of(&row, &image),
            image,
            yaml: row.yaml,
        })
    }

    /// An image that may be registered: readable, of tools that are there, under a free name.
    pub(crate) fn readable(&self, yaml: &str) -> Result<Image, SysError> {
        let image = read(yaml).map_err(super::ImageError::into_sys)?;
        let tools = self.images.tools();
        image
            .check_tools(yaml, &tools)
            .map_err(super::ImageError::into_sys)?;
        if self.images.program(&image.name).is_some() {
            let message = format!("image `{}` is built in", image.name);
            return Err(SysError::new(Code::Exists, message).hint("give it another name"));
        }
        self.images.make(&image)?;
        Ok(image)
    }

    /// The exact name of an image: as it is where it is built in or names its version, with the
    /// newest version where it was registered.
    pub(crate) async fn exact_image(&self, name: &str) -> Result<String, SysError> {
        if self.images.program(name).is_some() {
            return Ok(name.to_owned());
        }
        let (name, version) = parts(name);
        let row = self.journal.image(name.to_owned(), version).await?;
        let row = row.ok_or_else(|| no_image(name, version))?;
        Ok(format!("{}@{}", row.name, row.version))
    }

    /// The program of an image by its exact name, where there is one: none also of an image that
    /// names what this program no longer has.
    pub(crate) async fn program(&self, exact: &str) -> Result<Option<Arc<dyn Program>>, SysError> {
        if let Some(program) = self.images.program(exact) {
            return Ok(Some(program));
        }
        let (name, version) = parts(exact);
        let Some(row) = self.journal.image(name.to_owned(), version).await? else {
            return Ok(None);
        };
        let image = read(&row.yaml).ok();
        Ok(image.and_then(|image| self.images.make(&image).ok()))
    }

    /// An image by its exact name.
    pub(crate) async fn exactly(&self, exact: &str) -> Result<ImageDetail, SysError> {
        let (name, version) = parts(exact);
        self.registered(name, version).await
    }

    /// The version after the newest that a name has.
    pub(crate) async fn next_version(&self, name: &str) -> Result<u32, SysError> {
        let newest = self.journal.image(name.to_owned(), None).await?;
        Ok(newest.map_or(1, |row| row.version.saturating_add(1)))
    }

    /// How processes of an image put their memory before a model.
    pub(crate) async fn context_of(&self, exact: &str) -> ContextPolicy {
        let found = self.exactly(exact).await;
        found.map(|found| found.image.context).unwrap_or_default()
    }

    fn built_in(&self) -> impl Iterator<Item = (&'static str, Image)> {
        let all = self.images.built_in().into_iter();
        all.filter_map(|yaml| Some((yaml, read(yaml).ok()?)))
    }
}

/// The journal's row on an image that a person registered: of no process.
fn registration(info: &ImageInfo, now_ms: u64) -> Row<'static> {
    let ImageInfo {
        name,
        version,
        digest,
        ..
    } = info;
    Row {
        at_ms: now_ms,
        pid: Pid(0),
        run: 0,
        seq: None,
        kind: "outcome",
        name: "image.register",
        detail: format!("done: {name} version {version}, digest {digest}, by the person"),
        audit: Audit {
            resource: Some(format!("image {name}")),
            by: Some("person".to_owned()),
            ..Audit::default()
        },
    }
}

fn no_image(name: &str, version: Option<u32>) -> SysError {
    let version = version.map_or(String::new(), |version| format!(" of version `{version}`"));
    let message = format!("there is no image `{}`{version}", shown(name));
    SysError::new(Code::NotFound, message).hint("use the name of an image that is registered")
}
