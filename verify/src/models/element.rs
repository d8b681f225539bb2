//! Element types of tensors in goldens.

use serde::Deserialize;

/// Element type of a tensor in a golden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Element {
    Float32,
    Int64,
    Int32,
    Uint8,
    Int8,
}

impl Element {
    /// Bytes of one.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Element::Float32 | Element::Int32 => 4,
            Element::Int64 => 8,
            Element::Uint8 | Element::Int8 => 1,
        }
    }

    /// The elements as `f64`, which holds every one that a golden has exactly.
    pub(crate) fn decode(self, bytes: &[u8]) -> Vec<f64> {
        fn each<const N: usize>(bytes: &[u8], of: impl Fn([u8; N]) -> f64) -> Vec<f64> {
            bytes.as_chunks::<N>().0.iter().map(|chunk| of(*chunk)).collect()
        }
        match self {
            Element::Float32 => each(bytes, |b| f32::from_le_bytes(b).into()),
            Element::Int32 => each(bytes, |b| i32::from_le_bytes(b).into()),
            #[expect(clippy::cast_precision_loss, reason = "class indexes are small")]
            Element::Int64 => each(bytes, |b| i64::from_le_bytes(b) as f64),
            Element::Uint8 => each(bytes, |[b]| b.into()),
            Element::Int8 => each(bytes, |[b]: [u8; 1]| b.cast_signed().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_decoded_with_their_sign() {
        assert_eq!(Element::Int8.decode(&[0x80, 0x7f]), [-128.0, 127.0]);
        assert_eq!(Element::Uint8.decode(&[0x80]), [128.0]);
        assert_eq!(Element::Int64.decode(&(-3i64).to_le_bytes()), [-3.0]);
        assert_eq!(Element::Int32.decode(&[1, 0, 0, 0, 9]), [1.0], "a rest is no element");
        assert_eq!(Element::Float32.decode(&0.5f32.to_le_bytes()), [0.5]);
    }
}
