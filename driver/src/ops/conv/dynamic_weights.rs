//! Convolutions and fully connected layers whose filter or bias is known only when the model runs: an input of
//! the model, or something that was computed. They are packed in each execution, and the kernel for constants
//! does the rest, so that the bits are those of the same operation with constants.

use burst_hal::OperandType;
use smallvec::SmallVec;

use crate::OpError;
use crate::op::{Budget, Kernel, PrepareContext, PrepareWith, Prepared, Run};
use crate::ops::conv::quantized::is_quantized;
use crate::tensor::{Arg, Args, Value};

/// Output pixels, or batches, from which on packing is worth it: to pack a weight takes about as long as the
/// plain loops take to use it once.
pub(super) const LEAST_ROWS: usize = 4;

/// An operation of this family with its attributes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dynamic<A: 'static> {
    /// What packs filter and bias once they are there.
    pub(super) prepare: PrepareWith<A>,
    /// The plain loops, for the rest.
    pub(super) execute: fn(&mut Run<'_, '_>, &A) -> Result<(), OpError>,
}

impl<A: Copy + std::fmt::Debug + Send + Sync> Dynamic<A> {
    /// The kernel for constants, or one that packs in each execution.
    pub(super) fn prepared(
        self,
        args: &Args<'_>,
        attributes: &A,
        context: &PrepareContext<'_>,
    ) -> Result<Option<Prepared>, OpError> {
        match (self.prepare)(args, attributes, context) {
            Err(OpError::NotYet) => {}
            known => return known,
        }
        let ty = args.input(0)?.info.ty;
        if ty != OperandType::TensorFloat32 && !is_quantized(ty) {
            return Ok(None);
        }
        let kernel = PackedPerRun { operation: self, attributes: *attributes, isa: context.isa };
        Ok(Some(Prepared { kernel: Box::new(kernel), packed_inputs: SmallVec::new() }))
    }
}

#[derive(Debug)]
struct PackedPerRun<A: 'static> {
    operation: Dynamic<A>,
    attributes: A,
    isa: crate::kernels::Isa,
}

impl<A: Copy + std::fmt::Debug + Send + Sync> PackedPerRun<A> {
    /// The kernel for these weights; `None` where the plain loops do as well.
    fn pack(&self, run: &Run<'_, '_>, budget: &Budget<'_>) -> Result<Option<Prepared>, OpError> {
        let out = run.outputs.first().ok_or(OpError::Arity { want: 1, got: 0 })?;
        // Outputs of one pixel, whichever dimension channels are in: the bias has one value for each.
        let units = run.input(2)?.dims.iter().map(|size| *size as usize).product::<usize>();
        let values = out.dims.iter().map(|size| *size as usize).product::<usize>();
        if values / units.max(1) < LEAST_ROWS {
            return Ok(None);
        }
        let inputs: SmallVec<[Arg<'_>; 16]> = run
            .inputs
            .iter()
            .map(|input| Arg {
                info: input.info,
                dims: Some(input.dims),
                value: input.bytes.map_or(Value::Omitted, Value::Bytes),
            })
            .collect();
        let outputs = [(out.info, out.dims.as_slice())];
        let context = PrepareContext { fast_kernels: true, isa: self.isa, budget };
        (self.operation.prepare)(
            &Args { inputs: &inputs, outputs: &outputs },
            &self.attributes,
            &context,
        )
    }
}

impl<A: Copy + std::fmt::Debug + Send + Sync> Kernel for PackedPerRun<A> {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        // Whoever pays for the execution pays for what is packed, until it has run.
        let budget = Budget::of_execution(run.stop, run.scratch.same_account());
        match self.pack(run, &budget)? {
            Some(packed) => packed.kernel.run(run),
            None => (self.operation.execute)(run, &self.attributes),
        }
    }

    fn name(&self) -> &'static str {
        "packed in each execution"
    }
}
