//! SQUEEZE: drops dimensions of size 1.
//!
//! Inputs: a tensor, a list of axes (INT32; below 0 counts from the end). Without the list every
//! dimension of size 1 goes; an empty list drops nothing. When nothing is left the shape is `[1]`.
//!
//! Source: NNAPI 1.1 `types.hal`, `OperationType::SQUEEZE`.

use burst_hal::HalVersion::{V1_1, V1_2, V1_3};
use burst_hal::{Dimensions, OperationType};

use super::common;
use crate::op::types::{TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes,
};
use crate::ops::attributes::AxisList;
use crate::ops::quantization::rules::expect_same_outputs;
use crate::ops::rank_limit::dims_up_to_four;
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of SQUEEZE.
pub static DEF: OpDef = OpDef {
    code: OperationType::Squeeze,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized().omit(&[1]),
};

const FORMS: &[Form] = &[
    Form::new(V1_1, &[TF32, TI32], &[TF32]),
    Form::new(V1_1, &[TQ8, TI32], &[TQ8]),
    Form::new(V1_2, &[TF16, TI32], &[TF16]),
    Form::new(V1_3, &[TQ8S, TI32], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

/// The dimensions to remove; every dimension of size 1 where they are not given.
fn parse(operands: &dyn Operands) -> Result<Option<AxisList>, OpError> {
    operands.has(1).then(|| AxisList::parse(operands, 1)).transpose()
}

fn infer(args: &Args<'_>, axes: Parsed<'_, Option<AxisList>>) -> Result<Inferred, OpError> {
    expect_same_outputs(args, 0)?;
    let dims = dims_up_to_four(args, 0)?;
    if let Some(axes) = axes? {
        let axes = axes.of(dims.len())?;
        let mut listed = dims.iter().enumerate().filter(|(axis, _)| axes.has(*axis));
        if let Some((_, size)) = listed.find(|(_, size)| **size != 1) {
            return Err(OpError::value("size of a dimension to squeeze", *size));
        }
        return Ok(Inferred::one(axes.remove_from(dims, false)));
    }
    let mut left: Dimensions = dims.iter().copied().filter(|size| *size != 1).collect();
    if left.is_empty() {
        left.push(1);
    }
    Ok(Inferred::one(left))
}

fn execute(run: &mut Run<'_, '_>, _: &Option<AxisList>) -> Result<(), OpError> {
    common::copy(run)
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, run_one};

    fn squeeze(dims: &[u32], axes: Option<&[i32]>) -> Result<Vec<u32>, OpError> {
        let count: u32 = dims.iter().product();
        let values: Vec<f32> = (0..count).map(|i| f32::from(u8::try_from(i).unwrap())).collect();
        let axes = match axes {
            Some(axes) => Tensor::i32(&[u32::try_from(axes.len()).unwrap()], axes),
            None => Tensor::omitted(OperandType::TensorInt32),
        };
        let out = Tensor::output(OperandType::TensorFloat32);
        let got = run_one(&DEF, &[Tensor::f32(dims, &values), axes], out)?;
        assert_eq!(got.values::<f32>(), values);
        Ok(got.dims.to_vec())
    }

    #[test]
    fn listed_dimensions_go() {
        assert_eq!(squeeze(&[1, 4, 1, 2], Some(&[0])), Ok(vec![4, 1, 2]));
        assert_eq!(squeeze(&[1, 4, 1, 2], Some(&[-2, 0, 0])), Ok(vec![4, 2]));
        assert_eq!(squeeze(&[1, 4], Some(&[])), Ok(vec![1, 4]));
    }

    #[test]
    fn without_a_list_every_dimension_of_one_goes() {
        assert_eq!(squeeze(&[1, 4, 1, 2], None), Ok(vec![4, 2]));
        assert_eq!(squeeze(&[1, 1], None), Ok(vec![1]), "something must be left");
    }

    #[test]
    fn other_dimensions_and_axes_are_refused() {
        assert!(squeeze(&[1, 4], Some(&[1])).is_err());
        assert!(squeeze(&[1, 4], Some(&[2])).is_err());
        assert!(squeeze(&[1, 4], Some(&[i32::MIN])).is_err());
    }
}
