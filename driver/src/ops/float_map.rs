//! The kernel of operations that apply a function to each value of a tensor of 32-bit floats.

use burst_hal::OperandType;
use smallvec::SmallVec;

use crate::OpError;
use crate::kernels::Isa;
use crate::op::{Kernel, PrepareContext, Prepared, Run};
use crate::tensor::Args;
use crate::threads::{Tiling, speed};

/// A function of each value, compiled for several instruction sets.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct FloatMap {
    pub(in crate::ops) function: fn(Isa, &[f32], &mut [f32]),
    /// A short name for profiles.
    pub(in crate::ops) name: &'static str,
}

impl FloatMap {
    /// The kernel, where the input is of 32-bit floats.
    ///
    /// # Errors
    /// [`OpError::Arity`] when there is no input.
    pub(in crate::ops) fn prepare(
        self,
        args: &Args<'_>,
        context: &PrepareContext<'_>,
    ) -> Result<Option<Prepared>, OpError> {
        let is_float = args.input(0)?.info.ty == OperandType::TensorFloat32;
        let kernel = Box::new(MapKernel { map: self, isa: context.isa });
        Ok(is_float.then_some(Prepared { kernel, packed_inputs: SmallVec::new() }))
    }
}

#[derive(Debug)]
struct MapKernel {
    map: FloatMap,
    isa: Isa,
}

/// Values in a nanosecond.
const VALUES: usize = 2;

impl Kernel for MapKernel {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        let input = run.input(0)?.f32()?;
        let (out, mut runner) = run.output_and_runner()?;
        let out = out.f32_mut()?;
        if input.len() != out.len() {
            return Err(OpError::Internal { what: "an output has not its input's length" });
        }
        let tiling = Tiling { nanos: speed::nanos(&[out.len()], VALUES), ..Tiling::values(0) };
        runner.tiles(&tiling, out, |first, out, _| {
            (self.map.function)(self.isa, &input[first..][..out.len()], out);
            Ok(())
        })
    }

    fn name(&self) -> &'static str {
        self.map.name
    }
}
