//! The kernel of ADD for two tensors of 32-bit floats of one shape, which a kernel before it may take over.

use burst_hal::FusedActivation;
use smallvec::SmallVec;

use crate::OpError;
use crate::kernels::quant::activation_range_f32;
use crate::kernels::{Isa, add_float};
use crate::op::{FloatSum, Kernel, PrepareContext, Prepared, Run};
use crate::tensor::Args;
use crate::threads::Tiling;

/// The kernel, where both shapes are known when the model is prepared, and equal.
pub(super) fn prepare(
    args: &Args<'_>,
    activation: FusedActivation,
    context: &PrepareContext<'_>,
) -> Result<Option<Prepared>, OpError> {
    if args.dims(0)? != args.dims(1)? {
        return Ok(None);
    }
    let sum = FloatSum { range: activation_range_f32(activation) };
    let kernel = Box::new(FloatSumKernel { sum, isa: context.isa });
    Ok(Some(Prepared { kernel, packed_inputs: SmallVec::new() }))
}

#[derive(Debug)]
struct FloatSumKernel {
    sum: FloatSum,
    isa: Isa,
}

impl Kernel for FloatSumKernel {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        let (a, b) = (run.input(0)?.f32()?, run.input(1)?.f32()?);
        let (out, mut runner) = run.output_and_runner()?;
        let out = out.f32_mut()?;
        if a.len() != out.len() || b.len() != out.len() {
            return Err(OpError::Internal { what: "summands of different lengths" });
        }
        let bytes = 3 * size_of_val(out);
        runner.tiles(&Tiling::values(bytes), out, |first, out, _| {
            let part = first..first + out.len();
            add_float::sums(self.isa, &a[part.clone()], &b[part], self.sum.range, out);
            Ok(())
        })
    }

    fn name(&self) -> &'static str {
        "sum of floats"
    }

    fn as_sum(&self) -> Option<FloatSum> {
        Some(self.sum)
    }
}
