//! REDUCE_MAX: the largest value along some axes. Quantized values are compared as stored.
//!
//! Inputs: a tensor of up to 4 dimensions, a 1-D INT32 tensor (the axes, negative from the end), a
//! BOOL scalar (the axes stay with size 1). Output: the input's shape without the axes, `[1]` when
//! nothing is left.
//!
//! A NaN does not count, as in MAX_POOL_2D; NaN alone gives minus infinity.
//!
//! Source: NNAPI `types.hal`, `OperationType::REDUCE_MAX`.

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::OperationType;

use crate::op::types::{BOOL, TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{Form, OpDef, OpTraits, Run, Signature, WithAttributes};
use crate::ops::reduce::{ReduceAttributes, listed};
use crate::{OpError, SignatureError};

/// The definition of REDUCE_MAX.
pub static DEF: OpDef = OpDef {
    code: OperationType::ReduceMax,
    validate,
    body: &WithAttributes {
        parse: ReduceAttributes::parse,
        infer: listed::infer,
        prepare: None,
        execute,
    },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32, TI32, BOOL], &[TF32]),
    Form::new(V1_2, &[TF16, TI32, BOOL], &[TF16]),
    Form::new(V1_2, &[TQ8, TI32, BOOL], &[TQ8]),
    Form::new(V1_3, &[TQ8S, TI32, BOOL], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    listed::validate(signature, FORMS)
}

fn execute(run: &mut Run<'_, '_>, attributes: &ReduceAttributes) -> Result<(), OpError> {
    if listed::is_bytes(run)? {
        return listed::fold_bytes(run, attributes, (u8::MIN, u8::max), (i8::MIN, i8::max));
    }
    listed::fold_float(run, attributes, f32::NEG_INFINITY, |a, b| if b > a { b } else { a })
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

    #[test]
    fn floats_halves_and_stored_bytes() {
        let input = Tensor::f32(&[2, 3], &[1.0, 8.0, 3.0, 4.0, -5.0, 6.0]);
        let got = reduce(input, &[0], true, Tensor::output(OperandType::TensorFloat32)).unwrap();
        assert_eq!(got.dims.as_slice(), [1, 3]);
        assert_eq!(got.values::<f32>(), [4.0, 8.0, 6.0]);
        let input = Tensor::f16(&[2, 1], &[1.0, 1.0]);
        let got = reduce(input, &[-2], false, Tensor::output(OperandType::TensorFloat16)).unwrap();
        assert_eq!((got.dims.as_slice(), got.halves()), (&[1][..], vec![1.0]));
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.5, 9);
        let got = reduce(Tensor::u8(&[3], &[7, 200, 3], 0.5, 9), &[0], false, out).unwrap();
        assert_eq!(got.values::<u8>(), [200]);
        let out = Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(0.5, -9);
        let got = reduce(Tensor::i8(&[3], &[5, -7, 0], 0.5, -9), &[0], false, out).unwrap();
        assert_eq!(got.values::<i8>(), [5]);
    }

    #[test]
    fn a_nan_does_not_count() {
        let input = Tensor::f32(&[2, 2], &[f32::NAN, 2.0, f32::NAN, f32::NAN]);
        let got = reduce(input, &[1], false, Tensor::output(OperandType::TensorFloat32)).unwrap();
        assert_eq!(got.values::<f32>(), [2.0, f32::NEG_INFINITY]);
    }

    /// Stored values are not rescaled, so that another scale of the output would be another value.
    #[test]
    fn an_output_with_another_scale_is_refused() {
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.25, 9);
        assert!(reduce(Tensor::u8(&[2], &[1, 2], 0.5, 9), &[0], false, out).is_err());
    }
}
