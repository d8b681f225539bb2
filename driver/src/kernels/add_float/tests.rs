//! Against sums of one value at a time.

use crate::kernels::simd::Isa;
use crate::kernels::testing::Numbers;

pub(crate) fn sums(isa: Isa) {
    let numbers = &mut Numbers::new(9);
    for len in (0..40).chain([1003]) {
        let (mut a, b) = (numbers.small_floats(len), numbers.small_floats(len));
        if let Some(first) = a.first_mut() {
            *first = f32::NAN;
        }
        let mut got = vec![77.0; len];
        super::sums(isa, &a, &b, (-3.0, 7.5), &mut got);
        let mut added_to = a.clone();
        super::add_to(isa, &mut added_to, &b, (-3.0, 7.5));
        let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&added_to), bits(&got));
        for (index, (got, (a, b))) in got.iter().zip(a.iter().zip(&b)).enumerate() {
            if index == 0 {
                assert!(got.is_nan(), "{got}");
            } else {
                assert_eq!(got.to_bits(), (a + b).clamp(-3.0, 7.5).to_bits(), "{a} + {b}");
            }
        }
    }
}
