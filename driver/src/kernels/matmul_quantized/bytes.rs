//! What rows of bytes go through before they are multiplied.

/// `out[row] = factor * sum(rows[row, ..])`; all rows have one length.
#[inline(always)]
pub(crate) fn row_sums(rows: &[u8], factor: i32, out: &mut [i32]) {
    let Some(depth) = rows.len().checked_div(out.len()).filter(|depth| *depth > 0) else {
        out.fill(0);
        return;
    };
    for (row, out) in rows.chunks_exact(depth).zip(out) {
        let sum = row.iter().fold(0i32, |sum, value| sum.wrapping_add(i32::from(*value)));
        *out = factor.wrapping_mul(sum);
    }
}

/// `out[row] = sum(rows[row, ..])` of values that are signed once each byte is XORed with `flip`; all rows have one
/// length.
#[inline(always)]
pub(crate) fn signed_sums(rows: &[u8], flip: u8, out: &mut [i32]) {
    let Some(depth) = rows.len().checked_div(out.len()).filter(|depth| *depth > 0) else {
        out.fill(0);
        return;
    };
    for (row, out) in rows.chunks_exact(depth).zip(out) {
        let signed = |value: &u8| i32::from((value ^ flip).cast_signed());
        *out = row.iter().fold(0i32, |sum, value| sum.wrapping_add(signed(value)));
    }
}

/// XORs a mask into every byte.
#[inline(always)]
pub(crate) fn flip(bytes: &mut [u8], mask: u8) {
    for byte in bytes {
        *byte ^= mask;
    }
}

/// `to = from ^ mask`, byte by byte; both have one length.
#[inline(always)]
pub(crate) fn copy_flipped(from: &[u8], mask: u8, to: &mut [u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = from ^ mask;
    }
}
