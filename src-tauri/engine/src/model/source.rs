use std::collections::BTreeSet;

use crate::gguf::{Gguf, GgufError, TensorType};

/// A tensor as it is stored.
#[derive(Debug)]
pub(crate) struct Stored<'a> {
    pub(crate) kind: TensorType,
    /// Sizes, the fastest-running first: a matrix is `[columns, rows]`.
    pub(crate) dims: &'a [usize],
    pub(crate) bytes: &'a [u8],
}

/// Where a model's tensors come from. They go by the names that GGUF gives them.
pub(crate) trait Source {
    /// A tensor, if there is one.
    fn find(&self, name: &str) -> Result<Option<Stored<'_>>, GgufError>;

    /// The tensor for an error's text, by the name that is stored.
    fn field(&self, name: &str) -> String;

    /// What the rotation of each pair is divided by, where no tensor says so.
    fn rope_factors(&self) -> Option<Vec<f32>>;

    /// A tensor that is not among those that are used, for an error's text.
    fn unused(&self, used: &BTreeSet<String>) -> Option<String>;

    /// A tensor that must have the given dimensions.
    fn shaped(&self, name: &str, dims: &[usize]) -> Result<Stored<'_>, GgufError> {
        let stored = self.find(name)?.ok_or_else(|| GgufError::Missing {
            field: self.field(name),
        })?;
        if stored.dims != dims {
            let problem = format!("is {:?}, not {dims:?} as the metadata says", stored.dims);
            return Err(GgufError::invalid(self.field(name), problem));
        }
        Ok(stored)
    }
}

impl Source for Gguf {
    fn find(&self, name: &str) -> Result<Option<Stored<'_>>, GgufError> {
        Ok(self.find_tensor(name).map(|info| Stored {
            kind: info.kind,
            dims: &info.dims,
            bytes: self.tensor_bytes(info),
        }))
    }

    fn field(&self, name: &str) -> String {
        format!("tensor `{name}`")
    }

    fn rope_factors(&self) -> Option<Vec<f32>> {
        None
    }

    fn unused(&self, used: &BTreeSet<String>) -> Option<String> {
        let mut names = self.tensor_names();
        names
            .find(|name| !used.contains(*name))
            .map(|name| self.field(name))
    }
}
