//! Steps that take over the operation behind them.
//!
//! A network with shortcuts adds to the outputs of a convolution what lay before it. A step of its own for that reads two
//! tensors and writes a third, none of which is in the nearest cache by then; the convolution has each value in it
//! when it writes it. Likewise a convolution of few pixels and the depthwise one behind it: threads that share their channels
//! meet once for both, and none reads what another one has just written in between.

use burst_hal::{MemoryCharge, OperandLifeTime};

use super::builder::Builder;
use crate::op::{Behind, FloatSum, Prepared};

/// How many steps back the one that takes over an ADD may be. Between it and the ADD there is at most what computes the
/// other addend in models known to us, and so a model of many additions is not searched through for each.
const MAX_STEPS_BACK: usize = 4;

impl Builder<'_, '_> {
    /// Lets a step before an operation with this kernel and operands, all of known shapes, compute it, too. Gives back
    /// what no step takes.
    pub(super) fn join(
        &mut self,
        prepared: Option<Prepared>,
        charge: MemoryCharge,
        inputs: &[usize],
        outputs: &[usize],
    ) -> Option<(Option<Prepared>, MemoryCharge)> {
        let &[output] = outputs else { return Some((prepared, charge)) };
        let Some(prepared) = prepared else { return Some((None, charge)) };
        if let Some(sum) = prepared.kernel.as_sum() {
            return (!self.join_sum(sum, inputs, output)).then_some((Some(prepared), charge));
        }
        if prepared.kernel.by_channels().is_none() {
            return Some((Some(prepared), charge));
        }
        let Prepared { kernel, packed_inputs } = prepared;
        let behind = Behind { kernel, charge };
        let Behind { kernel, charge } =
            self.join_channels(behind, &packed_inputs, inputs, output).err()?;
        Some((Some(Prepared { kernel, packed_inputs }), charge))
    }

    /// Lets a step compute this ADD, and says whether one does.
    fn join_sum(&mut self, sum: FloatSum, inputs: &[usize], output: usize) -> bool {
        let &[a, b, ..] = inputs else { return false };
        [(a, b), (b, a)]
            .into_iter()
            .any(|(value, other)| self.join_sum_to(sum, (value, other), output))
    }

    /// As [`Builder::join_sum`], where the step is to be that which computes `value`.
    fn join_sum_to(
        &mut self,
        sum: FloatSum,
        (value, other): (usize, usize),
        output: usize,
    ) -> bool {
        let Some(at) = self.private_source(value).filter(|_| value != other) else { return false };
        let (step, later) = (&self.steps[at], &self.steps[at + 1..]);
        // The other addend has to be there when the step runs.
        let mut computed = step.outputs.iter().chain(later.iter().flat_map(|step| &*step.outputs));
        let is_late = computed.any(|operand| *operand == other);
        let known = |operand: usize| self.operands[operand].dims.as_ref();
        if is_late || known(value) != known(other) {
            return false;
        }
        let step = &mut self.steps[at];
        if !step.kernel.as_mut().is_some_and(|kernel| kernel.take_over(sum)) {
            return false;
        }
        step.inputs = step.inputs.iter().copied().chain([other]).collect();
        step.outputs = [output].into();
        self.needed[other] = true;
        true
    }

    /// Lets the step before it run a kernel that computes channel by channel.
    ///
    /// # Errors
    /// The kernel, where no step takes it.
    fn join_channels(
        &mut self,
        behind: Behind,
        packed_inputs: &[usize],
        inputs: &[usize],
        output: usize,
    ) -> Result<(), Behind> {
        let at = inputs.first().and_then(|value| self.private_source(*value));
        let Some(step) = at.map(|at| &mut self.steps[at]) else { return Err(behind) };
        let Some(kernel) = &mut step.kernel else { return Err(behind) };
        kernel.take_behind(behind)?;
        // The step holds these constants packed as it does its own.
        let own = step.inputs.len();
        let packed = packed_inputs.iter().filter_map(|position| inputs.get(*position));
        step.inputs = step.inputs.iter().chain(packed).copied().collect();
        step.packed_inputs =
            step.packed_inputs.iter().copied().chain(own..step.inputs.len()).collect();
        step.outputs = [output].into();
        Ok(())
    }

    /// The step that computes `value` and nothing else, with known shapes, shortly before the operation that is planned now;
    /// `None` where somebody else may read it, too: the user, or another operation, earlier or later.
    fn private_source(&self, value: usize) -> Option<usize> {
        let lifetime = self.subgraph.operands[value].lifetime;
        if lifetime != OperandLifeTime::TemporaryVariable || self.readers[value] != 1 {
            return None;
        }
        let first = self.steps.len().saturating_sub(MAX_STEPS_BACK);
        let recent = &self.steps[first..];
        let at = recent.iter().position(|step| *step.outputs == [value])?;
        let is_read = recent[at + 1..].iter().any(|step| step.inputs.contains(&value));
        (recent[at].fixed_shapes && !is_read).then_some(first + at)
    }
}
