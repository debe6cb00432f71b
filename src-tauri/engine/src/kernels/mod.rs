//! The arithmetic: quantised dot products, attention products, norms and activations.
//!
//! Every kernel exists twice, in portable Rust and for AVX2, and both give the same bits: sums run
//! in a fixed order for each output, whatever the number of columns, threads or lanes. A token's
//! logits therefore depend neither on the size of a prefill chunk nor on the machine.

mod activations;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx2_quants;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_quants;
mod blocks;
mod cell;
mod lanes;
mod layout;
mod portable;
#[cfg(test)]
mod tests;

use bytemuck::cast_slice;

pub(crate) use activations::{Activations, PanelsOf, WIDE};
pub(crate) use cell::Cell;
pub(crate) use lanes::{
    add_times, as_bytes, geglu, gelu, layer_norm, quantise, rms_norm, softmax_terms, store_halves,
    swiglu, times_each, weight_sum,
};
pub(crate) use layout::{
    Expanded, Format, Matrix, TILE, pack_matrix, packed_bytes, read_row, wide_float,
};

/// The instruction set to compute with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isa {
    /// Plain Rust, for any machine.
    Portable,
    /// AVX2 with FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2(Detected),
    /// The same with AVX-512 F, BW and VNNI for the products of quantised weights.
    #[cfg(target_arch = "x86_64")]
    Avx512(Detected),
}

/// Proof that this machine has what its [`Isa`] says: only [`Isa::all`] makes one.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Detected(());

impl Isa {
    /// The instruction sets of this machine, the best one last.
    pub(crate) fn all() -> Vec<Self> {
        let mut found = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("fma")
            && std::is_x86_feature_detected!("f16c")
        {
            found.push(Self::Avx2(Detected(())));
            if std::is_x86_feature_detected!("avx512f")
                && std::is_x86_feature_detected!("avx512bw")
                && std::is_x86_feature_detected!("avx512vnni")
            {
                found.push(Self::Avx512(Detected(())));
            }
        }
        found
    }

    /// The best instruction set of this machine.
    pub(crate) fn detect() -> Self {
        Self::all().pop().unwrap_or(Self::Portable)
    }

    /// The name a person would know it by.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "avx512-vnni",
        }
    }
}

/// Runs the version of a kernel that the [`Isa`] stands for; `wide` where AVX-512 has its own.
macro_rules! by_isa {
    ($isa:expr, wide $name:ident($($argument:expr),*)) => {
        match $isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Avx512` exists only where the features were detected.
            #[allow(unsafe_code)]
            $crate::kernels::Isa::Avx512(_) => unsafe {
                $crate::kernels::avx512::$name($($argument),*)
            },
            other => $crate::kernels::by_isa!(other, $name($($argument),*)),
        }
    };
    ($isa:expr, quants $name:ident($($argument:expr),*)) => {
        match $isa {
            $crate::kernels::Isa::Portable => $crate::kernels::portable::$name($($argument),*),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Avx2` or `Avx512` exists only where the features were detected.
            #[allow(unsafe_code)]
            $crate::kernels::Isa::Avx2(_) | $crate::kernels::Isa::Avx512(_) => unsafe {
                $crate::kernels::avx2_quants::$name($($argument),*)
            },
        }
    };
    ($isa:expr, wide quants $name:ident($($argument:expr),*)) => {
        match $isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Avx512` exists only where the features were detected.
            #[allow(unsafe_code)]
            $crate::kernels::Isa::Avx512(_) => unsafe {
                $crate::kernels::avx512_quants::$name($($argument),*)
            },
            other => $crate::kernels::by_isa!(other, quants $name($($argument),*)),
        }
    };
    ($isa:expr, $name:ident($($argument:expr),*)) => {
        match $isa {
            $crate::kernels::Isa::Portable => $crate::kernels::portable::$name($($argument),*),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Avx2` or `Avx512` exists only where the features were detected.
            #[allow(unsafe_code)]
            $crate::kernels::Isa::Avx2(_) | $crate::kernels::Isa::Avx512(_) => unsafe {
                $crate::kernels::avx2::$name($($argument),*)
            },
        }
    };
}
use by_isa;

/// The products of a tile's 16 rows with `N` columns.
pub(crate) type TileOut<const N: usize> = [[f32; TILE]; N];

/// One tile of `matrix` times the `N` columns of `input` from column `first` on.
///
/// Columns past the input's end give unused values.
pub(crate) fn tile_product<const N: usize>(
    isa: Isa,
    matrix: &Matrix,
    arena: &[u8],
    tile: usize,
    input: &Activations,
    first: usize,
) -> TileOut<N>
where
    Activations: PanelsOf<N>,
{
    let bytes = matrix.tile_bytes(arena, tile);
    match matrix.format {
        Format::Q4_1 => by_isa!(isa, wide quants q4_tile(cast_slice(bytes), input.panel(first))),
        Format::Q4_0 => by_isa!(isa, wide quants q4_centred(cast_slice(bytes), input.panel(first))),
        Format::Q5_0 => by_isa!(isa, wide quants q5_centred(cast_slice(bytes), input.panel(first))),
        Format::Q5_1 => by_isa!(isa, wide quants q5_tile(cast_slice(bytes), input.panel(first))),
        Format::Q8_0 => by_isa!(isa, wide quants q8_tile(cast_slice(bytes), input.panel(first))),
        Format::Q4K => by_isa!(isa, wide quants k4_tile(cast_slice(bytes), input.panel(first))),
        Format::Q5K => by_isa!(isa, wide quants k5_tile(cast_slice(bytes), input.panel(first))),
        Format::Q6K => by_isa!(isa, wide quants k6_tile(cast_slice(bytes), input.panel(first))),
        Format::F16 => {
            let mut out = [[0.0; TILE]; N];
            let tile = cast_slice(bytes);
            half_product(
                isa,
                input.values::<N>(first),
                tile,
                TILE,
                out.each_mut().map(|c| &mut c[..]),
            );
            out
        }
        Format::BF16 => by_isa!(
            isa,
            bfloat_tile(cast_slice(bytes), input.values::<N>(first))
        ),
        Format::F32 => by_isa!(isa, float_tile(cast_slice(bytes), input.values::<N>(first))),
    }
}

/// Unpacks a tile of four-bit weights for use with many columns; false where that is of no use.
pub(crate) fn expand_tile(
    isa: Isa,
    matrix: &Matrix,
    arena: &[u8],
    tile: usize,
    out: &mut Vec<Expanded>,
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2(_)) {
        let bytes = matrix.tile_bytes(arena, tile);
        out.resize(matrix.cols / layout::BLOCK, bytemuck::Zeroable::zeroed());
        match matrix.format {
            Format::Q4_0 => by_isa!(isa, quants q4_expand_centred(cast_slice(bytes), out)),
            Format::Q4_1 => by_isa!(isa, quants q4_expand(cast_slice(bytes), out)),
            Format::Q4K => by_isa!(isa, quants k4_expand(cast_slice(bytes), out)),
            _ => return false,
        }
        return true;
    }
    false
}

/// The same product as [`tile_product`] gives, from a tile unpacked by [`expand_tile`].
pub(crate) fn expanded_product<const N: usize>(
    isa: Isa,
    tile: &[Expanded],
    input: &Activations,
    first: usize,
) -> TileOut<N>
where
    Activations: PanelsOf<N>,
{
    by_isa!(isa, wide quants expanded_tile(tile, input.panel(first)))
}

/// `out[q][j] += sum over i of a[q][i] * b[i * stride + j]` with `b` in half precision, adding in
/// the order of `i`. Every `out[q]` has the same length, a multiple of 16.
pub(crate) fn half_product<const Q: usize>(
    isa: Isa,
    a: [&[f32]; Q],
    b: &[u16],
    stride: usize,
    out: [&mut [f32]; Q],
) {
    let (inner, width) = (a[0].len(), out[0].len());
    assert!(a.iter().all(|a| a.len() == inner) && out.iter().all(|out| out.len() == width));
    assert!(width.is_multiple_of(16) && width <= stride);
    assert!(inner == 0 || b.len() >= (inner - 1) * stride + width);
    by_isa!(isa, half_product(a, b, stride, out));
}

/// `out[q][16 * p + j] = sum over i of a[q][i] * pages[p][16 * i + j]`, adding in the order of `i`:
/// what vectors give with the keys of some pages.
pub(crate) fn page_scores<C: Cell, const Q: usize>(
    isa: Isa,
    a: [&[f32]; Q],
    pages: &[&[C]],
    out: [&mut [f32]; Q],
) {
    let inner = a[0].len();
    assert!(a.iter().all(|a| a.len() == inner));
    assert!(pages.iter().all(|page| page.len() == inner * TILE));
    assert!(out.iter().all(|out| out.len() == pages.len() * TILE));
    by_isa!(isa, wide page_scores(a, pages, out));
}

/// `out[q][j] += sum over p and i of a[q][16 * p + i] * pages[p][i * len + j]`, adding in that
/// order: values of some pages, weighted. `len`, a multiple of 16, is the length of every `out[q]`.
pub(crate) fn page_sums<C: Cell, const Q: usize>(
    isa: Isa,
    a: [&[f32]; Q],
    pages: &[&[C]],
    out: [&mut [f32]; Q],
) {
    let (inner, len) = (a[0].len(), out[0].len());
    assert!(a.iter().all(|a| a.len() == inner) && out.iter().all(|out| out.len() == len));
    assert!(len.is_multiple_of(16) && pages.len() == inner.div_ceil(TILE));
    assert!(pages.iter().all(|page| page.len() == TILE * len));
    by_isa!(isa, wide page_sums(a, pages, out));
}
