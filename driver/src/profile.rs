//! Where the time of a model goes, operation by operation.

use std::time::Duration;

use burst_hal::validate::UnspecifiedOutputs;
use burst_hal::{Dimensions, LOOP_TIMEOUT_MAXIMUM, OperandType, OperationType, Request};

use crate::arguments::copy_in;
use crate::error::DriverError;
use crate::plan::{GraphPlan, Planned, Step};
use crate::prepared::CpuPreparedModel;
use crate::stop::Stop;
use crate::threads::Parallelism;

/// What one operation of a model's main graph took. An IF or WHILE includes the graphs it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationProfile {
    /// Position of the operation in the model's main graph.
    pub index: usize,
    /// What it computes.
    pub operation: OperationType,
    /// The kernel that was chosen for it when the model was prepared; `None`: its reference.
    pub kernel: Option<&'static str>,
    /// Time over all executions.
    pub time: Duration,
    /// Multiplications that are added up in one execution: those of convolutions, fully connected
    /// layers and recurrent cells. `None` for other operations and where shapes are not known.
    pub macs: Option<u64>,
    /// The type of its first input, which says whether floats or stored values are multiplied.
    pub input: Option<OperandType>,
    /// Bytes of all that it reads and writes in one execution, each once; `None` where shapes are not known.
    pub bytes: Option<u64>,
    /// The shape of its first output; `None` where it is not the same in every execution.
    pub output: Option<Dimensions>,
}

impl CpuPreparedModel {
    /// Runs a request `executions` times and measures the time of each operation. Operations that were
    /// computed when the model was prepared are not among them, nor is an ADD that the kernel before it computes,
    /// whose name then says so. Outputs are computed and thrown away.
    ///
    /// # Errors
    /// As for an execution.
    pub fn profile(
        &self,
        request: &Request,
        executions: u32,
    ) -> Result<Vec<OperationProfile>, DriverError> {
        self.rules.check(request, UnspecifiedOutputs::Allowed)?;
        let plan = self.plan();
        let mut context = self.new_context()?;
        let mut times = vec![Duration::ZERO; plan.main.steps.len()];
        for _ in 0..executions {
            let scope = self.begin(&context);
            let parallelism = Parallelism::of(scope.as_ref());
            for index in 0..request.inputs.len() {
                copy_in(&mut context, plan, request, index, parallelism)?;
            }
            context.run_timed(
                plan,
                Stop::default(),
                LOOP_TIMEOUT_MAXIMUM,
                parallelism,
                &mut times,
            )?;
            context.expects_help = scope.is_some_and(|scope| scope.has_shared_work());
        }
        let steps = plan.main.steps.iter().zip(times);
        let profile = steps.map(|(step, time)| OperationProfile {
            index: step.index,
            operation: step.op,
            kernel: step.kernel.as_ref().map(|kernel| kernel.name()),
            time,
            macs: macs(&plan.main, step),
            input: step.inputs.first().map(|input| plan.main.operands[*input].info.ty),
            bytes: bytes(&plan.main, step),
            output: step
                .outputs
                .first()
                .and_then(|output| plan.main.operands[*output].dims.clone()),
        });
        Ok(profile.collect())
    }
}

/// Multiply-accumulates of one execution of a step, where its shapes are known.
pub(crate) fn macs(graph: &GraphPlan, step: &Step) -> Option<u64> {
    use OperationType as Op;
    let dims = |operand: &usize| graph.operands[*operand].dims.as_deref();
    let input = |position: usize| dims(step.inputs.get(position)?);
    let output = || elements(dims(step.outputs.first()?)?);
    if let Some(products) = step.kernel.as_ref().and_then(|kernel| kernel.products()) {
        return Some(products);
    }
    match step.op {
        // Filter [depth_out, height, width, depth_in]: every output value is a sum over one
        // filter; of a transposed convolution every input value meets every filter.
        Op::Conv2d | Op::GroupedConv2d => product(output()?, input(1)?.get(1..)?),
        Op::TransposeConv2d => product(elements(input(0)?)?, input(1)?.get(..3)?),
        // Filter [1, height, width, depth_out].
        Op::DepthwiseConv2d => product(output()?, input(1)?.get(1..3)?),
        // Weights [units, input size].
        Op::FullyConnected => product(output()?, input(1)?.get(1..)?),
        Op::Lstm => product(weights(step, dims, 1..9, Some(16))?, input(0)?.get(..1)?),
        Op::UnidirectionalSequenceLstm => {
            product(weights(step, dims, 1..9, Some(16))?, input(0)?.get(..2)?)
        }
        Op::Rnn => product(weights(step, dims, 1..3, None)?, input(0)?.get(..1)?),
        Op::UnidirectionalSequenceRnn => {
            product(weights(step, dims, 1..3, None)?, input(0)?.get(..2)?)
        }
        // A filter per feature and one over the memory, each applied once per batch.
        Op::Svdf => product(weights(step, dims, 1..3, None)?, input(0)?.get(..1)?),
        _ => None,
    }
}

/// Bytes of the operands of a step, where their shapes are known; one that is left out has none.
fn bytes(graph: &GraphPlan, step: &Step) -> Option<u64> {
    let of = |operand: &usize| {
        let Planned { info, dims, .. } = &graph.operands[*operand];
        info.ty.byte_length(dims.as_deref()?)
    };
    step.inputs.iter().chain(&step.outputs).try_fold(0_u64, |sum, one| sum.checked_add(of(one)?))
}

/// Elements of the weight matrices at these inputs; those that are left out have none.
fn weights<'a>(
    step: &Step,
    dims: impl Fn(&usize) -> Option<&'a [u32]>,
    matrices: std::ops::Range<usize>,
    projection: Option<usize>,
) -> Option<u64> {
    let mut sum = 0_u64;
    for position in matrices.chain(projection) {
        let matrix = step.inputs.get(position).and_then(&dims).unwrap_or_default();
        if matrix.len() == 2 {
            sum = sum.checked_add(elements(matrix)?)?;
        }
    }
    Some(sum)
}

fn elements(dims: &[u32]) -> Option<u64> {
    product(1, dims)
}

fn product(first: u64, factors: &[u32]) -> Option<u64> {
    factors.iter().try_fold(first, |product, factor| product.checked_mul(u64::from(*factor)))
}
