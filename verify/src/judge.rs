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
    let samples = draws.len().checked_div(batches).unwrap_or_default();
    if classes == 0 || samples == 0 {
        return Err("no draws".into());
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn test(name: &str, relaxed: bool, types: &[&str]) -> Test {
        let operand = |ty: &&str| serde_json::json!({ "type": ty, "lifetime": "NO_VALUE" });
        let operands: Vec<_> = types.iter().map(operand).collect();
        let json = serde_json::json!({
            "name": name, "relaxed": relaxed, "expect_failure": false, "multinomial_tolerance": 0,
            "main": { "operands": [], "operations": [], "inputs": [], "outputs": [] },
            "referenced": [{ "operands": operands, "operations": [], "inputs": [], "outputs": [] }],
            "vts": [],
        });
        serde_json::from_value(json).expect("a test")
    }

    fn absolute(test: &Test, ty: OperandType) -> f64 {
        tolerance(test, ty).expect("an output type").absolute
    }

    #[test]
    fn tolerances_follow_type_relaxation_and_name() {
        let plain = test("plain", false, &["TENSOR_FLOAT32", "FLOAT16"]);
        let float = OperandType::TensorFloat32;
        assert_eq!(absolute(&plain, float), f64::from(1e-5f32), "a half scalar relaxes nothing");
        assert_eq!(absolute(&test("x", true, &[]), float), 5.0 / 1024.0);
        let inner = test("x", false, &["TENSOR_FLOAT16"]);
        assert_eq!(absolute(&inner, float), 5.0 / 1024.0, "a half tensor in any graph does");
        assert_eq!(absolute(&plain, OperandType::TensorQuant8Symm), 1.0);
        assert_eq!(absolute(&test("mobilenet_x", false, &[]), OperandType::TensorQuant8Asymm), 3.0);
        assert_eq!(absolute(&plain, OperandType::TensorBool8), 0.0);
        assert_eq!(tolerance(&plain, OperandType::Float32), None);
    }

    #[test]
    fn a_value_at_the_bound_is_right_and_one_beyond_it_is_named() {
        let test = test("x", false, &[]);
        let bytes = |values: &[i32]| -> Vec<u8> {
            values.iter().flat_map(|value| value.to_ne_bytes()).collect()
        };
        let ty = OperandType::TensorInt32;
        compare(&test, 0, ty, &bytes(&[5, 8]), &bytes(&[4, 9])).unwrap();
        let what = compare(&test, 2, ty, &bytes(&[5, 8]), &bytes(&[4, 10])).unwrap_err();
        assert_eq!(what, "output 2, element 1: got 8, expected 10, may differ by 1e0");
        assert!(compare(&test, 0, ty, &bytes(&[5]), &bytes(&[5, 5])).is_err(), "too few");
        let nan = f32::NAN.to_ne_bytes();
        assert!(compare(&test, 0, OperandType::TensorFloat32, &nan, &nan).is_err());
    }

    #[test]
    fn draws_must_follow_the_distribution() {
        let log = [0.25f64.ln(), 0.75f64.ln()];
        let draws = |ones: usize| -> Vec<f64> {
            (0..100).map(|index| if index < ones { 1.0 } else { 0.0 }).collect()
        };
        check_draws(0.05, 1, 2, &log, &draws(73)).unwrap();
        assert!(check_draws(0.05, 1, 2, &log, &draws(60)).is_err());
        assert!(check_draws(0.05, 1, 2, &log, &[2.0]).is_err(), "no such class");
        assert!(check_draws(0.05, 1, 2, &log, &[-1.0]).is_err(), "no such class");
        assert!(check_draws(0.05, 2, 2, &log, &[1.0]).is_err(), "no sample per row");
    }
}
