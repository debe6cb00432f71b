//! What a person does to processes that are there.

use std::path::Path;

use crate::error::{Code, SysError};
use crate::journal::Message;
use crate::kernel::{Inner, Kernel};
use crate::process::{Pid, Signal, Urgency, folder_within};
use crate::provider::FileKind;

/// Bytes of a message at most.
const MESSAGE_MOST: usize = 64 * 1024;

impl Kernel {
    /// Sends a signal to a process.
    ///
    /// # Errors
    /// [`Code::NotFound`](Code::NotFound) for a number that is none,
    /// [`Code::Conflict`](Code::Conflict) where it has ended, or is to be interrupted and
    /// does not run.
    pub async fn signal(&self, pid: Pid, signal: Signal, by: &str) -> Result<(), SysError> {
        self.inner.signal(pid, signal, by).await
    }

    /// Sets how urgent a process is, from its next turn on. Children that it starts afterwards are
    /// as urgent.
    ///
    /// # Errors
    /// [`Code::Invalid`](Code::Invalid) for a class that is none,
    /// [`Code::NotFound`](Code::NotFound) for a number that is none,
    /// [`Code::Conflict`](Code::Conflict) where it has ended.
    pub async fn set_urgency(&self, pid: Pid, urgency: Urgency, by: &str) -> Result<(), SysError> {
        if urgency.priority > Urgency::LAST {
            let message = format!("there is no class `{}`", urgency.priority);
            let hint = format!("use 0 (first) to {}", Urgency::LAST);
            return Err(SysError::new(Code::Invalid, message).hint(hint));
        }
        let now_ms = self.inner.providers.clock.now_ms();
        let journal = &self.inner.journal;
        journal
            .set_urgency(pid, urgency, by.to_owned(), now_ms)
            .await?;
        if let Some(live) = self.inner.find(pid) {
            let info = live.update(|info| info.urgency = urgency);
            self.inner.tell_process(&info);
        }
        Ok(())
    }

    /// Sends a message of the person to a process.
    ///
    /// # Errors
    /// [`Code::NotFound`](crate::Code::NotFound) for a number that is none,
    /// [`Code::Conflict`](crate::Code::Conflict) where it has ended,
    /// [`Code::Limit`](crate::Code::Limit) where the message is too long or too many wait.
    pub async fn send(&self, pid: Pid, text: &str) -> Result<u64, SysError> {
        if text.len() > MESSAGE_MOST {
            let message = format!(
                "the message has `{}` bytes, `{MESSAGE_MOST}` is the most",
                text.len()
            );
            return Err(SysError::new(Code::Limit, message).hint("say it shorter"));
        }
        let message = Message {
            from: None,
            to: pid,
            text: text.to_owned(),
        };
        let now = self.inner.providers.clock.now_ms();
        let id = self.inner.journal.send(message, now).await?;
        self.inner.deliver(pid);
        Ok(id)
    }
}

impl Inner {
    /// Tells a process that waits for a message that there is one.
    pub(crate) fn deliver(&self, to: Pid) {
        if let Some(live) = self.find(to) {
            live.mail.notify_one();
        }
    }

    /// A folder of a workspace, as the person names it, which is there.
    pub(crate) async fn folder_of(
        &self,
        workspace: &Path,
        folder: &str,
    ) -> Result<String, SysError> {
        let folder = folder_within("", folder)?;
        if folder.is_empty() {
            return Ok(folder);
        }
        let (root, asked) = (workspace.to_owned(), folder.clone());
        let found = self
            .on_files(move |files| files.stat(&root, &asked))
            .await?;
        if found.kind == FileKind::Folder {
            return Ok(folder);
        }
        let message = format!("`{}` is no folder", crate::escape::shown(&folder));
        Err(SysError::new(Code::NotFound, message).hint("name a folder of the workspace"))
    }
}
