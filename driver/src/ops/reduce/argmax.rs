//! ARGMAX: the index of the largest value along one axis; of equal values the first.
//!
//! Inputs: a tensor, an INT32 scalar (the axis, negative from the end). Output: INT32, the input's
//! shape without the axis, `[1]` for a vector.
//!
//! Source: NNAPI `types.hal`, `OperationType::ARGMAX`.

use burst_hal::OperationType;

use crate::OpError;
use crate::op::{OpDef, OpTraits, PrepareContext, Prepared, Run, WithAttributes};
use crate::ops::attributes::Axis;
use crate::ops::reduce::arg::{self, Best};
use crate::tensor::Args;

/// The definition of ARGMAX.
pub static DEF: OpDef = OpDef {
    code: OperationType::Argmax,
    validate: arg::validate,
    body: &WithAttributes { parse: arg::parse, infer: arg::infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

fn execute(run: &mut Run<'_, '_>, axis: &Axis) -> Result<(), OpError> {
    arg::execute(run, *axis, Best::Largest)
}

fn prepare(
    args: &Args<'_>,
    axis: &Axis,
    context: &PrepareContext<'_>,
) -> Result<Option<Prepared>, OpError> {
    arg::prepare(args, *axis, context, Best::Largest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run_one};
    use burst_hal::OperandType;

    fn index(input: Tensor, axis: i32) -> Result<Tensor, OpError> {
        let out = Tensor::output(OperandType::TensorInt32);
        run_one(&DEF, &[input, Tensor::scalar_i32(axis)], out)
    }

    #[test]
    fn along_either_axis_the_first_of_equals() {
        let input = || Tensor::f32(&[2, 3], &[4.0, 5.0, 5.0, 1.0, 9.0, 9.0]);
        let got = index(input(), 0).unwrap();
        assert_eq!((got.dims.as_slice(), got.values::<i32>()), (&[3][..], vec![0, 1, 1]));
        let got = index(Tensor::i8(&[2, 2], &[-3, -2, 7, 6], 1.0, 0), -1).unwrap();
        assert_eq!((got.dims.as_slice(), got.values::<i32>()), (&[2][..], vec![1, 0]));
        let got = index(Tensor::u8(&[3], &[1, 2, 200], 1.0, 0), 0).unwrap();
        assert_eq!((got.dims.as_slice(), got.values::<i32>()), (&[1][..], vec![2]));
        assert!(index(input(), 2).is_err());
        assert!(index(Tensor::f32(&[0, 2], &[]), 0).is_err());
    }
}
