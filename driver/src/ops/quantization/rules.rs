//! Rules on scales and zero points that operations of several families share.

use burst_hal::OperandType;

use crate::OpError;
use crate::kernels::lut::Quant8;
use crate::tensor::TensorInfo;

/// Furthest that two scales which must be equal may be apart. Converters compute them in different
/// ways and models with such differences exist; TFLite's kernels accept the same distance.
const SCALE_TOLERANCE: f32 = 1e-6;

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
    (a.scale - b.scale).abs() <= SCALE_TOLERANCE && a.zero_point == b.zero_point
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
    if (quant.scale - scale).abs() > SCALE_TOLERANCE || quant.zero_point != zero_point {
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
