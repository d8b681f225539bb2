//! MAXIMUM: the greater of two values, element by element.
//!
//! Inputs: two tensors of one type that broadcast. Output: a tensor of the broadcast shape.
//! Quantized inputs are brought to the output's scale and zero point first.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::MAXIMUM`.

use burst_hal::OperationType;

use super::extremum::{self, Extremum};
use crate::OpError;
use crate::op::{OpDef, OpTraits, Plain, Run};

/// The definition of MAXIMUM.
pub static DEF: OpDef = OpDef {
    code: OperationType::Maximum,
    validate: extremum::validate,
    body: &Plain { infer: extremum::infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    extremum::execute(run, Extremum::Maximum)
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::DEF;
    use crate::ops::testing::{Tensor, run_one};

    fn of(a: Tensor, b: Tensor, out: Tensor) -> Tensor {
        run_one(&DEF, &[a, b], out).unwrap()
    }

    #[test]
    fn plain_types_broadcast() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [1.0, 5.0]);
        let want = [1.0, 5.0, 3.0, 5.0];
        let single = Tensor::output(OperandType::TensorFloat32);
        let got = of(Tensor::f32(&[2, 2], &a), Tensor::f32(&[2], &b), single);
        assert_eq!(got.values::<f32>(), want);
        let half = Tensor::output(OperandType::TensorFloat16);
        let got = of(Tensor::f16(&[2, 2], &a), Tensor::f16(&[2], &b), half);
        assert_eq!(got.halves(), want);
        let int = Tensor::output(OperandType::TensorInt32);
        let got = of(Tensor::i32(&[2], &[3, -2]), Tensor::i32(&[2], &[4, -1]), int);
        assert_eq!(got.values::<i32>(), [4, -1]);
    }

    /// As in the reference: the first value, unless the second is greater.
    #[test]
    fn a_nan_is_passed_on_when_it_comes_first() {
        let got = of(
            Tensor::f32(&[2], &[f32::NAN, 1.0]),
            Tensor::f32(&[2], &[1.0, f32::NAN]),
            Tensor::output(OperandType::TensorFloat32),
        );
        let nan: Vec<bool> = got.values::<f32>().iter().map(|x| x.is_nan()).collect();
        assert_eq!(nan, [true, false]);
    }

    /// 2 against 1, and 0 against 1/2, in an output of scale 1/4 with zero point 6.
    #[test]
    fn quantized_inputs_become_the_outputs_scale() {
        let got = of(
            Tensor::u8(&[2], &[12, 10], 1.0, 10),
            Tensor::u8(&[2], &[2, 1], 0.5, 0),
            Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.25, 6),
        );
        assert_eq!(got.values::<u8>(), [14, 8]);
        let got = of(
            Tensor::i8(&[2], &[-116, -118], 1.0, -118),
            Tensor::i8(&[2], &[-126, -127], 0.5, -128),
            Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(0.25, -2),
        );
        assert_eq!(got.values::<i8>(), [6, 0]);
    }
}
