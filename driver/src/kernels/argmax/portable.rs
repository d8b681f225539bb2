//! Positions of the largest bytes, in blocks that vectors hold.

/// Most values that positions of 8 bits tell apart.
pub(crate) const MAX_LEN: usize = 256;

/// Values that are compared together.
pub(crate) const BLOCK: usize = 32;

/// For each row of `len` bytes, each XORed with `flip`, the position of the first largest one; at
/// most [`MAX_LEN`] of them.
#[inline(always)]
pub(crate) fn positions(rows: &[u8], len: usize, flip: u8, out: &mut [i32]) {
    // What a position adds to its value, and which lanes have one.
    let (mut ranks, mut present) = ([0u16; MAX_LEN], [0u16; MAX_LEN]);
    for (rank, (slot, present)) in (0..=255).rev().zip(ranks.iter_mut().zip(&mut present).take(len))
    {
        (*slot, *present) = (rank, !0);
    }
    for (row, out) in out.iter_mut().enumerate() {
        let mut best = [0u16; BLOCK];
        for first in (0..len).step_by(BLOCK) {
            let values = &rows[row * len + first..];
            let mut padded = [0; BLOCK];
            let values = values.first_chunk::<BLOCK>().unwrap_or_else(|| {
                padded[..values.len()].copy_from_slice(values);
                &padded
            });
            for lane in 0..BLOCK {
                let value = u16::from(values[lane] ^ flip) << 8 | ranks[first + lane];
                best[lane] = best[lane].max(value & present[first + lane]);
            }
        }
        *out = 255 - i32::from(largest(best) & 0xFF);
    }
}

#[inline(always)]
fn largest(mut values: [u16; BLOCK]) -> u16 {
    let mut half = BLOCK / 2;
    while half > 0 {
        for lane in 0..half {
            values[lane] = values[lane].max(values[lane + half]);
        }
        half /= 2;
    }
    values[0]
}
