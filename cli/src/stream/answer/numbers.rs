//! The real numbers that an output tensor stands for.

use burst_hal::OperandType;
use burst_tflite::TensorInfo;

/// How a tensor stores numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    ty: OperandType,
    scale: f32,
    zero_point: i32,
}

impl Numbers {
    /// `None` for a type whose numbers are not read.
    pub(super) fn of(tensor: &TensorInfo) -> Option<Self> {
        let known = matches!(
            tensor.ty,
            OperandType::TensorFloat32
                | OperandType::TensorInt32
                | OperandType::TensorQuant8Asymm
                | OperandType::TensorQuant8AsymmSigned
        );
        let TensorInfo { ty, scale, zero_point, .. } = *tensor;
        known.then_some(Numbers { ty, scale, zero_point })
    }

    /// Puts the numbers of `bytes` into `out`, in place of what was there.
    #[expect(clippy::cast_precision_loss, reason = "integers are class numbers and counts")]
    pub(super) fn read(self, bytes: &[u8], out: &mut Vec<f32>) {
        out.clear();
        let real = |stored: i32| (stored - self.zero_point) as f32 * self.scale;
        let words = || bytes.chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3]]);
        match self.ty {
            OperandType::TensorFloat32 => out.extend(words().map(f32::from_ne_bytes)),
            OperandType::TensorInt32 => {
                out.extend(words().map(|word| i32::from_ne_bytes(word) as f32));
            }
            OperandType::TensorQuant8AsymmSigned => {
                out.extend(bytes.iter().map(|b| real(b.cast_signed().into())));
            }
            _ => out.extend(bytes.iter().map(|b| real((*b).into()))),
        }
    }
}
