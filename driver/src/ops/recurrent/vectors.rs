//! Kernels of layers that read their operands as they are: the operation itself, with the instruction sets that a
//! preparation allows.

use std::fmt::Debug;

use smallvec::SmallVec;

use crate::OpError;
use crate::kernels::Isa;
use crate::op::{Kernel, PrepareContext, Prepared, Run};

/// An operation, with these instruction sets.
pub(super) type Execute<A> = fn(&mut Run<'_, '_>, &A, Isa) -> Result<(), OpError>;

/// See the module.
struct Vectors<A> {
    attributes: A,
    isa: Isa,
    execute: Execute<A>,
    scratch_floats: usize,
}

impl<A: Debug> Debug for Vectors<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vectors").field("attributes", &self.attributes).finish_non_exhaustive()
    }
}

impl<A: Debug + Send + Sync> Kernel for Vectors<A> {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        (self.execute)(run, &self.attributes, self.isa)
    }

    fn scratch_floats(&self) -> usize {
        self.scratch_floats
    }

    fn name(&self) -> &'static str {
        "a step in vectors"
    }
}

/// The kernel of an operation with these attributes, which takes so many floats of working memory.
pub(super) fn prepared<A: Debug + Copy + Send + Sync + 'static>(
    attributes: &A,
    context: &PrepareContext<'_>,
    execute: Execute<A>,
    scratch_floats: usize,
) -> Option<Prepared> {
    let (attributes, isa) = (*attributes, context.isa);
    let kernel = Box::new(Vectors { attributes, isa, execute, scratch_floats });
    Some(Prepared { kernel, packed_inputs: SmallVec::new() })
}
