use burn::tensor::f16;

use super::Config;
use crate::gguf::{Gguf, GgufError, TensorInfo, TensorType};
use crate::kernels::{Format, Matrix, pack_matrix, packed_bytes};
use crate::pool::Pool;

/// Where each matrix of the model lies in the arena of packed weights.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) embedding: Matrix,
    pub(crate) output: Matrix,
    pub(crate) layers: Vec<Layer>,
}

/// The matrices of one layer.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) query: Matrix,
    pub(crate) key: Matrix,
    pub(crate) value: Matrix,
    pub(crate) attention_out: Matrix,
    pub(crate) gate: Matrix,
    pub(crate) up: Matrix,
    pub(crate) down: Matrix,
}

/// Packed weights as they are read from the file.
pub(crate) struct Weights {
    pub(crate) layout: Layout,
    pub(crate) arena: Vec<u8>,
    /// Where in `arena` the layout's offsets count from.
    pub(crate) start: usize,
    /// Bytes from there on that the layout takes.
    pub(crate) len: usize,
    /// `[2 * layers + 1, width]`: attention norm and feed-forward norm of each layer, output norm.
    pub(crate) norms: Vec<f32>,
    /// What the rotation of each pair is divided by, if the file says so.
    pub(crate) rope_factors: Option<Vec<f32>>,
}

/// Matrices start on a cache line: a 32-byte load that crosses two lines costs twice.
const LINE: usize = 64;

/// A tensor that still has to be packed into `bytes` bytes of the arena.
struct Planned<'a> {
    kind: TensorType,
    rows: usize,
    cols: usize,
    bytes: usize,
    source: &'a [u8],
}

impl Weights {
    /// Reads and packs all tensors of the model.
    pub(crate) fn read(file: &Gguf, config: &Config, pool: &mut Pool) -> Result<Self, GgufError> {
        let mut plan = Plan {
            file,
            tensors: Vec::new(),
            end: 0,
        };
        let (width, hidden) = (config.width, config.hidden);
        let queries = config.heads * config.head_len;
        let keys = config.kv_heads * config.head_len;
        let mut norms = Vec::new();
        let mut layers = Vec::new();
        for index in 0..config.layers {
            let name = |part: &str| format!("blk.{index}.{part}.weight");
            norms.extend(vector(file, &name("attn_norm"), width)?);
            norms.extend(vector(file, &name("ffn_norm"), width)?);
            layers.push(Layer {
                query: plan.matrix(&name("attn_q"), queries, width)?,
                key: plan.matrix(&name("attn_k"), keys, width)?,
                value: plan.matrix(&name("attn_v"), keys, width)?,
                attention_out: plan.matrix(&name("attn_output"), width, queries)?,
                gate: plan.matrix(&name("ffn_gate"), hidden, width)?,
                up: plan.matrix(&name("ffn_up"), hidden, width)?,
                down: plan.matrix(&name("ffn_down"), width, hidden)?,
            });
        }
        norms.extend(vector(file, "output_norm.weight", width)?);
        let embedding = plan.matrix("token_embd.weight", config.vocab, width)?;
        // Without an output matrix of its own the model uses the embedding's.
        let output = match file.find_tensor("output.weight") {
            Some(_) => plan.matrix("output.weight", config.vocab, width)?,
            None => embedding,
        };
        let rope_factors = match file.find_tensor("rope_freqs.weight") {
            Some(_) => Some(vector(file, "rope_freqs.weight", config.rotated / 2)?),
            None => None,
        };
        let len = plan.end;
        let (arena, start) = plan.pack(pool);
        let layout = Layout {
            embedding,
            output,
            layers,
        };
        Ok(Self {
            layout,
            arena,
            start,
            len,
            norms,
            rope_factors,
        })
    }
}

struct Plan<'a> {
    file: &'a Gguf,
    tensors: Vec<Planned<'a>>,
    end: usize,
}

impl Plan<'_> {
    /// Plans a matrix of `rows` outputs and `cols` inputs.
    fn matrix(&mut self, name: &str, rows: usize, cols: usize) -> Result<Matrix, GgufError> {
        let info = shaped(self.file, name, &[cols, rows])?;
        let matrix = Matrix {
            format: Format::of(info.kind),
            rows,
            cols,
            offset: self.end,
        };
        let bytes = packed_bytes(info.kind, rows, cols).next_multiple_of(LINE);
        let source = self.file.tensor_bytes(info);
        self.tensors.push(Planned {
            kind: info.kind,
            rows,
            cols,
            bytes,
            source,
        });
        self.end += bytes;
        Ok(matrix)
    }

    /// Packs the planned tensors; gives the arena and the offset of its first cache line.
    fn pack(self, pool: &mut Pool) -> (Vec<u8>, usize) {
        let mut arena = vec![0; self.end + LINE];
        ask_for_huge_pages(&mut arena);
        let start = arena.as_ptr().align_offset(LINE) % LINE;
        let mut rest = &mut arena[start..];
        let mut tasks = Vec::new();
        for tensor in self.tensors {
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
                    pack_matrix(tensor.kind, tensor.rows, tensor.cols, tensor.source, out);
                }
            },
        );
        (arena, start)
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

/// A tensor that must have the given dimensions.
fn shaped<'a>(file: &'a Gguf, name: &str, dims: &[usize]) -> Result<&'a TensorInfo, GgufError> {
    let info = file.tensor(name)?;
    if info.dims != dims {
        let problem = format!("is {:?}, not {dims:?} as the metadata says", info.dims);
        return Err(GgufError::invalid(format!("tensor `{name}`"), problem));
    }
    Ok(info)
}

/// A vector of floats, which norms are in every file.
fn vector(file: &Gguf, name: &str, len: usize) -> Result<Vec<f32>, GgufError> {
    let info = shaped(file, name, &[len])?;
    let bytes = file.tensor_bytes(info);
    match info.kind {
        TensorType::F32 => Ok(bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect()),
        TensorType::F16 => {
            let halves = bytes.as_chunks::<2>().0;
            Ok(halves
                .iter()
                .map(|bytes| f16::from_le_bytes(*bytes).to_f32())
                .collect())
        }
        _ => Err(GgufError::invalid(
            format!("tensor `{name}`"),
            "a vector must be F32 or F16",
        )),
    }
}
