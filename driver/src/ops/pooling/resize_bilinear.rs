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
use smallvec::SmallVec;

use crate::OpError;
use crate::kernels::Isa;
use crate::kernels::resize::{self, FixedWork, Work};
use crate::op::types::{BOOL, F16, F32, I32, TF16, TF32, TQ8, TQ8S};
use crate::op::{
    Form, Kernel, OpDef, OpTraits, PrepareContext, Prepared, Run, Signature, WithAttributes,
};
use crate::ops::attributes::ResizeAttributes;
use crate::ops::pooling::resizing;
use crate::tensor::Args;
use crate::threads::{Tiling, speed};

/// The definition of RESIZE_BILINEAR.
pub static DEF: OpDef = OpDef {
    code: OperationType::ResizeBilinear,
    validate,
    body: &WithAttributes {
        parse: ResizeAttributes::parse,
        infer: resizing::infer,
        prepare: Some(prepare),
        execute,
    },
    traits: OpTraits::PLAIN,
};

const COUNTS: &[(usize, HalVersion)] = &[(3, V1_0), (4, V1_2), (5, V1_3), (6, V1_3)];

const FORMS: &[Form] = &[
    Form::new(V1_0, &[TF32, I32, I32, BOOL, BOOL, BOOL], &[TF32]).counts(COUNTS),
    Form::new(V1_2, &[TF32, F32, F32, BOOL, BOOL, BOOL], &[TF32]).counts(COUNTS),
    Form::new(V1_2, &[TF16, I32, I32, BOOL, BOOL, BOOL], &[TF16]).counts(COUNTS),
    Form::new(V1_2, &[TF16, F16, F16, BOOL, BOOL, BOOL], &[TF16]).counts(COUNTS),
    Form::new(V1_2, &[TQ8, I32, I32, BOOL, BOOL, BOOL], &[TQ8]).counts(COUNTS),
    Form::new(V1_2, &[TQ8, F32, F32, BOOL, BOOL, BOOL], &[TQ8]).counts(COUNTS),
    Form::new(V1_3, &[TQ8S, I32, I32, BOOL, BOOL, BOOL], &[TQ8S]).counts(COUNTS),
    Form::new(V1_3, &[TQ8S, F32, F32, BOOL, BOOL, BOOL], &[TQ8S]).counts(COUNTS),
];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

fn execute(run: &mut Run<'_, '_>, attributes: &ResizeAttributes) -> Result<(), OpError> {
    let input = run.input(0)?;
    let (resize, _) = resizing::sizes(attributes, input.dims)?;
    let Run { outputs, scratch, stop, .. } = run;
    let out = outputs.first_mut().ok_or(OpError::Arity { want: 1, got: 0 })?;
    let work = (scratch.f32(resize.bilinear_scratch())?, *stop);
    match out.info.ty {
        OperandType::TensorFloat32 => {
            resize.bilinear(input.f32()?, out.f32_mut()?, work, (|x| x, |x| x))
        }
        OperandType::TensorFloat16 => {
            let convert = (f16::to_f32, f16::from_f32);
            resize.bilinear(input.f16()?, out.f16_mut()?, work, convert)
        }
        OperandType::TensorQuant8AsymmSigned => {
            resize.bilinear_fixed(input.i8()?, out.i8_mut()?, *stop)
        }
        _ => {
            let rounded = |x: f32| (x + 0.5) as u8;
            resize.bilinear(input.u8()?, out.u8_mut()?, work, (f32::from, rounded))
        }
    }
}

/// A kernel that works in vectors, for all types but floats of 16 bits.
fn prepare(
    args: &Args<'_>,
    attributes: &ResizeAttributes,
    context: &PrepareContext<'_>,
) -> Result<Option<Prepared>, OpError> {
    let ty = args.input(0)?.info.ty;
    if ty == OperandType::TensorFloat16 {
        return Ok(None);
    }
    let kernel = Box::new(Lines { attributes: *attributes, isa: context.isa });
    Ok(Some(Prepared { kernel, packed_inputs: SmallVec::new() }))
}

/// See [`resize::lines`].
#[derive(Debug)]
struct Lines {
    attributes: ResizeAttributes,
    isa: Isa,
}

/// Values that are mixed in a nanosecond.
const MIXED: usize = 3;

/// Most values of a tile: well under a millisecond of work.
const TILE: usize = 1 << 18;

impl Kernel for Lines {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        let input = run.input(0)?;
        let (resize, dims) = resizing::sizes(&self.attributes, input.dims)?;
        let count = crate::tensor::element_count(&dims)?;
        if !resize::fits(&resize) {
            return execute(run, &self.attributes);
        }
        let row_len = resize.width.output * resize.channels;
        let tiling = Tiling {
            row_len,
            step: 1,
            share_step: Some(1),
            least: 1,
            most: (TILE / row_len).max(1),
            nanos: speed::nanos(&[count], MIXED),
        };
        let Run { outputs, scratch, stop, parallelism, .. } = run;
        let out = outputs.first_mut().ok_or(OpError::Arity { want: 1, got: 0 })?;
        match out.info.ty {
            OperandType::TensorFloat32 => {
                let (input, out) = (input.f32()?, expect_count(out.f32_mut()?, count)?);
                parallelism.tiles(&tiling, out, scratch, *stop, |first, out, scratch| {
                    let work = &mut Work::new(&resize, scratch)?;
                    resize::floats(self.isa, &resize, input, first, work, out);
                    Ok(())
                })
            }
            OperandType::TensorQuant8AsymmSigned => {
                let (input, out) = (input.i8()?, expect_count(out.i8_mut()?, count)?);
                parallelism.tiles(&tiling, out, scratch, *stop, |first, out, scratch| {
                    let work = &mut FixedWork::new(&resize, scratch)?;
                    resize::signed(self.isa, &resize, input, first, work, out);
                    Ok(())
                })
            }
            _ => {
                let (input, out) = (input.u8()?, expect_count(out.u8_mut()?, count)?);
                parallelism.tiles(&tiling, out, scratch, *stop, |first, out, scratch| {
                    let work = &mut Work::new(&resize, scratch)?;
                    resize::bytes(self.isa, &resize, input, first, work, out);
                    Ok(())
                })
            }
        }
    }

    fn name(&self) -> &'static str {
        "lines of blocks"
    }
}

fn expect_count<T>(out: &mut [T], count: usize) -> Result<&mut [T], OpError> {
    if out.len() == count {
        return Ok(out);
    }
    Err(OpError::Internal { what: "size of a resized picture" })
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

    /// Every alignment, enlarged and made smaller, channels that fill blocks and that do not.
    #[test]
    fn the_kernel_gives_the_same_bits_as_the_reference() {
        use crate::kernels::Isa;
        use crate::ops::testing::{run, run_fast_on};
        let mut seed = 1u32;
        let mut next = move || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed >> 8
        };
        for case in 0..200 {
            let channels = [1, 3, 16, 21, 33][case % 5];
            let dims = [1 + next() % 2, 1 + next() % 9, 1 + next() % 9, channels];
            let count = dims.iter().product::<u32>();
            let bytes: Vec<u8> = (0..count).map(|_| next().to_le_bytes()[0]).collect();
            let sizes = [1 + next() % 40, 1 + next() % 40].map(|size| i32::try_from(size).unwrap());
            let [corners, centres] = [[false, false], [true, false], [false, true]][case % 3];
            let scalars = [
                Tensor::scalar_i32(sizes[0]),
                Tensor::scalar_i32(sizes[1]),
                Tensor::scalar_bool(next() % 4 == 0),
                Tensor::scalar_bool(corners),
                Tensor::scalar_bool(centres),
            ];
            let floats: Vec<f32> = bytes.iter().map(|byte| f32::from(*byte) / 7.0 - 9.0).collect();
            let pictures = [Tensor::u8(&dims, &bytes, 0.5, 3), Tensor::f32(&dims, &floats)];
            for picture in pictures {
                let outputs = [Tensor::output(picture.info.ty)
                    .quantized(picture.info.scale, picture.info.zero_point)];
                let inputs = [vec![picture], scalars.to_vec()].concat();
                let want = run(&DEF, &inputs, &outputs).unwrap();
                let without = Isa { avx512: false, vnni: false, ..Isa::detect() };
                for isa in [Isa::detect(), without, Isa::PORTABLE] {
                    let got = run_fast_on(isa, &DEF, &inputs, &outputs).unwrap().expect("a kernel");
                    assert_eq!(got[0].dims, want[0].dims, "case {case}");
                    assert_eq!(got[0].values::<u8>(), want[0].values::<u8>(), "case {case}");
                }
            }
        }
    }
}
