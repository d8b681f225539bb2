//! SPLIT: a tensor cut into equal parts along one axis.
//!
//! Inputs: a tensor, an axis (INT32; below 0 counts from the end), the number of parts (INT32),
//! which divides the size of the axis. Outputs: that many tensors.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::SPLIT`.

use burst_hal::HalVersion::{self, V1_2, V1_3};
use burst_hal::{Dimensions, OperandType, OperationType};

use super::common;
use crate::op::{Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes};
use crate::ops::attributes::Axis;
use crate::ops::quantization::rules::expect_same_outputs;
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of SPLIT.
pub static DEF: OpDef = OpDef {
    code: OperationType::Split,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const TYPES: &[(OperandType, HalVersion)] = &[
    (OperandType::TensorFloat32, V1_2),
    (OperandType::TensorFloat16, V1_2),
    (OperandType::TensorInt32, V1_2),
    (OperandType::TensorQuant8Asymm, V1_2),
    (OperandType::TensorQuant8AsymmSigned, V1_3),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    let mut types = signature.inputs().map(|input| input.ty);
    let inputs = [types.next(), types.next(), types.next(), types.next()];
    let [Some(ty), Some(OperandType::Int32), Some(OperandType::Int32), None] = inputs else {
        return Err(signature.no_form());
    };
    let known = TYPES.iter().any(|(known, since)| *known == ty && *since <= signature.version);
    let same = signature.outputs().all(|output| output.ty == ty);
    if !known || !same || signature.outputs().len() == 0 {
        return Err(signature.no_form());
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
struct Attributes {
    axis: Axis,
    parts: i32,
}

fn parse(operands: &dyn Operands) -> Result<Attributes, OpError> {
    Ok(Attributes { parts: operands.i32(2)?, axis: Axis::required(operands, 1)? })
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, Attributes>) -> Result<Inferred, OpError> {
    expect_same_outputs(args, 0)?;
    let Attributes { axis, parts } = *attributes?;
    if usize::try_from(parts) != Ok(args.outputs.len()) {
        return Err(OpError::value("number of parts", parts));
    }
    let mut shape = Dimensions::from_slice(args.dims(0)?);
    let axis = axis.position(shape.len())?;
    let size = i64::from(shape[axis]);
    // Above 0: it is the number of outputs, of which there is at least one.
    if size.checked_rem(i64::from(parts)) != Some(0) {
        return Err(OpError::value("number of parts of a dimension", parts));
    }
    shape[axis] = common::shape_of(&[size / i64::from(parts)])?[0];
    Ok(Inferred::many(std::iter::repeat_n(shape, args.outputs.len())))
}

fn execute(run: &mut Run<'_, '_>, attributes: &Attributes) -> Result<(), OpError> {
    if common::writes_nothing(run)? {
        return Ok(());
    }
    let input = run.input(0)?;
    let axis = attributes.axis.position(input.dims.len())?;
    let (_, along, after) = common::around(input.dims, axis);
    let row = along * after * common::width(input.info.ty)?;
    let part = row.checked_div(run.outputs.len()).unwrap_or(0);
    if part == 0 {
        return Ok(());
    }
    let bytes = input.bytes.ok_or(OpError::Omitted { index: 0 })?;
    let mut checkpoints = run.stop.checkpoints();
    for (index, out) in run.outputs.iter_mut().enumerate() {
        let rows = bytes.chunks_exact(row).zip(out.bytes_mut().chunks_exact_mut(part));
        for (input, out) in rows {
            checkpoints.after(common::copy_steps(part))?;
            out.copy_from_slice(&input[index * part..][..part]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, has_form, run};

    fn split(axis: i32, parts: i32, outputs: usize) -> Result<Vec<Tensor>, OpError> {
        let input = Tensor::i32(&[2, 4], &[1, 2, 3, 4, 5, 6, 7, 8]);
        let out = Tensor::output(OperandType::TensorInt32);
        let inputs = [input, Tensor::scalar_i32(axis), Tensor::scalar_i32(parts)];
        run(&DEF, &inputs, &vec![out; outputs])
    }

    #[test]
    fn parts_are_equal() {
        let got = split(1, 2, 2).unwrap();
        assert_eq!(got[0].values::<i32>(), [1, 2, 5, 6]);
        assert_eq!(got[1].values::<i32>(), [3, 4, 7, 8]);
        let got = split(-2, 2, 2).unwrap();
        assert_eq!(got[1].dims.as_slice(), [1, 4]);
        assert_eq!(got[1].values::<i32>(), [5, 6, 7, 8]);
        assert_eq!(split(0, 1, 1).unwrap()[0].values::<i32>(), [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        assert!(split(1, 3, 3).is_err());
        assert!(split(1, 2, 1).is_err());
        assert!(split(2, 2, 2).is_err());
        assert!(split(1, 0, 1).is_err());
        assert!(split(1, -2, 2).is_err());
    }

    #[test]
    fn every_output_has_the_inputs_type() {
        use OperandType::{Int32, TensorFloat16, TensorFloat32, TensorQuant8AsymmSigned};
        let inputs = [TensorFloat32, Int32, Int32];
        assert!(has_form(&DEF, V1_2, &inputs, &[TensorFloat32; 3]));
        assert!(!has_form(&DEF, V1_2, &inputs, &[TensorFloat32, TensorFloat16]));
        assert!(!has_form(&DEF, V1_2, &inputs, &[]));
        assert!(!has_form(&DEF, V1_2, &inputs[..2], &[TensorFloat32]));
        let signed = [TensorQuant8AsymmSigned, Int32, Int32];
        assert!(!has_form(&DEF, V1_2, &signed, &[TensorQuant8AsymmSigned]));
        assert!(has_form(&DEF, V1_3, &signed, &[TensorQuant8AsymmSigned]));
    }
}
