//! Shapes, scales and stored values, of the kind at which drivers err.

use burst_hal::{Dimensions, OperandType, OutputSpec};

use super::bytes::Bytes;

/// Most elements of a tensor: enough for every operation to have something to do, few enough that a
/// thousand models a second are judged.
pub(super) const ELEMENTS_MAX: usize = 1 << 10;

/// Sizes along each axis, all known.
pub(super) fn shape(bytes: &mut Bytes<'_>) -> Dimensions {
    let known: &[u32] = match bytes.below(8) {
        0 => &[1, 2, 2, 1],
        1 => &[1, 4, 4, 2],
        2 => &[2],
        3 => &[1, 4],
        4 => &[3, 2],
        5 => &[1],
        6 => &[2, 1, 1, 2],
        _ => {
            let rank = 1 + bytes.below(5);
            return (0..rank).map(|_| 1 + u32::from(bytes.byte() % 4)).collect();
        }
    };
    known.into()
}

/// A type with a shape, and with scales that it may have.
pub(super) fn spec(bytes: &mut Bytes<'_>, ty: OperandType, shape: &[u32]) -> OutputSpec {
    let spec = OutputSpec::new(ty, shape);
    match ty {
        OperandType::TensorQuant8SymmPerChannel => {
            let channel = bytes.below(shape.len());
            let count = shape.get(channel).map_or(0, |size| *size as usize);
            let scales: Vec<f32> = (0..count).map(|_| scale(bytes)).collect();
            spec.per_channel(&scales, u32::try_from(channel).unwrap_or(0))
        }
        ty if ty.is_quantized() => {
            let (low, high) = ty.zero_point_range();
            let middle = low + (high - low + 1) / 2;
            let zero_point = bytes.pick([middle, low, high]);
            spec.quantized(scale(bytes), zero_point)
        }
        _ => spec,
    }
}

/// A scale above zero.
pub(super) fn scale(bytes: &mut Bytes<'_>) -> f32 {
    let odd = bytes.pick([0.5, 1.0 / 256.0, 1.0 / 128.0, 1.0, 0.25, 3.7e-5, 1.0e30, 0.0]);
    match odd > 0.0 {
        true => odd,
        // Any float that is legal, down to the smallest.
        false => f32::from_bits(bytes.word() & 0x7F7F_FFFF).max(f32::MIN_POSITIVE),
    }
}

/// The stored bytes of a value of this type and shape; four bytes where only its device knows how many.
pub(super) fn value(bytes: &mut Bytes<'_>, ty: OperandType, shape: &[u32]) -> Vec<u8> {
    let elements = shape.iter().try_fold(1_usize, |all, size| all.checked_mul(*size as usize));
    let elements = elements.unwrap_or(ELEMENTS_MAX).min(ELEMENTS_MAX);
    let Some(size) = ty.element_bytes() else { return vec![0; 4] };
    let kind = bytes.below(6);
    let seed = if kind == 0 { 0 } else { bytes.byte() };
    let element = |index: usize| element(bytes, ty, kind, seed, index);
    let mut stored: Vec<u8> = (0..elements).flat_map(element).collect();
    stored.truncate(elements * size);
    stored
}

/// One element: of a scalar or a tensor that says how many, where to and how far, or of one to compute with.
fn element(bytes: &mut Bytes<'_>, ty: OperandType, kind: usize, seed: u8, index: usize) -> Vec<u8> {
    let count = i32::try_from(index).unwrap_or(i32::MAX);
    let number = match kind {
        0 => i32::from(!ty.is_tensor()), // a scalar 1, a tensor of zeros
        1 => i32::from(seed % 8) - 2,
        2 => count,
        3 => 1,
        4 => [i32::MAX, i32::MIN, -1, 255, 1 << 20][usize::from(seed) % 5],
        _ => i32::from_le_bytes(bytes.word().to_le_bytes()),
    };
    let raw = kind == 5;
    let real = if kind == 4 { odd_float(seed) } else { f64::from(number) / 2.0 };
    match ty {
        OperandType::Float32 | OperandType::TensorFloat32 => match raw {
            true => number.to_le_bytes().to_vec(),
            #[allow(clippy::cast_possible_truncation, reason = "what a float can hold of it")]
            false => (real as f32).to_le_bytes().to_vec(),
        },
        OperandType::Float16 | OperandType::TensorFloat16 => match raw {
            true => number.to_le_bytes()[..2].to_vec(),
            false => half::f16::from_f64(real).to_le_bytes().to_vec(),
        },
        OperandType::Bool | OperandType::TensorBool8 => match raw {
            true => number.to_le_bytes()[..1].to_vec(),
            false => vec![u8::from(number & 1 == 1)],
        },
        ty => number.to_le_bytes()[..ty.element_bytes().unwrap_or(0).min(4)].to_vec(),
    }
}

/// A float at the edge of what floats can say.
fn odd_float(seed: u8) -> f64 {
    let odd = [f64::NAN, f64::INFINITY, -0.0, f64::from(f32::MAX), f64::from(f32::MIN_POSITIVE)];
    odd[usize::from(seed) % odd.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a pseudo-random stream.
    fn noise(seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        };
        (0..256).map(|_| next()).collect()
    }

    #[test]
    fn values_are_as_long_as_their_type_and_shape_say() {
        for seed in 0..64 {
            let noise = noise(seed);
            let mut bytes = Bytes::new(&noise);
            for ty in OperandType::ALL.iter().filter(|ty| ty.element_bytes().is_some()) {
                let shape = if ty.is_tensor() { shape(&mut bytes) } else { Dimensions::new() };
                let stored = value(&mut bytes, *ty, &shape);
                assert_eq!(Some(stored.len() as u64), ty.byte_length(&shape), "{ty} {shape:?}");
            }
        }
    }

    #[test]
    fn scales_are_finite_and_above_zero() {
        for first in 0..=255 {
            for word in [0_u32, u32::MAX, 0x7F80_0000, 1] {
                let noise = [&[first][..], &word.to_le_bytes()].concat();
                let scale = scale(&mut Bytes::new(&noise));
                assert!(scale.is_finite() && scale > 0.0, "{first} {word:#x}: {scale}");
            }
        }
    }
}
