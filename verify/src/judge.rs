//! When an output is right: the tolerance of its type, element by element.

use burst_hal::OperandType;
use half::f16;

use crate::vectors::Test;

/// How far a value may be from the expected one: `absolute + relative * |expected|`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Absolute part.
    pub absolute: f64,
    /// Relative part.
    pub relative: f64,
}

const EXACT: Tolerance = Tolerance { absolute: 0.0, relative: 0.0 };
const ONE: Tolerance = Tolerance { absolute: 1.0, relative: 0.0 };
const THREE: Tolerance = Tolerance { absolute: 3.0, relative: 0.0 };
/// Five steps of a half around 1.
const HALF: Tolerance = Tolerance { absolute: 0.004_882_812_5, relative: 0.004_882_812_5 };

/// The tolerance of an output of this type in this test; `None` for a type that no output may have.
#[must_use]
pub fn tolerance(test: &Test, ty: OperandType) -> Option<Tolerance> {
    let graphs = std::iter::once(&test.main).chain(&test.referenced);
    let has_half = graphs.flat_map(|graph| &graph.operands).any(|o| o.r#type == "TENSOR_FLOAT16");
    Some(match ty {
        OperandType::TensorFloat32 if test.relaxed || has_half => HALF,
        OperandType::TensorFloat32 => Tolerance {
            absolute: f64::from(1e-5f32),
            relative: f64::from(5.0 * 1.192_092_9e-7_f32),
        },
        OperandType::TensorFloat16 => HALF,
        OperandType::TensorInt32
        | OperandType::Int32
        | OperandType::TensorQuant16Asymm
        | OperandType::TensorQuant16Symm => ONE,
        OperandType::TensorQuant8Asymm
        | OperandType::TensorQuant8AsymmSigned
        | OperandType::TensorQuant8Symm => {
            if test.name.contains("mobilenet") {
                THREE
            } else {
                ONE
            }
        }
        OperandType::TensorBool8 => EXACT,
        _ => return None,
    })
}

/// The elements of a tensor as `f64`, which holds every type here exactly.
pub(crate) fn elements(ty: OperandType, bytes: &[u8]) -> Vec<f64> {
    match ty {
        OperandType::TensorFloat32 => bytes
            .chunks_exact(4)
            .map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]]).into())
            .collect(),
        OperandType::TensorInt32 | OperandType::Int32 => bytes
            .chunks_exact(4)
            .map(|b| i32::from_ne_bytes([b[0], b[1], b[2], b[3]]).into())
            .collect(),
        OperandType::TensorFloat16 => {
            bytes.chunks_exact(2).map(|b| f16::from_ne_bytes([b[0], b[1]]).into()).collect()
        }
        OperandType::TensorQuant16Symm => {
            bytes.chunks_exact(2).map(|b| i16::from_ne_bytes([b[0], b[1]]).into()).collect()
        }
        OperandType::TensorQuant16Asymm => {
            bytes.chunks_exact(2).map(|b| u16::from_ne_bytes([b[0], b[1]]).into()).collect()
        }
        OperandType::TensorQuant8AsymmSigned | OperandType::TensorQuant8Symm => {
            bytes.iter().map(|b| b.cast_signed().into()).collect()
        }
        _ => bytes.iter().map(|b| (*b).into()).collect(),
    }
}

/// Compares one output; the error says where, what came, what was wanted, and what was allowed.
pub(crate) fn compare(
    test: &Test,
    output: usize,
    ty: OperandType,
    got: &[u8],
    want: &[u8],
) -> Result<(), String> {
    let Some(allowed) = tolerance(test, ty) else {
        return Err(format!("output {output} has the type {ty}, which no output may have"));
    };
    let (got, want) = (elements(ty, got), elements(ty, want));
    if got.len() < want.len() {
        return Err(format!("output {output}: {} elements, expected {}", got.len(), want.len()));
    }
    for (index, (got, want)) in got.iter().zip(&want).enumerate() {
        let bound = allowed.absolute + allowed.relative * want.abs();
        let difference = (got - want).abs();
        if difference.is_nan() || difference > bound {
            return Err(format!(
                "output {output}, element {index}: got {got}, expected {want}, may differ by \
                 {bound:e}"
            ));
        }
    }
    Ok(())
}

/// Whether draws follow the distribution that the input asks for.
pub(crate) fn check_draws(
    tolerance: f64,
    batches: usize,
    classes: usize,
    log_probabilities: &[f64],
    draws: &[f64],
) -> Result<(), String> {
    if batches == 0 || draws.is_empty() {
        return Err("no draws".into());
    }
    let samples = draws.len() / batches;
    let mut counts = vec![0usize; classes];
    for draw in draws {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked next")]
        let class = *draw as usize;
        let count = counts.get_mut(class).filter(|_| *draw >= 0.0);
        *count.ok_or_else(|| format!("drew class {draw} of {classes}"))? += 1;
    }
    for row in log_probabilities.chunks_exact(classes) {
        let total: f64 = row.iter().map(|x| x.exp()).sum();
        for (class, (count, x)) in counts.iter().zip(row).enumerate() {
            #[expect(clippy::cast_precision_loss, reason = "thousands of draws")]
            let drawn = *count as f64 / samples as f64;
            let wanted = x.exp() / total;
            if (drawn - wanted).abs() > tolerance {
                return Err(format!(
                    "class {class} was drawn in {drawn} of the samples, expected {wanted}, may \
                     differ by {tolerance}"
                ));
            }
        }
    }
    Ok(())
}
