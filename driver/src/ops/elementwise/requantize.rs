//! Stored values of one scale and zero point as those of another.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "the differences of 8-bit values are exact in f32; results are clamped to 8 bits"
)]

use burst_hal::OperandType;

use crate::kernels::quant::type_range;
use crate::tensor::TensorInfo;

/// What each of the 256 stored values of an input is in the output, by its byte.
pub(super) struct Requantize([u8; 256]);

impl Requantize {
    /// From what `from` means to what `to` means: the real value in `f32`, divided by the new scale
    /// in `f64`, rounded with ties away from zero and clamped to the type of `to`.
    pub(super) fn new(from: &TensorInfo, to: &TensorInfo) -> Self {
        let (low, high) = type_range(to.ty);
        let zero_point = f64::from(to.zero_point);
        let scale = f64::from(to.scale);
        Requantize(std::array::from_fn(|byte| {
            let stored = stored_value(byte as u8, from.ty);
            let real = (stored - from.zero_point) as f32 * from.scale;
            let new = (f64::from(real) / scale + zero_point).round();
            // The conversion saturates, and a scale that is no number gives 0.
            (new as i32).clamp(low, high) as u8
        }))
    }

    /// Whether every stored value stays what it is.
    pub(super) fn changes_nothing(&self) -> bool {
        self.0.iter().enumerate().all(|(byte, new)| byte == usize::from(*new))
    }

    /// The output's stored value, as a byte.
    #[inline]
    pub(super) fn unsigned(&self, stored: u8) -> u8 {
        self.0[usize::from(stored)]
    }

    /// The output's stored value, for signed types.
    #[inline]
    pub(super) fn signed(&self, stored: i8) -> i8 {
        self.0[usize::from(stored as u8)] as i8
    }
}

/// What each of the 256 stored values really is, by its byte.
pub(super) fn real_values(info: &TensorInfo) -> [f32; 256] {
    std::array::from_fn(|byte| {
        (stored_value(byte as u8, info.ty) - info.zero_point) as f32 * info.scale
    })
}

fn stored_value(byte: u8, ty: OperandType) -> i32 {
    if ty == OperandType::TensorQuant8AsymmSigned { i32::from(byte as i8) } else { byte.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(ty: OperandType, scale: f32, zero_point: i32) -> TensorInfo {
        TensorInfo { ty, scale, zero_point, channel_scales: None, extension: None }
    }

    #[test]
    fn values_keep_their_meaning_as_far_as_they_fit() {
        let ty = OperandType::TensorQuant8Asymm;
        let half_as_wide = Requantize::new(&info(ty, 0.5, 10), &info(ty, 0.25, 100));
        for (stored, want) in [(10, 100), (11, 102), (0, 80), (87, 254), (88, 255), (255, 255)] {
            assert_eq!(half_as_wide.unsigned(stored), want, "{stored}");
        }
        let twice_as_wide = Requantize::new(&info(ty, 0.5, 10), &info(ty, 1.0, 2));
        // 1 step is 0.5, to 1 (plus 2); -1 step is -0.5, to 1.5, which rounds to 2; -10 steps are -5.
        for (stored, want) in [(10, 2), (11, 3), (9, 2), (12, 3), (13, 4), (0, 0)] {
            assert_eq!(twice_as_wide.unsigned(stored), want, "{stored}");
        }
    }

    #[test]
    fn signed_values_are_read_and_clamped_as_such() {
        let ty = OperandType::TensorQuant8AsymmSigned;
        let doubled = Requantize::new(&info(ty, 1.0, 0), &info(ty, 0.5, -1));
        for (stored, want) in [(0, -1), (-1, -3), (63, 125), (64, 127), (-64, -128), (-128, -128)] {
            assert_eq!(doubled.signed(stored), want, "{stored}");
        }
        assert_eq!(real_values(&info(ty, 0.5, -128))[usize::from(127i8 as u8)], 127.5);
        assert_eq!(real_values(&info(ty, 0.5, -128))[usize::from(-128i8 as u8)], 0.0);
    }

    #[test]
    fn the_same_meaning_is_the_same_value() {
        let same = info(OperandType::TensorQuant8Asymm, 0.1, 33);
        let table = Requantize::new(&same, &same);
        assert!((0..=255).all(|stored| table.unsigned(stored) == stored));
        assert!(table.changes_nothing());
        let signed = info(OperandType::TensorQuant8AsymmSigned, 0.1, 33);
        assert!(Requantize::new(&signed, &signed).changes_nothing());
        let other = info(OperandType::TensorQuant8Asymm, 0.1, 34);
        assert!(!Requantize::new(&same, &other).changes_nothing());
    }
}
