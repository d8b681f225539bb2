//! Random numbers from a counter: Philox 4x32-10 of Salmon et al., "Parallel random numbers: as easy
//! as 1, 2, 3" (2011). The same key and counter always give the same numbers.

const ROUNDS: usize = 10;
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const KEY_STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// The four numbers of a counter.
pub(super) fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let [high0, low0] = product(MULTIPLIERS[0], counter[0]);
        let [high1, low1] = product(MULTIPLIERS[1], counter[2]);
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0];
        key = [key[0].wrapping_add(KEY_STEPS[0]), key[1].wrapping_add(KEY_STEPS[1])];
    }
    counter
}

/// High and low half of a product.
#[allow(clippy::cast_possible_truncation, reason = "each half is taken on purpose")]
fn product(a: u32, b: u32) -> [u32; 2] {
    let wide = u64::from(a) * u64::from(b);
    [(wide >> 32) as u32, wide as u32]
}

/// A number in `0..1`, with all the 53 bits that an `f64` has in that range.
#[allow(clippy::cast_possible_truncation, reason = "a counter's words are its parts")]
pub(super) fn uniform(index: u64, key: [u32; 2]) -> f64 {
    let [a, b, _, _] = philox([index as u32, (index >> 32) as u32, 0, 0], key);
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
    let bits = ((u64::from(a) << 32 | u64::from(b)) >> 11) as f64;
    bits / 2f64.powi(53)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that the authors publish.
    #[test]
    fn known_answers() {
        for (counter, key, want) in [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ] {
            assert_eq!(philox(counter, key), want);
        }
    }

    #[test]
    fn uniform_numbers_fill_their_range_evenly() {
        let mut tenths = [0u32; 10];
        for index in 0..10_000 {
            let x = uniform(index, [1, 2]);
            assert!((0.0..1.0).contains(&x));
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 9")]
            let tenth = (x * 10.0) as usize;
            tenths[tenth] += 1;
        }
        // 1000 each; five standard deviations are 150.
        assert!(tenths.iter().all(|count| count.abs_diff(1000) < 150), "{tenths:?}");
    }
}
