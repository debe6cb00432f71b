use super::GgufError;

/// Reads little-endian fields one after another; every read is checked against the file's end.
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(crate) fn take(&mut self, count: usize, field: &str) -> Result<&'a [u8], GgufError> {
        match self.bytes[self.at..].get(..count) {
            Some(found) => {
                self.at += count;
                Ok(found)
            }
            None => Err(GgufError::CutShort {
                field: field.to_owned(),
                needed: count as u64,
                offset: self.at as u64,
                size: self.bytes.len() as u64,
            }),
        }
    }

    pub(crate) fn array<const N: usize>(&mut self, field: &str) -> Result<[u8; N], GgufError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N, field)?);
        Ok(out)
    }

    pub(crate) fn u32(&mut self, field: &str) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    pub(crate) fn u64(&mut self, field: &str) -> Result<u64, GgufError> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// A count of things that take at least `smallest` bytes each in what is left of the file.
    pub(crate) fn count(
        &mut self,
        field: &str,
        smallest: usize,
        limit: u64,
    ) -> Result<usize, GgufError> {
        let found = self.u64(field)?;
        let limit = limit.min((self.remaining() / smallest.max(1)) as u64);
        match usize::try_from(found) {
            Ok(count) if found <= limit => Ok(count),
            _ => Err(GgufError::TooLarge {
                field: field.to_owned(),
                found,
                limit,
            }),
        }
    }

    /// A length-prefixed string, as bytes.
    pub(crate) fn bytes(&mut self, field: &str) -> Result<&'a [u8], GgufError> {
        let offset = self.at as u64;
        let found = self.u64(field)?;
        match usize::try_from(found) {
            Ok(length) if length <= self.remaining() => self.take(length, field),
            _ => Err(GgufError::CutShort {
                field: field.to_owned(),
                needed: found.saturating_add(8),
                offset,
                size: self.bytes.len() as u64,
            }),
        }
    }

    pub(crate) fn string(&mut self, field: &str) -> Result<&'a str, GgufError> {
        std::str::from_utf8(self.bytes(field)?).map_err(|_| GgufError::Utf8 {
            field: field.to_owned(),
        })
    }
}
