//! Folding: computing, while a model is planned, what depends on constants alone.
//!
//! It is done with the references, on the thread that plans, and only within the [`Allowance`] of the
//! model: what is beyond is left to the executions, which have threads and fast kernels, and whose time is the
//! time of whoever asked for them. What is folded does not depend on the speed of the machine.

use burst_hal::{Model, OperandLifeTime, OperationType, Subgraph};
use smallvec::SmallVec;

use super::builder::Builder;
use super::constants::{Constant, copy_of};
use crate::OpError;
use crate::aligned::AlignedBytes;
use crate::kept::What;
use crate::op::{Run, Stages};
use crate::plan::Planned;
use crate::tensor::{Storage, TensorMut, TensorRef, element_count};
use crate::threads::Parallelism;

/// An operation is folded only when its results are at most this large, in bytes.
const MAX_FOLDED_BYTES: usize = 64 << 20;

/// All that is folded of a small model, in bytes. Larger models may fold more: weights of 16 bits that
/// are widened, or of 8 bits.
const MAX_FOLDED_BYTES_OF_SMALL_MODEL: usize = 64 << 20;

/// Bytes folded for each byte of a model's constants: weights of 8 bits become floats.
const MAX_GROWTH: usize = 4;

/// All that is folded in a survey, in bytes: it needs the values that decide shapes and
/// attributes, such as a list of axes.
const MAX_SURVEYED_BYTES: usize = 1 << 20;

/// Steps of work for each byte that may be folded. A step is some nanoseconds: a product, an element
/// that is moved, a function of one value.
const WORK_PER_BYTE: usize = 2;

/// What may still be folded of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Allowance {
    bytes: usize,
    work: usize,
}

impl Allowance {
    /// For a survey.
    pub(super) const OF_SURVEY: Allowance = Allowance::of(MAX_SURVEYED_BYTES);

    const fn of(bytes: usize) -> Self {
        Allowance { bytes, work: bytes.saturating_mul(WORK_PER_BYTE) }
    }

    /// For a plan of this model.
    pub(super) fn of_plan(model: &Model) -> Self {
        let constants = constant_bytes(model).saturating_mul(MAX_GROWTH);
        Allowance::of(constants.saturating_add(MAX_FOLDED_BYTES_OF_SMALL_MODEL))
    }

    /// Takes what an operation needs. Says whether there was enough; nothing is taken otherwise.
    fn take(&mut self, bytes: usize, work: usize) -> bool {
        let (Some(bytes), Some(work)) =
            (self.bytes.checked_sub(bytes), self.work.checked_sub(work))
        else {
            return false;
        };
        *self = Allowance { bytes, work };
        true
    }
}

/// Bytes of the constants of all graphs, at most as many as lie in the model's memory: several operands may
/// name the same.
fn constant_bytes(model: &Model) -> usize {
    let graphs = std::iter::once(&model.main).chain(&model.referenced);
    let named = graphs.flat_map(|graph| &graph.operands).filter(|operand| {
        use OperandLifeTime::{ConstantCopy, ConstantReference};
        matches!(operand.lifetime, ConstantCopy | ConstantReference)
    });
    let named =
        named.fold(0_u64, |sum, operand| sum.saturating_add(u64::from(operand.location.length)));
    let pools = model.pools.iter().fold(0_u64, |sum, pool| sum.saturating_add(pool.len()));
    let present = pools.saturating_add(model.operand_values.len() as u64);
    usize::try_from(named.min(present)).unwrap_or(usize::MAX)
}

/// Steps of work that an operation takes at most which reads and writes so many values.
fn work(op: OperationType, read: usize, written: usize) -> usize {
    let values = read.saturating_add(written);
    // Each output of the others may depend on every input, and each input be compared with every other.
    if is_linear(op) { values } else { values.saturating_mul(values) }
}

/// Whether the work grows no faster than the number of values.
fn is_linear(op: OperationType) -> bool {
    use OperationType as Op;
    matches!(
        op,
        Op::Abs
            | Op::Add
            | Op::Argmax
            | Op::Argmin
            | Op::BatchToSpaceNd
            | Op::Cast
            | Op::ChannelShuffle
            | Op::Concatenation
            | Op::DepthToSpace
            | Op::Dequantize
            | Op::Div
            | Op::Elu
            | Op::Equal
            | Op::Exp
            | Op::ExpandDims
            | Op::Fill
            | Op::Floor
            | Op::Gather
            | Op::Greater
            | Op::GreaterEqual
            | Op::HardSwish
            | Op::InstanceNormalization
            | Op::L2Normalization
            | Op::Less
            | Op::LessEqual
            | Op::Log
            | Op::LogSoftmax
            | Op::LogicalAnd
            | Op::LogicalNot
            | Op::LogicalOr
            | Op::Logistic
            | Op::Maximum
            | Op::Mean
            | Op::Minimum
            | Op::Mul
            | Op::Neg
            | Op::NotEqual
            | Op::Pad
            | Op::PadV2
            | Op::Pow
            | Op::Prelu
            | Op::Quantize
            | Op::Rank
            | Op::ReduceAll
            | Op::ReduceAny
            | Op::ReduceMax
            | Op::ReduceMin
            | Op::ReduceProd
            | Op::ReduceSum
            | Op::Relu
            | Op::Relu1
            | Op::Relu6
            | Op::Reshape
            | Op::Rsqrt
            | Op::Select
            | Op::Sin
            | Op::Slice
            | Op::Softmax
            | Op::SpaceToBatchNd
            | Op::SpaceToDepth
            | Op::Split
            | Op::Sqrt
            | Op::Squeeze
            | Op::StridedSlice
            | Op::Sub
            | Op::Tanh
            | Op::Tile
            | Op::Transpose
    )
}

impl Builder<'_, '_> {
    /// Folds an operation where all its inputs are constants and it is within the allowance. Says
    /// whether it did. An operation that fails now is kept, and fails when the model runs.
    ///
    /// # Errors
    /// What says that planning is to be given up.
    pub(super) fn fold(
        &mut self,
        op: OperationType,
        stages: &dyn Stages,
        inputs: &[usize],
        outputs: &[usize],
    ) -> Result<bool, OpError> {
        if self.graphs.budget.kept().is_restoring() || !self.depends_on_constants(inputs, outputs) {
            return Ok(false);
        }
        let Ok((bytes, work)) = needs(&self.operands, op, inputs, outputs) else {
            return Ok(false);
        };
        if bytes > MAX_FOLDED_BYTES || !self.graphs.allowance.take(bytes, work) {
            return Ok(false);
        }
        match self.compute(stages, inputs, outputs) {
            Ok(results) => {
                self.record(outputs, &results)?;
                for (operand, bytes) in outputs.iter().zip(results) {
                    self.constants[*operand] = Constant::Owned(bytes);
                }
                Ok(true)
            }
            Err(error) if crate::DriverError::given_up(&error).is_some() => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Keeps the results, where they are to be kept.
    fn record(&self, outputs: &[usize], results: &[AlignedBytes]) -> Result<(), OpError> {
        let budget = self.graphs.budget;
        let copies = outputs.iter().zip(results).map(|(operand, value)| {
            let dims = self.operands[*operand].known_dims().into();
            Ok((dims, copy_of(value.as_slice(), budget)?))
        });
        budget.kept().record(What::Results, &[], copies)
    }

    /// Takes the results of an operation that an earlier preparation has folded. Says whether it has.
    pub(super) fn take_kept(&mut self, index: usize) -> bool {
        let Some(values) = self.graphs.budget.kept().take(What::Results) else { return false };
        let outputs = &self.subgraph.operations[index].outputs;
        for (operand, value) in outputs.iter().zip(values) {
            self.operands[*operand as usize].dims = Some(value.dims.clone());
            self.constants[*operand as usize] = Constant::Kept(value);
        }
        self.release_constants(index);
        true
    }

    fn depends_on_constants(&self, inputs: &[usize], outputs: &[usize]) -> bool {
        let has = |operand: usize, lifetime| lifetime_of(self.subgraph, operand) == lifetime;
        let is_constant = |operand: &usize| {
            self.constants[*operand].is_known() || has(*operand, OperandLifeTime::NoValue)
        };
        inputs.iter().all(is_constant)
            && !outputs.iter().any(|operand| has(*operand, OperandLifeTime::SubgraphOutput))
    }

    fn compute(
        &mut self,
        stages: &dyn Stages,
        inputs: &[usize],
        outputs: &[usize],
    ) -> Result<SmallVec<[AlignedBytes; 2]>, OpError> {
        let budget = self.graphs.budget;
        let mut shapes = SmallVec::<[_; 2]>::new();
        let mut results = SmallVec::new();
        for operand in outputs {
            let planned = &self.operands[*operand];
            let dims = planned.dims.clone().ok_or(OpError::NotYet)?;
            let bytes = planned.info.byte_count(&dims)?;
            results.push(AlignedBytes::zeroed(bytes, budget.same_account())?);
            shapes.push(dims);
        }
        let inputs: SmallVec<[TensorRef<'_>; 16]> = inputs
            .iter()
            .map(|operand| {
                let planned = &self.operands[*operand];
                let bytes = self.constants[*operand].bytes();
                TensorRef { info: &planned.info, dims: planned.known_dims(), bytes }
            })
            .collect();
        let mut outputs: SmallVec<[TensorMut<'_>; 2]> = outputs
            .iter()
            .zip(shapes.iter_mut().zip(&mut results))
            .map(|(operand, (dims, bytes))| TensorMut {
                info: &self.operands[*operand].info,
                dims,
                storage: Storage::Fixed(AlignedBytes::as_mut_slice(bytes)),
            })
            .collect();
        stages.execute(&mut Run {
            inputs: &inputs,
            outputs: &mut outputs,
            scratch: &mut self.scratch,
            stop: budget.stop(),
            parallelism: Parallelism::ALONE,
        })?;
        drop(outputs);
        Ok(results)
    }
}

fn lifetime_of(subgraph: &Subgraph, operand: usize) -> OperandLifeTime {
    subgraph.operands[operand].lifetime
}

/// Bytes of the results of an operation, and steps of its work.
fn needs(
    operands: &[Planned],
    op: OperationType,
    inputs: &[usize],
    outputs: &[usize],
) -> Result<(usize, usize), OpError> {
    let (mut bytes, mut written, mut read) = (0_usize, 0_usize, 0_usize);
    for operand in outputs {
        let planned = &operands[*operand];
        let dims = planned.dims.as_ref().ok_or(OpError::NotYet)?;
        bytes = bytes.saturating_add(planned.info.byte_count(dims)?);
        written = written.saturating_add(element_count(dims)?);
    }
    for operand in inputs {
        read = read.saturating_add(element_count(operands[*operand].known_dims())?);
    }
    Ok((bytes, work(op, read, written)))
}
