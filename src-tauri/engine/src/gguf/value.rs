use std::ops::Range;

use super::GgufError;
use super::cursor::Cursor;

/// Elements an array may have; the largest vocabularies have about 300,000.
const MAX_ARRAY: u64 = 1 << 24;

/// A metadata value. Arrays stay in the file and are read where they are needed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    String(String),
    Array(Array),
}

/// Where an array's elements lie in the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Array {
    pub(super) element: Kind,
    pub(super) count: usize,
    pub(super) bytes: Range<usize>,
}

/// The type number of a metadata value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    String,
    Array,
    U64,
    I64,
    F64,
}

impl Kind {
    fn read(cursor: &mut Cursor<'_>, field: &str) -> Result<Self, GgufError> {
        Ok(match cursor.u32(field)? {
            0 => Self::U8,
            1 => Self::I8,
            2 => Self::U16,
            3 => Self::I16,
            4 => Self::U32,
            5 => Self::I32,
            6 => Self::F32,
            7 => Self::Bool,
            8 => Self::String,
            9 => Self::Array,
            10 => Self::U64,
            11 => Self::I64,
            12 => Self::F64,
            found => {
                return Err(GgufError::UnknownType {
                    field: field.to_owned(),
                    found,
                });
            }
        })
    }

    /// The fewest bytes a value of this kind takes.
    fn smallest(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 | Self::String => 8,
            Self::Array => 12,
        }
    }
}

impl Value {
    pub(super) fn read(cursor: &mut Cursor<'_>, field: &str) -> Result<Self, GgufError> {
        match Kind::read(cursor, field)? {
            Kind::Array => Ok(Self::Array(Array::read(cursor, field)?)),
            kind => Self::scalar(kind, cursor, field),
        }
    }

    pub(super) fn scalar(
        kind: Kind,
        cursor: &mut Cursor<'_>,
        field: &str,
    ) -> Result<Self, GgufError> {
        Ok(match kind {
            Kind::U8 => Self::Unsigned(u8::from_le_bytes(cursor.array(field)?).into()),
            Kind::I8 => Self::Signed(i8::from_le_bytes(cursor.array(field)?).into()),
            Kind::U16 => Self::Unsigned(u16::from_le_bytes(cursor.array(field)?).into()),
            Kind::I16 => Self::Signed(i16::from_le_bytes(cursor.array(field)?).into()),
            Kind::U32 => Self::Unsigned(cursor.u32(field)?.into()),
            Kind::I32 => Self::Signed(i32::from_le_bytes(cursor.array(field)?).into()),
            Kind::F32 => Self::Float(f32::from_le_bytes(cursor.array(field)?).into()),
            Kind::Bool => match u8::from_le_bytes(cursor.array(field)?) {
                0 => Self::Bool(false),
                1 => Self::Bool(true),
                other => {
                    return Err(GgufError::invalid(
                        field,
                        format!("`{other}` is not a boolean"),
                    ));
                }
            },
            Kind::String => Self::String(cursor.string(field)?.to_owned()),
            Kind::U64 => Self::Unsigned(cursor.u64(field)?),
            Kind::I64 => Self::Signed(i64::from_le_bytes(cursor.array(field)?)),
            Kind::F64 => Self::Float(f64::from_le_bytes(cursor.array(field)?)),
            Kind::Array => return Err(GgufError::invalid(field, "an array of arrays")),
        })
    }
}

impl Array {
    fn read(cursor: &mut Cursor<'_>, field: &str) -> Result<Self, GgufError> {
        let element = Kind::read(cursor, field)?;
        if element == Kind::Array {
            return Err(GgufError::invalid(field, "an array of arrays"));
        }
        let count = cursor.count(field, element.smallest(), MAX_ARRAY)?;
        let start = cursor.position();
        if element == Kind::String {
            for _ in 0..count {
                cursor.bytes(field)?;
            }
        } else {
            cursor.take(count * element.smallest(), field)?;
        }
        Ok(Self {
            element,
            count,
            bytes: start..cursor.position(),
        })
    }
}
