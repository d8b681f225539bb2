//! Real values behind the stored ones, whatever the type, and scalars wherever they are known.
//!
//! The operations of this family compute in `f32`: boxes and scores are few, so that a look at the
//! type for each value costs nothing that matters.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "stored values fit in f32 exactly, and are clamped to their type before they are narrowed"
)]

use std::ops::Range;

use burst_hal::OperandType;
use half::f16;

use crate::OpError;
use crate::kernels::quant::type_range;
use crate::tensor::{TensorInfo, TensorMut, TensorRef};

/// Scale of quantized boxes and image sizes: an eighth of a pixel.
const BOX_SCALE: f32 = 0.125;

/// What one step of a stored value means.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps {
    scale: f32,
    zero_point: i32,
    range: (i32, i32),
}

impl Steps {
    fn of(info: &TensorInfo) -> Self {
        Steps { scale: info.scale, zero_point: info.zero_point, range: type_range(info.ty) }
    }

    fn real(self, stored: impl Into<i32>) -> f32 {
        (stored.into() - self.zero_point) as f32 * self.scale
    }

    /// The nearest stored value, ties away from zero, within the type's range.
    fn stored(self, real: f32) -> i32 {
        // The cast saturates, and takes NaN to 0.
        let steps = (real / self.scale).round() as i32;
        steps.saturating_add(self.zero_point).clamp(self.range.0, self.range.1)
    }
}

/// The values of a tensor as real numbers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reals<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    U8(&'a [u8], Steps),
    I8(&'a [i8], Steps),
    U16(&'a [u16], Steps),
    I16(&'a [i16], Steps),
}

impl<'a> Reals<'a> {
    pub(super) fn of(tensor: &TensorRef<'a>) -> Result<Self, OpError> {
        let steps = Steps::of(tensor.info);
        Ok(match tensor.info.ty {
            OperandType::TensorFloat32 => Reals::F32(tensor.f32()?),
            OperandType::TensorFloat16 => Reals::F16(tensor.f16()?),
            OperandType::TensorQuant8Asymm => Reals::U8(tensor.u8()?, steps),
            OperandType::TensorQuant8AsymmSigned => Reals::I8(tensor.i8()?, steps),
            OperandType::TensorQuant16Asymm => Reals::U16(tensor.u16()?, steps),
            OperandType::TensorQuant16Symm => Reals::I16(tensor.i16()?, steps),
            got => return Err(OpError::Type { want: "a float or quantized tensor", got }),
        })
    }

    pub(super) fn get(&self, index: usize) -> f32 {
        match self {
            Reals::F32(values) => values[index],
            Reals::F16(values) => values[index].to_f32(),
            Reals::U8(values, steps) => steps.real(values[index]),
            Reals::I8(values, steps) => steps.real(values[index]),
            Reals::U16(values, steps) => steps.real(values[index]),
            Reals::I16(values, steps) => steps.real(values[index]),
        }
    }

    /// The largest of these values, not a number left out; minus infinity where there is none.
    pub(super) fn largest(&self, range: Range<usize>) -> f32 {
        let Reals::F32(values) = self else {
            return range.map(|index| self.get(index)).fold(f32::NEG_INFINITY, f32::max);
        };
        // Side by side, as vectors are: one after the other each comparison waits for the last one.
        let larger = |a: f32, b: f32| if b > a { b } else { a };
        let (whole, rest) = values[range].as_chunks::<16>();
        let mut largest = [f32::NEG_INFINITY; 16];
        for values in whole {
            for (largest, value) in largest.iter_mut().zip(values) {
                *largest = larger(*largest, *value);
            }
        }
        largest.iter().chain(rest).copied().fold(f32::NEG_INFINITY, larger)
    }

    /// The four values of box `index`.
    pub(super) fn quad(&self, index: usize) -> [f32; 4] {
        std::array::from_fn(|i| self.get(index * 4 + i))
    }
}

/// A tensor that real numbers are stored to.
#[derive(Debug)]
pub(super) enum RealsMut<'a> {
    F32(&'a mut [f32]),
    F16(&'a mut [f16]),
    U8(&'a mut [u8], Steps),
    I8(&'a mut [i8], Steps),
    U16(&'a mut [u16], Steps),
}

impl<'a> RealsMut<'a> {
    pub(super) fn of(tensor: &'a mut TensorMut<'_>) -> Result<Self, OpError> {
        let steps = Steps::of(tensor.info);
        Ok(match tensor.info.ty {
            OperandType::TensorFloat32 => RealsMut::F32(tensor.f32_mut()?),
            OperandType::TensorFloat16 => RealsMut::F16(tensor.f16_mut()?),
            OperandType::TensorQuant8Asymm => RealsMut::U8(tensor.u8_mut()?, steps),
            OperandType::TensorQuant8AsymmSigned => RealsMut::I8(tensor.i8_mut()?, steps),
            OperandType::TensorQuant16Asymm => RealsMut::U16(tensor.u16_mut()?, steps),
            got => return Err(OpError::Type { want: "a float or quantized tensor", got }),
        })
    }

    pub(super) fn set(&mut self, index: usize, real: f32) {
        match self {
            RealsMut::F32(values) => values[index] = real,
            RealsMut::F16(values) => values[index] = f16::from_f32(real),
            RealsMut::U8(values, steps) => values[index] = steps.stored(real) as u8,
            RealsMut::I8(values, steps) => values[index] = steps.stored(real) as i8,
            RealsMut::U16(values, steps) => values[index] = steps.stored(real) as u16,
        }
    }

    pub(super) fn set_quad(&mut self, index: usize, reals: [f32; 4]) {
        for (i, real) in reals.into_iter().enumerate() {
            self.set(index * 4 + i, real);
        }
    }
}

/// Quantized boxes and image sizes count eighths of a pixel from 0.
pub(super) fn expect_eighths(info: &TensorInfo) -> Result<(), OpError> {
    let quantized =
        matches!(info.ty, OperandType::TensorQuant16Asymm | OperandType::TensorQuant16Symm);
    #[allow(clippy::float_cmp, reason = "the scale is a constant, exact in f32")]
    let wrong = info.scale != BOX_SCALE || info.zero_point != 0;
    if quantized && wrong {
        return Err(OpError::Range { what: "scale or zero point of boxes, not 0.125 and 0" });
    }
    Ok(())
}

/// Fails unless `holds`.
pub(super) fn expect(holds: bool, what: &'static str, dims: &[u32]) -> Result<(), OpError> {
    if holds { Ok(()) } else { Err(OpError::shape(what, dims, &[])) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_values_round_away_from_zero_and_saturate() {
        let steps = Steps { scale: 0.125, zero_point: 0, range: (0, 65_535) };
        for (real, stored) in [
            (0.062_5, 1),
            (0.062, 0),
            (1.0, 8),
            (-3.0, 0),
            (1e9, 65_535),
            (f32::NAN, 0),
            (f32::INFINITY, 65_535),
        ] {
            assert_eq!(steps.stored(real), stored, "{real}");
        }
        let signed = Steps { scale: 0.5, zero_point: -128, range: (-128, 127) };
        assert_eq!(signed.stored(1.25), -125);
        assert_eq!(signed.real(-125i8), 1.5);
    }

    #[test]
    fn the_largest_value_is_found_wherever_it_stands() {
        let steps = Steps { scale: 0.5, zero_point: 3, range: (0, 255) };
        for len in [1, 15, 16, 17, 40, 91] {
            for at in 0..len {
                let mut values = vec![-2.0; len];
                values[len / 2] = f32::NAN;
                values[at] = -1.0;
                assert_eq!(Reals::F32(&values).largest(0..len), -1.0, "{at} of {len}");
                let mut stored = vec![0; len];
                stored[at] = 1;
                assert_eq!(Reals::U8(&stored, steps).largest(0..len), -1.0, "{at} of {len}");
            }
        }
        let none = f32::NEG_INFINITY;
        assert_eq!(Reals::F32(&[f32::NAN; 20]).largest(0..20), none);
        assert_eq!(Reals::F32(&[1.0]).largest(1..1), none);
    }
}
