//! Tables for functions of one 8-bit value: 256 entries, worked out once.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "values are clamped to their 8-bit type before they are narrowed"
)]

use crate::kernels::simd::portable_kernel;

portable_kernel! {
    /// `lut/table`: see [`apply`].
    TABLE = "lut/table",
    operations: [HardSwish, Logistic, Relu, Relu1, Relu6, Tanh],
    types: [TensorQuant8Asymm, TensorQuant8AsymmSigned],
}

/// One output byte per input byte. Signed values are indexed and stored by their two's complement.
pub(crate) type Table = [u8; 256];

/// How the stored values of an 8-bit type stand for real ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quant8 {
    /// Whether values are -128 to 127 rather than 0 to 255.
    pub(crate) signed: bool,
    /// Real value of one step.
    pub(crate) scale: f32,
    /// Stored value of real 0.
    pub(crate) zero_point: i32,
}

impl Quant8 {
    /// Smallest and largest stored value.
    #[must_use]
    pub(crate) fn range(&self) -> (i32, i32) {
        if self.signed { (-128, 127) } else { (0, 255) }
    }
}

/// The table of a function from stored value to stored value; results are clamped to `output`'s
/// type.
pub(crate) fn table(input: Quant8, output: Quant8, function: impl Fn(i32) -> i32) -> Table {
    let (first, last) = input.range();
    let (low, high) = output.range();
    let mut table = [0; 256];
    for stored in first..=last {
        table[usize::from(stored as u8)] = function(stored).clamp(low, high) as u8;
    }
    table
}

/// The table of a function of real numbers, computed in `f32` and rounded with ties away from 0.
pub(crate) fn real_table(input: Quant8, output: Quant8, function: impl Fn(f32) -> f32) -> Table {
    // The reference multiplies by the inverse, which differs from a division in the last bit.
    let inverse = 1.0 / output.scale;
    table(input, output, |stored| {
        let real = input.scale * (stored - input.zero_point) as f32;
        let steps = (function(real) * inverse).round() as i32;
        steps.saturating_add(output.zero_point)
    })
}

/// Looks every byte up.
pub(crate) fn apply(table: &Table, input: &[u8], output: &mut [u8]) {
    for (out, byte) in output.iter_mut().zip(input) {
        *out = table[usize::from(*byte)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNSIGNED: Quant8 = Quant8 { signed: false, scale: 0.5, zero_point: 128 };
    const SIGNED: Quant8 = Quant8 { signed: true, scale: 0.5, zero_point: 0 };

    #[test]
    fn signed_and_unsigned_tables_agree_on_real_values() {
        let unsigned = real_table(UNSIGNED, UNSIGNED, |x| x + 1.0);
        let signed = real_table(SIGNED, SIGNED, |x| x + 1.0);
        // Real 3 is 6 steps above zero; 4 is 8 steps.
        assert_eq!(unsigned[134], 136);
        assert_eq!(signed[6], 8);
        // Real -3 becomes -2: stored -6 and -4.
        assert_eq!(signed[usize::from((-6i8).cast_unsigned())], (-4i8).cast_unsigned());
    }

    #[test]
    fn results_stay_in_the_type() {
        let up = table(SIGNED, SIGNED, |_| 1000);
        let down = table(SIGNED, UNSIGNED, |_| -1000);
        assert!(up.iter().all(|byte| *byte == 127));
        assert!(down.iter().all(|byte| *byte == 0));
    }
}
