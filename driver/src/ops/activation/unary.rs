//! What functions of one value share: the output has the input's shape; 8-bit types go through a
//! table.

use burst_hal::OperandType;
use half::f16;
use smallvec::SmallVec;

use crate::OpError;
use crate::kernels::lut::{self, Table};
use crate::op::{Inferred, Kernel, Prepared, Run};
use crate::ops::quantization::rules::quant8;
use crate::ops::rank_limit::expect_rank;
use crate::tensor::{Args, TensorInfo};
use crate::threads::{TileRunner, Tiling};

/// Makes the table of a function from what input and output mean.
pub(super) type MakeTable = fn(&TensorInfo, &TensorInfo) -> Result<Table, OpError>;

/// The input's shape, which has at most `rank` dimensions.
pub(super) fn infer(args: &Args<'_>, rank: usize) -> Result<Inferred, OpError> {
    let dims = args.dims(0)?;
    expect_rank(dims, rank)?;
    Ok(Inferred::one(dims))
}

/// What the only output's numbers mean.
pub(super) fn output_info<'a>(args: &Args<'a>) -> Result<&'a TensorInfo, OpError> {
    args.outputs.first().map(|(info, _)| *info).ok_or(OpError::Arity { want: 1, got: 0 })
}

/// Applies `float` to float types and the table to 8-bit ones.
pub(super) fn execute(
    run: &mut Run<'_, '_>,
    float: impl Fn(f32) -> f32 + Sync,
    table: MakeTable,
) -> Result<(), OpError> {
    let input = run.input(0)?;
    let (out, mut runner) = run.output_and_runner()?;
    match out.info.ty {
        OperandType::TensorFloat32 => {
            runner.map(input.f32()?, out.f32_mut()?, NANOS_PER_FUNCTION, float)
        }
        OperandType::TensorFloat16 => {
            let half = |x: f16| f16::from_f32(float(x.to_f32()));
            runner.map(input.f16()?, out.f16_mut()?, NANOS_PER_FUNCTION, half)
        }
        _ => look_up(&table(input.info, out.info)?, input.u8()?, out.u8_mut()?, &mut runner),
    }
}

/// What an exponential or the like takes.
pub(super) const NANOS_PER_FUNCTION: usize = 4;

pub(super) fn look_up(
    table: &Table,
    input: &[u8],
    out: &mut [u8],
    runner: &mut TileRunner<'_>,
) -> Result<(), OpError> {
    /// As if so many bytes were moved for each value.
    const BYTES: usize = 6;
    let tiling = Tiling::values(out.len() * BYTES);
    runner.tiles(&tiling, out, |first, out, _| {
        lut::apply(table, &input[first..], out);
        Ok(())
    })
}

/// A kernel with the table of an 8-bit function worked out.
pub(super) fn prepare(args: &Args<'_>, table: MakeTable) -> Result<Option<Prepared>, OpError> {
    let (input, output) = (args.input(0)?.info, output_info(args)?);
    if quant8(input).is_none() {
        return Ok(None);
    }
    let kernel = Box::new(TableKernel { table: table(input, output)? });
    Ok(Some(Prepared { kernel, packed_inputs: SmallVec::new() }))
}

#[derive(Debug)]
struct TableKernel {
    table: Table,
}

impl Kernel for TableKernel {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        let input = run.input(0)?.u8()?;
        let (out, mut runner) = run.output_and_runner()?;
        let out = out.u8_mut()?;
        if input.len() != out.len() {
            return Err(OpError::Internal { what: "an output has not its input's length" });
        }
        look_up(&self.table, input, out, &mut runner)
    }

    fn held_bytes(&self) -> usize {
        size_of::<Table>()
    }

    fn name(&self) -> &'static str {
        "table of 256"
    }
}
