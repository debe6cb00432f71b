use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

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
    fn swiglu_agrees(seed: u64, size in 0.1f32..2000.0) {
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
            prop_assert!(found[index].is_finite(), "{gate}");
            prop_assert!((f64::from(found[index]) - expected).abs() < 1e-5 * expected.abs().max(1.0));
        }
    }
}
