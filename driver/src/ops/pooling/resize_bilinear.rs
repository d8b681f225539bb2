//! RESIZE_BILINEAR: pictures of another size, each pixel a mix of four neighbours.
//!
//! Inputs: a tensor of 4 dimensions; width and height (INT32: pixels; float: factors); optionally
//! BOOL scalars for the layout, for aligned corners, for half-pixel centres. Output: NHWC or NCHW as
//! the input, with its scale and zero point.
//!
//! Source: NNAPI `types.hal`, `OperationType::RESIZE_BILINEAR`.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a mix of 8-bit values is one; adding a half and truncating rounds"
)]

use burst_hal::HalVersion::{V1_0, V1_2, V1_3};
use burst_hal::{HalVersion, OperandType, OperationType};
use half::f16;

use crate::OpError;
use crate::op::types::{BOOL, F16, F32, I32, TF16, TF32, TQ8, TQ8S};
use crate::op::{Inferred, OpDef, OpTraits, Row, Run, Signature};
use crate::ops::pooling::resizing;
use crate::tensor::Args;

/// The definition of RESIZE_BILINEAR.
pub static DEF: OpDef = OpDef {
    code: OperationType::ResizeBilinear,
    validate,
    infer,
    prepare: None,
    execute,
    traits: OpTraits::PLAIN,
};

const COUNTS: &[(usize, HalVersion)] = &[(3, V1_0), (4, V1_2), (5, V1_3), (6, V1_3)];

const ROWS: &[Row] = &[
    Row::new(V1_0, &[TF32, I32, I32, BOOL, BOOL, BOOL], &[TF32]).counts(COUNTS),
    Row::new(V1_2, &[TF32, F32, F32, BOOL, BOOL, BOOL], &[TF32]).counts(COUNTS),
    Row::new(V1_2, &[TF16, I32, I32, BOOL, BOOL, BOOL], &[TF16]).counts(COUNTS),
    Row::new(V1_2, &[TF16, F16, F16, BOOL, BOOL, BOOL], &[TF16]).counts(COUNTS),
    Row::new(V1_2, &[TQ8, I32, I32, BOOL, BOOL, BOOL], &[TQ8]).counts(COUNTS),
    Row::new(V1_2, &[TQ8, F32, F32, BOOL, BOOL, BOOL], &[TQ8]).counts(COUNTS),
    Row::new(V1_3, &[TQ8S, I32, I32, BOOL, BOOL, BOOL], &[TQ8S]).counts(COUNTS),
    Row::new(V1_3, &[TQ8S, F32, F32, BOOL, BOOL, BOOL], &[TQ8S]).counts(COUNTS),
];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_rows(ROWS)?;
    resizing::expect_input_rank(signature)
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    resizing::infer(args)
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let input = run.input(0)?;
    let (resize, _) = resizing::read(run, input.dims)?;
    let Run { outputs, scratch, .. } = run;
    let out = outputs.first_mut().ok_or(OpError::Arity { want: 1, got: 0 })?;
    let scratch = scratch.f32(resize.bilinear_scratch());
    match out.info.ty {
        OperandType::TensorFloat32 => {
            resize.bilinear(input.f32()?, out.f32_mut()?, scratch, |x| x, |x| x);
        }
        OperandType::TensorFloat16 => {
            resize.bilinear(input.f16()?, out.f16_mut()?, scratch, f16::to_f32, f16::from_f32);
        }
        OperandType::TensorQuant8AsymmSigned => resize.bilinear_fixed(input.i8()?, out.i8_mut()?),
        _ => {
            let rounded = |x: f32| (x + 0.5) as u8;
            resize.bilinear(input.u8()?, out.u8_mut()?, scratch, f32::from, rounded);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_one};

    #[test]
    fn sizes_factors_and_layouts() {
        let ints = |w, h| [Tensor::scalar_i32(w), Tensor::scalar_i32(h)];
        let floats = |w, h| [Tensor::scalar_f32(w), Tensor::scalar_f32(h)];
        let run = |dims: &[u32], values: &[f32], sizes: [Tensor; 2], flags: &[bool]| {
            let mut inputs = vec![Tensor::f32(dims, values)];
            inputs.extend(sizes);
            inputs.extend(flags.iter().map(|flag| Tensor::scalar_bool(*flag)));
            run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat32)).unwrap()
        };
        // 1 2 / 3 4 to three columns and two rows: columns at 0, 2/3 and 4/3 (held at the last).
        let square = [1.0, 3.0, 5.0, 9.0];
        let got = run(&[1, 2, 2, 1], &square, ints(4, 2), &[]);
        assert_eq!(got.dims.as_slice(), [1, 2, 4, 1]);
        assert_eq!(got.values::<f32>(), [1.0, 2.0, 3.0, 3.0, 5.0, 7.0, 9.0, 9.0]);
        let got = run(&[1, 2, 2, 1], &square, floats(1.6, 1.0), &[false, true]);
        assert_eq!(got.dims.as_slice(), [1, 2, 3, 1]);
        assert_eq!(got.values::<f32>(), [1.0, 2.0, 3.0, 5.0, 7.0, 9.0]);
        let two = [1.0, 3.0, 10.0, 30.0];
        let got = run(&[1, 2, 1, 2], &two, ints(4, 1), &[true, false, true]);
        assert_eq!(got.dims.as_slice(), [1, 2, 1, 4]);
        assert_eq!(got.values::<f32>(), [1.0, 1.5, 2.5, 3.0, 10.0, 15.0, 25.0, 30.0]);
    }

    /// Rounding: to nearest, unsigned and signed, although NNAPI's reference truncates: its
    /// vectors round, as TFLite does.
    #[test]
    fn quantized_mixes_are_rounded() {
        let size = |n| Tensor::scalar_i32(n);
        let input = Tensor::u8(&[1, 1, 2, 1], &[10, 13], 0.5, 3);
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.5, 3);
        let got = run_one(&DEF, &[input, size(4), size(1)], out).unwrap();
        assert_eq!(got.values::<u8>(), [10, 12, 13, 13]);
        let input = Tensor::i8(&[1, 1, 2, 1], &[-10, -13], 0.5, 3);
        let out = Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(0.5, 3);
        let got = run_one(&DEF, &[input, size(4), size(1)], out).unwrap();
        assert_eq!(got.values::<i8>(), [-10, -12, -13, -13]);
    }

    #[test]
    fn parameters_without_sense_are_refused() {
        let run = |w, h, flags: [bool; 3]| {
            let mut inputs = vec![Tensor::f32(&[1, 1, 1, 1], &[1.0])];
            inputs.extend([w, h].map(Tensor::scalar_i32));
            inputs.extend(flags.map(Tensor::scalar_bool));
            run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat32))
        };
        assert!(run(1, 1, [false; 3]).is_ok());
        assert!(run(0, 1, [false; 3]).is_err());
        assert!(run(1, -1, [false; 3]).is_err());
        assert!(run(1, 1, [false, true, true]).is_err());
    }

    #[test]
    fn both_sizes_have_one_type() {
        let f32 = OperandType::TensorFloat32;
        let form = |sizes: [OperandType; 2], flags: usize, version| {
            let mut inputs = vec![f32];
            inputs.extend(sizes);
            inputs.extend(vec![OperandType::Bool; flags]);
            has_form(&DEF, version, &inputs, &[f32])
        };
        let (int, float) = (OperandType::Int32, OperandType::Float32);
        assert!(form([int, int], 0, HalVersion::V1_0));
        assert!(!form([float, float], 0, HalVersion::V1_0));
        assert!(form([float, float], 1, HalVersion::V1_2));
        assert!(!form([int, float], 1, HalVersion::V1_3));
        assert!(!form([int, int], 2, HalVersion::V1_2));
        assert!(form([int, int], 3, HalVersion::V1_3));
    }
}
