//! CONCATENATION: tensors joined along one axis.
//!
//! Inputs: one or more tensors, an axis (INT32, from the start). The tensors have equal sizes but on
//! the axis. Output: the sum of the sizes there. Since 1.2 quantized inputs may differ from the
//! output in scale and zero point, and are brought to its own.
//!
//! Source: NNAPI `types.hal`, `OperationType::CONCATENATION`.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "8-bit values and zero points are exact in f32; results are clamped to 8 bits"
)]

use burst_hal::HalVersion::{self, V1_0, V1_2, V1_3};
use burst_hal::{Dimensions, OperandType, OperationType};
use smallvec::SmallVec;

use super::common;
use crate::kernels::lut;
use crate::op::{Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes};
use crate::ops::attributes::Axis;
use crate::ops::rank_limit::dims_up_to_four;
use crate::tensor::{Args, TensorInfo};
use crate::threads::Tiling;
use crate::{OpError, SignatureError};

/// The definition of CONCATENATION.
pub static DEF: OpDef = OpDef {
    code: OperationType::Concatenation,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN,
};

const TYPES: &[(OperandType, HalVersion)] = &[
    (OperandType::TensorFloat32, V1_0),
    (OperandType::TensorQuant8Asymm, V1_0),
    (OperandType::TensorFloat16, V1_2),
    (OperandType::TensorQuant8AsymmSigned, V1_3),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    let (Some(out), Some(tensors), None) = (
        signature.output(0),
        signature.inputs().len().checked_sub(1).filter(|tensors| *tensors > 0),
        signature.output(1),
    ) else {
        return Err(signature.no_form());
    };
    let known = TYPES.iter().any(|(ty, since)| *ty == out.ty && *since <= signature.version);
    let same = signature.inputs().take(tensors).all(|input| input.ty == out.ty);
    let axis = signature.input(tensors).is_some_and(|axis| axis.ty == OperandType::Int32);
    if !(known && same && axis) {
        return Err(signature.no_form());
    }
    let requantizes = out.ty == OperandType::TensorQuant8Asymm
        && signature
            .inputs()
            .take(tensors)
            .any(|input| input.scale != out.scale || input.zero_point != out.zero_point);
    signature.rule(
        signature.version >= V1_2 || !requantizes,
        "inputs with a scale or zero point other than the output's need HAL 1.2",
    )
}

/// Splits the inputs into tensors and axis, which is the last.
fn tensors(inputs: usize) -> Result<usize, OpError> {
    inputs
        .checked_sub(1)
        .filter(|tensors| *tensors > 0)
        .ok_or(OpError::Arity { want: 2, got: inputs })
}

fn parse(operands: &dyn Operands) -> Result<Axis, OpError> {
    Axis::required(operands, tensors(operands.count())?)
}

fn infer(args: &Args<'_>, axis: Parsed<'_, Axis>) -> Result<Inferred, OpError> {
    let tensors = tensors(args.inputs.len())?;
    let axis = axis?;
    let mut shape = Dimensions::from_slice(dims_up_to_four(args, 0)?);
    let axis = axis.position_from_start(shape.len())?;
    for index in 1..tensors {
        let dims = args.dims(index)?;
        let goes_together = dims.len() == shape.len()
            && dims.iter().zip(&shape).enumerate().all(|(at, (a, b))| at == axis || a == b);
        if !goes_together {
            return Err(OpError::shape("tensors to join", &shape, dims));
        }
        shape[axis] = shape[axis]
            .checked_add(dims[axis])
            .ok_or(OpError::Range { what: "size of a dimension" })?;
    }
    Ok(Inferred::one(shape))
}

fn execute(run: &mut Run<'_, '_>, axis: &Axis) -> Result<(), OpError> {
    if common::writes_nothing(run)? {
        return Ok(());
    }
    let tensors = tensors(run.inputs.len())?;
    let axis = axis.position_from_start(run.input(0)?.dims.len())?;
    let inputs = run.inputs;
    let (out, mut runner) = run.output_and_runner()?;
    let info = out.info;
    let width = common::width(info.ty)?;
    let (_, along, after) = common::around(out.dims, axis);
    let mut parts: SmallVec<[RowPart<'_>; 8]> = SmallVec::new();
    for input in inputs.get(..tensors).unwrap_or_default() {
        let bytes = input.bytes.ok_or(OpError::Omitted { index: 0 })?;
        let row = common::around(input.dims, axis).1 * after * width;
        if row != 0 {
            parts.push(RowPart { bytes, row, table: requantization(input.info, info) });
        }
    }
    let (row, out) = (along * after * width, out.bytes_mut());
    let fits = |part: &RowPart<'_>| part.bytes.len() / part.row * row == out.len();
    if parts.iter().map(|part| part.row).sum::<usize>() != row || !parts.iter().all(fits) {
        return Err(OpError::Internal { what: "tensors to join do not fit" });
    }
    runner.tiles(&Tiling::values(2 * out.len()), out, |first, out, _| {
        fill(&parts, (first / row, first % row), out);
        Ok(())
    })
}

/// What an input adds to each row of the output.
struct RowPart<'a> {
    bytes: &'a [u8],
    /// Bytes of a row.
    row: usize,
    table: Option<[u8; 256]>,
}

/// Writes what the output holds from this row and this byte of it on.
fn fill(parts: &[RowPart<'_>], (mut row, mut skipped): (usize, usize), mut out: &mut [u8]) {
    while !out.is_empty() {
        for part in parts {
            if skipped >= part.row {
                skipped -= part.row;
                continue;
            }
            let len = (part.row - skipped).min(out.len());
            let values = &part.bytes[row * part.row + skipped..][..len];
            let (now, rest) = std::mem::take(&mut out).split_at_mut(len);
            match &part.table {
                None => now.copy_from_slice(values),
                Some(table) => lut::apply(table, values, now),
            }
            (out, skipped) = (rest, 0);
        }
        row += 1;
    }
}

/// What each stored byte of an input becomes in the output; `None` where nothing changes.
///
/// The arithmetic is the reference's: in `f32` from end to end, the zero point folded into an offset
/// before anything is rounded, and signed values shifted into the unsigned range.
fn requantization(input: &TensorInfo, out: &TensorInfo) -> Option<[u8; 256]> {
    let shift = match out.ty {
        OperandType::TensorQuant8Asymm => 0,
        OperandType::TensorQuant8AsymmSigned => 128,
        _ => return None,
    };
    if input.scale == out.scale && input.zero_point == out.zero_point {
        return None;
    }
    let scale = input.scale * (1.0 / out.scale);
    let offset = -((input.zero_point + shift) as f32) * scale;
    let to_unsigned = |byte: u8| byte.wrapping_add(shift as u8);
    Some(std::array::from_fn(|byte| {
        let stored = f32::from(to_unsigned(byte as u8));
        let new = ((stored * scale + offset).round() as i32)
            .saturating_add(out.zero_point + shift)
            .clamp(0, 255) as u8;
        new.wrapping_sub(shift as u8)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, has_form, infer, run_one, validate};

    fn join(tensors: &[Tensor], axis: i32, out: Tensor) -> Result<Tensor, OpError> {
        let mut inputs = tensors.to_vec();
        inputs.push(Tensor::scalar_i32(axis));
        run_one(&DEF, &inputs, out)
    }

    #[test]
    fn tensors_lie_side_by_side() {
        let out = || Tensor::output(OperandType::TensorFloat32);
        let a = Tensor::f32(&[2, 1], &[1.0, 2.0]);
        let b = Tensor::f32(&[2, 2], &[3.0, 4.0, 5.0, 6.0]);
        let got = join(&[a.clone(), b], 1, out()).unwrap();
        assert_eq!(got.dims.as_slice(), [2, 3]);
        assert_eq!(got.values::<f32>(), [1.0, 3.0, 4.0, 2.0, 5.0, 6.0]);
        let got = join(&[a.clone(), a.clone()], 0, out()).unwrap();
        assert_eq!(got.values::<f32>(), [1.0, 2.0, 1.0, 2.0]);
        assert_eq!(join(&[a], 0, out()).unwrap().values::<f32>(), [1.0, 2.0], "one is enough");
    }

    #[test]
    fn pieces_that_begin_anywhere_are_joined_alike() {
        let bytes: [Vec<u8>; 3] = [(0..12).collect(), (100..104).collect(), (200..220).collect()];
        let part = |index: usize, row| RowPart { bytes: &bytes[index], row, table: None };
        let parts = [part(0, 3), part(1, 1), part(2, 5)];
        let mut whole = [0; 36];
        fill(&parts, (0, 0), &mut whole);
        assert_eq!(whole[9..18], [3, 4, 5, 101, 205, 206, 207, 208, 209]);
        for first in 0..36 {
            for end in first..=36 {
                let mut piece = vec![0; end - first];
                fill(&parts, (first / 9, first % 9), &mut piece);
                assert_eq!(piece, whole[first..end], "{first}..{end}");
            }
        }
    }

    #[test]
    fn empty_tensors_add_nothing() {
        let got = join(
            &[Tensor::f16(&[1, 0], &[]), Tensor::f16(&[1, 2], &[1.0, 2.0])],
            1,
            Tensor::output(OperandType::TensorFloat16),
        );
        assert_eq!(got.unwrap().halves(), [1.0, 2.0]);
    }

    /// Output: scale 1, zero point 10. The first input has the same, the second a scale of 1/2 and
    /// zero point 4, the third a scale of 100.
    #[test]
    fn quantized_inputs_are_brought_to_the_output() {
        let got = join(
            &[
                Tensor::u8(&[2], &[0, 255], 1.0, 10),
                Tensor::u8(&[5], &[4, 6, 5, 3, 0], 0.5, 4),
                Tensor::u8(&[2], &[0, 2], 100.0, 1),
            ],
            0,
            Tensor::output(OperandType::TensorQuant8Asymm).quantized(1.0, 10),
        );
        // 0, 1, 0.5 (to 1), -0.5 (to -1), -2; then -100 and 100, of which one does not fit.
        assert_eq!(got.unwrap().values::<u8>(), [0, 255, 10, 11, 11, 9, 8, 0, 110]);
    }

    #[test]
    fn signed_inputs_are_unsigned_ones_shifted_by_128() {
        let got = join(
            &[
                Tensor::i8(&[2], &[-128, 127], 1.0, -118),
                Tensor::i8(&[5], &[-124, -122, -123, -125, -128], 0.5, -124),
                Tensor::i8(&[2], &[-128, -126], 100.0, -127),
            ],
            0,
            Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(1.0, -118),
        );
        let want = [-128, 127, -118, -117, -117, -119, -120, -128, -18];
        assert_eq!(got.unwrap().values::<i8>(), want);
    }

    /// Signed tensors came with 1.3, where scales may differ.
    #[test]
    fn scales_must_be_the_outputs_before_1_2() {
        let verdict = |version, ty, scale, zero| {
            let inputs = [Tensor::output(ty).quantized(scale, zero), Tensor::scalar_i32(0)];
            validate(&DEF, version, &inputs, &[Tensor::output(ty).quantized(0.5, 3)]).is_ok()
        };
        let unsigned = OperandType::TensorQuant8Asymm;
        assert!(verdict(V1_0, unsigned, 0.5, 3));
        assert!(!verdict(V1_0, unsigned, 0.25, 3));
        assert!(!verdict(HalVersion::V1_1, unsigned, 0.5, 4));
        assert!(verdict(V1_2, unsigned, 0.25, 4));
        assert!(verdict(V1_3, OperandType::TensorQuant8AsymmSigned, 0.25, 4));
    }

    #[test]
    fn shapes_and_axes_that_do_not_fit_are_refused() {
        let out = || [Tensor::output(OperandType::TensorFloat32)];
        let a = Tensor::f32(&[1, 2], &[1.0, 2.0]);
        let b = Tensor::f32(&[2, 1], &[1.0, 2.0]);
        let of = |second: &Tensor, axis| {
            infer(&DEF, &[a.clone(), second.clone(), Tensor::scalar_i32(axis)], &out())
        };
        assert!(of(&b, 0).is_err() && of(&b, 1).is_err());
        assert!(of(&a, 0).is_ok() && of(&a, 1).is_ok());
        assert!(of(&a, 2).is_err());
        assert!(of(&a, -1).is_err(), "the axis counts from the start");
        assert!(of(&Tensor::f32(&[2], &[1.0, 2.0]), 1).is_err());
    }

    #[test]
    fn at_least_one_tensor_of_the_outputs_type() {
        use OperandType::{Int32, TensorFloat16, TensorFloat32, TensorInt32};
        let form = |version, inputs: &[OperandType], out| has_form(&DEF, version, inputs, &[out]);
        assert!(form(V1_0, &[TensorFloat32, Int32], TensorFloat32));
        assert!(form(V1_0, &[TensorFloat32, TensorFloat32, TensorFloat32, Int32], TensorFloat32));
        assert!(!form(V1_0, &[Int32], TensorFloat32));
        assert!(!form(V1_3, &[], TensorFloat32));
        assert!(!form(V1_3, &[TensorFloat32, TensorFloat16, Int32], TensorFloat32));
        assert!(!form(V1_3, &[TensorFloat32, TensorFloat32], TensorFloat32));
        assert!(!form(V1_3, &[TensorInt32, Int32], TensorInt32));
        assert!(!has_form(&DEF, V1_3, &[TensorFloat32, Int32], &[TensorFloat32; 2]));
        assert!(!has_form(&DEF, V1_3, &[TensorFloat32, Int32], &[]));
    }
}
