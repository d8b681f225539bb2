//! Rules on scales and zero points that operations of several families share.

use burst_hal::OperandType;

use crate::OpError;
use crate::kernels::lut::Quant8;
use crate::tensor::{Args, TensorInfo};

/// Furthest that two scales which must be equal may be apart, as a part of the smaller one: eight steps of the
/// last bit or more. Converters compute scales in different ways, and models with such differences exist. It is
/// what NNAPI allows between the scale of a bias and that of the products.
const SCALE_TOLERANCE: f64 = 1e-6;

/// Whether two scales count as equal. What is allowed is a part of the scales and no fixed distance: scales of
/// 1e-7 and 9e-7 are close, and stored values mean nine times as much under the one as under the other.
pub(crate) fn is_same_scale(a: f32, b: f32) -> bool {
    let (a, b) = (f64::from(a), f64::from(b));
    (a - b).abs() <= SCALE_TOLERANCE * a.min(b)
}

/// The quantization of an 8-bit asymmetric type; `None` for every other type.
pub(crate) fn quant8(info: &TensorInfo) -> Option<Quant8> {
    let signed = match info.ty {
        OperandType::TensorQuant8Asymm => false,
        OperandType::TensorQuant8AsymmSigned => true,
        _ => return None,
    };
    Some(Quant8 { signed, scale: info.scale, zero_point: info.zero_point })
}

/// Whether stored values of both mean the same.
pub(crate) fn means_the_same(a: &TensorInfo, b: &TensorInfo) -> bool {
    is_same_scale(a.scale, b.scale) && a.zero_point == b.zero_point
}

/// A quantized output must mean the same as the input: the operation moves or compares stored
/// values and does not rescale them.
///
/// # Errors
/// [`OpError::Range`].
pub(crate) fn expect_same(input: &TensorInfo, output: &TensorInfo) -> Result<(), OpError> {
    if quant8(input).is_some() && !means_the_same(input, output) {
        return Err(OpError::Range { what: "scale or zero point of the output, not the input's" });
    }
    Ok(())
}

/// Every output of the type of input `index` must mean the same as that input, see [`expect_same`]. Asked before
/// anything else about shapes, so that the answer does not wait for those.
///
/// # Errors
/// [`OpError::Range`]; [`OpError::Arity`] without that input.
pub(crate) fn expect_same_outputs(args: &Args<'_>, index: usize) -> Result<(), OpError> {
    let input = args.input(index)?.info;
    let mut outputs = args.outputs.iter().filter(|(output, _)| output.ty == input.ty);
    outputs.try_for_each(|(output, _)| expect_same(input, output))
}

/// A quantized output must have the scale and zero point that the operation prescribes: its range
/// is known beforehand. `zero_point` is that of the unsigned type; the signed one is 128 lower.
///
/// # Errors
/// [`OpError::Range`].
pub(crate) fn expect_fixed(
    output: &TensorInfo,
    scale: f32,
    zero_point: i32,
) -> Result<(), OpError> {
    let Some(quant) = quant8(output) else { return Ok(()) };
    let zero_point = if quant.signed { zero_point - 128 } else { zero_point };
    if !is_same_scale(quant.scale, scale) || quant.zero_point != zero_point {
        return Err(OpError::Range {
            what: "scale or zero point of the output, not the fixed one",
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(ty: OperandType, scale: f32, zero_point: i32) -> TensorInfo {
        TensorInfo { ty, scale, zero_point, channel_scales: None, extension: None }
    }

    #[test]
    fn scales_may_differ_by_a_millionth() {
        let ty = OperandType::TensorQuant8Asymm;
        assert!(expect_same(&info(ty, 0.5, 3), &info(ty, 0.500_000_5, 3)).is_ok());
        assert!(expect_same(&info(ty, 0.5, 3), &info(ty, 0.51, 3)).is_err());
        assert!(expect_same(&info(ty, 0.5, 3), &info(ty, 0.5, 4)).is_err());
        let float = OperandType::TensorFloat32;
        assert!(expect_same(&info(float, 0.0, 0), &info(float, 0.0, 0)).is_ok());
    }

    /// Small scales whose difference is small too, but that are nothing alike.
    #[test]
    fn small_scales_are_compared_by_their_ratio() {
        let ty = OperandType::TensorQuant8Asymm;
        let same = |a, b| {
            let both = [is_same_scale(a, b), is_same_scale(b, a)];
            let (a, b) = (info(ty, a, 0), info(ty, b, 0));
            assert_eq!(both, [means_the_same(&a, &b), expect_same(&a, &b).is_ok()]);
            both[0]
        };
        assert!(!same(1e-7, 9e-7));
        assert!(!same(1e-7, 2e-7));
        assert!(same(1e-7, 1e-7 * 1.000_000_5));
        assert!(same(3e4, 3e4f32.next_up()));
        assert!(!same(3e4, 3e4 * 1.000_01));
        assert!(same(1e-40, 1e-40));
        assert!(expect_fixed(&info(ty, 1.0 / 256.0 + 5e-7, 0), 1.0 / 256.0, 0).is_err());
        assert!(expect_fixed(&info(ty, (1.0f32 / 256.0).next_up(), 0), 1.0 / 256.0, 0).is_ok());
    }

    #[test]
    fn the_fixed_zero_point_moves_with_the_sign() {
        let unsigned = OperandType::TensorQuant8Asymm;
        let signed = OperandType::TensorQuant8AsymmSigned;
        assert!(expect_fixed(&info(unsigned, 1.0 / 256.0, 0), 1.0 / 256.0, 0).is_ok());
        assert!(expect_fixed(&info(signed, 1.0 / 256.0, -128), 1.0 / 256.0, 0).is_ok());
        assert!(expect_fixed(&info(signed, 1.0 / 256.0, 0), 1.0 / 256.0, 0).is_err());
        assert!(expect_fixed(&info(unsigned, 1.0 / 128.0, 0), 1.0 / 256.0, 0).is_err());
    }
}
