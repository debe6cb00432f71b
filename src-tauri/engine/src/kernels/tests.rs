//! Every kernel against plain arithmetic in f64, and the AVX2 versions against the portable ones
//! to the bit, over shapes and values that proptest picks.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use burn::tensor::f16;
use proptest::prelude::*;

use super::*;
use crate::gguf::TensorType;

const TYPES: [TensorType; 5] = [
    TensorType::Q4_0,
    TensorType::Q4_1,
    TensorType::Q8_0,
    TensorType::F16,
    TensorType::F32,
];

/// A small generator for bulk data; proptest picks its seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 24
    }

    /// Between -1 and 1.
    fn float(&mut self) -> f32 {
        (self.next() % 20_001) as f32 / 10_000.0 - 1.0
    }

    fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.float()).collect()
    }

    /// A row-major tensor in the file's format. Quants take all values, the extremes often.
    fn tensor(&mut self, kind: TensorType, elements: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for _ in 0..elements / kind.block_len() {
            match kind {
                TensorType::F32 => out.extend(self.float().to_le_bytes()),
                TensorType::F16 => out.extend(f16::from_f32(self.float()).to_le_bytes()),
                _ => {
                    let scales = if kind == TensorType::Q4_1 { 2 } else { 1 };
                    for _ in 0..scales {
                        out.extend(f16::from_f32(self.float()).to_le_bytes());
                    }
                    let edge = self.next() % 3;
                    for _ in 0..kind.block_bytes() - 2 * scales {
                        out.push(match edge {
                            0 => 0xff,
                            1 => [0x80, 0x7f, 0xf0, 0x0f][self.next() as usize % 4],
                            _ => self.next() as u8,
                        });
                    }
                }
            }
        }
        out
    }
}

/// The tensor's values.
fn dequantise(kind: TensorType, bytes: &[u8]) -> Vec<f64> {
    let half = |bytes: &[u8]| f64::from(f16::from_le_bytes([bytes[0], bytes[1]]).to_f32());
    let nibbles = |bytes: &[u8]| -> Vec<f64> {
        let low = bytes.iter().map(|byte| f64::from(byte & 15));
        low.chain(bytes.iter().map(|byte| f64::from(byte >> 4)))
            .collect()
    };
    let mut out = Vec::new();
    for block in bytes.chunks_exact(kind.block_bytes()) {
        match kind {
            TensorType::F32 => out.push(f32::from_le_bytes(block.try_into().unwrap()).into()),
            TensorType::F16 => out.push(half(block)),
            TensorType::Q4_0 => {
                out.extend(nibbles(&block[2..]).iter().map(|q| half(block) * (q - 8.0)));
            }
            TensorType::Q4_1 => {
                let min = half(&block[2..]);
                out.extend(nibbles(&block[4..]).iter().map(|q| half(block) * q + min));
            }
            TensorType::Q8_0 => {
                out.extend(block[2..].iter().map(|&q| half(block) * f64::from(q as i8)));
            }
        }
    }
    out
}

fn pack(kind: TensorType, rows: usize, cols: usize, source: &[u8]) -> (Matrix, Vec<u8>) {
    let mut arena = vec![0; packed_bytes(kind, rows, cols)];
    pack_matrix(kind, rows, cols, source, &mut arena);
    (
        Matrix {
            format: Format::of(kind),
            rows,
            cols,
            offset: 0,
        },
        arena,
    )
}

fn activations(isa: Isa, columns: &[Vec<f32>]) -> Activations {
    let mut input = Activations::default();
    input.reset(columns[0].len(), columns.len());
    let mut source = columns.iter();
    for mut panel in input.panels_mut() {
        for values in panel.columns_mut() {
            values.copy_from_slice(source.next().unwrap());
        }
        panel.quantise(isa);
    }
    input
}

/// The product of all tiles as `[column][row]`.
fn product(
    isa: Isa,
    matrix: &Matrix,
    arena: &[u8],
    input: &Activations,
    expand: bool,
) -> Vec<Vec<f32>> {
    let mut out = vec![Vec::new(); input.columns()];
    for tile in 0..matrix.tiles() {
        if input.columns() == 1 {
            out[0].extend(tile_product::<1>(isa, matrix, arena, tile, input, 0)[0]);
            continue;
        }
        for first in (0..input.columns()).step_by(WIDE) {
            let mut expanded = Vec::new();
            let results = if expand && expand_tile(isa, matrix, arena, tile, &mut expanded) {
                expanded_product::<WIDE>(isa, &expanded, input, first)
            } else {
                tile_product::<WIDE>(isa, matrix, arena, tile, input, first)
            };
            for (out, result) in out[first..].iter_mut().zip(results) {
                out.extend(result);
            }
        }
    }
    out
}

fn bits(rows: &[Vec<f32>]) -> Vec<Vec<u32>> {
    rows.iter()
        .map(|row| row.iter().map(|value| value.to_bits()).collect())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn products_agree_with_plain_arithmetic(
        kind in 0..TYPES.len(), rows in 1usize..40, blocks in 1usize..6, columns in 1usize..10,
        seed: u64,
    ) {
        let (kind, mut random) = (TYPES[kind], Random(seed));
        let cols = blocks * 32;
        let source = random.tensor(kind, rows * cols);
        let vectors: Vec<_> = (0..columns).map(|_| random.floats(cols)).collect();
        let (matrix, arena) = pack(kind, rows, cols, &source);
        let input = activations(Isa::Portable, &vectors);
        let found = product(Isa::Portable, &matrix, &arena, &input, false);
        let weights = dequantise(kind, &source);
        for (vector, found) in vectors.iter().zip(&found) {
            for row in 0..rows {
                let weights = &weights[row * cols..][..cols];
                let (mut expected, mut size) = (0.0, 0.0);
                for (weights, values) in weights.chunks(32).zip(vector.chunks(32)) {
                    let peak = values.iter().fold(0f32, |peak, value| peak.max(value.abs()));
                    for (weight, &value) in weights.iter().zip(values) {
                        let value = if matches!(matrix.format, Format::Q4_1 | Format::Q8_0) && peak > 0.0 {
                            let scale = f64::from(peak) / 127.0;
                            // In f32, as the engine does: half-way cases must fall alike.
                            f64::from((value * (127.0 / peak)).round_ties_even()) * scale
                        } else {
                            f64::from(value)
                        };
                        expected += weight * value;
                        size += (weight * value).abs();
                    }
                }
                // The minimum and the nibbles of a block may cancel: allow for their size.
                let slack = 1e-4 * (size + cols as f64);
                let found = f64::from(found[row]);
                prop_assert!((found - expected).abs() <= slack, "{found} {expected} {kind:?}");
            }
        }
    }

    #[test]
    fn every_way_to_the_product_gives_the_same_bits(
        kind in 0..TYPES.len(), rows in 1usize..40, blocks in 1usize..6, columns in 1usize..10,
        seed: u64,
    ) {
        let (kind, mut random) = (TYPES[kind], Random(seed));
        let cols = blocks * 32;
        let source = random.tensor(kind, rows * cols);
        let vectors: Vec<_> = (0..columns).map(|_| random.floats(cols)).collect();
        let (matrix, arena) = pack(kind, rows, cols, &source);
        let input = activations(Isa::Portable, &vectors);
        let expected = bits(&product(Isa::Portable, &matrix, &arena, &input, false));
        for isa in Isa::all() {
            let input = activations(isa, &vectors);
            for expand in [false, true] {
                let found = bits(&product(isa, &matrix, &arena, &input, expand));
                prop_assert_eq!(&found, &expected, "{} {}", isa.name(), expand);
            }
            for (vector, expected) in vectors.iter().zip(&expected) {
                let alone = activations(isa, std::slice::from_ref(vector));
                let found = bits(&product(isa, &matrix, &arena, &alone, false));
                prop_assert_eq!(&found[0], expected, "{}", isa.name());
            }
        }
    }

    #[test]
    fn rows_read_back_as_stored(
        kind in 0..TYPES.len(), rows in 1usize..40, blocks in 1usize..4, seed: u64,
    ) {
        let (kind, cols) = (TYPES[kind], blocks * 32);
        let source = Random(seed).tensor(kind, rows * cols);
        let (matrix, arena) = pack(kind, rows, cols, &source);
        let expected = dequantise(kind, &source);
        let mut found = vec![0.0; cols];
        for row in 0..rows {
            read_row(&matrix, &arena, row, &mut found);
            for (found, expected) in found.iter().zip(&expected[row * cols..]) {
                prop_assert!((f64::from(*found) - expected).abs() <= 1e-5 * expected.abs().max(8.0));
            }
        }
    }

    #[test]
    fn half_products_agree(
        inner in 0usize..70, strips in 1usize..6, extra in 0usize..3, seed: u64,
    ) {
        fn check<const Q: usize>(inner: usize, width: usize, stride: usize, seed: u64) {
            let mut random = Random(seed);
            let a: Vec<_> = (0..Q).map(|_| random.floats(inner)).collect();
            let b: Vec<u16> =
                random.floats(inner * stride + width).iter().map(|v| f16::from_f32(*v).to_bits()).collect();
            let start: Vec<_> = (0..Q).map(|_| random.floats(width)).collect();
            let run = |isa| {
                let mut out = start.clone();
                let mut outs = out.iter_mut();
                let out_slices: [&mut [f32]; Q] =
                    std::array::from_fn(|_| outs.next().unwrap().as_mut_slice());
                half_product(isa, std::array::from_fn(|q| &a[q][..]), &b, stride, out_slices);
                out
            };
            let found = run(Isa::Portable);
            assert_eq!(bits(&run(Isa::detect())), bits(&found));
            for q in 0..Q {
                for column in 0..width {
                    let sum: f64 = (0..inner)
                        .map(|i| {
                            let b = f16::from_bits(b[i * stride + column]).to_f32();
                            f64::from(a[q][i]) * f64::from(b)
                        })
                        .sum();
                    let expected = f64::from(start[q][column]) + sum;
                    assert!((f64::from(found[q][column]) - expected).abs() < 1e-4);
                }
            }
        }
        let (width, stride) = (strips * 16, strips * 16 + extra * 16);
        check::<1>(inner, width, stride, seed);
        check::<2>(inner, width, stride, seed);
        check::<3>(inner, width, stride, seed);
        check::<6>(inner, width, stride, seed);
    }

    #[test]
    fn page_products_agree(
        count in 1usize..10, cut in 0usize..16, strips in 1usize..9, seed: u64,
    ) {
        fn check<const Q: usize>(count: usize, cut: usize, len: usize, seed: u64) {
            let mut random = Random(seed);
            let mut halves = |count: usize| -> Vec<u16> {
                random.floats(count).iter().map(|v| f16::from_f32(*v).to_bits()).collect()
            };
            let memory: Vec<Vec<u16>> = (0..count).map(|_| halves(16 * len)).collect();
            let pages: Vec<&[u16]> = memory.iter().map(|page| &page[..]).collect();
            let whole: Vec<u16> = memory.concat();
            let vectors: Vec<_> = (0..Q).map(|_| random.floats(len)).collect();
            let terms: Vec<_> = (0..Q).map(|_| random.floats(16 * count - cut)).collect();
            fn slices<const Q: usize>(of: &mut [Vec<f32>]) -> [&mut [f32]; Q] {
                let mut each = of.iter_mut();
                std::array::from_fn(|_| &mut each.next().unwrap()[..])
            }
            let run = |isa| {
                let mut scores = vec![vec![9.0; 16 * count]; Q];
                let mut sums = vec![vec![0.25; len]; Q];
                page_scores(isa, std::array::from_fn(|q| &vectors[q][..]), &pages, slices::<Q>(&mut scores));
                page_sums(isa, std::array::from_fn(|q| &terms[q][..]), &pages, slices::<Q>(&mut sums));
                (scores, sums)
            };
            let (scores, sums) = run(Isa::detect());
            let (plain_scores, plain_sums) = run(Isa::Portable);
            assert_eq!((bits(&scores), bits(&sums)), (bits(&plain_scores), bits(&plain_sums)));
            // The values of pages one after another are one matrix, which the other kernel takes.
            let mut expected = vec![vec![0.25; len]; Q];
            half_product(
                Isa::Portable,
                std::array::from_fn(|q| &terms[q][..]),
                &whole,
                len,
                slices::<Q>(&mut expected),
            );
            assert_eq!(bits(&sums), bits(&expected));
            for (page, memory) in memory.iter().enumerate() {
                let mut expected = vec![vec![0.0; 16]; Q];
                half_product(
                    Isa::Portable,
                    std::array::from_fn(|q| &vectors[q][..]),
                    memory,
                    16,
                    slices::<Q>(&mut expected),
                );
                for (scores, expected) in scores.iter().zip(&expected) {
                    assert_eq!(&scores[16 * page..][..16], &expected[..]);
                }
            }
        }
        let len = 16 * strips;
        check::<1>(count, cut, len, seed);
        check::<2>(count, cut, len, seed);
        check::<3>(count, cut, len, seed);
        check::<6>(count, cut, len, seed);
    }

    #[test]
    fn element_wise_kernels_agree(len in 1usize..200, seed: u64, size in 0.01f32..30.0) {
        let mut random = Random(seed);
        let values: Vec<f32> = random.floats(len).iter().map(|value| value * size).collect();
        let weight = random.floats(len);
        let isa = Isa::detect();

        let norm = |isa| {
            let mut out = values.clone();
            rms_norm(isa, &mut out, &weight, 1e-5);
            out
        };
        prop_assert_eq!(bits(&[norm(isa)]), bits(&[norm(Isa::Portable)]));
        let mean = values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / len as f64;
        for ((found, value), weight) in norm(isa).iter().zip(&values).zip(&weight) {
            let expected = f64::from(*value) / (mean + 1e-5).sqrt() * f64::from(*weight);
            prop_assert!((f64::from(*found) - expected).abs() < 1e-4);
        }

        let padded = len.next_multiple_of(16);
        let terms = |isa| {
            let mut out = values.clone();
            out.resize(padded, f32::NAN);
            let (peak, sum) = softmax_terms(isa, &mut out, len);
            out.extend([peak, sum]);
            out
        };
        prop_assert_eq!(bits(&[terms(isa)]), bits(&[terms(Isa::Portable)]));
        let found = terms(isa);
        let peak = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        prop_assert_eq!(found[padded], peak);
        for (found, value) in found.iter().zip(&values) {
            let expected = (f64::from(*value) - f64::from(peak)).exp();
            prop_assert!((f64::from(*found) - expected).abs() < 1e-6);
        }
        prop_assert!(found[len..padded].iter().all(|term| *term == 0.0));
        let sum: f64 = values.iter().map(|v| (f64::from(*v) - f64::from(peak)).exp()).sum();
        prop_assert!((f64::from(found[padded + 1]) - sum).abs() < 1e-5 * sum);
        prop_assert!((f64::from(weight_sum(isa, &values, peak)) - sum).abs() < 1e-5 * sum);
        prop_assert_eq!(
            weight_sum(isa, &values, peak).to_bits(),
            weight_sum(Isa::Portable, &values, peak).to_bits()
        );

        let halves = |isa| {
            let mut out = vec![0; len];
            store_halves(isa, &values, &mut out);
            out
        };
        prop_assert_eq!(halves(isa), halves(Isa::Portable));
    }

    #[test]
    fn swiglu_agrees(seed: u64, size in 0.1f32..90.0) {
        let mut random = Random(seed);
        let gate: [f32; TILE] = std::array::from_fn(|_| random.float() * size);
        let up: [f32; TILE] = std::array::from_fn(|_| random.float() * size);
        let run = |isa| {
            let mut out = [0.0; TILE];
            swiglu(isa, &gate, &up, &mut out);
            out
        };
        let found = run(Isa::detect());
        prop_assert_eq!(found.map(f32::to_bits), run(Isa::Portable).map(f32::to_bits));
        for index in 0..TILE {
            let (gate, up) = (f64::from(gate[index]), f64::from(up[index]));
            let expected = gate / (1.0 + (-gate).exp()) * up;
            prop_assert!((f64::from(found[index]) - expected).abs() < 1e-5 * expected.abs().max(1.0));
        }
    }
}

#[test]
fn tiny_and_odd_activations_are_harmless() {
    for values in [
        [0.0f32; 32],
        [1e-38; 32],
        [f32::MIN_POSITIVE; 32],
        [3e38; 32],
    ] {
        for isa in Isa::all() {
            let source = Random(1).tensor(TensorType::Q8_0, 32);
            let (matrix, arena) = pack(TensorType::Q8_0, 1, 32, &source);
            let input = activations(isa, &[values.to_vec()]);
            let found = product(isa, &matrix, &arena, &input, false);
            assert!(!found[0][0].is_nan(), "{values:?}");
        }
    }
}
