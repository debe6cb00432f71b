use std::ops::Range;

use super::GgufError;
use super::cursor::Cursor;

const MAX_DIMS: u32 = 4;

/// How a tensor's elements are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TensorType {
    F32,
    F16,
    BF16,
    /// Blocks of 32: an f16 scale and 16 bytes of nibbles, `w = d * (q - 8)`.
    Q4_0,
    /// Blocks of 32: an f16 scale, an f16 minimum and 16 bytes of nibbles, `w = d * q + m`.
    Q4_1,
    /// As Q4_0 with a fifth bit, four bytes of these before the nibbles, `w = d * (q - 16)`.
    Q5_0,
    /// As Q4_1 with a fifth bit, `w = d * q + m`.
    Q5_1,
    /// Blocks of 32: an f16 scale and 32 signed bytes, `w = d * q`.
    Q8_0,
    /// Blocks of 256: f16 scale and minimum, eight scales and minimums of six bits, nibbles,
    /// `w = d * s * q - m * t`.
    Q4K,
    /// As Q4_K with a fifth bit.
    Q5K,
    /// Blocks of 256: six bits, 16 scales of eight, an f16 scale, `w = d * s * (q - 32)`.
    Q6K,
}

impl TensorType {
    fn from_number(found: u32, field: &str) -> Result<Self, GgufError> {
        let unsupported = |name| {
            Err(GgufError::UnsupportedTensor {
                field: field.to_owned(),
                found: name,
            })
        };
        match found {
            0 => Ok(Self::F32),
            1 => Ok(Self::F16),
            2 => Ok(Self::Q4_0),
            3 => Ok(Self::Q4_1),
            6 => Ok(Self::Q5_0),
            7 => Ok(Self::Q5_1),
            8 => Ok(Self::Q8_0),
            12 => Ok(Self::Q4K),
            13 => Ok(Self::Q5K),
            14 => Ok(Self::Q6K),
            30 => Ok(Self::BF16),
            9 => unsupported("Q8_1"),
            10 => unsupported("Q2_K"),
            11 => unsupported("Q3_K"),
            15 => unsupported("Q8_K"),
            16..=23 | 29 => unsupported("IQ"),
            24..=27 => unsupported("integer"),
            28 => unsupported("F64"),
            34 | 35 => unsupported("TQ"),
            39 => unsupported("MXFP4"),
            _ => Err(GgufError::UnknownType {
                field: field.to_owned(),
                found,
            }),
        }
    }

    /// Elements that share a block.
    pub(crate) fn block_len(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::BF16 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 | Self::Q8_0 => 32,
            Self::Q4K | Self::Q5K | Self::Q6K => 256,
        }
    }

    /// Bytes of a block.
    pub(crate) fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q5_0 => 22,
            Self::Q5_1 => 24,
            Self::Q8_0 => 34,
            Self::Q4K => 144,
            Self::Q5K => 176,
            Self::Q6K => 210,
        }
    }
}

/// One entry of the tensor directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TensorInfo {
    pub(crate) kind: TensorType,
    /// Sizes, the fastest-running first: a matrix is `[columns, rows]`.
    pub(crate) dims: Vec<usize>,
    /// The data's bytes, counted from the start of the data section.
    pub(super) bytes: Range<u64>,
}

impl TensorInfo {
    /// The fewest bytes an entry takes: an empty name, no dimension, type and offset.
    pub(super) const SMALLEST: usize = 8 + 4 + 4 + 8;

    pub(super) fn read(
        cursor: &mut Cursor<'_>,
        field: &str,
        alignment: u64,
    ) -> Result<Self, GgufError> {
        let rank = cursor.u32(field)?;
        if rank == 0 || rank > MAX_DIMS {
            return Err(GgufError::invalid(field, format!("`{rank}` dimensions")));
        }
        let too_large = |found| GgufError::TooLarge {
            field: format!("the size of {field}"),
            found,
            limit: isize::MAX as u64,
        };
        let mut dims = Vec::new();
        let mut elements = 1u64;
        for _ in 0..rank {
            let dim = cursor.u64(field)?;
            elements = elements.checked_mul(dim).ok_or_else(|| too_large(dim))?;
            dims.push(usize::try_from(dim).map_err(|_| too_large(dim))?);
        }
        if elements == 0 {
            return Err(GgufError::invalid(field, "a dimension of zero"));
        }
        let kind = TensorType::from_number(cursor.u32(field)?, field)?;
        if dims[0] % kind.block_len() != 0 {
            let problem = format!(
                "rows of {} elements do not fill blocks of {}",
                dims[0],
                kind.block_len()
            );
            return Err(GgufError::invalid(field, problem));
        }
        let size = (elements / kind.block_len() as u64)
            .checked_mul(kind.block_bytes() as u64)
            .ok_or_else(|| too_large(elements))?;
        let start = cursor.u64(field)?;
        if start % alignment != 0 {
            let problem = format!("offset `{start}` is not a multiple of {alignment}");
            return Err(GgufError::invalid(field, problem));
        }
        let end = start.checked_add(size).ok_or_else(|| too_large(start))?;
        Ok(Self {
            kind,
            dims,
            bytes: start..end,
        })
    }

    /// Elements in all dimensions together.
    pub(crate) fn elements(&self) -> u64 {
        self.dims.iter().map(|&dim| dim as u64).product()
    }
}
