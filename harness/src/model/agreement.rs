//! Whether two subjects computed the same: a time means something only where they did.

use burst_hal::{OperandType, OperationType};
use serde::{Deserialize, Serialize};

use super::workload::Workload;
use crate::engine::to_f64;

/// Root mean square of the difference over that of the values around their mean. Kernels that
/// round differently stay far below it; another model, or another input, is far above.
const APART_MAX: f64 = 0.5;

/// How the outputs of two subjects compare.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Whether every byte is the same.
    pub equal: bool,
    /// Largest difference of two values, in the outputs' own units (steps, where quantized).
    pub largest: f64,
    /// Root mean square of the difference over that of the values around their mean; the worst of
    /// all outputs.
    pub relative: f64,
}

impl Agreement {
    const EQUAL: Agreement = Agreement { equal: true, largest: 0.0, relative: 0.0 };
    const DIFFERENT: Agreement =
        Agreement { equal: false, largest: f64::INFINITY, relative: f64::INFINITY };

    /// Whether both did the same work.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.relative <= APART_MAX
    }
}

/// Where a detector's scores stand among its outputs.
const DETECTION_SCORES: usize = 2;

/// Compares the outputs of two subjects. Of a detector only the scores are looked at, unless all is
/// equal: they come in order, while boxes of scores that are nearly alike swap positions.
#[must_use]
pub fn agreement(workload: &Workload, one: &[Vec<u8>], other: &[Vec<u8>]) -> Agreement {
    if one == other {
        return Agreement::EQUAL;
    }
    if one.len() != other.len() {
        return Agreement::DIFFERENT;
    }
    let graph = &workload.imported.model.main;
    let detection = OperationType::DetectionPostprocessing;
    let is_detector = graph.operations.iter().any(|operation| operation.ty == detection);
    let types = workload.imported.outputs.iter().map(|output| output.ty);
    let pairs = one.iter().zip(other).zip(types).enumerate();
    let looked_at = pairs.filter(|(index, _)| !is_detector || *index == DETECTION_SCORES);
    looked_at.fold(
        Agreement { equal: false, ..Agreement::EQUAL },
        |sum, (_, ((one, other), ty))| {
            let next = compare(ty, one, other);
            Agreement {
                equal: false,
                largest: sum.largest.max(next.largest),
                relative: sum.relative.max(next.relative),
            }
        },
    )
}

fn compare(ty: OperandType, one: &[u8], other: &[u8]) -> Agreement {
    if one == other {
        return Agreement::EQUAL;
    }
    let (Some(one), Some(other)) = (values(ty, one), values(ty, other)) else {
        return Agreement::DIFFERENT;
    };
    if one.len() != other.len() {
        return Agreement::DIFFERENT;
    }
    let count = to_f64(one.len().max(1) as u64);
    let mean = one.iter().sum::<f64>() / count;
    let square = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>() / count;
    let spread = square(&mut one.iter().map(|v| v - mean)).sqrt();
    let apart = square(&mut one.iter().zip(&other).map(|(a, b)| a - b)).sqrt();
    let largest = one.iter().zip(&other).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    // Without any spread a difference has no scale but itself.
    let relative = if apart == 0.0 { 0.0 } else { apart / spread };
    if relative.is_nan() {
        return Agreement::DIFFERENT;
    }
    Agreement { equal: false, largest, relative }
}

/// The values as numbers; `None` for a type that is none of a model's usual outputs.
fn values(ty: OperandType, bytes: &[u8]) -> Option<Vec<f64>> {
    Some(match ty {
        OperandType::TensorFloat32 => {
            bytes.as_chunks::<4>().0.iter().map(|b| f64::from(f32::from_ne_bytes(*b))).collect()
        }
        OperandType::TensorInt32 => {
            bytes.as_chunks::<4>().0.iter().map(|b| f64::from(i32::from_ne_bytes(*b))).collect()
        }
        OperandType::TensorQuant8Asymm => bytes.iter().map(|b| f64::from(*b)).collect(),
        OperandType::TensorQuant8AsymmSigned => {
            bytes.iter().map(|b| f64::from(b.cast_signed())).collect()
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const U8: OperandType = OperandType::TensorQuant8Asymm;

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_ne_bytes()).collect()
    }

    #[test]
    fn rounding_agrees_and_another_result_does_not() {
        let one = [10, 200, 30, 90];
        assert!(compare(U8, &one, &one).equal);
        let near = compare(U8, &one, &[11, 199, 30, 92]);
        assert!(near.holds() && !near.equal, "{near:?}");
        assert!((near.largest - 2.0).abs() < 1e-9, "{near:?}");
        assert!(!compare(U8, &one, &[200, 10, 90, 30]).holds());
        assert!(!compare(U8, &one, &[10, 200, 30]).holds(), "another length");
        assert!(!compare(U8, &[5, 5], &[5, 6]).holds(), "a constant has no scale");
    }

    #[test]
    fn signed_and_float_values_are_read_as_such() {
        let signed = OperandType::TensorQuant8AsymmSigned;
        let apart = compare(signed, &[0xFF, 0x7F], &[0x00, 0x7F]);
        assert!((apart.largest - 1.0).abs() < 1e-9, "-1 and 0: {apart:?}");
        let float = OperandType::TensorFloat32;
        let apart = compare(float, &floats(&[1.0, -3.0]), &floats(&[1.0, -3.25]));
        assert!((apart.largest - 0.25).abs() < 1e-9 && apart.holds(), "{apart:?}");
        assert!(!compare(float, &floats(&[1.0, 2.0]), &floats(&[1.0, f32::NAN])).holds());
    }
}
