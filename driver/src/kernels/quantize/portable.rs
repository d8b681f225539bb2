//! From floats to stored values, and back.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "values are clamped to their 8-bit type before they are narrowed; differences of 8-bit values are exact in f32"
)]

use crate::kernels::lut::Quant8;

/// The stored values of floats; `out` has as many elements. Signed ones as their two's complement.
#[inline(always)]
pub(crate) fn floats(values: &[f32], quant: Quant8, out: &mut [u8]) {
    for (out, value) in out.iter_mut().zip(values) {
        *out = stored(*value, quant);
    }
}

/// The floats that stored values, signed or not as their eight bits, stand for; `out` has as many elements.
#[inline(always)]
pub(crate) fn bytes(values: &[u8], quant: Quant8, out: &mut [f32]) {
    let Quant8 { signed, scale, zero_point } = quant;
    let real = |stored: i32| scale * stored.wrapping_sub(zero_point) as f32;
    if signed {
        for (out, value) in out.iter_mut().zip(values) {
            *out = real(i32::from(value.cast_signed()));
        }
    } else {
        for (out, value) in out.iter_mut().zip(values) {
            *out = real(i32::from(*value));
        }
    }
}

/// The stored value of one float, signed or not as its eight bits.
#[inline(always)]
pub(crate) fn stored(x: f32, quant: Quant8) -> u8 {
    step(x, quant) as u8
}

/// The stored value nearest to `x`. Not a number becomes the zero point.
#[inline(always)]
fn step(x: f32, quant: Quant8) -> i32 {
    let (low, high) = quant.range();
    // The cast saturates; the sum then cannot leave 32 bits by much.
    round_away(x / quant.scale).saturating_add(quant.zero_point).max(low).min(high)
}

/// The largest number below one half.
pub(super) const BELOW_HALF: f32 = 0.499_999_97;

/// Steps from the zero point that leave every range of 8 bits, whatever the zero point: as exact as a float as they are
/// as an integer.
#[cfg(target_arch = "x86_64")]
pub(super) const FAR: f32 = 65_536.0;

/// `x.round() as i32` without the call into the mathematics library that keeps a loop from being
/// turned into vector code: adding [`BELOW_HALF`] and truncating gives the same.
#[inline(always)]
fn round_away(x: f32) -> i32 {
    (x + BELOW_HALF.copysign(x)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_equals_the_library_function() {
        let near = [0.0, 0.5, 1.5, 2.5, 8_388_607.5, 8_388_608.0, 8_388_609.0, 16_777_215.0];
        let far = [1e9, 2_147_483_500.0, 2_147_483_648.0, 1e20, f32::INFINITY];
        for x in near.into_iter().chain(far) {
            for x in [x.next_down(), x, x.next_up()] {
                assert_eq!(round_away(x), x.round() as i32, "{x}");
                assert_eq!(round_away(-x), (-x).round() as i32, "-{x}");
            }
        }
        let mut x = -300.0f32;
        while x < 300.0 {
            assert_eq!(round_away(x), x.round() as i32, "{x}");
            x += 0.003;
        }
    }
}
