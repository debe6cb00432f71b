//! Reading GGUF files (versions 2 and 3), after the format's specification in the ggml project.
//!
//! A file is untrusted input: every count, length, offset and alignment is checked before it is
//! used, nothing is allocated by a figure that the file could not back with bytes, and an error
//! names the field.

mod cursor;
mod error;
mod tensor;
mod value;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

pub(crate) use cursor::Cursor;
pub use error::GgufError;
pub(crate) use tensor::{TensorInfo, TensorType};
use value::Kind;
pub(crate) use value::Value;

const MAGIC: [u8; 4] = *b"GGUF";
const DEFAULT_ALIGNMENT: u64 = 32;
const MAX_ALIGNMENT: u64 = 1 << 20;
const MAX_ENTRIES: u64 = 1 << 16;

/// A mapped GGUF file with its directory read.
#[derive(Debug)]
pub(crate) struct Gguf {
    map: Mmap,
    metadata: BTreeMap<String, Value>,
    tensors: BTreeMap<String, TensorInfo>,
    data: usize,
}

impl Gguf {
    /// Maps a file; nothing of it is interpreted yet.
    pub(crate) fn map(path: &Path) -> io::Result<Mmap> {
        // A mapping must not be of a directory or a device, which `File::open` would let pass.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            ));
        }
        #[expect(clippy::disallowed_methods, reason = "a model, not a person's file")]
        let file = File::open(path)?;
        // SAFETY: the mapping is private and read-only and lives only while a model is loaded.
        // A process that shortens the file in that time ends ours with SIGBUS; it cannot make us
        // read outside the mapping, because every access is bounded by the mapping's length.
        #[allow(unsafe_code)]
        unsafe {
            memmap2::MmapOptions::new().map_copy_read_only(&file)
        }
    }

    /// Reads the directory of a mapped file.
    pub(crate) fn parse(map: Mmap) -> Result<Self, GgufError> {
        let mut cursor = Cursor::new(&map);
        let found: [u8; 4] = cursor.array("the magic")?;
        if found != MAGIC {
            return Err(GgufError::Magic {
                found: found.escape_ascii().to_string(),
            });
        }
        let version = cursor.u32("the version")?;
        if !(2..=3).contains(&version) {
            return Err(GgufError::Version { found: version });
        }
        let tensor_count = cursor.count("the tensor count", TensorInfo::SMALLEST, MAX_ENTRIES)?;
        let key_count = cursor.count("the metadata count", 13, MAX_ENTRIES)?;

        let mut metadata = BTreeMap::new();
        for index in 0..key_count {
            let key = cursor.string(&format!("metadata key {index}"))?;
            let field = format!("`{key}`");
            let value = Value::read(&mut cursor, &field)?;
            if metadata.insert(key.to_owned(), value).is_some() {
                return Err(GgufError::Duplicate { field });
            }
        }
        let alignment = alignment(&metadata)?;

        let mut tensors = BTreeMap::new();
        for index in 0..tensor_count {
            let name = cursor.string(&format!("the name of tensor {index}"))?;
            let field = format!("tensor `{name}`");
            let info = TensorInfo::read(&mut cursor, &field, alignment)?;
            if tensors.insert(name.to_owned(), info).is_some() {
                return Err(GgufError::Duplicate { field });
            }
        }

        let data = (cursor.position() as u64).next_multiple_of(alignment);
        let size = map.len() as u64;
        for (name, info) in &tensors {
            let end = data.checked_add(info.bytes.end);
            if end.is_none_or(|end| end > size) {
                return Err(GgufError::CutShort {
                    field: format!("tensor `{name}`"),
                    needed: info.bytes.end - info.bytes.start,
                    offset: data.saturating_add(info.bytes.start),
                    size,
                });
            }
        }
        Ok(Self {
            data: data as usize,
            map,
            metadata,
            tensors,
        })
    }

    /// Bytes in the file.
    pub(crate) fn size(&self) -> usize {
        self.map.len()
    }

    /// Elements in all tensors together.
    pub(crate) fn parameters(&self) -> u64 {
        self.tensors
            .values()
            .map(TensorInfo::elements)
            .fold(0, u64::saturating_add)
    }

    /// The names of all tensors, in their order.
    pub(crate) fn tensor_names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    pub(crate) fn find_tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.get(name)
    }

    pub(crate) fn tensor(&self, name: &str) -> Result<&TensorInfo, GgufError> {
        self.find_tensor(name).ok_or_else(|| GgufError::Missing {
            field: format!("tensor `{name}`"),
        })
    }

    /// The stored bytes of a tensor of this file.
    pub(crate) fn tensor_bytes(&self, info: &TensorInfo) -> &[u8] {
        let (start, end) = (info.bytes.start as usize, info.bytes.end as usize);
        &self.map[self.data + start..self.data + end]
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.metadata.get(key)
    }

    fn require<T>(&self, key: &str, found: Result<Option<T>, GgufError>) -> Result<T, GgufError> {
        found?.ok_or_else(|| GgufError::Missing {
            field: format!("`{key}`"),
        })
    }

    pub(crate) fn find_u32(&self, key: &str) -> Result<Option<u32>, GgufError> {
        let found = match self.get(key) {
            None => return Ok(None),
            Some(Value::Unsigned(found)) => u32::try_from(*found).ok(),
            Some(Value::Signed(found)) => u32::try_from(*found).ok(),
            Some(_) => None,
        };
        match found {
            Some(found) => Ok(Some(found)),
            None => Err(GgufError::invalid(
                format!("`{key}`"),
                "not a whole number below 2^32",
            )),
        }
    }

    pub(crate) fn u32(&self, key: &str) -> Result<u32, GgufError> {
        self.require(key, self.find_u32(key))
    }

    pub(crate) fn find_f32(&self, key: &str) -> Result<Option<f32>, GgufError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Float(found)) if found.is_finite() => Ok(Some(*found as f32)),
            Some(_) => Err(GgufError::invalid(
                format!("`{key}`"),
                "not a finite number",
            )),
        }
    }

    pub(crate) fn f32(&self, key: &str) -> Result<f32, GgufError> {
        self.require(key, self.find_f32(key))
    }

    pub(crate) fn find_bool(&self, key: &str) -> Result<Option<bool>, GgufError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Bool(found)) => Ok(Some(*found)),
            Some(_) => Err(GgufError::invalid(format!("`{key}`"), "not a boolean")),
        }
    }

    pub(crate) fn find_str(&self, key: &str) -> Result<Option<&str>, GgufError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(found)) => Ok(Some(found)),
            Some(_) => Err(GgufError::invalid(format!("`{key}`"), "not a string")),
        }
    }

    pub(crate) fn str(&self, key: &str) -> Result<&str, GgufError> {
        self.require(key, self.find_str(key))
    }

    /// An array of strings, read out of the file.
    pub(crate) fn strings(&self, key: &str) -> Result<Vec<&str>, GgufError> {
        let field = format!("`{key}`");
        match self.get(key) {
            Some(Value::Array(array)) if array.element == Kind::String => {
                let mut cursor = Cursor::new(&self.map[array.bytes.clone()]);
                (0..array.count)
                    .map(|index| cursor.string(&format!("{field}[{index}]")))
                    .collect()
            }
            Some(_) => Err(GgufError::invalid(field, "not an array of strings")),
            None => Err(GgufError::Missing { field }),
        }
    }

    /// An array of floats, read out of the file.
    pub(crate) fn floats(&self, key: &str) -> Result<Vec<f32>, GgufError> {
        let field = format!("`{key}`");
        match self.get(key) {
            Some(Value::Array(array)) if array.element == Kind::F32 => {
                let bytes = self.map[array.bytes.clone()].as_chunks::<4>().0;
                Ok(bytes
                    .iter()
                    .map(|bytes| f32::from_le_bytes(*bytes))
                    .collect())
            }
            Some(_) => Err(GgufError::invalid(field, "not an array of floats")),
            None => Err(GgufError::Missing { field }),
        }
    }

    /// An array of whole numbers, read out of the file.
    pub(crate) fn integers(&self, key: &str) -> Result<Vec<i64>, GgufError> {
        let field = format!("`{key}`");
        let Some(value) = self.get(key) else {
            return Err(GgufError::Missing { field });
        };
        let Value::Array(array) = value else {
            return Err(GgufError::invalid(field, "not an array"));
        };
        let mut cursor = Cursor::new(&self.map[array.bytes.clone()]);
        (0..array.count)
            .map(
                |_| match Value::scalar(array.element, &mut cursor, &field)? {
                    Value::Signed(found) => Ok(found),
                    Value::Unsigned(found) => i64::try_from(found)
                        .map_err(|_| GgufError::invalid(field.clone(), "a number beyond 2^63")),
                    _ => Err(GgufError::invalid(
                        field.clone(),
                        "not an array of whole numbers",
                    )),
                },
            )
            .collect()
    }
}

fn alignment(metadata: &BTreeMap<String, Value>) -> Result<u64, GgufError> {
    match metadata.get("general.alignment") {
        None => Ok(DEFAULT_ALIGNMENT),
        Some(Value::Unsigned(found)) if found.is_power_of_two() && *found <= MAX_ALIGNMENT => {
            Ok(*found)
        }
        Some(_) => Err(GgufError::invalid(
            "`general.alignment`",
            format!("must be a power of two up to {MAX_ALIGNMENT}"),
        )),
    }
}
