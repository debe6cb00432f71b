//! A model's packed weights: one stretch of memory, in which every matrix starts on a cache line.

use std::sync::{Mutex, PoisonError};

use burn::tensor::f16;

use crate::gguf::TensorType;
use crate::kernels::{Format, Matrix, pack_matrix, packed_bytes, wide_float};
use crate::pool::Pool;

/// A 32-byte load that crosses two cache lines costs twice.
const LINE: usize = 64;

/// How the rows of heads are put.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// As the file has them.
    Kept,
    /// The elements that are rotated together side by side: queries and keys alike, so that no
    /// product changes.
    Paired { head_len: usize, rotated: usize },
}

impl Order {
    /// The file's row that becomes row `row`.
    pub(crate) fn source(self, row: usize) -> usize {
        let Self::Paired { head_len, rotated } = self else {
            return row;
        };
        let (head, element) = (row / head_len, row % head_len);
        if element >= rotated {
            return row;
        }
        head * head_len + element % 2 * (rotated / 2) + element / 2
    }
}

/// A tensor that still has to be packed into `bytes` bytes.
struct Planned<'a> {
    kind: TensorType,
    shape: (usize, usize),
    order: Order,
    source: &'a [u8],
    bytes: usize,
}

/// Matrices that will be packed one after another.
#[derive(Default)]
pub(crate) struct Packing<'a> {
    planned: Vec<Planned<'a>>,
    end: usize,
}

impl<'a> Packing<'a> {
    /// Adds a matrix of `rows` outputs and `cols` inputs, whose blocks are `source`.
    pub(crate) fn add(
        &mut self,
        kind: TensorType,
        (rows, cols): (usize, usize),
        order: Order,
        source: &'a [u8],
    ) -> Matrix {
        let matrix = Matrix {
            format: Format::of(kind),
            rows,
            cols,
            offset: self.end,
        };
        let bytes = packed_bytes(kind, rows, cols).next_multiple_of(LINE);
        self.planned.push(Planned {
            kind,
            shape: (rows, cols),
            order,
            source,
            bytes,
        });
        self.end += bytes;
        matrix
    }

    /// Packs all of them; `told` gets the bytes that are done and those in all.
    pub(crate) fn pack(self, pool: &mut Pool, told: &(dyn Fn(u64, u64) + Sync)) -> Arena {
        let mut bytes = vec![0; self.end + LINE];
        ask_for_huge_pages(&mut bytes);
        let start = bytes.as_ptr().align_offset(LINE) % LINE;
        let mut rest = &mut bytes[start..];
        let sizes = self.planned.iter().map(|tensor| tensor.source.len() as u64);
        let (total, done) = (sizes.sum(), Mutex::new(0));
        let mut tasks = Vec::new();
        for tensor in self.planned {
            let (out, after) = rest.split_at_mut(tensor.bytes);
            tasks.push((tensor, out));
            rest = after;
        }
        pool.pieces(
            &mut tasks,
            1,
            || (),
            |(), _, tasks| {
                for (tensor, out) in tasks {
                    let order = tensor.order;
                    pack_matrix(tensor.kind, tensor.shape, tensor.source, out, |row| {
                        order.source(row)
                    });
                    // Told under the lock, so that the number rises.
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    *done += tensor.source.len() as u64;
                    told(*done, total);
                }
            },
        );
        Arena {
            bytes,
            start,
            len: self.end,
        }
    }
}

/// Packed weights.
pub(crate) struct Arena {
    pub(crate) bytes: Vec<u8>,
    /// Where in `bytes` the matrices' offsets count from.
    pub(crate) start: usize,
    /// Bytes from there on that the matrices take.
    pub(crate) len: usize,
}

/// The floats of a vector; `None` for blocks.
pub(crate) fn floats(kind: TensorType, bytes: &[u8]) -> Option<Vec<f32>> {
    let halves = || bytes.as_chunks::<2>().0.iter();
    match kind {
        TensorType::F32 => {
            let bytes = bytes.as_chunks::<4>().0.iter();
            Some(bytes.map(|bytes| f32::from_le_bytes(*bytes)).collect())
        }
        TensorType::F16 => {
            let floats = halves().map(|bytes| f16::from_le_bytes(*bytes).to_f32());
            Some(floats.collect())
        }
        TensorType::BF16 => Some(halves().map(|bytes| wide_float(*bytes)).collect()),
        _ => None,
    }
}

/// Asks the system to back memory with huge pages before it is first touched: a step reads all
/// weights once, which is tens of thousands of small pages. A refusal only costs speed.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages(memory: &mut [u8]) {
    const PAGE: usize = 2 << 20;
    let start = memory.as_ptr().align_offset(PAGE).min(memory.len());
    let len = (memory.len() - start) / PAGE * PAGE;
    let advised = &mut memory[start..start + len];
    // SAFETY: the range is whole pages within the slice, and the advice changes no content.
    #[allow(unsafe_code)]
    let _ = unsafe {
        rustix::mm::madvise(
            advised.as_mut_ptr().cast(),
            advised.len(),
            rustix::mm::Advice::LinuxHugepage,
        )
    };
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_memory: &mut [u8]) {}
