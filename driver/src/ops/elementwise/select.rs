//! SELECT: one of two values, as a truth value says, element by element.
//!
//! Inputs: a BOOL8 tensor and two tensors of one type, all of one shape (nothing broadcasts).
//! Output: that shape. Quantized inputs are brought to the output's scale and zero point.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::SELECT`.

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::{OperandType, OperationType};

use super::requantize::Requantize;
use crate::op::types::{TB8, TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{Form, Inferred, OpDef, OpTraits, Plain, Run, Signature};
use crate::tensor::Args;
use crate::threads::{TileRunner, Tiling};
use crate::{OpError, SignatureError};

/// The definition of SELECT.
pub static DEF: OpDef = OpDef {
    code: OperationType::Select,
    validate,
    body: &Plain { infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TB8, TF32, TF32], &[TF32]),
    Form::new(V1_2, &[TB8, TF16, TF16], &[TF16]),
    Form::new(V1_2, &[TB8, TI32, TI32], &[TI32]),
    Form::new(V1_2, &[TB8, TQ8, TQ8], &[TQ8]),
    Form::new(V1_3, &[TB8, TQ8S, TQ8S], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    let choose = args.dims(0)?;
    for branch in [1, 2] {
        let dims = args.dims(branch)?;
        if dims != choose {
            return Err(OpError::shape("choice against a branch", choose, dims));
        }
    }
    Ok(Inferred::one(choose))
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let (choose, a, b) = (run.input(0)?.u8()?, run.input(1)?, run.input(2)?);
    let (out, mut runner) = run.output_and_runner()?;
    let (info, runner) = (out.info, &mut runner);
    match info.ty {
        OperandType::TensorFloat32 | OperandType::TensorInt32 => {
            select(runner, out.i32_mut()?, choose, (a.i32()?, |x| x), (b.i32()?, |x| x))
        }
        OperandType::TensorFloat16 => {
            select(runner, out.u16_mut()?, choose, (a.u16()?, |x| x), (b.u16()?, |x| x))
        }
        OperandType::TensorQuant8Asymm | OperandType::TensorQuant8AsymmSigned => {
            let (new_a, new_b) = (Requantize::new(a.info, info), Requantize::new(b.info, info));
            select(
                runner,
                out.u8_mut()?,
                choose,
                (a.u8()?, |x| new_a.unsigned(x)),
                (b.u8()?, |x| new_b.unsigned(x)),
            )
        }
        got => Err(OpError::Type { want: "a type of SELECT", got }),
    }
}

/// Each branch comes with what is to be made of its values.
fn select<T: Copy + Send + Sync>(
    runner: &mut TileRunner<'_>,
    out: &mut [T],
    choose: &[u8],
    a: (&[T], impl Fn(T) -> T + Sync),
    b: (&[T], impl Fn(T) -> T + Sync),
) -> Result<(), OpError> {
    if [choose.len(), a.0.len(), b.0.len()] != [out.len(); 3] {
        return Err(OpError::Internal { what: "an input has not its output's length" });
    }
    runner.tiles(&Tiling::values(3 * size_of_val(out)), out, |first, out, _| {
        let (choose, x, y) = (&choose[first..], &a.0[first..], &b.0[first..]);
        for (((out, choose), x), y) in out.iter_mut().zip(choose).zip(x).zip(y) {
            *out = if *choose != 0 { a.1(*x) } else { b.1(*y) };
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, infer, run_one};

    #[test]
    fn bits_are_passed_on_as_they_are() {
        let choose = Tensor::bool8(&[2, 2], &[1, 0, 2, 0]);
        let got = run_one(
            &DEF,
            &[
                choose.clone(),
                Tensor::f32(&[2, 2], &[1.0, 2.0, -0.0, 4.0]),
                Tensor::f32(&[2, 2], &[5.0, 6.0, 7.0, f32::NAN]),
            ],
            Tensor::output(OperandType::TensorFloat32),
        );
        let got: Vec<u32> = got.unwrap().values();
        assert_eq!(got, [1f32, 6.0, -0.0, f32::NAN].map(f32::to_bits));
        let got = run_one(
            &DEF,
            &[
                choose.clone(),
                Tensor::i32(&[2, 2], &[1, 2, 3, 4]),
                Tensor::i32(&[2, 2], &[-1, -2, -3, -4]),
            ],
            Tensor::output(OperandType::TensorInt32),
        );
        assert_eq!(got.unwrap().values::<i32>(), [1, -2, 3, -4]);
        let got = run_one(
            &DEF,
            &[
                choose,
                Tensor::f16(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
                Tensor::f16(&[2, 2], &[-1.0, -2.0, -3.0, -4.0]),
            ],
            Tensor::output(OperandType::TensorFloat16),
        );
        assert_eq!(got.unwrap().halves(), [1.0, -2.0, 3.0, -4.0]);
    }

    /// 3 * 1/2 and 4 * 1/4, in an output of scale 1/4 (plus 10).
    #[test]
    fn quantized_branches_become_the_outputs_scale() {
        let choose = Tensor::bool8(&[2], &[1, 0]);
        let got = run_one(
            &DEF,
            &[
                choose.clone(),
                Tensor::u8(&[2], &[23, 0], 0.5, 20),
                Tensor::u8(&[2], &[0, 4], 0.25, 0),
            ],
            Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.25, 10),
        );
        assert_eq!(got.unwrap().values::<u8>(), [16, 14]);
        let got = run_one(
            &DEF,
            &[
                choose,
                Tensor::i8(&[2], &[-105, 0], 0.5, -108),
                Tensor::i8(&[2], &[0, -124], 0.25, -128),
            ],
            Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(0.25, -118),
        );
        assert_eq!(got.unwrap().values::<i8>(), [-112, -114]);
    }

    #[test]
    fn nothing_broadcasts() {
        let branch = |dims: &[u32], values: &[i32]| Tensor::i32(dims, values);
        let out = || [Tensor::output(OperandType::TensorInt32)];
        let full = branch(&[2], &[1, 2]);
        let one = branch(&[1], &[3]);
        let choose = Tensor::bool8(&[2], &[0, 1]);
        assert!(infer(&DEF, &[choose.clone(), full.clone(), full.clone()], &out()).is_ok());
        assert!(infer(&DEF, &[choose.clone(), full.clone(), one.clone()], &out()).is_err());
        assert!(infer(&DEF, &[choose, one, full.clone()], &out()).is_err());
        let narrow = Tensor::bool8(&[1], &[1]);
        assert!(infer(&DEF, &[narrow, full.clone(), full], &out()).is_err());
    }
}
