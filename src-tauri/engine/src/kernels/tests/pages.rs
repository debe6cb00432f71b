use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

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
        let len = 16 * strips;
        let mut random = Random(seed);
        let floats = random.floats(16 * len * count);
        let halves: Vec<u16> = floats.iter().map(|v| f16::from_f32(*v).to_bits()).collect();
        let bytes: Vec<i8> = floats.iter().map(|v| (v * 100.0) as i8).collect();
        check_pages::<_, 1>(&halves, (count, cut, len), seed);
        check_pages::<_, 2>(&halves, (count, cut, len), seed);
        check_pages::<_, 3>(&halves, (count, cut, len), seed);
        check_pages::<_, 6>(&halves, (count, cut, len), seed);
        check_pages::<_, 1>(&bytes, (count, cut, len), seed);
        check_pages::<_, 2>(&bytes, (count, cut, len), seed);
        check_pages::<_, 3>(&bytes, (count, cut, len), seed);
        check_pages::<_, 6>(&bytes, (count, cut, len), seed);
    }

    #[test]
    fn bytes_stand_for_values_within_half_a_step(len in 1usize..9, seed: u64) {
        let values = Random(seed).floats(16 * len);
        let peak = values.iter().fold(0f32, |peak, value| peak.max(value.abs()));
        for isa in Isa::all() {
            let mut bytes = vec![0; values.len()];
            let scale = as_bytes(isa, &values, &mut bytes);
            let expected = as_bytes(Isa::Portable, &values, &mut vec![0; values.len()]);
            assert_eq!(scale.to_bits(), expected.to_bits());
            for (value, byte) in values.iter().zip(&bytes) {
                assert!((value - f32::from(*byte) * scale).abs() <= peak / 253.0, "{value} {byte}");
            }
        }
    }
}

#[test]
fn what_is_not_finite_stays_so_as_bytes() {
    for isa in Isa::all() {
        for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let values = [1.0, odd, 2.0, 0.0];
            assert!(as_bytes(isa, &values, &mut [0; 4]).is_nan(), "{odd}");
        }
        assert_eq!(as_bytes(isa, &[0.0; 4], &mut [1; 4]), 0.0);
    }
}

/// Compares the products of vectors with pages, and of weights with pages, with sums in their order.
fn check_pages<C: Cell, const Q: usize>(
    memory: &[C],
    (count, cut, len): (usize, usize, usize),
    seed: u64,
) {
    let pages: Vec<&[C]> = memory.chunks_exact(16 * len).collect();
    let mut random = Random(seed);
    let vectors: Vec<_> = (0..Q).map(|_| random.floats(len)).collect();
    let terms: Vec<_> = (0..Q).map(|_| random.floats(16 * count - cut)).collect();
    fn slices<const Q: usize>(of: &mut [Vec<f32>]) -> [&mut [f32]; Q] {
        let mut each = of.iter_mut();
        std::array::from_fn(|_| &mut each.next().unwrap()[..])
    }
    let run = |isa| {
        let mut scores = vec![vec![9.0; 16 * count]; Q];
        let mut sums = vec![vec![0.25; len]; Q];
        let of = |q: usize| &vectors[q][..];
        page_scores(
            isa,
            std::array::from_fn(of),
            &pages,
            slices::<Q>(&mut scores),
        );
        let of = |q: usize| &terms[q][..];
        page_sums(isa, std::array::from_fn(of), &pages, slices::<Q>(&mut sums));
        (scores, sums)
    };
    let (scores, sums) = run(Isa::Portable);
    for isa in Isa::all() {
        let (found_scores, found_sums) = run(isa);
        assert_eq!(bits(&found_scores), bits(&scores), "{}", isa.name());
        assert_eq!(bits(&found_sums), bits(&sums), "{}", isa.name());
    }
    for q in 0..Q {
        for position in 0..16 * count {
            let page = pages[position / 16];
            let expected = (0..len).fold(0.0f32, |sum, at| {
                vectors[q][at].mul_add(page[16 * at + position % 16].wide(), sum)
            });
            assert_eq!(scores[q][position].to_bits(), expected.to_bits());
        }
        for at in 0..len {
            let expected = terms[q].iter().enumerate().fold(0.25f32, |sum, (i, term)| {
                term.mul_add(pages[i / 16][i % 16 * len + at].wide(), sum)
            });
            assert_eq!(sums[q][at].to_bits(), expected.to_bits());
        }
    }
}
