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
}
