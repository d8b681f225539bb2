//! What the operations of one input and no parameters share.

use burst_hal::OperandType;
use half::f16;

use crate::OpError;
use crate::op::{Inferred, Run};
use crate::tensor::Args;

/// The output has the input's shape.
pub(super) fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    Ok(Inferred::one(args.dims(0)?))
}

/// Computes floats; halves are widened, computed and rounded once.
pub(super) fn execute(
    run: &mut Run<'_, '_>,
    float: impl Fn(f32) -> f32 + Sync,
) -> Result<(), OpError> {
    let input = run.input(0)?;
    let (out, mut runner) = run.output_and_runner()?;
    match out.info.ty {
        OperandType::TensorFloat32 => {
            runner.map(input.f32()?, out.f32_mut()?, NANOS_PER_VALUE, float)
        }
        OperandType::TensorFloat16 => {
            let half = |x: f16| f16::from_f32(float(x.to_f32()));
            runner.map(input.f16()?, out.f16_mut()?, NANOS_PER_VALUE, half)
        }
        got => Err(OpError::Type { want: "a float tensor", got }),
    }
}

/// As [`execute`], with a form for INT32.
pub(super) fn execute_with_int(
    run: &mut Run<'_, '_>,
    float: impl Fn(f32) -> f32 + Sync,
    int: impl Fn(i32) -> i32 + Sync,
) -> Result<(), OpError> {
    let input = run.input(0)?;
    if input.info.ty == OperandType::TensorInt32 {
        let (out, mut runner) = run.output_and_runner()?;
        return runner.map(input.i32()?, out.i32_mut()?, NANOS_PER_VALUE, int);
    }
    execute(run, float)
}

/// What a function of one value takes at least.
pub(super) const NANOS_PER_VALUE: usize = 1;

#[cfg(test)]
pub(super) mod tests {
    use burst_hal::OperandType;

    use crate::op::OpDef;
    use crate::ops::testing::{Tensor, run_one};

    /// What the operation makes of these, as FLOAT32 and as FLOAT16.
    pub(in super::super) fn floats(def: &OpDef, values: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let dims = [1, u32::try_from(values.len()).unwrap()];
        let single =
            run_one(def, &[Tensor::f32(&dims, values)], Tensor::output(OperandType::TensorFloat32))
                .unwrap();
        let half =
            run_one(def, &[Tensor::f16(&dims, values)], Tensor::output(OperandType::TensorFloat16))
                .unwrap();
        assert_eq!(single.dims.as_slice(), dims);
        assert_eq!(half.dims.as_slice(), dims);
        (single.values(), half.halves())
    }

    /// What the operation makes of these, as INT32.
    pub(in super::super) fn integers(def: &OpDef, values: &[i32]) -> Vec<i32> {
        let dims = [u32::try_from(values.len()).unwrap()];
        let out = Tensor::output(OperandType::TensorInt32);
        run_one(def, &[Tensor::i32(&dims, values)], out).unwrap().values()
    }

    /// Each must be within a few units in the last place of what was worked out elsewhere.
    pub(in super::super) fn assert_close(def: &OpDef, cases: &[(f32, f64)]) {
        let values: Vec<f32> = cases.iter().map(|(x, _)| *x).collect();
        let (single, half) = floats(def, &values);
        for ((got, half), (x, want)) in single.iter().zip(half).zip(cases) {
            let error = (f64::from(*got) - want).abs();
            assert!(error <= 4e-7 * want.abs().max(1e-3), "{:?} of {x}: {got}", def.code);
            let error = (f64::from(half) - want).abs();
            assert!(error <= 1e-3 * want.abs().max(1e-3), "{:?} of half {x}: {half}", def.code);
        }
    }
}
