//! Commands about what processes remember.

use steward_kernel::Pid;
use steward_kernel::escape::shown;
use steward_kernel::object::{Namespace, ObjectInfo};

use super::Host;
use crate::surface::{ObjectView, Problem, Reply};

impl Host {
    pub(super) async fn objects(&self, pid: u64) -> Result<Reply, Problem> {
        self.kernel.process(Pid(pid)).await?;
        let own = Namespace::of_process(Pid(pid));
        let (oldest_first, _) = self.kernel.objects(own).await?;
        Ok(Reply::Objects {
            objects: oldest_first.into_iter().rev().map(view).collect(),
        })
    }
}

fn view(info: ObjectInfo) -> ObjectView {
    ObjectView {
        id: info.id.0,
        name: info.name.map(|name| shown(name.as_str())),
        namespace: info.namespace.as_str().to_owned(),
        kind: info.kind.as_str().to_owned(),
        version: info.version,
        bytes: info.bytes,
        creator: info.creator.0,
        created_ms: info.created_ms,
        immutable: info.immutable,
        kept: info.kept,
    }
}
