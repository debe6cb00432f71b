//! What processes are started from: the agents' images, and the program of an undo.

use std::path::PathBuf;
use std::sync::Arc;

use steward_kernel::escape::{shown, shown_lines};
use steward_kernel::image::Image;
use steward_kernel::image::call::ImageInfo;
use steward_kernel::{Images, Program, SysError};

use super::Host;
use crate::surface::{ImageDetail, ImageSource, ImageView, Problem, Reply};
use crate::undo;

/// The images that come with Steward.
pub(super) struct AllImages(steward_agents::Images);

impl AllImages {
    pub(super) fn new() -> Result<Self, Problem> {
        steward_agents::registry()
            .map(Self)
            .map_err(|e| Problem::new("internal", e.to_string()).hint("this build is faulty"))
    }
}

impl Images for AllImages {
    fn program(&self, image: &str) -> Option<Arc<dyn Program>> {
        if image == undo::IMAGE {
            return Some(Arc::new(undo::Undo));
        }
        self.0.program(image)
    }

    fn built_in(&self) -> Vec<&'static str> {
        self.0.built_in()
    }

    fn tools(&self) -> Vec<String> {
        self.0.tools()
    }

    fn make(&self, image: &Image) -> Result<Arc<dyn Program>, SysError> {
        self.0.make(image)
    }
}

/// Bytes of a file that defines an image at most; the kernel refuses less than that.
const FILE_MOST: u64 = 1024 * 1024;

impl Host {
    pub(super) async fn images(&self) -> Result<Reply, Problem> {
        let images = self.kernel.images().await?;
        Ok(Reply::Images {
            images: images.into_iter().map(view).collect(),
        })
    }

    pub(super) async fn image(&self, name: &str) -> Result<Reply, Problem> {
        let found = self.kernel.image(name, None).await?;
        Ok(Reply::Image(ImageDetail {
            image: view(found.info),
            yaml: shown_lines(&found.yaml),
        }))
    }

    pub(super) async fn register_image(&self, source: ImageSource) -> Result<Reply, Problem> {
        let yaml = match source {
            ImageSource::Yaml(yaml) => yaml,
            ImageSource::File(path) => self.text_of(PathBuf::from(path)).await?,
        };
        let registered = self.kernel.register_image(&yaml).await?;
        self.image(&registered.name).await
    }

    pub(super) fn image_schema() -> Reply {
        Reply::ImageSchema {
            schema: format!("{:#}", Image::schema()),
        }
    }

    /// The text of a file that the person names.
    async fn text_of(&self, path: PathBuf) -> Result<String, Problem> {
        let told = shown(&path.to_string_lossy());
        let name = path.file_name().and_then(|name| name.to_str());
        let (Some(folder), Some(name)) = (path.parent(), name) else {
            let message = format!("`{told}` names no file");
            return Err(Problem::new("invalid", message).hint("name a file of YAML"));
        };
        let (files, folder, name) = (Arc::clone(&self.files), folder.to_owned(), name.to_owned());
        let read = move || {
            let root = files.workspace(&folder)?;
            files.read(&root, &name, 0, FILE_MOST)
        };
        let read = tokio::task::spawn_blocking(read)
            .await
            .map_err(|e| Problem::new("internal", format!("the file provider stopped: {e}")))??;
        String::from_utf8(read.bytes).map_err(|_| {
            Problem::new("invalid", format!("`{told}` is not UTF-8")).hint("name a file of YAML")
        })
    }
}

fn view(info: ImageInfo) -> ImageView {
    ImageView {
        name: info.name,
        version: info.version,
        digest: info.digest.0,
        about: shown(&info.about),
        built_in: info.built_in,
        by: info.by,
        at_ms: info.at_ms,
    }
}
