//! What surfaces see of objects. A person needs no right to what their agents remember.

use super::{Namespace, ObjectId, ObjectInfo};
use crate::error::{Code, SysError};
use crate::journal::objects::{self, ObjectQuery};
use crate::kernel::Kernel;

impl Kernel {
    /// The objects of a namespace and of all below it, oldest first, 1,000 at most; and how many
    /// more there are.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn objects(&self, namespace: Namespace) -> Result<(Vec<ObjectInfo>, u64), SysError> {
        let query = ObjectQuery {
            namespaces: self.inner.journal.namespaces(namespace).await?,
            kind: None,
            limit: 1_000,
        };
        self.inner.journal.objects(query).await
    }

    /// An object and its content, at its newest version.
    ///
    /// # Errors
    /// [`Code::NotFound`] where it is gone.
    pub async fn object(&self, id: ObjectId) -> Result<(ObjectInfo, Vec<u8>), SysError> {
        let journal = &self.inner.journal;
        let object = journal.object(id, None).await?;
        let object = object.ok_or_else(|| objects::gone(id))?;
        let body = journal.object_body(id, object.version).await?;
        let body = body.ok_or_else(|| {
            SysError::new(
                Code::NotFound,
                format!("the content of object `{id}` is gone"),
            )
        })?;
        Ok((object, body))
    }
}
