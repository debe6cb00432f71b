//! What the `gguf` package makes of blocks, ours must too: tests/goldens/quants.py wrote them.

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Golden {
    kind: String,
    rows: usize,
    cols: usize,
    /// The tensor's bytes, as hexadecimal digits.
    bytes: String,
    /// SHA-256 of the values, as little-endian floats.
    sha256: String,
    /// The first values, by which a fault can be found.
    first: Vec<f32>,
}

fn kind_of(name: &str) -> TensorType {
    match name {
        "F16" => TensorType::F16,
        "BF16" => TensorType::BF16,
        "Q4_0" => TensorType::Q4_0,
        "Q4_1" => TensorType::Q4_1,
        "Q5_0" => TensorType::Q5_0,
        "Q5_1" => TensorType::Q5_1,
        "Q8_0" => TensorType::Q8_0,
        "Q4_K" => TensorType::Q4K,
        "Q5_K" => TensorType::Q5K,
        "Q6_K" => TensorType::Q6K,
        other => panic!("`{other}`"),
    }
}

#[test]
fn blocks_mean_what_the_gguf_package_says() {
    use sha2::{Digest, Sha256};
    let goldens = include_str!("../../../../../tests/goldens/quants.json");
    let goldens: Vec<Golden> = serde_json::from_str(goldens).unwrap();
    assert_eq!(goldens.len(), 10);
    for golden in goldens {
        let Golden {
            kind,
            rows,
            cols,
            bytes,
            sha256,
            first,
        } = golden;
        let bytes: Vec<u8> = (0..bytes.len() / 2)
            .map(|at| u8::from_str_radix(&bytes[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        let (matrix, arena) = pack(kind_of(&kind), rows, cols, &bytes);
        let mut values = vec![0.0; cols];
        let mut hash = Sha256::new();
        for row in 0..rows {
            read_row(&matrix, &arena, row, &mut values);
            if row == 0 {
                assert_eq!(values[..first.len()], first, "{kind}");
            }
            // A zero has no sign that matters.
            hash.update(bytemuck::cast_slice(
                &values.iter().map(|value| value + 0.0).collect::<Vec<f32>>(),
            ));
        }
        let found: String = hash
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(found, sha256, "{kind}");
    }
}
