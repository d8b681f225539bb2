//! Positions against a plain search.

use crate::kernels::simd::Isa;
use crate::kernels::testing::Numbers;

pub(crate) fn positions(isa: Isa) {
    let numbers = &mut Numbers::new(1);
    for len in [1, 2, 7, 31, 32, 33, 64, 100, 255, 256] {
        for flip in [0, 0x80, 0xFF] {
            for spread in [2, 10, 255] {
                let mut rows = numbers.bytes(5 * len);
                // Few different values: the largest is there several times.
                rows.iter_mut().for_each(|byte| *byte %= spread);
                let mut got = [-1; 5];
                super::positions(isa, &rows, len, flip, &mut got);
                for (row, got) in rows.chunks_exact(len).zip(got) {
                    let largest = row.iter().map(|byte| byte ^ flip).max().unwrap();
                    let want = row.iter().position(|byte| byte ^ flip == largest).unwrap();
                    assert_eq!(usize::try_from(got), Ok(want), "{row:?} with {flip}");
                }
            }
        }
    }
}
