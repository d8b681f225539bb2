//! What SOFTMAX and LOG_SOFTMAX of floats share: a function of each lane.

use burst_hal::OperandType;
use half::f16;
use smallvec::SmallVec;

use crate::OpError;
use crate::kernels::Isa;
use crate::kernels::lanes::Lanes;
use crate::op::{Checkpoints, Kernel, Prepared, Run};
use crate::ops::activation::SoftmaxAttributes;
use crate::threads::{Tiling, speed};

/// Computes a lane from a lane, with this factor of exponents.
pub(super) type LaneFunction =
    fn(Isa, &[f32], &mut [f32], f32, &mut Checkpoints<'_>) -> Result<(), OpError>;

/// A function of each lane of a tensor of floats; halves are widened, computed and rounded once.
#[derive(Debug)]
pub(super) struct FloatLanes {
    pub(super) function: LaneFunction,
    pub(super) attributes: SoftmaxAttributes,
    pub(super) isa: Isa,
    /// A short name for profiles.
    pub(super) name: &'static str,
}

/// Values of a tile, or a single lane: far below a millisecond.
const TILE_VALUES: usize = 1 << 16;

impl FloatLanes {
    pub(super) fn prepared(self) -> Prepared {
        Prepared { kernel: Box::new(self), packed_inputs: SmallVec::new() }
    }
}

impl Kernel for FloatLanes {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        let input = run.input(0)?;
        let SoftmaxAttributes { axis, beta } = self.attributes;
        let lanes = Lanes::new(input.dims, axis.position(input.dims.len())?);
        let stop = run.stop;
        let lane = |read: &[f32], write: &mut [f32], checkpoints: &mut Checkpoints<'_>| {
            (self.function)(self.isa, read, write, beta, checkpoints)
        };
        let (out, mut runner) = run.output_and_runner()?;
        match out.info.ty {
            // Lanes lie in one piece each, one behind the other.
            OperandType::TensorFloat32 if lanes.inner == 1 => {
                let (input, out, len) = (input.f32()?, out.f32_mut()?, lanes.len.max(1));
                if input.len() != out.len() {
                    return Err(OpError::Internal { what: "an output has not its input's length" });
                }
                let tiling = Tiling {
                    row_len: len,
                    step: 1,
                    share_step: Some(1),
                    least: 1,
                    most: (TILE_VALUES / len).max(1),
                    nanos: speed::nanos(&[out.len()], 1),
                };
                runner.tiles(&tiling, out, |first, out, _| {
                    let mut checkpoints = stop.checkpoints();
                    let rows =
                        input[first * len..].chunks_exact(len).zip(out.chunks_exact_mut(len));
                    for (read, write) in rows {
                        lane(read, write, &mut checkpoints)?;
                    }
                    Ok(())
                })
            }
            OperandType::TensorFloat32 => {
                let work = (runner.scratch.f32(2 * lanes.len)?, stop.checkpoints());
                lanes.map(input.f32()?, out.f32_mut()?, work, (|x| x, |x| x), lane)
            }
            _ => {
                let work = (runner.scratch.f32(2 * lanes.len)?, stop.checkpoints());
                let convert = (f16::to_f32, f16::from_f32);
                lanes.map(input.f16()?, out.f16_mut()?, work, convert, lane)
            }
        }
    }

    fn name(&self) -> &'static str {
        self.name
    }
}
