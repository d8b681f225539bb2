//! REDUCE_ANY: whether any value along some axes is true.
//!
//! Inputs: a tensor of up to 4 dimensions, a 1-D INT32 tensor (the axes, negative from the end), a
//! BOOL scalar (the axes stay with size 1). Output: the input's shape without the axes, `[1]` when
//! nothing is left.
//!
//! Source: NNAPI `types.hal`, `OperationType::REDUCE_ANY`.

use burst_hal::HalVersion::V1_2;
use burst_hal::OperationType;

use crate::op::types::{BOOL, TB8, TI32};
use crate::op::{Form, OpDef, OpTraits, Run, Signature, WithAttributes};
use crate::ops::reduce::{ReduceAttributes, listed};
use crate::{OpError, SignatureError};

/// The definition of REDUCE_ANY.
pub static DEF: OpDef = OpDef {
    code: OperationType::ReduceAny,
    validate,
    body: &WithAttributes {
        parse: ReduceAttributes::parse,
        infer: listed::infer,
        prepare: None,
        execute,
    },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[Form::new(V1_2, &[TB8, TI32, BOOL], &[TB8])];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    listed::validate(signature, FORMS)
}

fn execute(run: &mut Run<'_, '_>, attributes: &ReduceAttributes) -> Result<(), OpError> {
    listed::fold_bytes(run, attributes, (0, |a, b| u8::from(a != 0 || b != 0)), (0, i8::max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run_one};
    use burst_hal::OperandType;

    fn reduce(input: Tensor, axes: &[i32], keep: bool, out: Tensor) -> Result<Tensor, OpError> {
        let count = u32::try_from(axes.len()).unwrap();
        run_one(&DEF, &[input, Tensor::i32(&[count], axes), Tensor::scalar_bool(keep)], out)
    }

    /// Any byte but 0 is true; results are 0 or 1.
    #[test]
    fn any_byte_but_zero_is_true() {
        let input = || Tensor::bool8(&[2, 2], &[0, 7, 1, 1]);
        let out = || Tensor::output(OperandType::TensorBool8);
        let got = reduce(input(), &[0], false, out()).unwrap();
        assert_eq!((got.dims.as_slice(), got.values::<u8>()), (&[2][..], vec![1, 1]));
        let got = reduce(input(), &[0, 1], true, out()).unwrap();
        assert_eq!((got.dims.as_slice(), got.values::<u8>()), (&[1, 1][..], vec![1]));
    }
}
