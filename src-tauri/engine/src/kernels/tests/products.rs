use burn::tensor::f16;
use proptest::prelude::*;

use super::*;

const TYPES: [TensorType; 11] = [
    TensorType::Q4_0,
    TensorType::Q4_1,
    TensorType::Q5_0,
    TensorType::Q5_1,
    TensorType::Q8_0,
    TensorType::Q4K,
    TensorType::Q5K,
    TensorType::Q6K,
    TensorType::F16,
    TensorType::BF16,
    TensorType::F32,
];

/// The tensor's values.
fn dequantise(kind: TensorType, bytes: &[u8]) -> Vec<f64> {
    let half = |bytes: &[u8]| f64::from(f16::from_le_bytes([bytes[0], bytes[1]]).to_f32());
    let nibbles = |bytes: &[u8]| -> Vec<f64> {
        let low = bytes.iter().map(|byte| f64::from(byte & 15));
        low.chain(bytes.iter().map(|byte| f64::from(byte >> 4)))
            .collect()
    };
    let fifth = |quants: Vec<f64>, bits: &[u8]| -> Vec<f64> {
        let bits = u32::from_le_bytes(bits.try_into().unwrap());
        let quants = quants.iter().enumerate();
        quants
            .map(|(at, quant)| quant + f64::from(bits >> at & 1) * 16.0)
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
            TensorType::BF16 => out.push(wide_float([block[0], block[1]]).into()),
            TensorType::Q5_0 => {
                let quants = fifth(nibbles(&block[6..]), &block[2..6]);
                out.extend(quants.iter().map(|q| half(block) * (q - 16.0)));
            }
            TensorType::Q5_1 => {
                let quants = fifth(nibbles(&block[8..]), &block[4..8]);
                let min = half(&block[2..]);
                out.extend(quants.iter().map(|q| half(block) * q + min));
            }
            TensorType::Q4K | TensorType::Q5K => {
                let nibbles = &block[block.len() - 128..];
                for part in 0..8 {
                    let scales = &block[4..16];
                    let [scale, min] = if part < 4 {
                        [scales[part] & 63, scales[part + 4] & 63]
                    } else {
                        let (both, low, high) = (scales[part + 4], scales[part - 4], scales[part]);
                        [
                            (both & 15) + (low >> 6) * 16,
                            (both >> 4) + (high >> 6) * 16,
                        ]
                    };
                    for column in 0..32 {
                        let byte = nibbles[part / 2 * 32 + column];
                        let mut quant = if part % 2 == 0 { byte & 15 } else { byte >> 4 };
                        if kind == TensorType::Q5K && block[16 + column] >> part & 1 == 1 {
                            quant += 16;
                        }
                        let value = half(block) * f64::from(scale) * f64::from(quant);
                        out.push(value - half(&block[2..]) * f64::from(min));
                    }
                }
            }
            TensorType::Q6K => {
                for element in 0..256 {
                    let (half_of, rest) = (element / 128, element % 128);
                    let (quarter, column) = (rest / 32, rest % 32);
                    let low = block[64 * half_of + 32 * (quarter % 2) + column];
                    let low = if quarter < 2 { low & 15 } else { low >> 4 };
                    let high = block[128 + 32 * half_of + column] >> (2 * quarter) & 3;
                    let quant = i32::from(low + 16 * high) - 32;
                    let scale = f64::from(block[192 + element / 16] as i8);
                    out.push(half(&block[208..]) * scale * f64::from(quant));
                }
            }
            TensorType::Q8_0 => {
                out.extend(block[2..].iter().map(|&q| half(block) * f64::from(q as i8)));
            }
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn products_agree_with_plain_arithmetic(
        kind in 0..TYPES.len(), rows in 1usize..40, blocks in 1usize..4, columns in 1usize..10,
        seed: u64,
    ) {
        let (kind, mut random) = (TYPES[kind], Random(seed));
        let cols = blocks * kind.block_len().max(32);
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
                        let value = if matrix.format.is_quantised() && peak > 0.0 {
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
        kind in 0..TYPES.len(), rows in 1usize..40, blocks in 1usize..4, columns in 1usize..10,
        seed: u64,
    ) {
        let (kind, mut random) = (TYPES[kind], Random(seed));
        let cols = blocks * kind.block_len().max(32);
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
        let kind = TYPES[kind];
        let cols = blocks * kind.block_len().max(32);
        let source = Random(seed).tensor(kind, rows * cols);
        let (matrix, arena) = pack(kind, rows, cols, &source);
        let expected = dequantise(kind, &source);
        let mut found = vec![0.0; cols];
        for row in 0..rows {
            read_row(&matrix, &arena, row, &mut found);
            for (found, expected) in found.iter().zip(&expected[row * cols..]) {
                let slack = 1e-5 * expected.abs().max(8.0);
                prop_assert!((f64::from(*found) - expected).abs() <= slack, "{kind:?}");
            }
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
