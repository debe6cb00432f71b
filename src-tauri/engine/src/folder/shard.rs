use std::ops::Range;

use memmap2::Mmap;
use safetensors::Dtype;
use safetensors::tensor::Metadata;

use crate::gguf::{GgufError, TensorType};

/// Bytes of a header at most; those of the largest models have some hundred thousand.
const MAX_HEADER: u64 = 100 << 20;

/// A mapped file of weights.
#[derive(Debug)]
pub(crate) struct Shard {
    map: Mmap,
    data: usize,
}

/// A tensor of a file of weights.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) shard: usize,
    dtype: Dtype,
    /// The fastest-running first.
    dims: Vec<usize>,
    bytes: Range<usize>,
}

impl Shard {
    /// Reads the directory of a mapped file, the `index`-th of the folder.
    pub(crate) fn read(
        map: Mmap,
        name: &str,
        index: usize,
    ) -> Result<(Self, Vec<(String, Entry)>), GgufError> {
        let damaged = |problem: String| {
            GgufError::invalid(format!("`{name}`"), format!("{problem}; download it again"))
        };
        let Some((prefix, rest)) = map.split_first_chunk::<8>() else {
            return Err(damaged(format!("`{}` bytes are no header", map.len())));
        };
        let header = u64::from_le_bytes(*prefix);
        if header > MAX_HEADER {
            return Err(GgufError::TooLarge {
                field: format!("the size of the header of `{name}`"),
                found: header,
                limit: MAX_HEADER,
            });
        }
        let Some((header, data)) = rest.split_at_checked(header as usize) else {
            let problem = format!(
                "its header needs `{header}` bytes and it has {}",
                rest.len()
            );
            return Err(damaged(problem));
        };
        // Not `SafeTensors::deserialize`, whose sum of the sizes may overflow.
        let metadata: Metadata =
            serde_json::from_slice(header).map_err(|error| damaged(error.to_string()))?;
        if metadata.data_len() != data.len() {
            let (needed, len) = (metadata.data_len(), data.len());
            let problem = format!("its tensors need `{needed}` bytes and it has {len}");
            return Err(damaged(problem));
        }
        let (data, len) = (map.len() - data.len(), data.len());
        let mut entries = Vec::new();
        for (name, info) in metadata.tensors() {
            let (start, end) = info.data_offsets;
            if start > end || end > len {
                return Err(damaged(format!(
                    "tensor `{name}` ends at byte `{end}` of {len}"
                )));
            }
            let entry = Entry {
                shard: index,
                dtype: info.dtype,
                dims: info.shape.iter().rev().copied().collect(),
                bytes: start..end,
            };
            entries.push((name, entry));
        }
        Ok((Self { map, data }, entries))
    }

    pub(crate) fn size(&self) -> usize {
        self.map.len()
    }

    /// The bytes of a tensor of this file.
    pub(crate) fn bytes(&self, entry: &Entry) -> &[u8] {
        &self.map[self.data..][entry.bytes.clone()]
    }
}

impl Entry {
    pub(crate) fn dims(&self) -> &[usize] {
        &self.dims
    }

    pub(crate) fn elements(&self) -> u64 {
        let dims = self.dims.iter().map(|&dim| dim as u64);
        dims.fold(1, u64::saturating_mul)
    }

    /// What the file calls the type.
    pub(crate) fn dtype(&self) -> &'static str {
        match self.dtype {
            Dtype::F32 => "F32",
            Dtype::F16 => "F16",
            Dtype::BF16 => "BF16",
            _ => "unknown",
        }
    }

    pub(crate) fn kind(&self) -> Result<TensorType, String> {
        match self.dtype {
            Dtype::F32 => Ok(TensorType::F32),
            Dtype::F16 => Ok(TensorType::F16),
            Dtype::BF16 => Ok(TensorType::BF16),
            other => Err(format!(
                "has type `{other:?}`: use a folder with F32, F16 or BF16 weights"
            )),
        }
    }
}
