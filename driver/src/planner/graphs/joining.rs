//! Steps that take over the operation behind them.
//!
//! A network with shortcuts adds to the outputs of a convolution what lay before it. A step of its own for that reads two
//! tensors and writes a third, none of which is in the nearest cache by then; the convolution has each value in it
//! when it writes it.

use burst_hal::OperandLifeTime;

use super::builder::Builder;
use crate::op::FloatSum;

/// How many steps back the one that takes over an ADD may be. Between it and the ADD there is at most what computes the
/// other addend in models known to us, and so a model of many additions is not searched through for each.
const MAX_STEPS_BACK: usize = 4;

impl Builder<'_, '_> {
    /// Lets a step before an ADD of these operands, all of one known shape, compute it. Says whether one does.
    pub(super) fn join(&mut self, sum: FloatSum, inputs: &[usize], outputs: &[usize]) -> bool {
        let (&[a, b, ..], &[output]) = (inputs, outputs) else { return false };
        [(a, b), (b, a)]
            .into_iter()
            .any(|(value, other)| self.join_one(sum, (value, other), output))
    }

    /// As [`Builder::join`], where the step is to be that which computes `value`.
    fn join_one(&mut self, sum: FloatSum, (value, other): (usize, usize), output: usize) -> bool {
        // Nobody else may read it: neither the user nor another operation, earlier or later.
        let is_temporary =
            self.subgraph.operands[value].lifetime == OperandLifeTime::TemporaryVariable;
        if !is_temporary || value == other || self.readers[value] != 1 {
            return false;
        }
        let first = self.steps.len().saturating_sub(MAX_STEPS_BACK);
        let recent = &self.steps[first..];
        let Some(at) = recent.iter().position(|step| *step.outputs == [value]) else {
            return false;
        };
        let (step, later) = (&recent[at], &recent[at + 1..]);
        // The other addend has to be there when the step runs.
        let mut computed = step.outputs.iter().chain(later.iter().flat_map(|step| &*step.outputs));
        let is_late = computed.any(|operand| *operand == other);
        let is_read = later.iter().any(|step| step.inputs.contains(&value));
        let known = |operand: usize| self.operands[operand].dims.as_ref();
        let is_alike = step.fixed_shapes && known(value) == known(other);
        if is_late || is_read || !is_alike {
            return false;
        }
        let step = &mut self.steps[first + at];
        if !step.kernel.as_mut().is_some_and(|kernel| kernel.take_over(sum)) {
            return false;
        }
        step.inputs = step.inputs.iter().copied().chain([other]).collect();
        step.outputs = [output].into();
        self.needed[other] = true;
        true
    }
}
