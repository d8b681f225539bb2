//! The real numbers that a tensor stands for, and back.

use burst_hal::OperandType;
use burst_tflite::TensorInfo;

/// How a tensor stores numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbers {
    ty: OperandType,
    scale: f32,
    zero_point: i32,
}

impl Numbers {
    /// How this tensor stores them; `None` for a type whose numbers are not read.
    #[must_use]
    pub fn of(tensor: &TensorInfo) -> Option<Self> {
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

    /// The same, of a tensor that real numbers can be written into: none of whole numbers.
    #[must_use]
    pub fn real(tensor: &TensorInfo) -> Option<Self> {
        Numbers::of(tensor).filter(|numbers| numbers.ty != OperandType::TensorInt32)
    }

    /// Bytes of one number.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self.ty {
            OperandType::TensorFloat32 | OperandType::TensorInt32 => 4,
            _ => 1,
        }
    }

    /// Puts the numbers of `bytes` into `out`, in place of what was there.
    #[expect(clippy::cast_precision_loss, reason = "integers are class numbers and counts")]
    pub fn read(self, bytes: &[u8], out: &mut Vec<f32>) {
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

    /// Writes numbers; where they are stored in eight bits, the nearest that there is. As many as both slices have.
    pub fn write(self, values: &[f32], out: &mut [u8]) {
        if self.ty == OperandType::TensorFloat32 {
            for (out, value) in out.chunks_exact_mut(4).zip(values) {
                out.copy_from_slice(&value.to_ne_bytes());
            }
            return;
        }
        let signed = self.ty == OperandType::TensorQuant8AsymmSigned;
        let (low, high) = if signed { (-128.0, 127.0) } else { (0.0, 255.0) };
        for (out, value) in out.iter_mut().zip(values) {
            #[expect(clippy::cast_precision_loss, reason = "a zero point has eight bits")]
            let stored = ((value / self.scale).round() + self.zero_point as f32).clamp(low, high);
            #[expect(clippy::cast_possible_truncation, reason = "clamped; not a number is 0")]
            let stored = stored as i16;
            *out = stored.to_le_bytes()[0];
        }
    }
}

/// How many elements a shape has.
pub(crate) fn elements(dims: &[u32]) -> usize {
    dims.iter().fold(1, |all: usize, size| all.saturating_mul(*size as usize))
}

#[cfg(test)]
mod tests {
    use burst_tflite::ElementType;

    use super::*;

    fn tensor(ty: OperandType) -> TensorInfo {
        TensorInfo {
            name: "t".into(),
            ty,
            file_type: ElementType::Float32,
            dims: [4][..].into(),
            scale: 0.5,
            zero_point: 3,
        }
    }

    #[test]
    fn quantized_tensors_hold_the_nearest_value() {
        let mut out = [0; 4];
        let encode = |ty, out: &mut [u8]| {
            Numbers::real(&tensor(ty)).unwrap().write(&[0.0, 0.76, -100.0, 1e9], out);
        };
        encode(OperandType::TensorQuant8Asymm, &mut out);
        assert_eq!(out, [3, 5, 0, 255]);
        encode(OperandType::TensorQuant8AsymmSigned, &mut out);
        assert_eq!(out.map(u8::cast_signed), [3, 5, -128, 127]);
        assert!(Numbers::real(&tensor(OperandType::TensorInt32)).is_none());
    }

    #[test]
    fn what_is_written_is_read_again() {
        let values = [0.0, -1.5, 4.0];
        for ty in [OperandType::TensorFloat32, OperandType::TensorQuant8AsymmSigned] {
            let numbers = Numbers::of(&tensor(ty)).unwrap();
            let mut bytes = vec![0; numbers.bytes() * 3];
            numbers.write(&values, &mut bytes);
            let mut read = vec![9.0];
            numbers.read(&bytes, &mut read);
            assert_eq!(read, values, "{ty}");
        }
        let whole = Numbers::of(&tensor(OperandType::TensorInt32)).unwrap();
        let mut read = Vec::new();
        whole.read(&[7_i32.to_ne_bytes(), (-2_i32).to_ne_bytes()].concat(), &mut read);
        assert_eq!(read, [7.0, -2.0]);
        assert!(Numbers::of(&tensor(OperandType::TensorBool8)).is_none());
    }
}
