//! A witness for tests: it signs by naming itself, which is enough to tell one key from another.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Mutex;

use super::chain::{Head, Sealed};
use crate::error::SysError;
use crate::provider::{Judgement, Witness};

pub(crate) struct Pen {
    key: &'static str,
    last: Mutex<Result<Option<Sealed>, SysError>>,
}

impl Pen {
    pub(crate) fn new(key: &'static str, last: Result<Option<Sealed>, SysError>) -> Self {
        let last = Mutex::new(last);
        Self { key, last }
    }

    /// One that remembers this head.
    pub(crate) fn holding(head: Head) -> Self {
        Self::new("mine", Ok(Some(Self::sign("mine", head))))
    }

    pub(crate) fn sign(key: &'static str, head: Head) -> Sealed {
        Sealed {
            head,
            key: key.to_owned(),
            signature: format!("{key} {}", String::from_utf8(head.statement()).unwrap()),
        }
    }

    pub(crate) fn remember(&self, last: Result<Option<Sealed>, SysError>) {
        *self.last.lock().unwrap() = last;
    }
}

impl Witness for Pen {
    fn seal(&self, head: &Head) -> Result<Option<Sealed>, SysError> {
        let sealed = Self::sign(self.key, *head);
        self.remember(Ok(Some(sealed.clone())));
        Ok(Some(sealed))
    }

    fn last(&self) -> Result<Option<Sealed>, SysError> {
        self.last.lock().unwrap().clone()
    }

    fn judge(&self, sealed: &Sealed) -> Judgement {
        if sealed.key != self.key {
            return Judgement::OtherKey;
        }
        if Self::sign(self.key, sealed.head) == *sealed {
            Judgement::Genuine
        } else {
            Judgement::Forged
        }
    }
}
